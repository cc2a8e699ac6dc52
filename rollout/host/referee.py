"""Keeps the account of the episodes of one instance: verdicts, limits, ends, totals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.api import Columns, EpisodeResult, Frame, Outcome, Start, Task, Verdict
from rollout.api.fragment import End
from rollout.api.types import Bools


@dataclass(slots=True)
class Ruling:
    """What a step came to, ``(B,)`` each.

    Attributes:
        verdict: the evaluator's.
        terminated: the game or the task decided.
        truncated: a limit was reached, and nothing was decided.
        ended: numbers of the slots whose episodes ended.
    """

    verdict: Verdict
    terminated: Bools
    truncated: Bools
    ended: list[int]


class Referee:
    """Judges the slots of one instance, from each reset to the end of each episode.

    Attributes:
        starts: what each slot plays; None for an idle slot.
        steps: completed steps of each slot's episode, ``(B,)`` int32.
        active: slots that play, ``(B,)`` bool.
    """

    def __init__(self, task: Task, width: int, instance: int = 0) -> None:
        self._evaluator = task.evaluator.build(width)
        self._limit = task.limits.steps
        self._instance = instance
        self._width = width
        self.starts: list[Start | None] = [None] * width
        self.steps: NDArray[np.int32] = np.zeros(width, np.int32)
        self.active: Bools = np.zeros(width, bool)
        self._total: NDArray[np.float64] = np.zeros(width, np.float64)
        self._progress = np.full(width, np.nan, np.float32)
        self._begun: NDArray[np.float64] = np.zeros(width, np.float64)
        self._all_active = False

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins episodes; ``frame`` is what the instance answered to its reset."""
        rows = list(slots)
        for slot, start in zip(rows, starts, strict=True):
            self.starts[slot] = start
        self.steps[rows] = 0
        self._total[rows] = 0.0
        self._progress[rows] = np.nan
        self._begun[rows] = time.monotonic()
        self.active[rows] = True
        self._all_active = bool(self.active.all())
        self._evaluator.reset(rows, starts, frame)

    def judge(self, actions: Columns, frame: Frame) -> Ruling:
        """Judges a step of all slots; rows of idle slots are blank."""
        verdict = self._evaluator.judge(actions, frame)
        terminated = frame.game_over | (verdict.outcome != Outcome.RUNNING)
        truncated = frame.game_truncated
        if self._all_active:
            self.steps += 1
            self._total += verdict.reward
        else:
            terminated = terminated & self.active
            self.steps += self.active
            self._total += np.where(self.active, verdict.reward, 0.0)
            truncated = truncated & self.active
        if self._limit is not None:
            over = self.steps >= self._limit
            truncated = truncated | (over if self._all_active else over & self.active)
        self._progress = verdict.progress
        ended: list[int] = []
        if terminated.any() or truncated.any():
            truncated = truncated & ~terminated
            ended = np.flatnonzero(terminated | truncated).tolist()
        else:
            truncated = terminated  # all False, and not the game's own buffer
        return Ruling(verdict, terminated, truncated, ended)

    def finish(self, slot: int, end: End, outcome: int) -> EpisodeResult:
        """Ends the episode of a slot, which is idle from then on."""
        start = self.starts[slot]
        assert start is not None
        result = EpisodeResult(
            start=start,
            instance=self._instance,
            slot=slot,
            end=end,
            outcome=Outcome(outcome),
            length=int(self.steps[slot]),
            total_reward=float(self._total[slot]),
            progress=float(self._progress[slot]),
            seconds=time.monotonic() - float(self._begun[slot]),
        )
        self.starts[slot] = None
        self.active[slot] = False
        self._all_active = False
        return result
