"""The ids of MineLand's tasks: their meaning, which exist, and which are impossible.

The grammar is MineLand's: ``harvest_8_oak_log_with_1_iron_pickaxe``, ``combat_1_zombie``,
``survival_0.5_days``. Any item of the version may be a target and any list of items a load-out, so
there are more ids than MineLand lists. Its irregular ones (a missing underscore, a second
``_with_``) are accepted with their only possible meaning. ``build_well`` and ``play_cook`` are
buildings and plays of our own; what MineLand's other ids mean is data, see ``task_files``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bridges.mineflayer.blueprints import BLUEPRINTS
from bridges.mineflayer.factors import FOES, MOBS, NUMBERS
from bridges.mineflayer.loadouts import NONE, SUITS, SWORDS, parse_loadout, suit, sword
from bridges.mineflayer.names import NEWER, VERSION, names
from bridges.mineflayer.scripts import SCRIPTS
from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml

_HARVEST = Path(__file__).parent / "data" / "harvest.yaml"

PLAYTHROUGH = "playthrough"
"""MineLand's id for the whole game, a family of its own."""
_PLAYTHROUGH_GOAL = "Find the way to the End and kill the ender dragon."
FAMILIES = ("harvest", "techtree", "combat", "survival", "construction", "stage", "creative")
PLAYGROUND = "playground"
DAYS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4)
MOST_DAYS = 100.0
MOST_COUNT = 36 * 64

_ITEMS_ID = re.compile(r"(harvest|techtree)_(\d+)_([a-z][a-z0-9_]*?)(?:_with_([a-z0-9_]+))?")
_COMBAT_ID = re.compile(r"combat_(\d+)_([a-z][a-z_]*?)(?:_with_([a-z0-9_]+))?")
_SURVIVAL_ID = re.compile(r"survival_(\d+(?:\.\d+)?)_days(?:_with_([a-z0-9_]+))?")
_CREATIVE_ID = re.compile(r"creative_(\w+)", re.ASCII)
_OWN_ID = re.compile(r"(build|play)_(\w+)", re.ASCII)
_DATA_ID = re.compile(r"(construction_task|stage_performance)_\w+", re.ASCII)
_NO_UNDERSCORE = re.compile(r"(harvest_\d+)(white_wool|blue_wool|pink_wool|white_bed)")
_TWO_LISTS = re.compile(r"(harvest_\d+_(?:glass|oak_planks))_with_[a-z0-9_]+(_with_[a-z0-9_]+)")

# The nearest equivalents of items that are newer than the version.
_INSTEAD = {
    "raw_iron": "iron_ore",
    "raw_gold": "gold_ore",
    "raw_copper": "iron_ore",
    "copper_ingot": "iron_ingot",
}
_NO_ITEM = {"milk": "milk_bucket", "mellon_slice": "melon_slice", "stone_fence": "cobblestone_wall"}
_BUILDINGS = tuple(each.short for each in BLUEPRINTS)


@dataclass(frozen=True)
class MinelandTask:
    """A parsed id.

    Attributes:
        id: regular form of the id.
        family: one of ``FAMILIES``, or ``playthrough``.
        target: item, mob, or name of the script; empty where there is none.
        count: number of targets.
        loadout: initial items of the agents, as in the id; ``none`` for nothing.
        days: days to survive.
        blueprint: number of the blueprint to build, 0 for none.
        goal: the goal in words.
    """

    id: str
    family: str
    target: str = ""
    count: int = 0
    loadout: str = NONE
    days: float = 0.0
    blueprint: int = 0
    goal: str = ""


def parse(task_id: str, version: str = VERSION) -> MinelandTask:
    """Parses an id.

    Args:
        task_id: e.g. ``combat_4_skeleton_with_1_iron_sword_and_1_shield``.
        version: version of Minecraft it is to be played in.

    Raises:
        ConfigError: the task or a number is impossible in that version; the message says why and
            names the nearest possible one.
        UnknownNameError: no such task, item or mob; the message names the nearest.
    """
    regular = regular_id(task_id)
    if regular in (PLAYGROUND, PLAYTHROUGH):
        return _whole_game(regular)
    if match := _ITEMS_ID.fullmatch(regular):
        return _items(regular, version, *match.groups())
    if match := _COMBAT_ID.fullmatch(regular):
        return _combat(regular, *match.groups())
    if match := _SURVIVAL_ID.fullmatch(regular):
        return _survival(regular, *match.groups())
    if match := _OWN_ID.fullmatch(regular):
        return _own(regular, *match.groups())
    if match := _DATA_ID.fullmatch(regular):
        raise _needs_files(regular, match[1])
    if match := _CREATIVE_ID.fullmatch(regular):
        return MinelandTask(regular, "creative", goal=match[1].replace("_", " "))
    raise UnknownNameError("task", task_id, generate())


