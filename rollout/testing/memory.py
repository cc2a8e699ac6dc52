"""A recorder that keeps fragments in memory and checks them."""

from __future__ import annotations

import itertools

import numpy as np

from rollout.api import EpisodeResult, Fragment, Loss
from rollout.errors import ContractError, DatasetError, OutOfTurnError
from rollout.testing.compare import same

Columns = dict[str, tuple[tuple[int, ...], np.dtype[np.generic]]]


class MemoryRecorder:
    """Keeps fragments; refuses those with a wrong layout or a gap to their predecessor.

    Attributes:
        fragments: in the order of arrival.
        flushes: number of calls of ``flush``.
        closed: whether ``close`` was called.
    """

    def __init__(self) -> None:
        self.fragments: list[Fragment] = []
        self.flushes = 0
        self.closed = False
        self._columns: Columns | None = None
        self._last: dict[int, Fragment] = {}
        self._begun: set[tuple[int, int, int]] = set()

    def append(self, fragment: Fragment) -> None:
        """Keeps a fragment; see ``rollout.api.Recorder``.

        Raises:
            ContractError: the layout is wrong, or a slot does not continue where the instance's
                last fragment ended.
        """
        if self.closed:
            raise OutOfTurnError("the recorder was closed; open another one")
        fragment.check()
        columns = _columns(fragment)
        if self._columns is not None and columns != self._columns:
            raise DatasetError(
                f"a fragment has other columns than the first: expected {self._columns}, "
                f"got {columns}"
            )
        before = self._last.get(fragment.instance)
        if before is not None:
            check_continues(before, fragment)
        self._begun |= self._beginnings(fragment)
        self._columns = columns
        self._last[fragment.instance] = fragment
        self.fragments.append(fragment)

    def _beginnings(self, fragment: Fragment) -> set[tuple[int, int, int]]:
        """Instance, episode and attempt of everything that begins here; nothing begins twice."""
        starts = [fragment.starts[i] for i in fragment.start_index[fragment.first]]
        begun = {(fragment.instance, start.episode, start.attempt) for start in starts}
        twice = sorted(begun & self._begun)
        if twice or len(begun) != len(starts):
            raise ContractError(
                f"an episode begins twice: (instance, episode, attempt) {twice or starts}; "
                f"an episode that is tried again counts its attempts up"
            )
        return begun

    def flush(self) -> None:
        """Counts the call; memory has nothing to flush."""
        self.flushes += 1

    def close(self) -> None:
        """Finishes the recording; idempotent."""
        self.closed = True

    @property
    def results(self) -> list[EpisodeResult]:
        """Every episode that ended, in the order of the reports."""
        return list(itertools.chain.from_iterable(f.results for f in self.fragments))

    @property
    def losses(self) -> list[Loss]:
        """Every episode that was lost."""
        return list(itertools.chain.from_iterable(f.losses for f in self.fragments))

    @property
    def env_steps(self) -> int:
        """Number of recorded steps."""
        return sum(f.env_steps for f in self.fragments)


def _columns(fragment: Fragment) -> Columns:
    return {
        f"{group}/{key}": (array.shape[2:], array.dtype)
        for group in ("observations", "actions", "extras", "signals")
        for key, array in getattr(fragment, group).items()
    }


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
    for slot in np.flatnonzero(after.valid[0]):
        open_ = bool(before.valid[-1, slot]) and not before.done[-1, slot]
        _check_slot(before, after, int(slot), f"{name} slot {slot}", goes_on=open_ and not replaced)


def _check_slot(before: Fragment, after: Fragment, slot: int, name: str, *, goes_on: bool) -> None:
    step = int(after.step[0, slot])
    if not goes_on:
        if step != 0:
            raise ContractError(f"{name}: expected the first step of an episode, got step {step}")
        return
    last = int(before.step[-1, slot])
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
