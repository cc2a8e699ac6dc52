"""Atomic tasks from the game's own data, in MCU's categories: ``atomic/craft_bread``.

Rules (``data/atomic.yaml``) and rows of the game's data make a task each: a sentence, what it
needs, the commands of its start, and the goal that a machine can count. ``atomic/NAME/hard`` is the
same task elsewhere, with distracting items, mobs and weather (MCU, section 2.4).
"""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bridges.mineflayer.atomic_rows import SOURCES, Row, facts, tables, words
from bridges.mineflayer.mcu_files import evaluator_of, start_states
from rollout.errors import UnknownNameError

PREFIX = "atomic/"
HARD = "/hard"
_MOST_DISTRACTORS, _MOST_MOBS = 10, 3


@dataclass(frozen=True)
class AtomicTask:
    """An atomic task.

    Attributes:
        name: without ``atomic/``.
        category: one of MCU's 11.
        kind: the sub-category, the name of its rule.
        text: the sentence.
        give: items of the start, as commands write them, with their counts.
        commands: the commands after those.
        goal: the evaluator with its options; None if a model judges the recording.
        ticks: length of an episode.
        states: values of factors that differ from a flat place by day.
    """

    name: str
    category: str
    kind: str
    text: str
    give: Mapping[str, int]
    commands: tuple[str, ...]
    goal: Mapping[str, Any] | None
    ticks: int
    states: Mapping[str, Any]


@lru_cache
def atomic_tasks() -> Mapping[str, AtomicTask]:
    """Returns the atomic tasks by their names, in the order of the rules."""
    found: dict[str, AtomicTask] = {}
    for kind, rule in tables()["rules"].items():
        for row in SOURCES[rule["each"]]():
            task = _made(kind, rule, row)
            found.setdefault(task.name, task)
    return found


def _made(kind: str, rule: Mapping[str, Any], row: Row) -> AtomicTask:
    item = str(row.get("item", ""))
    fields = {"words": words(item), **row}
    give = {**row.get("give", {}), **rule.get("give", {})}
    if "amount" in rule:
        give[item] = rule["amount"]
    start = [each.format(**fields) for each in rule.get("start", ())]
    goal = row.get("goal") or rule.get("goal")
    if goal is not None and "of" in goal:
        goal = {**goal, "of": [each.format(**fields) for each in goal["of"]]}
    return AtomicTask(
        rule["name"].format(**fields),
        rule["category"],
        kind,
        rule["text"].format(**fields),
        give,
        (*row.get("start", ()), *start),
        evaluator_of(goal) if goal else None,
        rule["ticks"],
        {**rule.get("states", {}), **row.get("states", {})},
    )


def names() -> Iterator[str]:
    """Yields the names of all tasks, first the simple ones."""
    yield from (f"{PREFIX}{name}" for name in atomic_tasks())
    yield from (f"{PREFIX}{name}{HARD}" for name in atomic_tasks())


def make(name: str, ticks_per_step: int) -> dict[str, Any] | None:
    """Returns the document of a task; None for a name of another form.

    Raises:
        UnknownNameError: there is no such atomic task.
    """
    if not name.startswith(PREFIX):
        return None
    plain = name.removeprefix(PREFIX).removesuffix(HARD)
    tasks = atomic_tasks()
    if plain not in tasks:
        raise UnknownNameError("atomic task", plain, tasks)
    return _document(tasks[plain], name, ticks_per_step, hard=name.endswith(HARD))


def _document(task: AtomicTask, name: str, ticks_per_step: int, *, hard: bool) -> dict[str, Any]:
    give = [f"/give @s {item} {count}" for item, count in _handfuls(task.give)]
    commands, states = [*give, *task.commands], {"site": "flat", **task.states}
    metadata = {"source": "Gamut", "family": "atomic", "category": task.category, "kind": task.kind}
    if hard:
        more, elsewhere = _distractions(task)
        commands, states = [*commands, *more], {**states, **elsewhere, **task.states}
    return {
        "name": name,
        "goal": task.text,
        "state_space": start_states(**states),
        "options": {"commands": commands, **({} if hard else {"spawning": False})},
        "evaluator": dict(task.goal or {"name": "mineland_creative", "goal": task.text}),
        "limits": {"steps": math.ceil(task.ticks / ticks_per_step)},
        "difficulty": "hard" if hard else "simple",
        "metadata": {**metadata, "needs": dict(task.give)},
    }


def _handfuls(give: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Items with counts, as many as fit: of what does not stack, a few."""
    for item, count in give.items():
        stack = facts()["stacks"].get(item.partition("{")[0], 64)
        yield item, count if stack > 1 else min(count, 3)


def _distractions(task: AtomicTask) -> tuple[list[str], dict[str, Any]]:
    """Commands and factors that make a task hard; the name of the task decides them."""
    hard = tables()["hard"]
    chance = random.Random(hashlib.sha256(task.name.encode()).digest())  # noqa: S311 - no secret
    wanted = set((task.goal or {}).get("names", ())) | {i.partition("{")[0] for i in task.give}
    spare = [item for item in hard["distractors"] if item not in wanted]
    items = chance.sample(spare, chance.randint(4, _MOST_DISTRACTORS))
    commands = [f"/give @s {item} {chance.randint(1, 16)}" for item in sorted(items)]
    kinds = [mob for mob in hard["mobs"] if mob not in wanted]
    if "time" in task.states:
        kinds += [mob for mob in hard["foes"] if mob not in wanted]
    for _ in range(chance.randint(1, _MOST_MOBS)):
        x, z = chance.choice((-7, -5, 5, 7)), chance.randint(-6, 6)
        commands.append(f"/summon {chance.choice(kinds)} ~{x} ~1 ~{z}")
    commands.append(f"/weather {chance.choice(hard['weather'])}")
    return commands, {"site": "wild", "biome": list(hard["biomes"])}


def counts() -> dict[str, Counter[str]]:
    """Returns the numbers of tasks by category and sub-category."""
    found: dict[str, Counter[str]] = {}
    for task in atomic_tasks().values():
        found.setdefault(task.category, Counter())[task.kind] += 1
    return found
