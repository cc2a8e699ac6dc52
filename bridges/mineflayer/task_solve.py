"""Evidence that a task can be solved: a program that plays it, or a plan over the game's rules.

A plan follows recipes and tools from what the start gives. It does not know the terrain, so it is
weaker evidence than a program that was played; for other tasks nothing is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from bridges.mineflayer.atomic_rows import facts, of_game, tables
from bridges.mineflayer.oracle import program, read_part
from bridges.mineflayer.spaces import CODE, KIND, NEW
from bridges.mineflayer.task_check import given
from bridges.mineflayer.task_plan import Supplies, plan, tool_for
from rollout.api import Solution
from rollout.errors import InputError

Step: TypeAlias = list[Any]

_WORN = {"helmet": "head", "chestplate": "torso", "leggings": "legs", "boots": "feet"}
_PRESSED = {
    "jump": (["jump"], 0.05),
    "sprint_one_cm": (["forward", "sprint"], 25.0),
    "walk_one_cm": (["forward"], 20.0),
    "sneak_time": (["sneak"], 1.0),
    "swim_one_cm": (["forward", "sprint"], 8.0),
    "walk_under_water_one_cm": (["forward"], 8.0),
}
"""Keys for a statistic, and how much they add in a tick."""
_GROUND = ("grass_block",)  # every meadow has it
_POURED = ("water_bucket", "lava_bucket", "flint_and_steel", "bone_meal")
_RIDDEN = {"boat_one_cm": "oak_boat", "minecart_one_cm": "minecart", "pig_one_cm": "pig"}
_EMPTY: Mapping[str, Any] = {}


def solve(document: Mapping[str, Any]) -> Solution:
    """Returns evidence that a task can be solved; see ``rollout.api.TaskTools``."""
    have, goal = given(document), document.get("evaluator") or _EMPTY
    if str(goal.get("name", "")).startswith("mineland_"):
        return _of_mineland(str(document.get("name", "")))
    steps = _steps(goal, have)
    if steps is None:
        way = _planned(goal, have)
        return Solution("plan", tuple(way)) if way else Solution()
    code = f"const STEPS = {json.dumps(steps)};\n{read_part('walk')}{read_part('atomic')}"
    return _played(code, tuple(" ".join(map(str, step)) for step in steps))


def _played(code: str, steps: tuple[str, ...]) -> Solution:
    actions = {KIND: np.array([NEW], np.int64), CODE: np.array([code], object)}
    return Solution("oracle", steps, {"actions": "code"}, actions)


def _of_mineland(name: str) -> Solution:
    """The program of a task of MineLand's grammar, if there is one."""
    try:
        return _played(program(name), (f"the program of {name}",))
    except InputError:
        return Solution()


def _steps(goal: Mapping[str, Any], have: Supplies) -> list[Step] | None:
    """The steps of a goal; of ``or`` those of the first part that has any."""
    parts = [_steps(part, have) for part in goal.get("parts", ())]
    if goal.get("name") == "or":
        return next((part for part in parts if part), None)
    if parts:
        whole = [step for part in parts if part for step in part]
        return whole if all(parts) else None
    kind = str(goal.get("statistic", goal.get("kind", "")))
    if kind not in _VERBS:
        return None
    for name in goal.get("names") or sorted(have.blocks):
        steps = _VERBS[kind](str(name), int(goal.get("count", 1)), have)
        if steps:
            return steps
    return None


def _planned(goal: Mapping[str, Any], have: Supplies) -> list[str] | None:
    """Steps in words that follow from the rules, of goals that no program plays as a whole."""
    parts = [_planned(part, have) for part in goal.get("parts", ())]
    if goal.get("name") == "or":
        return next((part for part in parts if part), None)
    if parts:
        return [step for part in parts if part for step in part] if all(parts) else None
    steps = _steps(goal, have)
    if steps:
        return [" ".join(map(str, step)) for step in steps]
    if goal.get("statistic", goal.get("kind")) not in ("craft_item", "pickup", "item"):
        return None
    ways = (plan(str(name), 1, have, make=True) for name in goal.get("names", ()))
    return next((way for way in ways if way), None)


def _craft(name: str, count: int, have: Supplies) -> list[Step] | None:
    """Makes an item as its plan says, whose steps are in words of fixed forms."""
    steps: list[Step] = []
    for said in plan(name, count, have, make=True) or ():
        verb, *words = said.split()
        if verb == "craft":
            steps.append(["craft", words[1]])
        elif verb == "smelt":
            steps.append(["smelt", words[1], words[3]])
        elif verb == "cut":
            steps.append(["cut", words[1], words[3]])
        elif verb == "upgrade":
            steps.append(["upgrade", words[0]])
        elif verb == "mine":
            steps.append(["mine", words[0]])
        elif verb == "place":
            steps.append(["place", words[0], 1])
        else:
            return None
    return steps or None


def _mine(name: str, count: int, have: Supplies) -> list[Step] | None:
    there = name in have.blocks or name in _GROUND
    if not there or tool_for(name, have.items) is None:
        return None
    return [["mine", name]] * min(count, 3)


