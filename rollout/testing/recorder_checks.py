"""The conformance suite of recorders, and a recorder in memory that checks fragments."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from rollout.api import Array, Fragment, Recorder
from rollout.errors import ContractError, DatasetError, OutOfTurnError
from rollout.testing.compare import same
from rollout.testing.fragments import make_fragments
from rollout.testing.report import Report, Suite, must_raise, require

MakeRecorder: TypeAlias = Callable[[], Recorder]
"""Returns a recorder that begins a new recording at each call."""

ReadBack: TypeAlias = Callable[[Recorder], Mapping[str, Array]]
"""Returns every readable row of a recording, as columns of equal length.

Columns that are checked: ``episode``, ``attempt``, ``step``, ``reward``, ``first``,
``terminated``, ``truncated`` and ``lost``. Episodes may come in any order; the rows of an episode
must come in the order of its steps.
"""

_COLUMNS = ("episode", "attempt", "step", "reward", "first", "terminated", "truncated", "lost")
_Episodes: TypeAlias = dict[tuple[int, int], list[tuple[float, ...]]]


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


@dataclass
class _Case:
    """A recorder under test, and how it is read."""

    make_recorder: MakeRecorder
    read_back: ReadBack

    def recorder_of(self, fragments: Sequence[Fragment]) -> Recorder:
        """Returns an open recorder with these fragments."""
        recorder = self.make_recorder()
        for fragment in fragments:
            recorder.append(fragment)
        return recorder

    def check_kept(self, fragments: Sequence[Fragment]) -> str:
        """Checks that all fragments can be read once the recorder is closed."""
        recorder = self.recorder_of(fragments)
        recorder.close()
        return _check_kept(fragments, self.read_back(recorder))


def check_recorder(
    make_recorder: MakeRecorder, read_back: ReadBack, *, timeout_s: float = 60.0
) -> Report:
    """Returns whether a recorder stores what it receives.

    The fragments are those of a ``FakeBridge``; see ``make_fragments``.

    Args:
        make_recorder: makes a recorder, with a new recording each time.
        read_back: reads a recording; called while the recorder is open and after it is closed.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "keeps every row in order": _keeps,
        "keeps several instances apart": _several,
        "ended episodes are kept by append": _ended,
        "flush keeps every row": _flush,
        "lost episodes are kept": _lost,
        "idle rows are left out": _idle,
        "refuses other columns": _refuses,
        "close is idempotent": _close,
        "append after close is refused": _after_close,
        "an empty recording can be closed": _empty,
    }
    return Suite("recorder", timeout_s).run(checks, _Case(make_recorder, read_back))


def rows_of(fragments: Sequence[Fragment]) -> dict[str, Array]:
    """Returns the rows of fragments as flat columns, slot by slot, without idle rows."""
    columns: dict[str, list[Array]] = defaultdict(list)
    for fragment in fragments:
        for slot in range(fragment.width):
            rows = np.flatnonzero(fragment.valid[:, slot])
            starts = [fragment.starts[i] for i in fragment.start_index[rows, slot]]
            columns["episode"].append(np.array([s.episode for s in starts], np.int64))
            columns["attempt"].append(np.array([s.attempt for s in starts], np.int64))
            for name in _COLUMNS[2:]:
                columns[name].append(getattr(fragment, name)[rows, slot])
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _episodes(columns: Mapping[str, Array]) -> _Episodes:
    missing = [name for name in _COLUMNS if name not in columns]
    require(not missing, f"read_back gave no columns {missing}")
    out: _Episodes = defaultdict(list)
    rows = zip(*(np.asarray(columns[name]).tolist() for name in _COLUMNS), strict=True)
    for episode, attempt, *values in rows:
        out[episode, attempt].append(tuple(float(v) for v in values))
    for key, steps in out.items():
        numbers = [int(values[0]) for values in steps]
        require(
            numbers == list(range(numbers[0], numbers[0] + len(numbers))),
            f"episode {key[0]}: the steps come back as {numbers}",
        )
    return dict(out)


