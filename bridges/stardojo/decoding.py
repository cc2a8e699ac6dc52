"""Observations of the mod as columns for networks, and as text for language agents."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.stardojo import facts, skills
from bridges.stardojo.facts import Observation, point
from bridges.stardojo.rules.content import content
from rollout.api import ACTION, Columns
from rollout.api.spaces import MASK

PLANES = ("object", "terrain", "crop", "building", "furniture", "exit", "person", "drop", "free")
"""Planes of the window of tiles, each a number of bytes; 0 is nothing, and outside of the map."""
OBJECTS = ("", "Weeds", "Twig", "Stone", "Chest", "Copper Node", "Ladder", "Furnace", "Torch")
TERRAINS = ("", "HoeDirt", "Tree", "Grass", "FruitTree", "Flooring")
OTHER = 255
_OBJECTS = {name: number for number, name in enumerate(OBJECTS)}
_TERRAINS = {name: number for number, name in enumerate(TERRAINS)}
_FLAGS = tuple(
    enumerate(
        ("building_info", "furniture_at_tile", "exit_info", "npc_info", "debris_at_tile",
         "placeable"),
        start=3,
    )
)  # fmt: skip
"""Planes that say of a field of a tile only whether it is there."""
SEASONS = ("spring", "summer", "fall", "winter")
SKILLS = ("Farming", "Mining", "Combat", "Fishing", "Foraging")
MENUS = ("No Menu", "ShopMenu", "DialogueBox", "Chest", "Letter")
FIGURES = (
    *("x", "y", "facing", "health", "energy", "money", "time", "day", "raining", "slot"),
    *(f"season/{each}" for each in SEASONS),
    *(f"skill/{each}" for each in SKILLS),
    *(f"menu/{each}" for each in (*MENUS, "other")),
    "share",
)
"""What the column ``figures`` holds, mostly scaled to 0 to 1; ``share`` of the task is done."""
MASKED = MASK + ACTION
SLOTS = 36
WATERED, RIPE = 20, 4
"""Added to the phase of a crop that is watered; a phase from which crops may be ripe."""


def space(size: int, width: int, height: int, masked: bool) -> dict[str, spaces.Space[Any]]:
    """Returns the spaces of the columns.

    Args:
        size: half of the width of the window of tiles.
        width: of the picture; 0 for none.
        height: of the picture.
        masked: whether actions are the flat layout, which has a mask.
    """
    side = 2 * size + 1
    found: dict[str, spaces.Space[Any]] = {
        "tiles": spaces.Box(0, 255, (len(PLANES), side, side), np.uint8),
        "figures": spaces.Box(-1, 2, (len(FIGURES),), np.float32),
        "bag": spaces.Box(0, 2**16 - 1, (SLOTS, 2), np.uint16),
    }
    if masked:
        found[MASKED] = spaces.MultiBinary(len(skills.flat()))
    if width:
        found["rgb"] = spaces.Box(0, 255, (height, width, 3), np.uint8)
    return found


def write(columns: Columns, row: int, seen: Observation, size: int, share: float) -> None:
    """Writes one observation into a row of the columns.

    Args:
        columns: with the keys of ``space``; a picture is not written.
        row: which.
        seen: what is seen; fields that are missing are nothing.
        size: half of the width of the window.
        share: of the task that is done.
    """
    _tiles(columns["tiles"][row], seen, size)
    columns["figures"][row] = _figures(seen, share)
    bag = columns["bag"][row]
    bag[:] = 0
    for slot, each in enumerate((seen["Player"].get("Inventory") or ())[:SLOTS]):
        if each and each.get("Name"):
            bag[slot] = item_number(each["Name"]), min(each.get("Quantity") or 0, 2**16 - 1)
    if MASKED in columns:
        columns[MASKED][row] = skills.mask(seen)


@cache
def _items() -> Mapping[str, int]:
    names = sorted({each.name or each.key for each in content().items.values()})
    return {name: number for number, name in enumerate(names, 2)}


def item_number(name: str) -> int:
    """Returns the number of an item in the column ``bag``: 0 for none, 1 for an unknown one."""
    return _items().get(name, 1)


def _tiles(planes: Any, seen: Observation, size: int) -> None:
    side = 2 * size + 1
    area = side * side
    cells = bytearray(len(PLANES) * area)
    here = point(seen["Player"].get("Position")) or (0, 0)
    left, top = here[0] - size, here[1] - size
    wet = {point(c.get("position")): c for c in facts.listed(seen.get("Crops"))}
    for tile in facts.listed(seen.get("SurroundingsData")):
        place = point(tile.get("position"))
        if place is None:
            continue
        x, y = place[0] - left, place[1] - top
        if not (0 <= x < side and 0 <= y < side):
            continue
        cell = y * side + x
        if name := tile.get("object_at_tile"):
            cells[cell] = _OBJECTS.get(name, OTHER)
        if name := tile.get("terrain_at_tile"):
            cells[area + cell] = _TERRAINS.get(name.rpartition(".")[2], OTHER)
        if tile.get("crop_at_tile"):
            cells[2 * area + cell] = _crop(wet.get(place))
        for number, field in _FLAGS:
            if tile.get(field):
                cells[number * area + cell] = 1
    planes[:] = np.frombuffer(cells, np.uint8).reshape(planes.shape)


def _crop(crop: Mapping[str, Any] | None) -> int:
    if crop is None:
        return 1
    return 1 + int(crop.get("current_phase") or 0) + WATERED * bool(crop.get("isWatered"))


def _figures(seen: Observation, share: float) -> list[float]:
    player, state = seen["Player"], seen.get("GameState") or {}
    x, y = point(player.get("Position")) or (0, 0)
    time = int(state.get("Time") or 600)
    kind = str((seen.get("CurrentMenuData") or {}).get("type") or MENUS[0])
    levels = player.get("Skills") or {}
    return [
        min(x / 128, 2.0),
        min(y / 128, 2.0),
        (player.get("FacingDirection") or 0) / 3,
        min((player.get("Health") or 0) / 100, 2.0),
        min((player.get("Stamina") or 0) / 270, 2.0),
        min(math.log10(max(player.get("Money") or 0, 0) + 1) / 7, 2.0),
        (time // 100 + time % 100 / 60 - 6) / 20,
        (state.get("DayOfMonth") or 0) / 28,
        float(state.get("Weather") == "Raining"),
        ((player.get("CurrentInventory") or {}).get("Index") or 0) / SLOTS,
        *(float(state.get("Season") == each) for each in SEASONS),
        *((levels.get(each) or 0) / 10 for each in SKILLS),
        *(float(kind == each) for each in MENUS),
        float(kind not in MENUS),
        share,
    ]


def details(seen: Observation, mission: str) -> dict[str, Any]:
    """Returns what a language agent reads: the mission, and the state in words.

    The fields are those of the paper's prompt (appendix D); tiles are given relative to the player,
    x to the right and y down.
    """
    player, state = seen["Player"], seen.get("GameState") or {}
    clock = int(state.get("Time") or 0)
    facing = skills.DIRECTIONS[int(player.get("FacingDirection") or 0) % 4]
    hand = player.get("CurrentInventory") or {}
    held = hand.get("CurrentItem")
    lines = [
        f"Place: {player.get('Location')}, tile {list(point(player.get('Position')) or ())}, "
        f"facing {facing}",
        f"Time: {clock // 100 % 24}:{clock % 100:02d}, {state.get('Season')} "
        f"{state.get('DayOfMonth')}, year {state.get('Year')}, {state.get('Weather')}",
        f"Health: {player.get('Health')}, energy: {player.get('Stamina')}, "
        f"money: {player.get('Money')} gold",
        f"In hand: slot {hand.get('Index')}, {held if held not in (None, 'None') else 'nothing'}",
        f"Toolbar: {_toolbar(player)}",
        f"Menu: {_menu(seen)}",
        "Tiles [dx, dy]: " + "; ".join(_surroundings(seen)),
    ]
    return {"mission": mission, "text": "\n".join(lines)}


def _toolbar(player: Mapping[str, Any]) -> str:
    slots = enumerate(player.get("Inventory") or ())
    held = [f"{n}: {e['Name']} x{e.get('Quantity')}" for n, e in slots if e and e.get("Name")]
    return ", ".join(held) or "empty"


def _menu(seen: Observation) -> str:
    menu = seen.get("CurrentMenuData") or {}
    parts = [str(menu.get("type") or "No Menu")]
    parts += [str(each) for each in menu.get("dialogues") or ()]
    parts += [str(menu["message"])] if menu.get("message") else []
    goods = facts.listed(menu.get("shopMenuData")) + facts.listed(menu.get("animalsMenuData"))
    listed = [f"{each.get('name')}{_price(each)}" for each in goods]
    listed += [
        f"{each.get('Name')} x{each.get('Quantity')}"
        for each in facts.listed(menu.get("ItemsInChest"))
    ]
    # The answers of a menu of goods are the same goods, without their prices.
    listed = listed or [str(e.get("responseText")) for e in facts.listed(menu.get("responses"))]
    return "; ".join([*parts, *(f"{n}: {each}" for n, each in enumerate(listed, 1))])


def _price(goods: Mapping[str, Any]) -> str:
    return f" for {goods['price']} gold" if goods.get("price") is not None else ""


def _surroundings(seen: Observation) -> list[str]:
    here = point(seen["Player"].get("Position")) or (0, 0)
    plants = {point(each.get("position")): each for each in facts.crops(seen)}
    doors = {point(e.get("doorPosition")) for e in facts.listed(seen.get("Buildings"))} - {None}
    found = []
    for tile in facts.listed(seen.get("SurroundingsData")):
        parts = [_person(str(tile[name])) for name in _NAMED if tile.get(name)]
        if terrain := tile.get("terrain_at_tile"):
            name = terrain.rpartition(".")[2]
            parts.insert(bool(tile.get("object_at_tile")), _GROUNDS.get(name, name))
        if tile.get("crop_at_tile"):
            parts.append(_plant(plants.get(point(tile.get("position")))))
        if tile.get("exit_info"):
            parts.append(f"exit to {tile['exit_info']}")
        elif point(tile.get("position")) in doors:
            parts.append("door")
        if not parts:
            if tile.get("placeable"):
                continue
            parts.append("blocked")
        if (place := point(tile.get("position"))) is not None:
            found.append(f"[{place[0] - here[0]}, {place[1] - here[1]}] {', '.join(parts)}")
    return found


def _plant(crop: Mapping[str, Any] | None) -> str:
    """A plant by name, with its water and how far it has grown; those that died are not listed."""
    if crop is None or crop.get("isDead"):
        return "dead crop"
    known = content().crops.get(str(crop["seed"]))
    phase = int(crop.get("current_phase") or 0)
    wet = "watered" if crop.get("isWatered") else "dry"
    if known is None:
        return f"{crop['seed']} ({wet}, phase {phase})"
    grown = f"phase {phase} of {len(known.phases)}"
    if phase >= len(known.phases):  # what bears again does not say when
        grown = "ripe" if known.regrow is None else "fully grown"
    return f"{known.harvest} ({wet}, {grown})"


_PERSON = re.compile(r"Name: (.+) Friendship: (-?\d+) isTalked: (\w+) GiftsToday: ?(\d*)")


def _person(words: str) -> str:
    """Somebody in words; other fields of a tile as they are."""
    match = _PERSON.fullmatch(words)
    if match is None:
        return words
    name, friendship, talked, gifts = match.groups()
    if not gifts:  # pets and monsters
        return f"{name} (friendship {friendship})" if friendship != "0" else name
    spoken = "" if talked == "True" else "not "
    return f"{name} (friendship {friendship}, {spoken}talked to today, gifts today: {gifts})"


_GROUNDS = {"HoeDirt": "tilled soil"}
_NAMED = ("object_at_tile", "building_info", "furniture_at_tile", "debris_at_tile", "npc_info")
