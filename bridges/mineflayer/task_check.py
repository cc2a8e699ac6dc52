"""What would keep a task from being played or solved, as far as the game's rules tell.

Upstream's verification was never released (MCU, section 2.4). Here nothing is launched: names are
checked by the parser of commands, and goals against what the start gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bridges.mineflayer.atomic_rows import facts, tables
from bridges.mineflayer.commands import CommandError, parse_command
from bridges.mineflayer.loadouts import parse_loadout
from bridges.mineflayer.task_documents import obtainable
from bridges.mineflayer.task_plan import Supplies, plan, supplies, tool_for
from rollout.api import TaskProblem

_SLOTS = 36
_FILL = re.compile(r"\bfill ((?:[~^]?-?[\d.]* ){6})(?:minecraft:)?(\w+)")
_NATURAL = (
    *("cow", "pig", "sheep", "chicken", "rabbit", "squid", "cod", "salmon", "bat", "witch"),
    *("zombie", "skeleton", "spider", "creeper", "enderman", "slime", "husk", "stray"),
)
"""Creatures that a world has without being asked."""


def given(document: Mapping[str, Any]) -> Supplies:
    """Returns what the start of a task gives: commands, options, and the first load-out."""
    options = document.get("options") or {}
    found = supplies(options.get("commands", ()))
    for key, count in (options.get("give") or {}).items():
        found.items[str(key).rpartition(".")[2]] += int(count)
    states = document.get("state_space") or {}
    for item in parse_loadout(_first(states.get("loadout", "none"))):
        found.items[item.name] += item.count
    if _first(states.get("mob", "none")) != "none":
        found.mobs.add(_first(states["mob"]))
    found.blocks |= {str(each).partition("[")[0] for each in (options.get("blocks") or {}).values()}
    return found


def _first(values: Any) -> str:
    return str(values[0] if isinstance(values, list) and values else values)


def goals(evaluator: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the evaluators within an evaluator that are not composed."""
    if not isinstance(evaluator, Mapping):
        return
    for part in evaluator.get("parts", ()):
        yield from goals(part)
    if "parts" not in evaluator:
        yield evaluator


def check(document: Mapping[str, Any]) -> Sequence[TaskProblem]:
    """Returns the problems of a task; see ``rollout.api.TaskTools``."""
    commands = [str(each) for each in (document.get("options") or {}).get("commands", ())]
    problems = [problem for line in commands for problem in _of_command(line)]
    have = given(document)
    if have.slots() > _SLOTS:
        problems.append(
            TaskProblem(
                f"the start gives items for {have.slots()} slots, and an inventory has {_SLOTS}"
            )
        )
    for goal in goals(document.get("evaluator")):
        problems += _of_goal(goal, have)
    problems += _of_peace(document, have)
    return problems


def _of_command(line: str) -> Iterator[TaskProblem]:
    try:
        parse_command(line)
    except CommandError as error:
        yield TaskProblem(str(error), line)
        return
    match = _FILL.search(line)
    if match is None:
        return
    corners = match[1].split()
    solid = facts()["blocks"].get(match[2], {}).get("solid", match[2] == "bedrock")
    if solid and "hollow" not in line and all(each.startswith("~") for each in corners):
        low, high = ([float(each[1:] or 0) for each in corners[k : k + 3]] for k in (0, 3))
        spans = [sorted(pair) for pair in zip(low, high, strict=True)]
        body = ((-0.4, 0.4), (0.0, 1.7), (-0.4, 0.4))
        if all(a <= end and b >= start for (a, b), (start, end) in zip(spans, body, strict=True)):
            yield TaskProblem(f"it fills the place of the agent with {match[2]}", line)


def _of_goal(goal: Mapping[str, Any], have: Supplies) -> Iterator[TaskProblem]:
    kind, names = goal.get("statistic", goal.get("kind")), list(goal.get("names", ()))
    if goal.get("name") in ("mineland_harvest", "mineland_techtree"):
        kind, names = "pickup", [str(goal.get("target", "oak_log"))]
    if not names:
        return
    if kind in ("craft_item", "pickup"):
        yield from _of_product(names, have)
    if kind == "mine_block":
        yield from _of_mining(names, have)
    if kind in ("use_item", "repair", "rename", "enchant", "worn") and not any(
        have.items[name] or name in obtainable() for name in names
    ):
        yield TaskProblem(f"{_either(names)} is to be used, and is neither given nor to be had")
    lives = {*_NATURAL, *tables()["friends"], *tables()["hostile"], *have.mobs}
    if kind in ("kill_entity", "tame", "breed", "entity") and lives.isdisjoint(names):
        yield TaskProblem(f"{_either(names)} is neither summoned nor lives in any biome")


def _of_product(names: Sequence[str], have: Supplies) -> Iterator[TaskProblem]:
    inside = [name for name in names if have.items[name]]
    if inside:
        yield TaskProblem(f"the start gives {inside[0]}, the product itself")
    if not any(
        plan(name, 1, have, make=True) is not None or name in obtainable() for name in names
    ):
        yield TaskProblem(
            f"{_either(names)} cannot be made of what the start gives, nor come by in the world"
        )


def _of_mining(names: Sequence[str], have: Supplies) -> Iterator[TaskProblem]:
    blocks = [name for name in names if facts()["blocks"].get(name)]
    placed = [name for name in blocks if name in have.blocks]
    drops = [item for name in blocks for item in (name, *facts()["blocks"][name]["drops"])]
    if not placed and not any(item in obtainable() for item in drops):
        yield TaskProblem(f"{_either(names)} is neither placed nor part of any world")
    picks = any(name.endswith("_pickaxe") for name in have.items)
    if picks and not any(tool_for(name, have.items) for name in placed or blocks):
        tier = facts()["blocks"][(placed or blocks)[0]]["tier"]
        yield TaskProblem(f"{_either(names)} needs a pickaxe of {tier}, and a worse one is given")


def _of_peace(document: Mapping[str, Any], have: Supplies) -> Iterator[TaskProblem]:
    peace = _first((document.get("state_space") or {}).get("difficulty", "easy")) == "peaceful"
    hostile = have.mobs & set(tables()["hostile"])
    if peace and hostile:
        yield TaskProblem(f"difficulty: peaceful removes {min(hostile)}; expected easy")


def _either(names: Sequence[str]) -> str:
    return " or ".join(names[:3]) + (" or others" if len(names) > 3 else "")
