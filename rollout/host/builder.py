"""Writes the steps of one instance directly into the arrays of a fragment."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from rollout.api import (
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    EpisodeResult,
    Fragment,
    Frame,
    Loss,
    Start,
    allocate,
    details_for_policies,
)
from rollout.api.types import Bools
from rollout.host.policy_calls import read_only
from rollout.host.referee import Ruling

_SCALARS = 4  # so many signals are copied faster together than one by one


def _allocate(specs: dict[str, ColumnSpec], *leading: int) -> Columns:
    return {k: np.zeros((*leading, *s.shape), np.dtype(s.dtype)) for k, s in specs.items()}


class FragmentBuilder:
    """A fragment under construction.

    Observations have one row more than steps: row ``t`` is what the policy sees before step ``t``.
    So a frame is copied once, from the game to where the learner and the recorder read it.

    Attributes:
        row: number of completed steps.
    """

    def __init__(
        self,
        spec: BridgeSpec,
        extras: dict[str, ColumnSpec],
        *,
        width: int,
        steps: int,
        instance: int,
        incarnation: int,
    ) -> None:
        t, b = steps, width
        self.row = 0
        self.capacity = steps
        self.began = time.monotonic()
        self._spec, self._width = spec, width
        self._observations = allocate(spec.observation_space, t + 1, b)
        self._final: list[tuple[int, int, Columns, Details | None]] = []
        self._starts: list[Start] = []
        self._index: dict[tuple[int, int], int] = {}
        self._slot_index = np.full(b, -1, np.int32)
        self._numbers = np.arange(t, dtype=np.int32)
        self._details: list[list[Details | None]] | None = None
        self._memory: Columns | None = None
        self._version = 0  # of all rows from the current one on
        self._results: list[EpisodeResult] = []
        self._losses: list[Loss] = []
        self._f = Fragment(
            instance=instance,
            incarnation=incarnation,
            starts=(),
            start_index=np.full((t, b), -1, np.int32),
            step=np.zeros((t, b), np.int32),
            observations=self._observations,
            actions=allocate(spec.action_space, t, b),
            extras=_allocate(extras, t, b),
            reward=np.zeros((t, b), np.float32),
            progress=np.zeros((t, b), np.float32),
            outcome=np.zeros((t, b), np.int8),
            signals=self._allocate_signals(t, b),
            tick=np.zeros((t, b), np.int64),
            first=np.zeros((t, b), bool),
            terminated=np.zeros((t, b), bool),
            truncated=np.zeros((t, b), bool),
            lost=np.zeros((t, b), bool),
            version=np.zeros(t, np.int64),
            wall_time=np.zeros(t, np.float64),
            latency=np.zeros(t, np.float32),
            final_index=np.zeros((0, 2), np.int64),
            final_observations={},
            next_observations={},
        )
        # Bound once: attribute look-ups are a visible part of the cost of a one-slot step.
        self._observation_pairs = list(self._observations.items())
        # What a policy sees: it must not change what is recorded.
        self._shown_pairs = [(key, read_only(array)) for key, array in self._observation_pairs]
        self._action_pairs = list(self._f.actions.items())
        self._extra_pairs = list(self._f.extras.items())
        self._signal_pairs = [(k, v) for k, v in self._f.signals.items() if k not in self._scalars]

    def _allocate_signals(self, t: int, b: int) -> Columns:
        """Returns the arrays of the signals; those of many scalars are parts of one block."""
        plain = np.dtype(np.float32)
        specs = self._spec.signals
        scalars = [k for k, s in specs.items() if s.shape == () and np.dtype(s.dtype) == plain]
        self._scalars = scalars if len(scalars) >= _SCALARS else []
        self._block = np.zeros((len(self._scalars), t, b), plain)
        block = dict(zip(self._scalars, self._block, strict=True))
        others = {k: s for k, s in specs.items() if k not in block}
        signals = block | _allocate(others, t, b)
        return {key: signals[key] for key in specs}

    @property
    def age(self) -> float:
        """Seconds since the builder was made."""
        return time.monotonic() - self.began

    @property
    def empty(self) -> bool:
        """True if it has no step, no result and no loss."""
        return self.row == 0 and not self._results and not self._losses

    @property
    def full(self) -> bool:
        """True if there is no room for another step."""
        return self.row >= self.capacity

    def observations(self) -> Columns:
        """Returns the current observations as read-only views ``{key: (B, ...)}``."""
        row = self.row
        return {key: array[row] for key, array in self._shown_pairs}

    def details(self) -> list[Details] | None:
        """Returns a copy of the current details, one per slot; empty where a slot has none.

        Without what policies may not see; None if there are no details.
        """
        if self._details is None:
            return None
        shown = [details_for_policies(details or {}) for details in self._details[self.row]]
        plain = pickle.dumps(shown, -1)
        copied: list[Details] = pickle.loads(plain)  # noqa: S301 - the fastest way to copy deeply
        return copied

    def begin(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Writes the first observations of new episodes into the current row."""
        rows = list(slots)
        for key, array in self._observation_pairs:
            array[self.row][rows] = frame.observations[key]
        for number, (slot, start) in enumerate(zip(rows, starts, strict=True)):
            self._occupy(slot, start)
            if frame.details is not None:
                self._set_details(self.row, slot, frame.details[number])

    def resume(
        self,
        previous: FragmentBuilder,
        playing: Sequence[Start | None],
        steps: NDArray[np.int64],
    ) -> None:
        """Continues after a fragment: its last observations become the first ones here.

        Args:
            previous: the builder of that fragment.
            playing: the start that each slot plays, if any.
            steps: completed steps of each slot's episode, ``(B,)``.
        """
        for key, array in self._observation_pairs:
            array[0] = previous._observations[key][previous.row]
        self._slot_index[:] = [-1 if s is None else self._register(s) for s in playing]
        active = self._slot_index >= 0
        rows = np.arange(self.capacity, dtype=np.int32)[:, None]
        self._f.start_index[:] = self._slot_index
        self._f.step[:] = np.where(active, steps + rows, 0)
        self._f.first[0] = active & (steps == 0)
        if previous._details is not None:
            for slot, details in enumerate(previous._details[previous.row]):
                self._set_details(0, slot, details)

    def _occupy(self, slot: int, start: Start) -> None:
        """Marks a slot as playing from the current row on.

        Columns that depend only on the row number are written once per episode, not once per step.
        """
        self._slot_index[slot] = index = self._register(start)
        ahead = slice(self.row, self.capacity)
        self._f.start_index[ahead, slot] = index
        self._f.step[ahead, slot] = self._numbers[: self.capacity - self.row]
        self._f.first[self.row, slot] = True

    def _vacate(self, slot: int) -> None:
        """Marks a slot as idle from the current row on."""
        self._slot_index[slot] = -1
        ahead = slice(self.row, self.capacity)
        self._f.start_index[ahead, slot] = -1
        self._f.step[ahead, slot] = 0

    def _register(self, start: Start) -> int:
        key = (start.episode, start.attempt)
        if key not in self._index:
            self._index[key] = len(self._starts)
            self._starts.append(start)
        return self._index[key]

    def _set_details(self, row: int, slot: int, details: Details | None) -> None:
        if self._details is None:
            self._details = [[None] * self._width for _ in range(self.capacity + 1)]
        self._details[row][slot] = details

    def remember(self, memory: Columns) -> None:
        """Stores a copy of the policy's memory before the first row."""
        if self._memory is None:
            self._memory = {k: v.copy() for k, v in memory.items()}

    def write_decision(self, decision: Decision, version: int) -> None:
        """Writes the policy's decision for the current row."""
        row = self.row
        for key, array in self._action_pairs:
            array[row] = decision.actions[key]
        for key, array in self._extra_pairs:
            array[row] = decision.extras[key]
        if version != self._version:
            self._version = self._f.version[row:] = version

    def write_step(self, frame: Frame, ruling: Ruling, seconds: float) -> None:
        """Completes the current row with the results of its step, and moves to the next row.

        Args:
            frame: the frame of the step.
            ruling: the referee's ruling.
            seconds: duration of the step in the game.
        """
        f, row = self._f, self.row
        f.reward[row] = ruling.verdict.reward
        f.progress[row] = ruling.verdict.progress
        f.tick[row] = frame.tick
        for key, array in self._signal_pairs:
            array[row] = frame.signals[key]
        if self._scalars:
            scalars = np.concatenate([frame.signals[key] for key in self._scalars])
            self._block[:, row] = scalars.reshape(-1, self._width)
        if ruling.ended:  # an outcome other than RUNNING ends the episode, so the rest is zeros
            f.outcome[row] = ruling.verdict.outcome
            f.terminated[row] = ruling.terminated
            f.truncated[row] = ruling.truncated
        f.wall_time[row] = time.time()
        f.latency[row] = seconds
        self.row = row + 1
        for key, array in self._observation_pairs:
            array[row + 1] = frame.observations[key]
        if frame.details is not None:
            for slot, details in enumerate(frame.details):
                self._set_details(row + 1, slot, details)

    def blank_idle(self, active: Bools) -> None:
        """Clears the idle slots of the row just written."""
        row, idle = self.row - 1, ~active
        for array in (self._f.reward, self._f.progress, self._f.outcome, self._f.tick):
            array[row][idle] = 0

    def end(self, slot: int, result: EpisodeResult, loss: Loss | None = None) -> None:
        """Records that a slot's episode ended with the last completed row."""
        self._results.append(result)
        if loss is not None:
            self._losses.append(loss)
            self._register(loss.start)
        row = self.row - 1
        if row >= 0 and self._slot_index[slot] >= 0:
            own = self._f.start_index[row, slot] == self._slot_index[slot]
            if own and loss is not None:
                self._f.lost[row, slot] = True
            if own:
                columns = {k: v[self.row, slot, ...].copy() for k, v in self._observation_pairs}
                details = self._details[self.row][slot] if self._details is not None else None
                self._final.append((row, slot, columns, details))
        self._vacate(slot)

    def lose_unstarted(self, loss: Loss) -> None:
        """Records an episode that was lost before it began."""
        self._losses.append(loss)

    def build(self) -> Fragment:
        """Returns the fragment; the builder must not be used afterwards."""
        f, t = self._f, self.row
        final = sorted(self._final, key=lambda entry: entry[:2])
        f.next_observations = {k: v[t] for k, v in self._observation_pairs}
        f.observations = {k: v[:t] for k, v in self._observation_pairs}
        if t < self.capacity:
            self._trim(t)
        f.starts = tuple(self._starts)
        f.final_index = np.array([entry[:2] for entry in final], np.int64).reshape(-1, 2)
        f.final_observations = _stack(self._spec, [entry[2] for entry in final])
        if self._details is not None:
            f.details = self._details[:t]
            f.final_details = [entry[3] for entry in final]
        f.memory = self._memory or {}
        f.results = tuple(self._results)
        f.losses = tuple(self._losses)
        return f

    def _trim(self, t: int) -> None:
        for name in ("actions", "extras", "signals"):
            setattr(self._f, name, {k: v[:t] for k, v in getattr(self._f, name).items()})
        for each in fields(self._f):
            if isinstance(array := getattr(self._f, each.name), np.ndarray):
                setattr(self._f, each.name, array[:t])


def _stack(spec: BridgeSpec, rows: list[Columns]) -> Columns:
    columns = allocate(spec.observation_space, len(rows))
    for key, array in columns.items():
        for number, row in enumerate(rows):
            array[number, ...] = row[key]
    return columns
