"""The recipes: ingredients, product, and where: in the hand, at a table, in a furnace.

Ingredients and yields are Minecraft 1.16's. Shapes are not needed: a recipe is a button that takes
its ingredients from the inventory, as in Minecraft's recipe book.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bridges.blockworld.blocks import LOGS
from bridges.blockworld.items import NUMBER
from rollout.errors import UnknownNameError

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
