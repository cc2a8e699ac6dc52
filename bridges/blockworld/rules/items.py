"""The items and the recipes: their numbers and properties.

``data/items.yaml`` and ``data/recipes.yaml`` have them. An item whose number is below
``MAX_BLOCKS`` is the block of that number; tools, armour, food and materials follow. Attack damage,
mining speed, durability, protection, nourishment, ingredients and yields are those of Minecraft
1.16. Shapes are not needed: a recipe is a button that takes its ingredients from the inventory, as
in Minecraft's recipe book.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridges.blockworld.rules.blocks import (
    BLOCKS,
    DATA,
    LOGS,
    MAX_BLOCKS,
    NO_TOOL,
    TOOL_KINDS,
    table,
)
from bridges.blockworld.rules.blocks import NUMBER as BLOCK_NUMBER
from rollout.errors import UnknownNameError
from rollout.yaml12 import load_yaml

TIERS = ("wooden", "stone", "iron", "golden", "diamond")
TOOLS = ("sword", "pickaxe", "axe", "shovel")
ARMOUR_TIERS = ("leather", "golden", "chainmail", "iron", "diamond")
ARMOUR_PIECES = ("helmet", "chestplate", "leggings", "boots")


@dataclass(frozen=True)
class Item:
    """Properties of an item.

    Attributes:
        name: as in Minecraft 1.16, without its prefix.
        stack: maximum count in one slot.
        tool: the kind of tool it is.
        tier: mining tier, 1 wood to 4 diamond.
        speed: factor of mining speed on suitable blocks.
        damage: health that a full blow takes, in half hearts.
        blows_per_s: full blows in a second.
        durability: uses until it breaks; 0 for never.
        armour: slot it is worn in, 0 helmet to 3 boots; -1 for none.
        protection: armour points.
        food: hunger it restores, in half drumsticks; 0 for what cannot be eaten.
        saturation: saturation it restores.
        fuel: ticks it burns in a furnace.
    """

    name: str
    stack: int = 64
    tool: int = NO_TOOL
    tier: int = 0
    speed: float = 1.0
    damage: float = 1.0
    blows_per_s: float = 4.0
    durability: int = 0
    armour: int = -1
    protection: int = 0
    food: int = 0
    saturation: float = 0.0
    fuel: int = 0


_ROWS: Mapping[str, Mapping[str, Any]] = load_yaml(DATA / "items.yaml", ours=True)


def _read(name: str) -> Item:
    row = _ROWS.get(name, {})
    return Item(name, **{**row, "tool": TOOL_KINDS.index(row.get("tool", ""))})


ITEMS = (
    *(_read(block.name) for block in BLOCKS),
    *(Item("") for _ in range(MAX_BLOCKS - len(BLOCKS))),  # room for more blocks
    *(_read(name) for name in _ROWS if name not in BLOCK_NUMBER),
)
NUMBER = {item.name: number for number, item in enumerate(ITEMS) if item.name}
"""Number of each item by its name."""

MAX_ITEMS = 160
"""Size of the tables and counters."""

NOTHING = 0
"""The item of an empty slot: the air block."""


# Tables for compiled code, by number of the item.
STACK = table(np.uint8, [i.stack for i in ITEMS], MAX_ITEMS)
TOOL = table(np.uint8, [i.tool for i in ITEMS], MAX_ITEMS)
TIER = table(np.uint8, [i.tier for i in ITEMS], MAX_ITEMS)
SPEED = table(np.float32, [i.speed for i in ITEMS], MAX_ITEMS)
DAMAGE = table(np.float32, [i.damage for i in ITEMS], MAX_ITEMS)
BLOW_TICKS = table(np.float32, [20.0 / i.blows_per_s for i in ITEMS], MAX_ITEMS)
DURABILITY = table(np.int16, [i.durability for i in ITEMS], MAX_ITEMS)
WORN_IN = table(np.int8, [i.armour for i in ITEMS], MAX_ITEMS)
PROTECTION = table(np.uint8, [i.protection for i in ITEMS], MAX_ITEMS)
FOOD = table(np.uint8, [i.food for i in ITEMS], MAX_ITEMS)
SATURATION = table(np.float32, [i.saturation for i in ITEMS], MAX_ITEMS)
FUEL = table(np.int16, [i.fuel for i in ITEMS], MAX_ITEMS)
DROP = table(np.uint8, [NUMBER.get(b.yields, NOTHING) for b in BLOCKS], MAX_ITEMS)
"""Item that each block yields, by number of the block; ``NOTHING`` for none."""


# recipes ------------------------------------------------------------------------------------------

# Where a recipe is made; also the screens: 0 is no screen, the others are these plus one.
HAND, TABLE, FURNACE_FIRE = range(3)

ANY_LOG = "any_log"
"""Any of the four kinds of log, in an ingredient list."""

COOK_TICKS = 200
"""Ticks that a furnace needs for one piece: 10 s."""


@dataclass(frozen=True)
class Recipe:
    """One recipe.

    Attributes:
        name: of what is made.
        where: ``HAND``, ``TABLE`` or ``FURNACE_FIRE``. Recipes of the hand can be made at a table
            as well.
        makes: item made.
        count: how many of it.
        needs: ingredients and how many of each.
    """

    name: str
    where: int
    makes: str
    count: int
    needs: Mapping[str, int]


_PLACES = ("hand", "table", "furnace")
RECIPES = tuple(
    Recipe(name, _PLACES.index(row["where"]), name, row.get("count", 1), row["needs"])
    for name, row in load_yaml(DATA / "recipes.yaml", ours=True).items()
)

MAX_NEEDS = 2


def recipe(name: str) -> int:
    """Returns the number of a recipe.

    Raises:
        UnknownNameError: there is no such recipe; the message lists the valid ones.
    """
    for number, one in enumerate(RECIPES):
        if one.name == name:
            return number
    raise UnknownNameError("recipe", name, sorted({r.name for r in RECIPES}))


def buttons(where: int) -> tuple[int, ...]:
    """Returns the recipes that a screen shows as buttons, in order."""
    shown = {HAND: (HAND,), TABLE: (HAND, TABLE), FURNACE_FIRE: (FURNACE_FIRE,)}[where]
    return tuple(number for number, one in enumerate(RECIPES) if one.where in shown)


# Tables for compiled code, by number of the recipe. ``-1`` as an ingredient stands for any log.
NEEDS_ANY_LOG = -1
MAKES = np.array([NUMBER[r.makes] for r in RECIPES], np.uint8)
MAKES_COUNT = np.array([r.count for r in RECIPES], np.uint8)
NEEDS = np.zeros((len(RECIPES), MAX_NEEDS), np.int16)
NEEDS_COUNT = np.zeros((len(RECIPES), MAX_NEEDS), np.uint8)
for _row, _recipe in enumerate(RECIPES):
    for _place, (_name, _count) in enumerate(_recipe.needs.items()):
        NEEDS[_row, _place] = NEEDS_ANY_LOG if _name == ANY_LOG else NUMBER[_name]
        NEEDS_COUNT[_row, _place] = _count
BUTTONS = np.full((3, 18), -1, np.int16)
"""Recipe of each button, by place of making and position on the screen; -1 where there is none."""
for _where in (HAND, TABLE, FURNACE_FIRE):
    BUTTONS[_where, : len(buttons(_where))] = buttons(_where)
COOKED = np.full(160, -1, np.int16)
"""Recipe that cooks an item in a furnace, by number of the item; -1 for none."""
for _row, _recipe in enumerate(RECIPES):
    if _recipe.where == FURNACE_FIRE:
        for _name in _recipe.needs:
            for _item in LOGS if _name == ANY_LOG else (NUMBER[_name],):
                COOKED[_item] = _row