def _whole_game(task_id: str) -> MinelandTask:
    if task_id == PLAYGROUND:
        return MinelandTask(task_id, "creative")
    return MinelandTask(task_id, "playthrough", "ender_dragon", 1, goal=_PLAYTHROUGH_GOAL)


def regular_id(task_id: str) -> str:
    """Returns the regular form of an id: some of MineLand's do not follow its own grammar."""
    text = task_id.removeprefix("_") if task_id.startswith("_techtree_") else task_id
    text = _NO_UNDERSCORE.sub(r"\1_\2", text)
    return _TWO_LISTS.sub(r"\1\2", text)  # of two lists MineLand gives the last


def _words(text: str) -> str:
    return text.replace("_", " ")


def _impossible(task_id: str, version: str, why: str, instead: str) -> ConfigError:
    return ConfigError(
        f"task {task_id!r} is impossible in Minecraft {version}: {why}; nearest that is possible: "
        f"{instead}"
    )


def _items(
    task_id: str, version: str, family: str, count: str, item: str, loadout: str | None
) -> MinelandTask:
    with_ = f"_with_{loadout}" if loadout else ""
    newer = item in NEWER and _at_least(version, NEWER[item])
    if not newer:
        _check_possible(task_id, version, f"{family}_{count}_", item, with_)
    number = _count(task_id, count, 1, MOST_COUNT)
    parse_loadout(loadout or NONE)
    return MinelandTask(task_id, family, item, number, loadout or NONE, goal=_words(task_id))


def _check_possible(task_id: str, version: str, head: str, item: str, with_: str) -> None:
    if item in NEWER:
        instead = f"{head}{_INSTEAD[item]}{with_}"
        raise _impossible(task_id, version, f"{item} came with {NEWER[item]}", instead)
    if item in _NO_ITEM:
        raise _impossible(
            task_id, version, f"there is no item {item}", f"{head}{_NO_ITEM[item]}{with_}"
        )
    if item not in names().items:
        raise UnknownNameError(f"item of Minecraft {VERSION}", item, names().items)


def _at_least(version: str, other: str) -> bool:
    return [int(n) for n in version.split(".")] >= [int(n) for n in other.split(".")]


def _count(task_id: str, count: str, low: int, high: int) -> int:
    if not low <= int(count) <= high:
        raise ConfigError(f"task {task_id!r}: expected a number from {low} to {high}, got {count}")
    return int(count)


def _combat(task_id: str, count: str, mob: str, loadout: str | None) -> MinelandTask:
    if mob not in MOBS or mob == NONE:
        raise UnknownNameError("mob to fight", mob, MOBS[1:])
    if int(count) not in NUMBERS[1:]:
        listed = ", ".join(map(str, NUMBERS[1:]))
        raise ConfigError(f"task {task_id!r}: expected {listed} mobs, got {count}")
    parse_loadout(loadout or NONE)
    goal = _words(task_id)
    return MinelandTask(task_id, "combat", mob, int(count), loadout or NONE, goal=goal)


def _survival(task_id: str, days: str, loadout: str | None) -> MinelandTask:
    if not 0 < float(days) <= MOST_DAYS:
        raise ConfigError(
            f"task {task_id!r}: expected more than 0 and at most {MOST_DAYS:g} days, got {days}"
        )
    parse_loadout(loadout or NONE)
    goal = f"Do not die until the end of day {days}."
    return MinelandTask(task_id, "survival", days=float(days), loadout=loadout or NONE, goal=goal)


def _own(task_id: str, kind: str, which: str) -> MinelandTask:
    if kind == "play":
        if which not in SCRIPTS:
            raise UnknownNameError("play", which, SCRIPTS)
        return MinelandTask(task_id, "stage", which, goal=SCRIPTS[which].text)
    if which not in _BUILDINGS:
        raise UnknownNameError("building", which, _BUILDINGS)
    number = _BUILDINGS.index(which) + 1
    blueprint = BLUEPRINTS[number - 1]
    goal = f"Build a {blueprint.name}. {blueprint.text}"
    return MinelandTask(task_id, "construction", blueprint=number, goal=goal)


