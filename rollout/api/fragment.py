"""A fragment: consecutive steps of one instance, as columns; and the interface of recorders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rollout.api.bridge import Start
from rollout.api.calls import NO_USAGE, Usage
from rollout.api.task import Outcome
from rollout.api.types import Bools, Columns, Details, Floats, Ints
from rollout.errors import ContractError

End = Literal["terminated", "truncated", "lost"]
Phase = Literal["start", "reset", "step", "policy", "close", "actor"]


@dataclass(frozen=True, slots=True)
class EpisodeResult:
    """Result of one episode.

    Attributes:
        start: its start.
        instance: number of the instance that played it.
        slot: its slot in the instance.
        end: exactly one of terminated, truncated, lost.
        outcome: the evaluator's decision; ``RUNNING`` if there was none.
        length: number of completed steps.
        total_reward: undiscounted sum of rewards.
        progress: last progress, 0 to 1, NaN if undefined.
        seconds: wall time from the reset to the end.
        notice: the message of the game or the policy about the end; usually empty.
        usage: the calls of models in the episode.
        notes: for reports: what the evaluator notes, and ``roles``: calls of models by their roles.
    """

    start: Start
    instance: int
    slot: int
    end: End
    outcome: Outcome
    length: int
    total_reward: float
    progress: float
    seconds: float
    notice: str = ""
    usage: Usage = NO_USAGE
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loss:
    """An episode lost to an infrastructure failure. Never a result; always counted and retried.

    Attributes:
        start: the episode that was lost.
        instance: number of the instance.
        slot: its slot.
        phase: the phase of the failure: start, reset, step, policy, ...
        reason: the cause, with the last lines of the game's stderr.
        steps: steps that had been completed.
        trace: the traceback of the code of a plug-in that raised an error; empty if none did.
    """

    start: Start
    instance: int
    slot: int
    phase: Phase
    reason: str
    steps: int
    trace: str = ""


@dataclass(slots=True)
class Fragment:
    """Steps ``t = 0 .. T-1`` of the ``B`` slots of one instance.

    Row ``(t, b)`` is one step: the observation the policy saw, the action it chose, and the
    result. When an episode ends at ``(t, b)``, row ``(t+1, b)`` is already the first step of the
    next one, so no row is spent on a reset; the observation that followed the last action, the
    true final observation, is kept in ``final_observations``.

    Attributes:
        instance: number of the instance in its run.
        incarnation: how often the instance has been replaced; older incarnations are stale.
        starts: every episode that has a row here, has just begun, or was lost.
        start_index: ``(T, B)`` int32 into ``starts``; -1 where the slot was idle. Idle rows hold
            no step and are skipped everywhere.
        step: ``(T, B)`` int32, number of the step in its episode, from 0.
        observations: ``{key: (T, B, ...)}`` before the action.
        actions: ``{key: (T, B, ...)}``.
        extras: ``{key: (T, B, ...)}`` of the policy: logp, value, calls.
        reward: ``(T, B)`` float32.
        progress: ``(T, B)`` float32.
        outcome: ``(T, B)`` int8, see ``Outcome``.
        signals: ``{key: (T, B)}`` after the action.
        tick: ``(T, B)`` int64 game time after the action.
        first: ``(T, B)`` bool, the row is the first of its episode.
        terminated: ``(T, B)`` bool, the game or the task decided.
        truncated: ``(T, B)`` bool, a limit was reached.
        lost: ``(T, B)`` bool, the infrastructure failed after this row.
        version: ``(T,)`` int64, weights that chose the actions.
        wall_time: ``(T,)`` float64, Unix time in seconds when the result came.
        latency: ``(T,)`` float32, seconds the game took for the step.
        details: per step, per slot, what had no fixed shape before the action; None if nothing.
        final_index: ``(K, 2)`` int64, ``(t, b)`` of every episode end, in the order of ``t``.
        final_observations: ``{key: (K, ...)}`` after the last action of each.
        final_details: likewise for details.
        next_observations: ``{key: (B, ...)}`` after the last row: what the next fragment begins
            with, and the final observation where the last row ended an episode.
        memory: the policy's memory before the first row, ``{key: (B, ...)}``.
        results: every episode that ended here, lost ones included.
        losses: every episode that was lost here, including those without a row.
    """

    instance: int
    incarnation: int
    starts: tuple[Start, ...]
    start_index: NDArray[np.int32]
    step: NDArray[np.int32]
    observations: Columns
    actions: Columns
    extras: Columns
    reward: Floats
    progress: Floats
    outcome: NDArray[np.int8]
    signals: Columns
    tick: Ints
    first: Bools
    terminated: Bools
    truncated: Bools
    lost: Bools
    version: Ints
    wall_time: NDArray[np.float64]
    latency: Floats
    final_index: Ints
    final_observations: Columns
    next_observations: Columns
    memory: Columns = field(default_factory=dict)
    details: Sequence[Sequence[Details | None]] | None = None
    final_details: Sequence[Details | None] | None = None
    results: tuple[EpisodeResult, ...] = ()
    losses: tuple[Loss, ...] = ()

    @property
    def length(self) -> int:
        """Number of steps T."""
        return int(self.start_index.shape[0])

    @property
    def width(self) -> int:
        """Number of slots B."""
        return int(self.start_index.shape[1])

    @property
    def valid(self) -> Bools:
        """True for rows that hold a step, ``(T, B)`` bool."""
        mask: Bools = self.start_index >= 0
        return mask

    @property
    def done(self) -> Bools:
        """True for the last row of each episode, for any reason, ``(T, B)`` bool."""
        mask: Bools = self.terminated | self.truncated | self.lost
        return mask

    @property
    def env_steps(self) -> int:
        """Number of rows that hold a step."""
        return int(np.count_nonzero(self.start_index >= 0))

    def check(self) -> None:
        """Checks the invariants of the layout.

        Raises:
            ContractError: an invariant is violated; the message names the column or the row.
        """
        self._check_shapes()
        self._check_ends()
        self._check_rows()
        self._check_finals()
        self._check_results()

    def _check_shapes(self) -> None:
        t, b = self.length, self.width
        self._expect((t, b), *_ROWS, *_MASKS, "observations", "actions", "extras", "signals")
        self._expect((t,), "version", "wall_time", "latency")
        for name in _MASKS:
            if getattr(self, name).dtype != bool:
                raise ContractError(f"{name}: expected bool, got {getattr(self, name).dtype}")

    def _expect(self, leading: tuple[int, ...], *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            keyed = isinstance(value, dict)
            arrays = {f"{name}/{k}": v for k, v in value.items()} if keyed else {name: value}
            for key, array in arrays.items():
                if array.shape[: len(leading)] != leading:
                    raise ContractError(f"{key}: expected {leading} and more, got {array.shape}")

    def _check_finals(self) -> None:
        """Checks final and next observations, memory and details."""
        t, b, ends = self.length, self.width, len(self.final_index)
        self._expect((ends,), "final_observations")
        self._expect((b,), "next_observations", "memory")
        for name in ("final_observations", "next_observations"):
            columns = getattr(self, name)
            if columns.keys() != self.observations.keys():
                raise ContractError(
                    f"{name}: expected the keys {sorted(self.observations)}, got {sorted(columns)}"
                )
        if self.details is not None and (
            len(self.details) != t
            or any(len(row) != b for row in self.details)
            or self.final_details is None
            or len(self.final_details) != ends
        ):
            raise ContractError(f"details: expected {t} rows of {b}, and {ends} final ones")

    def _check_ends(self) -> None:
        ends = self.terminated.astype(np.int8) + self.truncated + self.lost
        if (ends > 1).any():
            raise ContractError("a row is the end of its episode in more than one way")
        if (self.done & ~self.valid).any() or (self.first & ~self.valid).any():
            raise ContractError("an idle row carries a mask")
        where = np.argwhere(self.done)
        if not np.array_equal(where, self.final_index):
            raise ContractError(
                f"final_index must list every end in order: expected {where.tolist()}, "
                f"got {self.final_index.tolist()}"
            )

    def _check_rows(self) -> None:
        valid, done = self.valid, self.done
        if self.start_index.max(initial=-1) >= len(self.starts):
            raise ContractError(
                f"start_index: expected numbers below {len(self.starts)}, the number of starts, "
                f"got {self.start_index.max()}"
            )
        if (self.first != (valid & (self.step == 0))).any():
            raise ContractError("first must mark exactly the rows with step 0")
        going_on = valid[:-1] & ~done[:-1]
        if not valid[1:][going_on].all():
            raise ContractError("a slot is idle within an episode")
        same = valid[1:] & going_on
        if not (
            (self.step[1:][same] == self.step[:-1][same] + 1).all()
            and (self.start_index[1:][same] == self.start_index[:-1][same]).all()
        ):
            raise ContractError("steps of an episode must be consecutive within a slot")
        after = valid[1:] & done[:-1]
        if not self.first[1:][after].all():
            raise ContractError("the row after an end must be the first of the next episode")

    def _check_results(self) -> None:
        """Checks that every end has a result and every loss is listed; a loss may have no row."""
        rows = set()
        for t, b in self.final_index.tolist():
            start = self.starts[int(self.start_index[t, b])]
            end = next(n for n in ("terminated", "truncated", "lost") if getattr(self, n)[t, b])
            rows.add((start.episode, start.attempt, b, end))
        listed = {(r.start.episode, r.start.attempt, r.slot, r.end) for r in self.results}
        missing = rows - listed
        extra = {r for r in listed - rows if r[3] != "lost"}
        if missing or extra:
            raise ContractError(
                f"results must list every end, as (episode, attempt, slot, end): "
                f"missing {sorted(missing)}, without a row {sorted(extra)}"
            )
        lost = {r[:3] for r in listed | rows if r[3] == "lost"}
        losses = {(x.start.episode, x.start.attempt, x.slot) for x in self.losses}
        if not lost <= losses:
            raise ContractError(f"losses must list every lost episode: {sorted(lost - losses)}")


_MASKS = ("first", "terminated", "truncated", "lost")
_ROWS = ("step", "reward", "progress", "outcome", "tick")


class Recorder(Protocol):
    """Takes fragments in the order each instance played them.

    Once ``append`` has returned, every episode that ended in the fragment survives the death of
    this process; once ``flush`` has returned, every row survives even a failure of the machine.
    """

    def append(self, fragment: Fragment) -> None:
        """Stores a fragment.

        Raises:
            DatasetError: its columns are not those of the dataset.
            OutOfTurnError: the recorder was closed.
        """
        ...

    def flush(self) -> None:
        """Writes everything to disk (fsync)."""
        ...

    def close(self) -> None:
        """Finishes the recording. Idempotent."""
        ...
