"""The scores of StarBench as an evaluator (docs/starbench.md, Metrics)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridges.starbench.rules.content import load
from rollout.api import Columns, Frame, Outcome, Start, Verdict, option
from rollout.api.types import Bools
from rollout.errors import UnknownNameError

_HP = tuple(f"hp/{slot}" for slot in range(4))
_MODES = ("coherent", "literal")
_REWARDS = ("report", "dense")
_Numbers = NDArray[np.float64]


def hp_reward(h: _Numbers, change: _Numbers, before: _Numbers, mode: str) -> _Numbers:
    """Returns the part of the reward that HP give, the mean over the four allies, ``(n,)``.

    Args:
        h: shares of HP before the next decision, ``(n, 4)``.
        change: what they changed by in this decision.
        before: what they changed by in the one before; 0 in the first.
        mode: ``literal``, the printed formula for each ally (StarBench, section 3), or
            ``coherent``, its reading in which healing counts as healing.
    """
    at_risk = h + before < 0.0
    if mode == "coherent":
        part = np.where(~at_risk | (change > 0.0), change, h - 0.5)
        return np.asarray(part.mean(-1))
    sign = np.where(at_risk, -1.0, 1.0)
    healing = change < 0.0  # as printed: not (sign(change) >= 0)
    rewarded = ~at_risk | healing
    inner = np.where(rewarded, -sign * change, h - 0.5)
    return np.asarray((-sign * inner).mean(-1))


@dataclass(frozen=True)
class StarbenchScore:
    """The paper's scores: R_EoW of Echo of War, in hundredths, and the points of the others.

    The return of an episode is R (5 battles), the cycles that are left (0 after a failure), or the
    points. Success is a victory; in Pure Fiction, that the team stands when the time is over.
    Progress is the share of the enemies' HP that is gone, or of 20 cycles, 10,000 and 4,000 points.
    """

    reward: str = option(
        "report",
        "report: its sum is the paper's score; dense: for training, the share of HP taken or "
        "points gained, the end, the team's HP and the time used",
        choices=_REWARDS,
    )
    hp_mode: str = option("coherent", "reading of the formula for HP", choices=_MODES)

    def __post_init__(self) -> None:
        for name, valid in (("reward", _REWARDS), ("hp_mode", _MODES)):
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, str(getattr(self, name)), valid)

    @property
    def requires(self) -> frozenset[str]:
        """The signals of the battles."""
        return frozenset({"depleted", "damage", "score", "action_value", "won", *_HP})

    @property
    def factors(self) -> frozenset[str]:
        """The battle decides what the score is."""
        return frozenset({"battle"})

    def build(self, width: int) -> Scorer:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return Scorer(self, width)


class Scorer:
    """Judges ``width`` battles."""

    def __init__(self, options: StarbenchScore, width: int) -> None:
        self._options, self._battles = options, load().battles
        self._mode = np.full(width, "echo_of_war", object)
        self._h, self._change = np.zeros((width, 4)), np.zeros((width, 4))
        self._score, self._depleted, self._time = (np.zeros(width) for _ in range(3))
        self._over = np.zeros(width, np.bool_)
        self._outcome = np.zeros(width, np.int8)
        self._progress = np.zeros(width, np.float32)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Begins battles."""
        rows, signals = list(slots), frame.signals
        for row, start in zip(rows, starts, strict=True):
            self._mode[row] = self._battles[str(start.state.values["battle"])]["mode"]
        self._h[rows] = np.stack([signals[key] for key in _HP], -1)
        self._change[rows] = 0.0
        self._score[rows] = 0.0
        self._depleted[rows], self._time[rows] = signals["depleted"], signals["action_value"]
        self._over[rows] = frame.game_over
        self._outcome[rows], self._progress[rows] = Outcome.RUNNING, 0.0

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the reward of the decision, progress and outcome."""
        live, signals = ~self._over, frame.signals
        h = np.stack([signals[key] for key in _HP], -1)
        change = h - self._h
        won = signals["won"] > 0
        lost = frame.game_over & ~won
        score = np.where(lost & (self._mode == "memory_of_chaos"), 0.0, signals["score"])
        if self._options.reward == "report":
            part = hp_reward(h, change, self._change, self._options.hp_mode)
            echo = 50.0 * part + 50.0 * np.clip(signals["damage"], 0.0, 1.0)
            reward = np.where(self._mode == "echo_of_war", echo, score - self._score)
        else:
            reward = self._dense(frame, score, change, won, lost)
        reward = np.where(live, reward, 0.0).astype(np.float32)
        shares = (np.where(won, score, 0.0) / 20.0, score / 10_000.0, score / 4000.0)
        kinds = ("memory_of_chaos", "pure_fiction", "apocalyptic_shadow")
        progress = np.asarray(signals["depleted"], np.float64)
        for kind, value in zip(kinds, shares, strict=True):
            progress = np.where(self._mode == kind, value, progress)
        shown = np.where(live, progress.clip(0.0, 1.0), self._progress).astype(np.float32)
        decided = np.where(won, Outcome.SUCCESS, np.where(lost, Outcome.FAILURE, Outcome.RUNNING))
        self._outcome = np.where(live, decided, self._outcome).astype(np.int8)
        self._h, self._change = h, change
        self._score, self._depleted = score, np.array(signals["depleted"])
        self._time = np.array(signals["action_value"])
        decided = self._outcome != Outcome.RUNNING
        self._over = self._over | frame.game_over | frame.game_truncated | decided
        self._progress = shown
        return Verdict(reward, shown, self._outcome.copy())

    def _dense(
        self, frame: Frame, score: _Numbers, change: _Numbers, won: Bools, lost: Bools
    ) -> _Numbers:
        signals = frame.signals
        taken = 4.0 * (signals["depleted"] - self._depleted)
        fiction = self._mode == "pure_fiction"
        taken = np.where(fiction, (score - self._score) / 1000.0, taken)
        passed = (signals["action_value"] - self._time) / 200.0
        time = np.where(self._mode == "echo_of_war", 0.015, np.where(fiction, 0.0, passed))
        end = np.where(won & ~fiction, 1.5, 0.0) - np.where(lost, 1.5, 0.0)
        return np.asarray(taken + end - time + 0.25 * change.mean(-1))
