"""Makes tasks from the rows of StarDojo: one of each, and those that are all of a suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridges.stardojo.task_row import TaskRow, plain
from bridges.stardojo.task_table import lite

NO_TASK = "none"
SUITE = "lite"
GOAL = "Do the task that you are given in Stardew Valley."
SAME = "save"
"""Value of a factor that leaves a save as it is."""
WIDE = "_wide"
"""Ends the name of a task from all states, to measure generalization."""
_OF_THE_TASK = "hour"
"""A factor that tasks set themselves, so that it is the task's in its wide form too."""


@dataclass(frozen=True)
class StardojoTasks:
    """Makes tasks by the names of rows; ``lite`` is all 100, ``lite_farming`` and so on a category.

    The tasks of a user's file ``farming.yaml`` are ``farming/NAME``, and all of them ``farming``.
    ``NAME_wide`` is the task NAME from every season, day, weather, layout and so on. Quotation
    marks in a name, as StarDojo's files have them, are ignored.

    Attributes:
        rows: by name.
        limits: see ``task_row.TaskRow.steps``.
        longer: how many steps stand for one of those.
        factors: those that stay as the save has them, unless a task file says otherwise.
    """

    rows: Mapping[str, TaskRow]
    limits: str = "paper"
    longer: int = 1
    factors: tuple[str, ...] = ()

    def names(self) -> Iterable[str]:
        """Returns the names of all tasks, suites first."""
        return (*self._suites(), *self.rows, *(name + WIDE for name in self.rows))

    def _suites(self) -> dict[str, list[str]]:
        own = {name: row for name, row in self.rows.items() if name in lite()}
        categories = dict.fromkeys(row.category for row in own.values())
        named = {f"{SUITE}_{c}": [n for n, r in own.items() if r.category == c] for c in categories}
        files: dict[str, list[str]] = {}
        for name in self.rows:
            if "/" in name:
                files.setdefault(name.partition("/")[0], []).append(name)
        return {SUITE: list(own), **named, **files}

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the contents of a task's file; see ``rollout.api.bridge.TaskMaker``."""
        name = plain(name)
        suites, wide = self._suites(), name.endswith(WIDE)
        row = name.removesuffix(WIDE)
        if name not in suites and row not in self.rows:
            return None
        members = suites.get(name, [row])
        fixed = [each for each in self.factors if not wide or each == _OF_THE_TASK]
        steps = [self.rows[each].steps(self.limits) for each in members]
        longest = None if None in steps else max(each or 1 for each in steps)
        one = self.rows.get(row)
        return {
            "name": name,
            "goal": one.goal if one else GOAL,
            "state_space": {"task": members, **dict.fromkeys(fixed, SAME)},
            "evaluator": {"name": "signal_goal", "signal": "task/share", "target": 1},
            # The game cuts each task at its own limit; these are the longest.
            **({"limits": {"steps": longest * self.longer}} if longest else {}),
            "difficulty": one.difficulty if one else "",
            "metadata": {"source": "StarDojo", "table": self._table(members)},
        }

    def _table(self, members: list[str]) -> dict[str, Any]:
        rows = [(name, self.rows[name]) for name in members]
        return {
            "factor": "task",
            "rows": {name: row.difficulty.capitalize() for name, row in rows},
            "columns": {name: row.category.capitalize() for name, row in rows},
        }
