"""Evaluators for any game: its own reward, and a signal that should reach a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.api import Columns, Frame, Outcome, Start, Verdict, option
from rollout.api.types import Bools, Floats
from rollout.errors import ConfigError, StateError

REWARD = "reward"

ROUNDING = 1e-6
"""A signal reaches a goal if it falls short by no more than this fraction of the goal."""

_HALF_A_UNIT = 2.0**-24 * (1.0 + 2.0**-10)  # of a float32, and that of adding them as float64
_LEAST_SHORT = 0.5  # whole numbers are compared exactly, whatever their size


@dataclass(frozen=True)
class GameReward:
    """Uses the game's own reward, the signal ``reward``.

    Without ``success_return`` the outcome stays undecided and progress is undefined. With it,
    progress is the fraction of that return reached so far, and the outcome is decided when the
    return is reached, or when the game is over: success if it is reached, failure otherwise. If
    the game cuts the episode at a limit of its own, only success is decided.

    Returns are undiscounted sums of the game's rewards, before ``scale`` and ``clip``. Rewards are
    float32, in which 0.7 is less than 0.7: a return counts as reached if it falls short by no more
    than the rounding of its rewards, a part in 16 million of the sum of their sizes, and by less
    than a half, so that whole numbers are compared exactly.
    """

    scale: float = option(1.0, "multiplies every reward")
    clip: float | None = option(None, "rewards are cut to plus or minus this, after scaling")
    success_return: float | None = option(None, "return that counts as success; null for none")
    end_on_success: bool = option(
        True, "end the episode there; false decides when the game is over"
    )

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
        self._options, self._goal = options, options.success_return
        self._scale = np.float32(options.scale)
        self._total = np.zeros(width, np.float64)
        self._size = np.zeros(width, np.float64)  # sum of the absolute rewards
        self._decisions = Decisions(width)
        # Never changed: without a goal every verdict is the same.
        self._undefined = np.full(width, np.nan, np.float32)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Resets some slots."""
        rows = list(slots)
        self._total[rows] = self._size[rows] = 0.0
        self._decisions.reset(rows, frame)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the game's reward of the step, and success if a return is set."""
        gained = np.asarray(frame.signals[REWARD], np.float32)
        if self._decisions.any_over:
            gained = np.where(self._decisions.over, np.float32(0), gained)
        reward, clip = gained * self._scale, self._options.clip
        if clip is not None:
            np.maximum(reward, -clip, out=reward)
            np.minimum(reward, clip, out=reward)
        if self._goal is None:
            outcome = self._decisions.judge(frame, None, None)
            return Verdict(reward, self._undefined, outcome)
        self._total += gained
        self._size += np.abs(gained)
        reached = self._total >= self._goal - np.minimum(_HALF_A_UNIT * self._size, _LEAST_SHORT)
        success = reached
        if not self._options.end_on_success:
            success = reached & (frame.game_over | frame.game_truncated)
        outcome = self._decisions.judge(frame, success, frame.game_over)
        return Verdict(reward, self._progress(self._goal, reached, outcome), outcome)

    def _progress(self, goal: float, reached: Bools, outcome: NDArray[np.int8]) -> Floats:
        if goal > 0:
            share = np.divide(self._total, goal)
            np.maximum(share, 0.0, out=share)
            np.minimum(share, 1.0, out=share)
            if _any(reached):
                share[reached] = 1.0
            return share.astype(np.float32)
        # A fraction of a goal that is not above zero is undefined until it is reached.
        return np.where(outcome == Outcome.SUCCESS, 1.0, np.nan).astype(np.float32)


@dataclass(frozen=True)
class SignalGoal:
    """Success once a signal reaches a value, e.g. ``achievement/collect_diamond`` reaches 1.

    Progress is the largest fraction of the distance from the value at the reset to ``target``
    covered so far. ``reward`` is paid once for each unit: units that are lost and gained again, or
    beyond the target, are not rewarded. If the game is over before, the episode is a failure.

    The target may be a factor of the state (``target_factor: number``), so that it depends on the
    state. With ``relative`` it is counted from the value at the reset.

    The target counts as reached if the signal falls short of it by no more than a millionth of it
    (with ``relative``, of it and of the value at the reset), since a float32 of 0.7 is less than
    0.7, and by less than a half, so that whole numbers are compared exactly.
    """

    signal: str = option("", "name of the signal")
    target: float = option(1.0, "value it should reach")
    target_factor: str = option("", "factor of the state to use as the target; '' for none")
    relative: bool = option(False, "count the target from the value at the reset")
    reward: float = option(1.0, "reward for each unit of progress")
    compare: str = option(">=", "which side of the target is success", choices=(">=", "<="))
    shaping: Mapping[str, float] = option(
        dict, "reward for each unit by which other signals rise, e.g. {dealt: 0.1}"
    )

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
        """The signal, and those that shape the reward."""
        return frozenset({self.signal, *self.shaping})

    @property
    def factors(self) -> frozenset[str]:
        """The factor that is the target, if one is."""
        return frozenset({self.target_factor} - {""})

    def build(self, width: int) -> SignalGoalEvaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return SignalGoalEvaluator(self, width)