def _needs_files(task_id: str, kind: str) -> ConfigError:
    what, own = (
        ("blueprint", "build_well") if kind == "construction_task" else ("play", "play_cook")
    )
    return ConfigError(
        f"task {task_id!r}: its {what} is data of MineLand's; set bridge.task_files (in a script, "
        f"make(task_files=...)) to mineland/tasks/description_files of your copy, or take "
        f"one of ours, such as {own}"
    )


def generate(family: str | None = None, *, possible: bool = True) -> Iterator[str]:
    """Yields the ids of MineLand's lists in their regular form, and ours, in a fixed order.

    The load-outs of eight irregular harvest targets (``special`` in ``data/harvest.yaml``) are
    partly our own choice; all others, and every count, are MineLand's.

    Args:
        family: one of ``FAMILIES``, or None for all; creative tasks are not listed.
        possible: leave out those that are impossible in ``VERSION``.

    Raises:
        UnknownNameError: there is no such family.
    """
    if family is not None and family not in FAMILIES:
        raise UnknownNameError("family of tasks", family, FAMILIES)
    for name in FAMILIES if family is None else (family,):
        for task_id in _listed(name):
            if not possible or not _is_impossible(task_id):
                yield task_id


def _is_impossible(task_id: str) -> bool:
    match = _ITEMS_ID.fullmatch(task_id)
    return match is not None and match[3] not in names().items


@lru_cache
def _listed(family: str) -> tuple[str, ...]:
    makers: dict[str, Callable[[], Iterable[str]]] = {
        "harvest": _harvest_ids,
        "techtree": _techtree_ids,
        "combat": _combat_ids,
        "survival": _survival_ids,
        "construction": lambda: (f"build_{name}" for name in _BUILDINGS),
        "stage": lambda: (f"play_{name}" for name in SCRIPTS),
        "creative": tuple,
    }
    return tuple(makers[family]())


_TOOLS = ("axe", "hoe", "pickaxe", "shovel", "sword")
_PIECES = ("boots", "chestplate", "helmet", "leggings")


def _ids(head: str, numbers: Iterable[int], name: str, loadouts: Iterable[str]) -> Iterator[str]:
    for loadout in loadouts:
        for number in numbers:
            with_ = "" if loadout == NONE else f"_with_{loadout}"
            yield f"{head}_{number}_{name}{with_}"


def _harvest_ids() -> Iterator[str]:
    listed = load_yaml(_HARVEST, ours=True)
    for row in listed["sets"]:
        for target in row["targets"].split():
            yield from _ids("harvest", (1, 8), target, row["loadouts"])
    for row in listed["special"]:
        yield from _ids("harvest", row["numbers"], row["target"], row["loadouts"])


def _techtree_ids() -> Iterator[str]:
    for material in ("diamond", "golden", "iron", "stone"):
        for tool in _TOOLS:
            yield from _ids("techtree", (1, 8), f"{material}_{tool}", (NONE, "1_iron_pickaxe"))
    fighting = (NONE, "1_iron_sword_and_1_iron_axe")
    for material in ("chainmail", "diamond", "golden", "iron", "leather"):
        for piece in _PIECES:
            yield from _ids("techtree", (1, 8), f"{material}_{piece}", fighting)
    planks = ("64_oak_planks", "16_oak_planks_and_1_crafting_table_and_8_stick")
    for tool in _TOOLS:
        yield from _ids("techtree", (1, 8), f"wooden_{tool}", (NONE, "1_iron_pickaxe", *planks))
    for number, ingots in ((1, "2_iron_ingot"), (8, "16_iron_ingot")):
        yield from _ids("techtree", (number,), "shears", (NONE, "1_iron_pickaxe", ingots))


def _combat_ids() -> Iterator[str]:
    suits = [suit(material, armour) for material in SWORDS for armour in SUITS]
    loadouts = (NONE, *(sword(material) for material in SWORDS), *suits)
    for mob in FOES:
        yield from _ids("combat", NUMBERS[1:], mob, loadouts)


def _survival_ids() -> Iterator[str]:
    swords = [sword(material) for material in ("iron", "diamond")]
    loadouts = (NONE, *swords, *(f"{each}_and_equipments" for each in swords))
    for days in DAYS:
        for loadout in loadouts:
            with_ = "" if loadout == NONE else f"_with_{loadout}"
            yield f"survival_{days:g}_days{with_}"
