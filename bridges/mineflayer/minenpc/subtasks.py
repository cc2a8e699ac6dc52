"""The 216 subtasks of MineNPC-Task's paper, each with a check over the conditions of the tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from bridges.mineflayer.minenpc.predicates import Condition, Places, parse
from rollout.yaml12 import load_yaml

_TABLE = Path(__file__).parents[1] / "data" / "minenpc_subtasks.yaml"


@dataclass(frozen=True)
class Subtask:
    """A subtask.

    Attributes:
        number: in the paper's list, from 1.
        category: the paper's name of its domain.
        kind: of its check, such as ``near`` or ``take``.
        text: the paper's text, shortened.
        check: the condition that decides it; ``target`` and ``targets`` are a plan's positions.
        repeats: whether an earlier line is the same.
        lacks: what 1.16.5 lacks for it; empty for nothing.
    """

    number: int
    category: str
    kind: str
    text: str
    check: str
    repeats: bool
    lacks: str

    def condition(self, places: Places) -> Condition:
        """Returns the check, read; raises like ``parse``.

        Args:
            places: with the point ``target`` and the list ``targets`` where the check names them.
        """
        return parse(self.check, places)


@lru_cache
def subtasks() -> tuple[Subtask, ...]:
    """Returns the subtasks in the paper's order; those that do not repeat one are 204."""
    table: Mapping[str, Any] = load_yaml(_TABLE, ours=True)
    repeated = set(table["repeated"])
    return tuple(
        Subtask(
            int(number),
            table["categories"][row["category"]],
            row["kind"],
            row["text"],
            row["check"],
            int(number) in repeated,
            row.get("lacks", ""),
        )
        for number, row in table["subtasks"].items()
    )
