"""Judges an episode of a StarDojo task, observation by observation."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from bridges.stardojo.evaluators import FIRST, GAIN, IDENTITIES, RULES, STICKY, Step
from bridges.stardojo.facts import Observation
from bridges.stardojo.task_row import TaskRow

Judging = Literal["strict", "faithful"]


@dataclass(frozen=True)
class Standing:
    """The progress of an episode.

    Attributes:
        current: the count that is compared with the quantity of the task.
        change: by how much the last observation changed it; 0 for absolute counts of ``faithful``.
        completed: whether the task is done; it stays so.
        quantity: of the task.
        base: the first observation: of the reset, in ``faithful`` after the first step.
        last: the observation before.
        counted: what was counted already.
    """

    quantity: int
    current: float = 0.0
    change: float = 0.0
    completed: bool = False
    base: Observation | None = field(default=None, repr=False)
    last: Observation | None = field(default=None, repr=False)
    counted: frozenset[Hashable] = frozenset()

    @property
    def share(self) -> float:
        """The share of the task that is done, 0 to 1."""
        if self.completed:
            return 1.0
        return min(max(self.current / max(self.quantity, 1), 0.0), 1.0)


def begin(task: TaskRow, seen: Observation, judging: Judging) -> Standing:
    """Returns the standing at the reset.

    Args:
        task: what is to be done.
        seen: the observation after the setup.
        judging: ``strict``, or ``faithful`` as the released code, whose baseline is the
            observation after the first step: what the first step achieves is never counted.

    Raises:
        CannotBeJudgedError: the game does not report what the task is judged by.
    """
    _check(task, seen)
    if judging == "strict":
        return Standing(task.quantity, base=seen, last=seen)
    return Standing(task.quantity)


def judge(task: TaskRow, standing: Standing, seen: Observation, judging: Judging) -> Standing:
    """Returns the standing after one more step, whose observation is ``seen``.

    Raises:
        CannotBeJudgedError: the game does not report what the task is judged by.
    """
    how = _strict if judging == "strict" else _faithful
    found = how(task, standing, seen)
    done = standing.completed or found.current >= task.quantity
    return replace(found, completed=done, base=found.base or seen, last=seen)


def _check(task: TaskRow, seen: Observation) -> None:
    _, (_, rule) = RULES[task.category, task.evaluator]
    rule(Step(task, seen, seen, seen))


def _faithful(task: TaskRow, standing: Standing, seen: Observation) -> Standing:
    rule, _ = RULES[task.category, task.evaluator]
    if not isinstance(rule, tuple):
        if standing.last is None:
            return standing
        change = float(rule(task, standing.last, seen))
        return replace(standing, current=standing.current + change, change=change)
    kind, level = rule
    if standing.last is None and kind != FIRST:
        return standing
    current = float(level(task, seen))
    if kind == STICKY:
        current = max(current, standing.current)
    return replace(standing, current=current, change=0.0)


def _strict(task: TaskRow, standing: Standing, seen: Observation) -> Standing:
    _, (kind, rule) = RULES[task.category, task.evaluator]
    assert standing.base is not None
    assert standing.last is not None
    result = rule(Step(task, standing.base, standing.last, seen))
    counted = standing.counted
    if kind == IDENTITIES:
        counted = counted | cast("set[Hashable]", result)
        current = float(len(counted))
    elif kind == GAIN:
        current = standing.current + float(cast("float", result))
    else:
        current = max(standing.current, float(cast("float", result)))
    return replace(standing, current=current, change=current - standing.current, counted=counted)
