"""What a bridge knows of tasks beyond their names: other formats of files, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rollout.api.types import Array


@dataclass(frozen=True)
class TaskProblem:
    """One problem of a task.

    Attributes:
        problem: what is wrong, and the nearest that is valid.
        given: the command or value that is wrong.
        line: of the file, from 1; 0 if it is not known.
        repair: what is played in its place; empty if it is left out.
    """

    problem: str
    given: str = ""
    line: int = 0
    repair: str = ""

    def describe(self) -> dict[str, Any]:
        """Returns it as plain data."""
        data = {"line": self.line, "given": self.given, "problem": self.problem}
        return {**data, "repair": self.repair} if self.repair else data


@dataclass(frozen=True)
class TaskDraft:
    """A task that was read from something that is no task file.

    Attributes:
        name: its name.
        document: contents of its task file (see ``rollout.tasks``); None if there is no task.
        problems: what is wrong; a draft with problems that are repaired can be played.
    """

    name: str
    document: Mapping[str, Any] | None
    problems: tuple[TaskProblem, ...] = ()


@dataclass(frozen=True)
class Solution:
    """Evidence that a task can be solved.

    Attributes:
        kind: ``oracle`` for a program that plays it, ``plan`` for steps that follow from the rules
            of the game alone; empty if nothing shows it.
        steps: what is done, in words.
        options: of the bridge, by which an oracle plays.
        actions: those that an oracle plays first, ``{column: (T, ...)}``; then none.
    """

    kind: str = ""
    steps: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    actions: Mapping[str, Array] = field(default_factory=dict)


class TaskTools(Protocol):
    """Reads, checks and makes the tasks of a bridge; nothing is launched.

    It belongs to the spec, so it is cheap and picklable.
    """

    def read(self, path: Path) -> TaskDraft | None:
        """Returns the task of a file in another format than ours; None for any other file.

        Raises:
            ConfigError: the file cannot be read.
        """
        ...

    def check(self, document: Mapping[str, Any]) -> Sequence[TaskProblem]:
        """Returns what would keep a task from being played or solved, as far as rules tell."""
        ...

    def compose(self, operator: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns the document of a task composed of others by ``and``, ``or`` or ``then``.

        Raises:
            ConfigError: their starts contradict each other; the message names the values.
        """
        ...

    def solve(self, document: Mapping[str, Any]) -> Solution:
        """Returns evidence that a task can be solved; an empty one if there is none."""
        ...

    def prompt(self, difficulty: str) -> str:
        """Returns what a language model is asked that is to write the start of a task.

        Args:
            difficulty: ``simple``, or ``hard`` for one with distractions.
        """
        ...

    def parse(self, goal: str, answer: str, difficulty: str) -> TaskDraft:
        """Returns the task that a model has written; without a document if it is unreadable."""
        ...
