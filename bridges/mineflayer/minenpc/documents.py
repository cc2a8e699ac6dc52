"""MineNPC-Task's tasks by name: ``minenpc/R01`` with its variants, and ``minenpc``, all 44."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bridges.mineflayer.mcu_files import start_states
from bridges.mineflayer.minenpc.scene import ALL, PAPER, PREFIX, TICKS, table, tasks, values_of
from rollout.errors import UnknownNameError

_ASKED = "Do what the player asks for in the chat."


def task_names() -> Iterator[str]:
    """Yields the names of the tasks."""
    yield ALL
    yield from (f"{PREFIX}{name}" for name in tasks())


def make(name: str, ticks_per_step: int) -> dict[str, Any] | None:
    """Returns the document of a task; None for a name of another form.

    Raises:
        UnknownNameError: MineNPC-Task has no such task.
    """
    if name == ALL:
        rows = dict.fromkeys(tasks(), "all tasks")
        columns = {each: task["category"] for each, task in tasks().items()}
        labels = {"factor": "npc", "rows": columns, "columns": rows, "attempts": True}
        about: dict[str, Any] = {"table": labels, "lacks": list(_lacks().values())}
        return _document(name, _ASKED, {"npc": list(tasks()), **PAPER}, about, ticks_per_step)
    if not name.startswith(PREFIX):
        return None
    plain = name.removeprefix(PREFIX)
    if plain not in tasks():
        raise UnknownNameError("task of MineNPC-Task", plain, tasks())
    task = tasks()[plain]
    about = {"category": task["category"]}
    if plain in _lacks():
        about["lacks"] = [_lacks()[plain]]
    return _document(name, _ASKED, values_of(plain), about, ticks_per_step)


def _lacks() -> Mapping[str, str]:
    found: Mapping[str, str] = table()["lacks"]
    return found


def _document(
    name: str, goal: str, states: Mapping[str, Any], about: Mapping[str, Any], ticks_per_step: int
) -> dict[str, Any]:
    usual = start_states(site="flat", time="noon", biome="plains", world=0, **states)
    return {
        "name": name,
        "goal": goal,
        "state_space": usual,
        "options": {"minenpc": True, "spawning": False, "daylight": False, "view_distance": 6},
        "evaluator": {"name": "minenpc"},
        "limits": {"steps": math.ceil(TICKS / ticks_per_step)},
        "metadata": {
            "family": "minenpc",
            "source": "MineNPC-Task",
            "goal_detail": "request",
            **about,
        },
    }
