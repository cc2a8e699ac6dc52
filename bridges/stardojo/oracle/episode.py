"""One episode of a task in a valley of its own, without a host: for tests and measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridges.stardojo.commands import setup_values
from bridges.stardojo.judging import Judging, Standing, begin, judge
from bridges.stardojo.oracle.hands import Skill, perform
from bridges.stardojo.oracle.oracle import PAUSE, SKILLS_A_STEP, Oracle
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.task_row import TaskRow

Chooser = Callable[[], Skill]


def play(
    row: TaskRow,
    seed: int,
    judging: Judging = "strict",
    chooser: Callable[[Valley, TaskRow], Chooser] | None = None,
) -> tuple[Standing, int]:
    """Returns the standing at the end of an episode, and how many steps it took.

    A step is two skills at most (section 4.1 of the paper); its limit is that of the paper.

    Args:
        row: the task.
        seed: of the valley.
        judging: ``strict`` or ``faithful``.
        chooser: from the valley and the task to what chooses each skill; None for the oracle.
    """
    valley = Valley(row.save, seed)
    for name, words in row.setup:
        valley.setup(name, setup_values(name, words))
    oracle = Oracle(valley, row, idle=judging == "faithful")
    choose = chooser(valley, row) if chooser else oracle.skill
    standing = begin(row, _observe(valley, row), judging)
    limit = row.steps("paper") or 0
    for step in range(1, limit + 1):
        for _ in range(SKILLS_A_STEP):
            skill = choose()
            if skill[0] == PAUSE:
                break
            perform(valley, skill)
        standing = judge(row, standing, _observe(valley, row), judging)
        if standing.completed:
            return standing, step
    return standing, limit


def _observe(valley: Valley, row: TaskRow) -> dict[str, Any]:
    seen = valley.observe()
    if row.evaluator == "kill":
        seen["MonsterKills"] = {row.object: valley.world.farmer.kills.get(row.object, 0)}
    return seen