def _use(name: str, count: int, have: Supplies) -> list[Step] | None:
    ways = (
        (name in facts()["foods"] or name == "potion", ["eat", name]),
        (name in tables()["thrown"] or name == "splash_potion", ["throw", name]),
        (name == "shears" and "sheep" in have.mobs, ["shear", "sheep"]),
        (name in _POURED or name.endswith("_hoe"), ["apply", name]),
        (name == "bow" and have.mobs and have.items["arrow"], ["shoot", *sorted(have.mobs)[:1]]),
        (name in facts()["blocks"], ["place", name, count]),
    )
    return next(([step] for fits, step in ways if fits and have.items[name]), None)


def _kill(name: str, count: int, have: Supplies) -> list[Step] | None:
    if name not in have.mobs:
        return None
    if any(item.endswith(("_sword", "_axe")) for item in have.items):
        return [["kill", name]] * count
    return [["shoot", name]] * 3 if have.items["bow"] and have.items["arrow"] else None


def _pickup(name: str, count: int, have: Supplies) -> list[Step] | None:
    if name.endswith("_wool") and "sheep" in have.mobs and have.items["shears"]:
        return [["shear", "sheep"]] * 2
    mob = tables()["drops"].get(name)
    if mob in have.mobs:
        return [["kill", mob]] * 3
    for block in sorted(have.blocks):
        if name in facts()["blocks"].get(block, {}).get("drops", ()) and tool_for(
            block, have.items
        ):
            return [["mine", block]] * min(count, 3)
    return None


def _custom(name: str, count: int, have: Supplies) -> list[Step] | None:
    if name in _PRESSED:
        keys, fast = _PRESSED[name]
        wet = [["go", "water"]] if "water" in have.blocks else []
        return [*wet, ["press", keys, 40 + round(count / fast)]]
    if name == "drop" and have.items:
        return [["toss", next(iter(have.items))]]
    if name in _RIDDEN:
        return [["ride", _RIDDEN[name]]]
    if name == "horse_one_cm":
        return next(([["ride", m]] for m in ("horse", "donkey", "mule") if m in have.mobs), None)
    if name in ("sleep_in_bed", "enchant_item"):
        return _sleep(have) if name == "sleep_in_bed" else _spell(have)
    opened = [block for block, each in tables()["containers"].items() if each == name]
    return next(([["open", block]] for block in opened if block in have.blocks), None)


def _sleep(have: Supplies) -> list[Step] | None:
    bed = next((item for item in have.items if item.endswith("_bed")), None)
    return [["sleep", bed]] if bed else None


def _spell(have: Supplies) -> list[Step] | None:
    table = [] if "enchanting_table" in have.blocks else [["place", "enchanting_table", 1]]
    swords = [item for item in have.items if item.endswith(("_sword", "book"))]
    if not swords or (table and not have.items["enchanting_table"]):
        return None
    return [*table, ["enchant", swords[0]]]


def _anvil(name: str, count: int, have: Supplies) -> list[Step] | None:
    del count
    other = [item for item in have.items if item not in (name, "bread")]
    return [["combine", name, other[0]]] if have.items[name] and other else None


def _breed(name: str, count: int, have: Supplies) -> list[Step] | None:
    del count
    about = of_game("animals").get(name, {})
    liked = [*about.get("breeds", ()), *(about.get("tames") or {}), *about.get("temper", {})]
    food = next((item for item in have.items if item in liked), None)
    return [["feed", name, food]] if name in have.mobs and food else None


def _go(name: str, count: int, have: Supplies) -> list[Step] | None:
    del count
    if name in have.blocks:
        return [["go", name]]
    grown = {block: seed for seed, block in tables()["grown"].items()}
    seed = grown.get(name, name)
    ground = tables()["plants"].get(seed)
    return [["plant", seed, ground]] if have.items[seed] and ground in have.blocks else None


def _tame(name: str, count: int, have: Supplies) -> list[Step] | None:
    fed = _breed(name, count, have)
    if fed and of_game("animals")[name].get("temper"):
        return [*fed, ["gentle", name]]  # by riding it until it is patient
    return fed


def _wear(name: str, count: int, have: Supplies) -> list[Step] | None:
    del count
    where = _WORN.get(name.rpartition("_")[2])
    return [["wear", name, where]] if have.items[name] and where else None


def _known(verb: str, group: Callable[[Supplies], Any]) -> Callable[..., list[Step] | None]:
    """Steps of one verb, of a thing that the start has."""

    def steps(name: str, count: int, have: Supplies) -> list[Step] | None:
        del count
        return [[verb, name]] if name in group(have) else None

    return steps


def _items(have: Supplies) -> Sequence[str]:
    return [name for name, count in have.items.items() if count]


_VERBS: Mapping[str, Callable[[str, int, Supplies], list[Step] | None]] = {
    "craft_item": _craft,
    "mine_block": _mine,
    "use_item": _use,
    "kill_entity": _kill,
    "pickup": _pickup,
    "custom": _custom,
    "repair": _anvil,
    "rename": _known("rename", _items),
    "enchant": _known("enchant", _items),
    "trade": lambda name, count, have: [["trade", name]] if have.offers else None,
    "tame": _tame,
    "breed": _breed,
    "worn": _wear,
    "item": _known("take", _items),
    "block": _go,
    "entity": _known("meet", lambda have: have.mobs),
}
"""Steps by the statistic, or the kind of place, of a goal."""
