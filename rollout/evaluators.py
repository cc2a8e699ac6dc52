"""Evaluators that serve any game: its own reward, and a signal that should reach a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.api import Columns, Frame, Outcome, Start, Verdict, option
from rollout.api.types import Bools, Floats
from rollout.errors import ConfigError

REWARD = "reward"


@dataclass(frozen=True)
class GameReward:
    """Takes the game's own reward, the signal ``reward``.

    Without ``success_return`` the outcome stays undecided and progress is undefined. With it,
    progress is the share of that return that was reached, and the outcome is decided once the
    return is reached, or when the game is over: success if it is reached then, failure if not. A
    game that is cut at a limit of its own decides only a success.

    Returns are undiscounted sums of the game's rewards, before ``scale`` and ``clip``.
    """

    scale: float = option(1.0, "multiplies every reward")
    clip: float | None = option(None, "rewards are cut to plus or minus this, after scaling")
    success_return: float | None = option(None, "return that counts as success; null for none")
    end_on_success: bool = option(True, "end the episode there; false decides at the game's end")

    def __post_init__(self) -> None:
        if self.clip is not None and not self.clip > 0:
            raise ConfigError(f"clip must be above 0, or null for no clipping, got {self.clip}")
        if not np.isfinite(self.scale):
            raise ConfigError(f"scale must be a finite number, got {self.scale}")

    @property
    def requires(self) -> frozenset[str]:
        """The signal ``reward``."""
        return frozenset({REWARD})

    def build(self, width: int) -> GameRewardEvaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return GameRewardEvaluator(self, width)


class GameRewardEvaluator:
    """Judges ``width`` slots by the game's reward."""

    def __init__(self, options: GameReward, width: int) -> None:
        self._options = options
        self._total = np.zeros(width, np.float64)
        self._over = np.zeros(width, np.bool_)
        self._outcome = np.full(width, Outcome.RUNNING, np.int8)
        # Never written: without a goal every verdict says the same.
        self._undefined = np.full(width, np.nan, np.float32)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Forgets the past of some slots."""
        rows = list(slots)
        self._total[rows] = 0.0
        self._over[rows] = frame.game_over | frame.game_truncated
        self._outcome = _running(self._outcome, rows)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the game's reward of the step, and success where a return was asked for."""
        options, over = self._options, self._over
        gained = frame.signals[REWARD].astype(np.float32)
        gained[over] = 0.0
        reward = gained * np.float32(options.scale)
        if options.clip is not None:
            np.clip(reward, -options.clip, options.clip, out=reward)
        if options.success_return is None:
            self._over = frame.game_over | frame.game_truncated
            return Verdict(reward, self._undefined, self._outcome)
        self._total += gained
        outcome = self._decide(frame, options.success_return)
        self._over = frame.game_over | frame.game_truncated | (outcome != Outcome.RUNNING)
        return Verdict(reward, self._progress(options.success_return), outcome)

    def _decide(self, frame: Frame, goal: float) -> NDArray[np.int8]:
        reached = self._total >= goal
        when = frame.game_over | frame.game_truncated
        if self._options.end_on_success:
            when = np.ones_like(when)
        outcome = self._outcome.copy()
        open_ = ~self._over
        outcome[open_ & reached & when] = Outcome.SUCCESS
        outcome[open_ & ~reached & frame.game_over] = Outcome.FAILURE
        self._outcome = outcome
        return outcome

    def _progress(self, goal: float) -> Floats:
        if goal > 0:
            return np.clip(self._total / goal, 0.0, 1.0).astype(np.float32)
        # A share of a goal that is not above zero means nothing until it is reached.
        return np.where(self._outcome == Outcome.SUCCESS, 1.0, np.nan).astype(np.float32)


@dataclass(frozen=True)
class SignalGoal:
    """Success once a signal reaches a value, e.g. ``achievement/collect_diamond`` reaches 1.

    Progress is the share of the way from the value at the reset to ``target`` that was covered at
    best. ``reward`` is paid for each unit of it, once: what is lost and gained again pays nothing,
    and units beyond the target pay nothing. A game that is over before is a failure.
    """

    signal: str = option("", "name of the signal")
    target: float = option(1.0, "value it should reach")
    reward: float = option(1.0, "reward for each unit gained on the way")
    compare: str = option(">=", "which side of the target is success", choices=(">=", "<="))

    def __post_init__(self) -> None:
        if not self.signal:
            raise ConfigError(
                "signal must name a signal of the game, e.g. 'achievement/collect_diamond', got ''"
            )
        if self.compare not in (">=", "<="):
            raise ConfigError(f"compare must be '>=' or '<=', got {self.compare!r}")
        if not np.isfinite(self.target):
            raise ConfigError(f"target must be a finite number, got {self.target}")

    @property
    def requires(self) -> frozenset[str]:
        """The signal."""
        return frozenset({self.signal})

    def build(self, width: int) -> SignalGoalEvaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return SignalGoalEvaluator(self, width)


class SignalGoalEvaluator:
    """Judges ``width`` slots by one signal.

    Values are mirrored for ``<=``, so that more is always better; ``_best`` never falls and never
    passes the goal. NaN, a signal that was not told, changes nothing.
    """

    def __init__(self, options: SignalGoal, width: int) -> None:
        self._options = options
        self._sign = 1.0 if options.compare == ">=" else -1.0
        self._goal = self._sign * options.target
        self._start = np.zeros(width, np.float64)
        self._best = np.zeros(width, np.float64)
        self._over: Bools = np.zeros(width, np.bool_)
        self._outcome = np.full(width, Outcome.RUNNING, np.int8)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Takes the value at the reset as the beginning of the way."""
        rows = list(slots)
        self._start[rows] = np.minimum(self._values(frame), self._goal)
        self._best[rows] = self._start[rows]
        self._over[rows] = frame.game_over | frame.game_truncated
        self._outcome = _running(self._outcome, rows)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the reward of new units, the share of the way, and success at its end."""
        open_ = ~self._over
        values = np.minimum(self._values(frame), self._goal)
        # fmax takes the other side where one is NaN; a way begins with the first value told.
        best = np.where(open_, np.fmax(self._best, values), self._best)
        self._start = np.where(np.isnan(self._start), best, self._start)
        gained = best - np.fmax(self._best, self._start)
        self._best = best
        reward = np.where(np.isnan(gained), 0.0, gained * self._options.reward)
        outcome = self._outcome.copy()
        reached = best >= self._goal
        outcome[open_ & reached] = Outcome.SUCCESS
        outcome[open_ & ~reached & frame.game_over] = Outcome.FAILURE
        self._outcome = outcome
        self._over = frame.game_over | frame.game_truncated | (outcome != Outcome.RUNNING)
        return Verdict(reward.astype(np.float32), self._progress(reached), outcome)

    def _values(self, frame: Frame) -> NDArray[np.float64]:
        return self._sign * frame.signals[self._options.signal].astype(np.float64)

    def _progress(self, reached: Bools) -> Floats:
        way = self._goal - self._start
        share = np.divide(self._best - self._start, way, out=np.ones_like(way), where=way > 0)
        share[np.isnan(way)] = np.nan
        share[reached] = 1.0
        return share.astype(np.float32)


def _running(outcome: NDArray[np.int8], rows: list[int]) -> NDArray[np.int8]:
    """Returns a copy with some rows undecided: verdicts that were handed out stay as they were."""
    outcome = outcome.copy()
    outcome[rows] = Outcome.RUNNING
    return outcome