class SignalGoalEvaluator:
    """Judges ``width`` slots by one signal.

    Values are negated for ``<=``, so that more is always better; ``_best`` never decreases and
    never exceeds the goal. NaN, a missing signal, changes nothing; if the signal is missing at the
    reset, the first value counts as the start.
    """

    def __init__(self, options: SignalGoal, width: int) -> None:
        self._signal, self._reward = options.signal, options.reward
        self._sign = 1.0 if options.compare == ">=" else -1.0
        self._factor, self._relative = options.target_factor, options.relative
        self._target = options.target
        self._goal = np.full(width, self._sign * options.target, np.float64)
        self._enough = _enough(self._goal, 0.0)  # what counts as the goal
        self._start = np.zeros(width, np.float64)
        self._best = np.zeros(width, np.float64)
        self._way = np.ones(width, np.float64)  # from start to goal, 1 if it is zero
        self._start_missing = False  # whether the start of some slot is still unknown
        self._shaping = [
            (name, np.float32(reward), np.zeros(width, np.float32))
            for name, reward in options.shaping.items()
        ]
        self._decisions = Decisions(width)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Sets the value at the reset as the start."""
        rows = list(slots)
        values = np.multiply(frame.signals[self._signal], self._sign, dtype=np.float64)
        if self._factor or self._relative:
            goal = np.array([self._sign * self._asked(start) for start in starts], np.float64)
            # If the signal is missing at the reset, the target is counted from zero.
            begin = np.nan_to_num(values) if self._relative else np.zeros_like(values)
            self._goal, self._enough = self._goal.copy(), self._enough.copy()
            self._goal[rows] = goal + begin
            self._enough[rows] = _enough(goal + begin, begin)
        self._start[rows] = self._best[rows] = np.minimum(values, self._goal[rows])
        for name, _, before in self._shaping:
            before[rows] = frame.signals[name]
        self._decisions.reset(rows, frame)
        self._begin()

    def _asked(self, start: Start) -> float:
        if not self._factor:
            return self._target
        value = start.state.values.get(self._factor)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StateError(
                f"target_factor {self._factor!r}: expected a factor whose values are numbers, got "
                f"{value!r} in the state {dict(start.state.values)}"
            )
        return float(value)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the reward of new units, the fraction covered, and success at the target."""
        values = np.multiply(frame.signals[self._signal], self._sign, dtype=np.float64)
        np.minimum(values, self._goal, out=values)
        best = np.fmax(self._best, values)  # fmax ignores a NaN
        if self._decisions.any_over:
            best = np.where(self._decisions.over, self._best, best)
        if self._start_missing:
            self._start = np.where(np.isnan(self._start), best, self._start)
            self._best = np.fmax(self._best, self._start)
            self._begin()
        reward = ((best - self._best) * self._reward).astype(np.float32)
        share = ((best - self._start) / self._way).astype(np.float32)
        if self._start_missing:
            reward[np.isnan(reward)] = 0.0
        self._shape(reward, frame)
        self._best = best
        reached = best >= self._enough
        if _any(reached):
            share[reached] = 1.0
        outcome = self._decisions.judge(frame, reached, frame.game_over)
        return Verdict(reward, share, outcome)

    def _shape(self, reward: Floats, frame: Frame) -> None:
        """Adds the reward for increases of other signals; decreases and NaN change nothing."""
        for name, worth, before in self._shaping:
            now = frame.signals[name]
            rise = np.fmax(now - before, 0.0) * worth
            if self._decisions.any_over:
                rise = np.where(self._decisions.over, 0.0, rise)
            reward += rise
            before[:] = np.where(np.isnan(now), before, now)

    def _begin(self) -> None:
        way = self._goal - self._start
        self._way = np.where(way > 0, way, 1.0)
        self._start_missing = bool(np.isnan(self._start).any())


def _enough(goal: NDArray[np.float64], begin: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Returns the least value that reaches a goal which is partly counted from a start."""
    return goal - np.minimum(ROUNDING * (np.abs(goal) + np.abs(begin)), _LEAST_SHORT)


class Decisions:
    """Outcomes of slots.

    Returned arrays are never changed, so a verdict stays the same.

    Attributes:
        over: slots whose rows repeat, ``(width,)`` bool.
        any_over: True if there are any.
    """

    def __init__(self, width: int) -> None:
        self.over: Bools = np.zeros(width, np.bool_)
        self.any_over = False
        self._outcome = np.full(width, Outcome.RUNNING, np.int8)

    def reset(self, rows: list[int], frame: Frame) -> None:
        """Opens some slots; ``frame`` has one row for each."""
        self._outcome, self.over = self._outcome.copy(), self.over.copy()
        self._outcome[rows] = Outcome.RUNNING
        self.over[rows] = frame.game_over | frame.game_truncated
        self.any_over = _any(self.over)

    def judge(self, frame: Frame, success: Bools | None, failure: Bools | None) -> NDArray[np.int8]:
        """Decides open slots, success before failure, and notes which are over from now on."""
        if success is None and not (
            self.any_over or _any(frame.game_over) or _any(frame.game_truncated)
        ):
            return self._outcome
        ended = frame.game_over | frame.game_truncated
        if success is not None and failure is not None:
            decided = success | failure
            if self.any_over:
                decided &= ~self.over
            if _any(decided):
                verdict = np.where(success, np.int8(Outcome.SUCCESS), np.int8(Outcome.FAILURE))
                self._outcome = np.where(decided, verdict, self._outcome)
                ended |= decided
        if self.any_over:
            ended |= self.over
        self.over, self.any_over = ended, _any(ended)
        return self._outcome


def _any(mask: Bools) -> bool:
    # Several times quicker than ``mask.any()`` for the few slots of most games.
    return 1 in mask.tobytes()
