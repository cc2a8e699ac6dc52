"""Accounts for the episodes of one instance: verdicts, limits, ends, totals."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rollout.api import (
    NO_USAGE,
    NOTICE,
    Array,
    Columns,
    Details,
    EpisodeResult,
    Frame,
    Outcome,
    Start,
    Task,
    Usage,
    Verdict,
    notes_of,
    read_calls,
)
from rollout.api.fragment import End
from rollout.api.types import Bools
from rollout.errors import PluginCode

_RUNNING = int(Outcome.RUNNING)  # numpy compares with a plain int ten times as fast
_NEVER = 2**62
_OF_ROLES = ("seconds", "input_tokens", "output_tokens")
_EVALUATOR = PluginCode("the evaluator")
NOT_FINITE = "the reward is not a finite number of float32, whose largest is 3.4e38"


@dataclass(slots=True)
class Ruling:
    """The results of a step, ``(B,)`` each.

    Attributes:
        verdict: the evaluator's verdict.
        terminated: decided by the game or the task.
        truncated: a limit was reached without a decision.
        ended: numbers of the slots whose episodes ended.
        broken: numbers of the slots whose reward is not finite; their episodes must be lost, and
            the reward counts as 0.
    """

    verdict: Verdict
    terminated: Bools
    truncated: Bools
    ended: list[int]
    broken: Sequence[int] = ()


class Referee:
    """Judges the slots of one instance, from each reset to the end of each episode.

    Attributes:
        starts: the start that each slot plays; None for an idle slot.
        active: slots that play, ``(B,)`` bool.
        all_active: whether every slot plays.
    """

    def __init__(self, task: Task, width: int, instance: int = 0) -> None:
        with _EVALUATOR:
            self._evaluator = task.evaluator.build(width)
        self._limit = task.limits.steps
        self._instance = instance
        self._width = width
        self.starts: list[Start | None] = [None] * width
        self.active: Bools = np.zeros(width, bool)
        # Counted by one clock, so that a step costs no array operation.
        self._clock = 0
        self._since: NDArray[np.int64] = np.zeros(width, np.int64)  # when each episode began
        self._cut_at = _NEVER  # when the first slot reaches the limit
        self._total: NDArray[np.float64] = np.zeros(width, np.float64)
        self._progress = np.full(width, np.nan, np.float32)
        self._begun: NDArray[np.float64] = np.zeros(width, np.float64)
        self.all_active = False
        self._no_slot: Bools = np.zeros(width, bool)  # never written
        self._usage: dict[int, Usage] = {}  # of the slots whose policy calls models
        self._roles: dict[int, dict[str, Counter[str]]] = {}  # likewise, by the role of the call
        self._stops: Sequence[str] | None = None
        self._running = np.full(width, Outcome.RUNNING, np.int8).tobytes()

    @property
    def steps(self) -> NDArray[np.int64]:
        """Completed steps of each slot's episode, ``(B,)``; meaningless for an idle slot."""
        return self._clock - self._since

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins episodes; ``frame`` is the result of the instance's reset."""
        rows = list(slots)
        for slot, start in zip(rows, starts, strict=True):
            self.starts[slot] = start
        self._since[rows] = self._clock
        self._total[rows] = 0.0
        # The last verdict's array is the evaluator's own: it may still be reading it.
        self._progress = self._progress.copy()
        self._progress[rows] = np.nan
        self._begun[rows] = time.monotonic()
        self.active[rows] = True
        self.all_active = bool(self.active.all())
        self._find_cut()
        with _EVALUATOR:
            self._evaluator.reset(rows, starts, frame)

    def charge(self, calls: Array) -> None:
        """Counts the calls of models for the next action of each slot, ``(B,)`` lists."""
        for slot in np.flatnonzero(self.active).tolist():
            if calls[slot]:
                made = read_calls(calls[slot])
                self._usage[slot] = self._usage.get(slot, NO_USAGE) + Usage.of(made)
                roles = self._roles.setdefault(slot, {})
                for call in made:
                    if call.role:
                        figures = {name: getattr(call, name) or 0 for name in _OF_ROLES}
                        roles.setdefault(call.role, Counter()).update(calls=1, **figures)

    def judge(self, actions: Columns, frame: Frame, stops: Sequence[str] | None = None) -> Ruling:
        """Judges a step of all slots; rows of idle slots are blank.

        ``stops`` says for each slot why its episode is truncated, empty to play on.
        """
        self._stops = stops
        with _EVALUATOR:
            verdict = self._evaluator.judge(actions, frame)
        broken: Sequence[int] = ()
        # One fast call: the sum of squares is finite unless a reward is not, or some are huge.
        if not math.isfinite(verdict.reward.dot(verdict.reward)):
            finite = np.isfinite(verdict.reward)
            broken = np.flatnonzero(~finite & self.active).tolist()
            verdict = replace(verdict, reward=np.where(finite, verdict.reward, np.float32(0)))
        self._progress = verdict.progress
        # Of idle slots too, which begin with zero. Adding in place takes numpy twice as long.
        self._total = self._total + verdict.reward
        self._clock += 1
        # Nearly every step of nearly every game takes this path, on which no episode ends. Bytes
        # are compared several times as fast as arrays.
        if (
            stops is None
            and self.all_active
            and self._clock < self._cut_at
            and not broken
            and 1 not in frame.game_over.tobytes()
            and 1 not in frame.game_truncated.tobytes()
            and verdict.outcome.tobytes() == self._running
        ):
            return Ruling(verdict, self._no_slot, self._no_slot, [])
        terminated = (frame.game_over | (verdict.outcome != _RUNNING)) & self.active
        truncated = frame.game_truncated
        if self._limit is not None:
            truncated = truncated | (self.steps >= self._limit)
            self._find_cut()
        if stops is not None:
            truncated = truncated | np.array([bool(stop) for stop in stops])
        truncated = truncated & self.active & ~terminated
        if broken:
            terminated[broken] = truncated[broken] = False
        ended: list[int] = np.flatnonzero(terminated | truncated).tolist()
        return Ruling(verdict, terminated, truncated, ended, broken)

    def _find_cut(self) -> None:
        if self._limit is not None:
            self._cut_at = self._limit + int(self._since.min(where=self.active, initial=_NEVER))

    def finish(
        self, slot: int, end: End, outcome: int, details: Details | None = None
    ) -> EpisodeResult:
        """Ends the episode of a slot, which is idle from then on.

        Args:
            slot: the slot.
            end: how the episode ended.
            outcome: the evaluator's outcome.
            details: details of the last frame, in which the game may have left a notice.
        """
        start = self.starts[slot]
        assert start is not None
        with _EVALUATOR:
            notes = {} if end == "lost" else notes_of(self._evaluator, slot)
        if roles := self._roles.pop(slot, None):
            notes["roles"] = {role: dict(figures) for role, figures in roles.items()}
        result = EpisodeResult(
            start=start,
            instance=self._instance,
            slot=slot,
            end=end,
            outcome=Outcome(outcome),
            length=self._clock - int(self._since[slot]),
            total_reward=float(self._total[slot]),
            progress=float(self._progress[slot]),
            seconds=time.monotonic() - float(self._begun[slot]),
            notice=str((details or {}).get(NOTICE, "")),
            usage=self._usage.pop(slot, NO_USAGE),
            notes=notes,
        )
        if end == "truncated" and self._stops is not None and self._stops[slot]:
            result = replace(result, notice=self._stops[slot])
        self.starts[slot] = None
        self.active[slot] = False
        self.all_active = False
        return result
