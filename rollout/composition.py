"""Composed tasks: ``and``, ``or``, ``then`` (MCU, section 2.3).

::

    evaluator:
      name: then
      parts:
        - {name: signal_goal, signal: mined/log, target: 3}
        - name: or
          parts:
            - {task: craft_crafting_table}      # the evaluator of another task of the bridge
            - {name: signal_goal, signal: kills/sheep}

Progress follows MCU's rule for composed tasks (appendix G.5): the mean of the parts of ``and`` and
``then``, the maximum of the parts of ``or``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import Columns, Evaluator, EvaluatorRecipe, Frame, Outcome, Start, Verdict, option
from rollout.configuration.plugins import build_plugin
from rollout.errors import ConfigError
from rollout.evaluators import Decisions

_RUNNING, _SUCCESS, _FAILURE = (np.int8(o) for o in tuple(Outcome)[:3])  # an invalid part fails

_PARTS = "evaluators, each a mapping with `name` and options, or with `task`"


@dataclass(frozen=True)
class _Composed:
    """Base of the three: evaluators within an evaluator."""

    parts: tuple[dict[str, Any], ...] = option((), _PARTS)

    def __post_init__(self) -> None:
        if len(self.parts) < 2:
            raise ConfigError(
                f"parts must list at least two evaluators to compose, got {len(self.parts)}"
            )
        _ = self._recipes  # refuses a wrong part now, not when the game runs

    @cached_property
    def _recipes(self) -> tuple[EvaluatorRecipe, ...]:
        return tuple(_build(number, part) for number, part in enumerate(self.parts))

    @property
    def requires(self) -> frozenset[str]:
        return frozenset().union(*(recipe.requires for recipe in self._recipes))

    @property
    def factors(self) -> frozenset[str]:
        return frozenset().union(*(getattr(recipe, "factors", ()) for recipe in self._recipes))


@dataclass(frozen=True)
class All(_Composed):
    """Success once every part has succeeded, in any order; failure once one has failed.

    Reward is the sum of the parts', progress their mean. A part that has succeeded stays so.
    """

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Parallel(self._recipes, width, every=True)


@dataclass(frozen=True)
class Any_(_Composed):  # noqa: N801 - Any is taken
    """Success once one part has succeeded; failure once every part has failed.

    Reward is the sum of the parts', progress the maximum of the parts'.
    """

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Parallel(self._recipes, width, every=False)


@dataclass(frozen=True)
class Then(_Composed):
    """Success once the parts have succeeded one after another; failure once one has failed.

    A part begins when the one before it has succeeded, as if the episode were reset there: a
    ``signal_goal`` with ``relative`` counts from that moment. Only the current part pays reward.
    """

    def build(self, width: int) -> Evaluator:
        """Returns the evaluator; see ``rollout.api.EvaluatorRecipe``."""
        return _Sequence(self._recipes, width)


def _build(number: int, part: Mapping[str, Any]) -> EvaluatorRecipe:
    options = dict(part)
    name = options.pop("name", None)
    if not isinstance(name, str):
        instead = "`task` is valid in task files only" if "task" in part else f"got {sorted(part)}"
        raise ConfigError(f"parts[{number}]: expected the `name` of an evaluator; {instead}")
    try:
        recipe: EvaluatorRecipe = build_plugin("evaluators", name, options)
    except ConfigError as error:
        raise ConfigError(f"parts[{number}]: {error}") from error
    return recipe


class _Parallel:
    """Parts that are evaluated in parallel."""

    def __init__(self, recipes: Sequence[EvaluatorRecipe], width: int, *, every: bool) -> None:
        self._parts = [recipe.build(width) for recipe in recipes]
        self._every = every
        self._outcome = np.full((len(recipes), width), _RUNNING, np.int8)
        self._shares = np.zeros((len(recipes), width), np.float32)
        self._decisions = Decisions(width)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        rows = list(slots)
        for part in self._parts:
            part.reset(slots, starts, frame)
        self._outcome[:, rows] = _RUNNING
        self._decisions.reset(rows, frame)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the sum of rewards, the joint progress and the joint outcome."""
        reward = np.zeros(self._shares.shape[1], np.float32)
        for number, part in enumerate(self._parts):
            said = part.judge(actions, frame)
            open_ = ~self._decisions.over & (self._outcome[number] == _RUNNING)
            reward += np.where(open_, said.reward, np.float32(0))
            np.copyto(self._outcome[number], said.outcome, where=open_)
            np.copyto(self._shares[number], said.progress, where=open_)
        ended = self._outcome != _RUNNING
        done = self._outcome == _SUCCESS
        lost = ended & ~done
        if self._every:
            success, failure = done.all(0), lost.any(0)
            progress = self._shares.sum(0) / np.float32(len(self._parts))
        else:
            success, failure = done.any(0), lost.all(0)
            progress = np.fmax.reduce(self._shares)
        return Verdict(reward, progress, self._decisions.judge(frame, success, failure))


class _Sequence:
    """Parts that are evaluated one after another."""

    def __init__(self, recipes: Sequence[EvaluatorRecipe], width: int) -> None:
        self._parts = [recipe.build(width) for recipe in recipes]
        self._at: NDArray[np.int64] = np.zeros(width, np.int64)  # part at hand
        self._share = np.zeros(width, np.float32)  # progress of the current part
        self._decisions = Decisions(width)
        self._starts: list[Start | None] = [None] * width

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        rows = list(slots)
        for slot, start in zip(rows, starts, strict=True):
            self._starts[slot] = start
        self._parts[0].reset(slots, starts, frame)
        self._at[rows], self._share[rows] = 0, 0.0
        self._decisions.reset(rows, frame)

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Returns the reward of the current part, the total progress and the outcome."""
        width, last = len(self._at), len(self._parts) - 1
        reward = np.zeros(width, np.float32)
        success, failure = np.zeros(width, bool), np.zeros(width, bool)
        before, ended = self._at.copy(), frame.game_over | frame.game_truncated
        for number, part in enumerate(self._parts):
            mine = ~self._decisions.over & (before == number)
            if not mine.any():
                continue
            said = part.judge(actions, frame)
            np.copyto(reward, said.reward, where=mine)
            np.copyto(self._share, said.progress, where=mine)
            done = mine & (said.outcome == _SUCCESS)
            failure |= mine & (said.outcome >= _FAILURE)
            if number == last:
                success |= done
                continue
            failure |= done & ended  # the game is over, but parts are left
            self._begin(np.flatnonzero(done & ~ended), number + 1, frame)
        outcome = self._decisions.judge(frame, success, failure)
        whole = np.where(outcome == _SUCCESS, last + 1.0, self._at + self._share)
        return Verdict(reward, (whole / (last + 1)).astype(np.float32), outcome)

    def _begin(self, rows: NDArray[np.int64], number: int, frame: Frame) -> None:
        """Begins a part in the slots that have completed the previous one."""
        if not len(rows):
            return
        starts = [start for row in rows if (start := self._starts[int(row)]) is not None]
        self._parts[number].reset(rows.tolist(), starts, frame.take(rows))
        self._at[rows] = number
        self._share[rows] = 0.0