def _check_kept(expected: Sequence[Fragment], got: Mapping[str, Array]) -> str:
    want, have = _episodes(rows_of(expected)), _episodes(got)
    missing = sorted(want.keys() - have.keys())
    extra = sorted(have.keys() - want.keys())
    require(
        not missing and not extra,
        f"episodes (number, attempt) missing: {missing}, never recorded: {extra}",
    )
    for key, steps in want.items():
        require(
            steps == have[key],
            f"episode {key[0]} has {len(have[key])} rows, {len(steps)} were recorded, "
            f"or values differ",
        )
    return f"{sum(map(len, want.values()))} rows of {len(want)} episodes"


def _keeps(case: _Case) -> str:
    return case.check_kept(make_fragments(3))


def _several(case: _Case) -> str:
    streams = [make_fragments(3, seed=k, instance=k) for k in range(2)]
    return case.check_kept([fragment for pair in zip(*streams, strict=True) for fragment in pair])


def _ended(case: _Case) -> str:
    (fragment,) = make_fragments(1, length=32)
    recorder = case.make_recorder()
    recorder.append(fragment)
    have = _episodes(case.read_back(recorder))
    ended = {(r.start.episode, r.start.attempt): r.length for r in fragment.results}
    recorder.close()
    require(ended, "the fragments of the suite end no episode")
    for key, length in ended.items():
        kept = len(have.get(key, ()))
        require(kept == length, f"episode {key[0]} ended with {length} rows, {kept} can be read")
    return f"{len(ended)} episodes that ended can be read while recording"


def _flush(case: _Case) -> str:
    fragments = make_fragments(2)
    recorder = case.recorder_of(fragments)
    recorder.flush()
    seen = _check_kept(fragments, case.read_back(recorder))
    recorder.close()
    return seen


def _lost(case: _Case) -> str:
    fragments = make_fragments(3, lost_after=(0,))
    seen = case.check_kept(fragments)
    return f"{seen}, {sum(len(f.losses) for f in fragments)} of them lost"


def _idle(case: _Case) -> str:
    fragments = make_fragments(3, episodes=3)
    seen = case.check_kept(fragments)
    idle = sum(int((~f.valid).sum()) for f in fragments)
    require(idle, "the fragments of the suite have no idle rows")
    return f"{seen}, {idle} idle rows left out"


def _refuses(case: _Case) -> str:
    fragments = make_fragments(2)
    second = fragments[1]
    changes: dict[str, dict[str, Any]] = {
        "another observation dtype": {
            "observations": {k: v.astype(np.float64) for k, v in second.observations.items()}
        },
        "an action less": {"actions": {}},
        "an extra more": {"extras": {**second.extras, "undeclared": second.reward}},
        "a signal of another shape": {
            "signals": {k: v[..., None] for k, v in second.signals.items()}
        },
    }
    for what, columns in changes.items():
        recorder = case.recorder_of(fragments[:1])
        with closing(recorder):
            changed = dataclasses.replace(second, **columns)
            must_raise(DatasetError, partial(recorder.append, changed), f"a fragment with {what}")
            recorder.append(second)  # still works after the refusal
        _check_kept(fragments, case.read_back(recorder))
    return ", ".join(changes)


def _close(case: _Case) -> str:
    fragments = make_fragments(1)
    recorder = case.recorder_of(fragments)
    recorder.close()
    recorder.close()
    _check_kept(fragments, case.read_back(recorder))
    return "twice"


def _after_close(case: _Case) -> str:
    fragments = make_fragments(2)
    recorder = case.recorder_of(fragments[:1])
    recorder.close()
    must_raise(OutOfTurnError, partial(recorder.append, fragments[1]), "a fragment after close")
    return _check_kept(fragments[:1], case.read_back(recorder))


def _empty(case: _Case) -> str:
    recorder = case.make_recorder()
    recorder.flush()
    recorder.close()
    return "no fragment, no error"
