"""Starts of tasks written by a language model (MCU, section 2.4): the request, and its answer read.

MCU's generator writes whatever the model says; its verification was never released. Here an answer
is YAML that is read strictly, and what is wrong in it is said so that it can be sent back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bridges.mineflayer.goals import PLACES, STATISTICS
from bridges.mineflayer.mcu_files import evaluator_of, start_states
from bridges.mineflayer.names import names
from rollout.api import TaskDraft, TaskProblem
from rollout.errors import ConfigError, nearest
from rollout.yaml12 import load_yaml, parse_yaml

DIMENSIONS = (
    *("Task Progress", "Action Control", "Error Recognition and Correction", "Creative Attempts"),
    *("Task Completion Efficiency", "Material Selection and Usage"),
)
"""The dimensions in which MCU's judges rate a recording."""

KEYS = ("thinking", "text", "commands", "goal", "criteria")
TICKS = 2400
_DATA = Path(__file__).parent / "data"
_BLOCK = re.compile(r"```(?:ya?ml)?\s*\n(.*?)```", re.DOTALL)
_MOST_COMMANDS, _LONGEST = 60, 20_000
_GROUPS = {
    **dict.fromkeys(("mine_block", "block"), "blocks"),
    **dict.fromkeys(("kill_entity", "entity", "tame", "breed", "damage_dealt"), "entities"),
    **dict.fromkeys(("craft_item", "use_item", "pickup", "break_item", "drop", "item"), "items"),
    **dict.fromkeys(("worn", "rename", "repair", "enchant", "trade"), "items"),
}


@lru_cache
def _texts() -> Mapping[str, str]:
    data: Mapping[str, str] = load_yaml(_DATA / "task_prompt.yaml", ours=True)
    return data


def prompt(difficulty: str) -> str:
    """Returns what a model is asked, beside the goal."""
    return _texts()["system"].format(
        hard=_texts()["hard"] if difficulty == "hard" else "",
        shapes=", ".join(STATISTICS),
        places=", ".join(PLACES),
        dimensions=", ".join(DIMENSIONS),
    )


def parse(goal: str, answer: str, difficulty: str, ticks_per_step: int) -> TaskDraft:
    """Returns the task that an answer describes; without a document if it cannot be read."""
    name = "_".join(re.findall(r"[a-z0-9]+", goal.lower()))[:80] or "task"
    name += "_hard" * (difficulty == "hard")
    found = _BLOCK.findall(answer)
    text = found[-1] if found else answer
    try:
        if len(text) > _LONGEST:
            raise ConfigError(f"expected at most {_LONGEST} characters, got {len(text)}")
        data, _ = parse_yaml(text, "answer")
    except ConfigError as error:
        return TaskDraft(name, None, (TaskProblem(str(error)),))
    problems = tuple(_problems(data))
    if problems:
        return TaskDraft(name, None, problems)
    evaluator = {"name": "mineland_creative", "goal": data["text"]}
    document = {
        "name": name,
        "goal": data["text"],
        "state_space": start_states(site="flat"),
        "options": {"commands": list(data["commands"])},
        "evaluator": evaluator_of(data["goal"]) if data.get("goal") else evaluator,
        "limits": {"steps": math.ceil(TICKS / ticks_per_step)},
        "difficulty": difficulty,
        "metadata": {
            "family": "generated",
            "asked": goal,
            "thinking": str(data.get("thinking", "")),
            "criteria": {key: list(lines) for key, lines in (data.get("criteria") or {}).items()},
        },
    }
    return TaskDraft(name, document)


def _problems(data: Any) -> Iterator[TaskProblem]:
    if not isinstance(data, Mapping):
        yield TaskProblem(f"expected a mapping with {', '.join(KEYS)}, got {str(data)[:40]!r}")
        return
    for key in data:
        if key not in KEYS:
            yield TaskProblem(f"unknown key {str(key)[:40]!r}; expected {', '.join(KEYS)}")
    commands = data.get("commands")
    if not isinstance(data.get("text"), str) or not data["text"].strip():
        yield TaskProblem("text: expected the task in a sentence")
    if (
        not isinstance(commands, list)
        or not all(isinstance(each, str) for each in commands)
        or len(commands) > _MOST_COMMANDS
    ):
        yield TaskProblem(f"commands: expected a list of at most {_MOST_COMMANDS} commands")
    yield from _of_goal(data.get("goal"))
    criteria = data.get("criteria") or {}
    if not isinstance(criteria, Mapping) or not all(
        key in DIMENSIONS and isinstance(lines, list) for key, lines in criteria.items()
    ):
        yield TaskProblem(f"criteria: expected lists for {', '.join(DIMENSIONS)}")


def _of_goal(goal: Any) -> Iterator[TaskProblem]:
    if goal is None:
        return
    kinds = {"count": STATISTICS, "reach": PLACES}
    key = next((key for key in kinds if isinstance(goal, Mapping) and key in goal), None)
    if key is None or set(goal) - {key, "of", "n", "distance"}:
        yield TaskProblem(
            "goal: expected {count: GROUP, of: [...], n: 1}, {reach: KIND, of: [...]}"
        )
        return
    if goal[key] not in kinds[key]:
        yield TaskProblem(f"goal: unknown {key} {goal[key]!r}; expected {', '.join(kinds[key])}")
        return
    of = goal.get("of", [])
    if not isinstance(of, list) or (key == "reach" and not of):
        yield TaskProblem("goal: expected `of` as a list of names")
        return
    valid = getattr(names(), _GROUPS[goal[key]]) if goal[key] in _GROUPS else of
    for name in of:
        if name not in valid:
            close = ", ".join(nearest(str(name), valid)) or "none"
            yield TaskProblem(
                f"goal: 1.16.5 has no {str(name)[:40]!r} of that kind. Nearest: {close}"
            )
    if not isinstance(goal.get("n", 1), int) or not isinstance(
        goal.get("distance", 3), int | float
    ):
        yield TaskProblem("goal: expected numbers n and distance")
