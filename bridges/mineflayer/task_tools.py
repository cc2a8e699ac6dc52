"""What the bridge knows of tasks beyond their names; see ``rollout.api.TaskTools``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridges.mineflayer import task_writing
from bridges.mineflayer.mcu_files import read_draft
from bridges.mineflayer.task_check import check
from bridges.mineflayer.task_compose import compose
from bridges.mineflayer.task_solve import solve
from rollout.api import Solution, TaskDraft, TaskProblem


@dataclass(frozen=True)
class MinecraftTaskTools:
    """Reads and checks tasks.

    Attributes:
        ticks_per_step: of the bridge, for limits in steps.
    """

    ticks_per_step: int = 5

    def read(self, path: Path) -> TaskDraft | None:
        """Returns the task of a file of MCU or MineStudio; see ``rollout.api.TaskTools``."""
        return read_draft(path, self.ticks_per_step)

    def check(self, document: Mapping[str, Any]) -> Sequence[TaskProblem]:
        """Returns the problems of a task; see ``rollout.api.TaskTools``."""
        return check(document)

    def compose(self, operator: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns a composed task; see ``rollout.api.TaskTools``."""
        return compose(operator, documents)

    def solve(self, document: Mapping[str, Any]) -> Solution:
        """Returns evidence that a task can be solved; see ``rollout.api.TaskTools``."""
        return solve(document)

    def prompt(self, difficulty: str) -> str:
        """Returns what a model is asked; see ``rollout.api.TaskTools``."""
        return task_writing.prompt(difficulty)

    def parse(self, goal: str, answer: str, difficulty: str) -> TaskDraft:
        """Returns the task of an answer; see ``rollout.api.TaskTools``."""
        return task_writing.parse(goal, answer, difficulty, self.ticks_per_step)
