"""The items and the recipes: their numbers and properties.

An item whose number is below ``MAX_BLOCKS`` is the block of that number; tools, armour, food and
materials follow. Attack damage, mining speed, durability, protection, nourishment, ingredients and
yields are those of Minecraft 1.16. Shapes are not needed: a recipe is a button that takes its
ingredients from the inventory, as in Minecraft's recipe book.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.rules.blocks import (
    AXE,
    BLOCKS,
    LOGS,
    MAX_BLOCKS,
    NO_TOOL,
    PICKAXE,
    SHOVEL,
    SWORD,
)
from rollout.errors import UnknownNameError

TIERS = ("wooden", "stone", "iron", "golden", "diamond")
TOOLS = ("sword", "pickaxe", "axe", "shovel")
ARMOUR_TIERS = ("leather", "golden", "chainmail", "iron", "diamond")
ARMOUR_PIECES = ("helmet", "chestplate", "leggings", "boots")

_KINDS = {"sword": SWORD, "pickaxe": PICKAXE, "axe": AXE, "shovel": SHOVEL}
# Mining tier of each material; gold mines fast and yields as little as wood.
_MINING_TIER = {"wooden": 1, "stone": 2, "iron": 3, "golden": 1, "diamond": 4}
_SPEED = {"wooden": 2.0, "stone": 4.0, "iron": 6.0, "golden": 12.0, "diamond": 8.0}
_DURABILITY = {"wooden": 59, "stone": 131, "iron": 250, "golden": 32, "diamond": 1561}
# Damage of a full blow, and the cooldown in seconds.
_DAMAGE = {
    "sword": {"wooden": 4.0, "stone": 5.0, "iron": 6.0, "golden": 4.0, "diamond": 7.0},
    "axe": {"wooden": 7.0, "stone": 9.0, "iron": 9.0, "golden": 7.0, "diamond": 9.0},
    "pickaxe": {"wooden": 2.0, "stone": 3.0, "iron": 4.0, "golden": 2.0, "diamond": 5.0},
    "shovel": {"wooden": 2.5, "stone": 3.5, "iron": 4.5, "golden": 2.5, "diamond": 5.5},
}
_BLOWS_PER_SECOND = {
    "sword": dict.fromkeys(TIERS, 1.6),
    "axe": {"wooden": 0.8, "stone": 0.8, "iron": 0.9, "golden": 1.0, "diamond": 1.0},
    "pickaxe": dict.fromkeys(TIERS, 1.2),
    "shovel": dict.fromkeys(TIERS, 1.0),
}
_PROTECTION = {
    "leather": (1, 3, 2, 1),
    "golden": (2, 5, 3, 1),
    "chainmail": (2, 5, 4, 1),
    "iron": (2, 6, 5, 2),
    "diamond": (3, 8, 6, 3),
}
_ARMOUR_DURABILITY = {"leather": 5, "golden": 7, "chainmail": 15, "iron": 15, "diamond": 33}
_PIECE_DURABILITY = (11, 16, 15, 13)


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


_BLOCK_FUEL = {
    "oak_planks": 300,
    "oak_log": 300,
    "birch_log": 300,
    "spruce_log": 300,
    "acacia_log": 300,
    "crafting_table": 300,
    "chest": 300,
    "bookshelf": 300,
}


def _items() -> tuple[Item, ...]:
    items = [
        Item(b.name, 1 if b.name == "bed" else 64, fuel=_BLOCK_FUEL.get(b.name, 0)) for b in BLOCKS
    ]
    items += [Item("") for _ in range(MAX_BLOCKS - len(items))]  # room for more blocks
    items += [
        Item("stick", fuel=100),
        Item("coal", fuel=1600),
        Item("charcoal", fuel=1600),
        *(Item(n) for n in ("iron_ingot", "gold_ingot", "diamond", "leather", "feather")),
        *(Item(n) for n in ("string", "bone", "arrow", "wheat", "flint")),
        Item("apple", food=4, saturation=2.4),
        Item("bread", food=5, saturation=6.0),
        Item("beef", food=3, saturation=1.8),
        Item("cooked_beef", food=8, saturation=12.8),
        Item("porkchop", food=3, saturation=1.8),
        Item("cooked_porkchop", food=8, saturation=12.8),
        Item("mutton", food=2, saturation=1.2),
        Item("cooked_mutton", food=6, saturation=9.6),
        Item("chicken", food=2, saturation=1.2),
        Item("cooked_chicken", food=6, saturation=7.2),
        Item("rotten_flesh", food=4, saturation=0.8),
        Item("spider_eye", food=2, saturation=3.2),
        Item("shield", 1, durability=336),
    ]
    for tool in TOOLS:
        items += [
            Item(
                f"{tier}_{tool}",
                1,
                tool=_KINDS[tool],
                tier=_MINING_TIER[tier],
                speed=1.5 if tool == "sword" else _SPEED[tier],
                damage=_DAMAGE[tool][tier],
                blows_per_s=_BLOWS_PER_SECOND[tool][tier],
                durability=_DURABILITY[tier],
                fuel=200 if tier == "wooden" else 0,
            )
            for tier in TIERS
        ]
    for tier in ARMOUR_TIERS:
        items += [
            Item(
                f"{tier}_{piece}",
                1,
                armour=slot,
                protection=_PROTECTION[tier][slot],
                durability=_ARMOUR_DURABILITY[tier] * _PIECE_DURABILITY[slot],
            )
            for slot, piece in enumerate(ARMOUR_PIECES)
        ]
    return tuple(items)


ITEMS = _items()
NUMBER = {item.name: number for number, item in enumerate(ITEMS) if item.name}
"""Number of each item by its name."""

MAX_ITEMS = 160
"""Size of the tables and counters."""

NOTHING = 0
"""The item of an empty slot: the air block."""


def _table(dtype: type[np.generic], values: list[float]) -> NDArray[Any]:
    table = np.zeros(MAX_ITEMS, dtype)
    table[: len(values)] = values
    table.flags.writeable = False
    return table


# Tables for compiled code, by number of the item.
STACK = _table(np.uint8, [i.stack for i in ITEMS])
TOOL = _table(np.uint8, [i.tool for i in ITEMS])
TIER = _table(np.uint8, [i.tier for i in ITEMS])
SPEED = _table(np.float32, [i.speed for i in ITEMS])
DAMAGE = _table(np.float32, [i.damage for i in ITEMS])
BLOW_TICKS = _table(np.float32, [20.0 / i.blows_per_s for i in ITEMS])
DURABILITY = _table(np.int16, [i.durability for i in ITEMS])
WORN_IN = _table(np.int8, [i.armour for i in ITEMS])
PROTECTION = _table(np.uint8, [i.protection for i in ITEMS])
FOOD = _table(np.uint8, [i.food for i in ITEMS])
SATURATION = _table(np.float32, [i.saturation for i in ITEMS])
FUEL = _table(np.int16, [i.fuel for i in ITEMS])
DROP = _table(np.uint8, [NUMBER.get(b.yields, NOTHING) if b.yields else NOTHING for b in BLOCKS])
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
        name: of what is made, unique with ``where``.
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


def _tool(tier: str, material: str, tool: str, pieces: int, sticks: int) -> Recipe:
    return Recipe(f"{tier}_{tool}", TABLE, f"{tier}_{tool}", 1, {material: pieces, "stick": sticks})


def _cooked(made: str, raw: str) -> Recipe:
    return Recipe(made, FURNACE_FIRE, made, 1, {raw: 1})


RECIPES: tuple[Recipe, ...] = (
    Recipe("oak_planks", HAND, "oak_planks", 4, {ANY_LOG: 1}),
    Recipe("stick", HAND, "stick", 4, {"oak_planks": 2}),
    Recipe("crafting_table", HAND, "crafting_table", 1, {"oak_planks": 4}),
    Recipe("torch", HAND, "torch", 4, {"stick": 1, "coal": 1}),
    _tool("wooden", "oak_planks", "pickaxe", 3, 2),
    _tool("stone", "cobblestone", "pickaxe", 3, 2),
    _tool("iron", "iron_ingot", "pickaxe", 3, 2),
    _tool("wooden", "oak_planks", "sword", 2, 1),
    _tool("stone", "cobblestone", "sword", 2, 1),
    _tool("iron", "iron_ingot", "sword", 2, 1),
    _tool("wooden", "oak_planks", "axe", 3, 2),
    _tool("stone", "cobblestone", "axe", 3, 2),
    Recipe("furnace", TABLE, "furnace", 1, {"cobblestone": 8}),
    Recipe("chest", TABLE, "chest", 1, {"oak_planks": 8}),
    Recipe("bed", TABLE, "bed", 1, {"oak_planks": 3, "wool": 3}),
    Recipe("bread", TABLE, "bread", 1, {"wheat": 3}),
    Recipe("shield", TABLE, "shield", 1, {"oak_planks": 6, "iron_ingot": 1}),
    _cooked("cooked_beef", "beef"),
    _cooked("cooked_porkchop", "porkchop"),
    _cooked("cooked_mutton", "mutton"),
    _cooked("cooked_chicken", "chicken"),
    _cooked("iron_ingot", "iron_ore"),
    _cooked("gold_ingot", "gold_ore"),
    _cooked("glass", "sand"),
    _cooked("stone", "cobblestone"),
    _cooked("charcoal", ANY_LOG),
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
