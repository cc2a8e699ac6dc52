"""What evaluators read in an observation, which has the names of the mod's ``observe_v2``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from bridges.stardojo.commands import table
from rollout.errors import InputError

Observation = Mapping[str, Any]
"""The mod's JSON, without the screenshot; ``MonsterKills`` beside it, counts by monster."""

Tile = tuple[int, int]

HOE_DIRT = "StardewValley.TerrainFeatures.HoeDirt"
FRUIT_TREE = "StardewValley.TerrainFeatures.FruitTree"


class CannotBeJudgedError(InputError):
    """The game does not report what a task is judged by."""


def point(value: Any) -> Tile | None:
    """Returns a position, which the mod writes as text, as an object or as a list."""
    if isinstance(value, str):
        return _read(value)
    if isinstance(value, dict):
        value = [value.get("X", value.get("x")), value.get("Y", value.get("y"))]
    try:
        x, y = value
        return round(float(x)), round(float(y))
    except (TypeError, ValueError):
        return None


@lru_cache(4096)
def _read(text: str) -> Tile | None:
    return point(text.split(","))


def listed(value: Any) -> list[Mapping[str, Any]]:
    """Returns the objects of a list that may be missing."""
    return [each for each in value if isinstance(each, dict)] if value else []


def held(seen: Observation, names: Collection[str]) -> int:
    """Returns how many items of some names the inventory has, of any quality."""
    slots = listed(seen["Player"].get("Inventory"))
    return sum(each.get("Quantity") or 0 for each in slots if each.get("Name") in names)


def money(seen: Observation) -> int:
    """Returns the player's money."""
    return int(seen["Player"].get("Money") or 0)


def location(seen: Observation) -> str:
    """Returns the name of the map that the player is on."""
    return str(seen["Player"].get("Location"))


def tiles(seen: Observation, field: str) -> dict[Tile, str]:
    """Returns one field of the tiles around the player, by position."""
    found = {}
    for each in listed(seen.get("SurroundingsData")):
        place = point(each.get("position"))
        if place is not None:
            found[place] = str(each.get(field) or "")
    return found


def creatures(seen: Observation) -> list[Mapping[str, Any]]:
    """Returns the animals of the farm and the pets that are on its map."""
    farm = seen.get("Farm") or {}
    return [*listed(farm.get("Animals")), *listed(farm.get("Pets"))]


def animals(seen: Observation) -> list[Mapping[str, Any]]:
    """Returns the animals of the farm."""
    return listed((seen.get("Farm") or {}).get("Animals"))


def buildings(seen: Observation) -> list[Mapping[str, Any]]:
    """Returns the buildings of the farm."""
    return listed((seen.get("Farm") or {}).get("Buildings"))


def crops(seen: Observation) -> list[Mapping[str, Any]]:
    """Returns the crops of the current map, with the name of their seeds as ``seed``."""
    names = table("seeds")
    known = listed(seen.get("Crops"))
    return [{**each, "seed": names.get(str(each.get("id")), each.get("id"))} for each in known]


def resident(seen: Observation, name: str) -> Mapping[str, Any]:
    """Returns the first character of that name; empty if there is none."""
    return next((each for each in listed(seen.get("NPCs")) if each.get("Name") == name), {})


def skill(seen: Observation, name: str) -> int:
    """Returns the level of a skill."""
    return int((seen["Player"].get("Skills") or {}).get(name) or 0)


def names_of(seen: Observation, field: str) -> list[str]:
    """Returns a list of names of the player: professions, partners, spouse."""
    return [str(each) for each in seen["Player"].get(field) or ()]


def progression(seen: Observation, part: str) -> Any:
    """Returns a part of ``Progression``.

    Raises:
        CannotBeJudgedError: the game does not offer it.
    """
    found = seen.get("Progression")
    if not isinstance(found, Mapping) or part not in found:
        raise CannotBeJudgedError(
            f"this game offers no Progression.{part}, which the mod of the repository leaves out"
        )
    return found[part]


def completed(seen: Observation, part: str, field: str, name: str) -> bool:
    """Returns whether the first bundle or project of that name is completed."""
    rows = listed(progression(seen, part))
    return bool(next((r.get("completed") for r in rows if r.get(field) == name), False))


def kills(seen: Observation, monster: str) -> int:
    """Returns how many monsters of a name were ever killed.

    Raises:
        CannotBeJudgedError: the game does not tell.
    """
    found = seen.get("MonsterKills")
    if not isinstance(found, Mapping) or monster not in found:
        raise CannotBeJudgedError(f"this game does not tell how many of {monster!r} were killed")
    return int(found[monster])


def kinds(name: str) -> list[str]:
    """Returns the types of animal that a word of a task stands for."""
    colored = {"Chicken": ["White Chicken", "Brown Chicken"], "Cow": ["White Cow", "Brown Cow"]}
    return colored.get(name, [name])


def count(rows: Iterable[Any], keep: Any) -> int:
    """Returns how many rows a condition keeps."""
    return sum(1 for each in rows if keep(each))


def quests(seen: Observation) -> list[Mapping[str, Any]]:
    """Returns the quests of the log."""
    return listed(progression(seen, "Quests"))


def menu(seen: Observation) -> Mapping[str, Any]:
    """Returns the open menu."""
    found = seen.get("CurrentMenuData")
    return found if isinstance(found, Mapping) else {}


def days(seen: Observation) -> int:
    """Returns how many days began since the game was loaded, the first included."""
    return int((seen.get("CallBackData") or {}).get("OnDayStarted") or 0)
