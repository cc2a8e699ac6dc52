"""A recorder that keeps fragments in memory and checks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollout.api import Fragment
from rollout.errors import ContractError, DatasetError, OutOfTurnError
from rollout.testing.compare import same


class MemoryRecorder:
    """Keeps fragments; refuses those with a wrong layout or a gap to their predecessor.

    Attributes:
        fragments: in the order of arrival.
        closed: whether ``close`` was called.
    """

    def __init__(self) -> None:
        self.fragments: list[Fragment] = []
        self.closed = False
        self._columns: dict[str, Any] | None = None
        self._last: dict[int, Fragment] = {}
        self._begun: set[tuple[int, int, int]] = set()

    def append(self, fragment: Fragment) -> None:
        """Keeps a fragment; see ``rollout.api.Recorder``.

        Raises:
            ContractError: the layout is wrong, a slot does not continue where the instance's last
                fragment ended, or an episode begins twice.
        """
        if self.closed:
            raise OutOfTurnError("the recorder was closed; open another one")
        fragment.check()
        columns = {
            f"{group}/{key}": (array.shape[2:], array.dtype)
            for group in ("observations", "actions", "extras", "signals")
            for key, array in getattr(fragment, group).items()
        }
        if self._columns is not None and columns != self._columns:
            raise DatasetError(
                f"a fragment has other columns than the first: expected {self._columns}, "
                f"got {columns}"
            )
        before = self._last.get(fragment.instance)
        if before is not None:
            check_continues(before, fragment)
        starts = [fragment.starts[i] for i in fragment.start_index[fragment.first]]
        begun = {(fragment.instance, start.episode, start.attempt) for start in starts}
        twice = sorted(begun & self._begun)
        if twice or len(begun) != len(starts):
            raise ContractError(
                f"an episode begins twice: (instance, episode, attempt) {twice or starts}; "
                f"an episode that is tried again counts its attempts up"
            )
        self._begun |= begun
        self._columns = columns
        self._last[fragment.instance] = fragment
        self.fragments.append(fragment)

    def flush(self) -> None:
        """Does nothing; memory has nothing to flush."""

    def close(self) -> None:
        """Finishes the recording; idempotent."""
        self.closed = True


def check_continues(before: Fragment, after: Fragment) -> None:
    """Checks that ``after`` is the next fragment of the instance that played ``before``.

    Raises:
        ContractError: the message names the slot and the discontinuity.
    """
    name = f"instance {after.instance}"
    if after.incarnation < before.incarnation:
        raise ContractError(
            f"{name}: a fragment of incarnation {after.incarnation} came after one of "
            f"{before.incarnation}; fragments of replaced instances are stale, drop them"
        )
    if after.width != before.width:
        raise ContractError(f"{name}: the width went from {before.width} to {after.width}")
    if not before.length or not after.length:
        return
    replaced = after.incarnation > before.incarnation
    for slot in np.flatnonzero(after.valid[0]).tolist():
        name = f"instance {after.instance} slot {slot}"
        last, step = int(before.step[-1, slot]), int(after.step[0, slot])
        if replaced or not before.valid[-1, slot] or before.done[-1, slot]:
            if step != 0:
                raise ContractError(
                    f"{name}: expected the first step of an episode, got step {step}"
                )
            continue
        old = before.starts[before.start_index[-1, slot]]
        new = after.starts[after.start_index[0, slot]]
        if step != last + 1 or (old.episode, old.attempt) != (new.episode, new.attempt):
            raise ContractError(
                f"{name}: expected step {last + 1} of episode {old.episode}, "
                f"got step {step} of episode {new.episode}"
            )
        for key, promised in before.next_observations.items():
            if not same(promised[slot], after.observations[key][0, slot]):
                raise ContractError(
                    f"{name}: the observation {key!r} is not the one the last fragment promised in "
                    f"next_observations; copy what an instance returns, its arrays are buffers"
                )
