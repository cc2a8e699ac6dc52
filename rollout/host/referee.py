"""Accounts for the episodes of one instance: verdicts, limits, ends, totals."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rollout.api import (
    NOTICE,
    Columns,
    Details,
    EpisodeResult,
    Frame,
    Outcome,
    Start,
    Task,
    Verdict,
)
from rollout.api.fragment import End
from rollout.api.types import Bools

_RUNNING = int(Outcome.RUNNING)  # numpy compares with a plain int ten times as fast


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
        steps: completed steps of each slot's episode, ``(B,)`` int32.
        active: slots that play, ``(B,)`` bool.
        all_active: whether every slot plays.
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
        self.all_active = False
        self._to_limit = 2**62 if self._limit is None else self._limit
        self._nobody: Bools = np.zeros(width, bool)  # never written

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins episodes; ``frame`` is the result of the instance's reset."""
        rows = list(slots)
        for slot, start in zip(rows, starts, strict=True):
            self.starts[slot] = start
        self.steps[rows] = 0
        self._total[rows] = 0.0
        # The last verdict's array is the evaluator's own: it may still be reading it.
        self._progress = self._progress.copy()
        self._progress[rows] = np.nan
        self._begun[rows] = time.monotonic()
        self.active[rows] = True
        self.all_active = bool(self.active.all())
        self._count_down()
        self._evaluator.reset(rows, starts, frame)

    def judge(self, actions: Columns, frame: Frame) -> Ruling:
        """Judges a step of all slots; rows of idle slots are blank."""
        verdict = self._evaluator.judge(actions, frame)
        broken: list[int] = []
        # One fast call: the sum of squares is finite unless a reward is not, or some are huge.
        if not math.isfinite(verdict.reward.dot(verdict.reward)):
            finite = np.isfinite(verdict.reward)
            broken = np.flatnonzero(~finite & self.active).tolist()
            verdict = replace(verdict, reward=np.where(finite, verdict.reward, np.float32(0)))
        self._progress = verdict.progress
        self._to_limit -= 1
        if self.all_active:
            self.steps += 1
            self._total += verdict.reward
            # Nearly every step of nearly every game takes this path, on which no episode ends.
            if (
                self._to_limit > 0
                and not broken
                and not np.count_nonzero(frame.game_over)
                and not np.count_nonzero(frame.game_truncated)
                and not np.count_nonzero(verdict.outcome)
            ):
                return Ruling(verdict, self._nobody, self._nobody, [])
        else:
            self.steps += self.active
            self._total += np.where(self.active, verdict.reward, 0.0)
        terminated = (frame.game_over | (verdict.outcome != _RUNNING)) & self.active
        truncated = frame.game_truncated
        if self._limit is not None:
            truncated = truncated | (self.steps >= self._limit)
            self._count_down()
        truncated = truncated & self.active & ~terminated
        if broken:
            terminated[broken] = truncated[broken] = False
        ended: list[int] = np.flatnonzero(terminated | truncated).tolist()
        return Ruling(verdict, terminated, truncated, ended, broken)

    def _count_down(self) -> None:
        """Computes the minimum number of steps until some slot reaches the limit."""
        if self._limit is not None:
            self._to_limit = self._limit - int(self.steps.max(where=self.active, initial=0))

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
            notice=str((details or {}).get(NOTICE, "")),
        )
        self.starts[slot] = None
        self.active[slot] = False
        self.all_active = False
        return result
