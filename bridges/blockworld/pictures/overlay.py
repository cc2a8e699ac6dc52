"""The display over the picture, from the state of a world, and screens of 9 by 7 cells.

Rows 0 and 1 of a screen are recipe buttons, row 2 is the worn items and the off hand, or the
contents of the furnace; then the inventory and, at the bottom, the hotbar. See ``rules.screen`` for
the effect of clicks.
"""

from __future__ import annotations

import math
from typing import Any

from bridges.blockworld.compiled import World, fast_inner, whole
from bridges.blockworld.rules.inventory import (
    FIRST_WORN,
    FURNACE_IN,
    OFF_HAND,
    furnace_of,
    slot_count,
    slot_item,
)
from bridges.blockworld.rules.items import (
    BUTTONS,
    COOK_TICKS,
    COOKED,
    DURABILITY,
    MAKES,
    MAKES_COUNT,
    MAX_NEEDS,
    NEEDS,
    NEEDS_ANY_LOG,
    NEEDS_COUNT,
    PROTECTION,
)
from bridges.blockworld.rules.world import ARMOUR, FURNACE_SCREEN, HOTBAR, SLOTS
from bridges.hud import bar, draw_crosshair, draw_display, fill, pointer, stack

# screens ------------------------------------------------------------------------------------------

_WIDE, _HIGH = 9, 7
_BUTTON_ROWS = 2
_EMPTY = -1
# As in ``blocks.LOGS``: those four numbers follow each other.
_FIRST_LOG, _LAST_LOG = 13, 16


@fast_inner
def has_needs(w: World, recipe: int) -> bool:
    """True if the inventory contains all that a recipe needs."""
    for n in range(MAX_NEEDS):
        need, missing = whole(NEEDS[recipe, n]), whole(NEEDS_COUNT[recipe, n])
        for slot in range(SLOTS):
            item = whole(w.item[slot])
            if item == need or (need == NEEDS_ANY_LOG and _FIRST_LOG <= item <= _LAST_LOG):
                missing -= whole(w.count[slot])
        if missing > 0:
            return False
    return True


@fast_inner
def slot_shown(w: World, column: int, row: int) -> int:
    """Returns the slot that a cell below the buttons shows; -1 for none."""
    if row == _HIGH - 1:
        return column
    if row > _BUTTON_ROWS:
        return HOTBAR + (row - 3) * _WIDE + column
    if whole(w.screen) == FURNACE_SCREEN:
        return FURNACE_IN + column if column < 3 and furnace_of(w) >= 0 else _EMPTY
    if column < ARMOUR:
        return FIRST_WORN + column
    return OFF_HAND if column == ARMOUR else _EMPTY


@fast_inner
def draw_button(w: World, s: Any, place: int, left: int, top: int, cell: int) -> None:
    """Draws a recipe button: its product, pale if an ingredient is missing."""
    recipe = whole(BUTTONS[whole(w.screen) - 1, place])
    if recipe < 0 or not (whole(w.recipes) >> recipe) & 1:
        return
    able = has_needs(w, recipe)
    fill(s, left, top, cell - 1, cell - 1, 0x6E8C5A if able else 0x8B7A6A, 1.0)
    count = whole(MAKES_COUNT[recipe]) if able else 1
    stack(s, whole(MAKES[recipe]), count, left, top, cell - 1, 1.0 if able else 0.45)


@fast_inner
def draw_fire(w: World, s: Any, left: int, top: int, cell: int) -> None:
    """Draws the progress of cooking and the remaining fire, as two bars."""
    n = furnace_of(w)
    if n < 0:
        return
    thick = max(cell // 4, 1)
    cooked = whole(w.furnace_cook[n]) / COOK_TICKS
    if COOKED[whole(w.furnace_in[n])] < 0:
        cooked = 0.0
    bar(s, left + 3 * cell + 1, top + thick, 3 * cell, thick, cooked, 0xFFFFFF)
    burns = min(whole(w.furnace_burn[n]) / 1600.0, 1.0)
    bar(s, left + 3 * cell + 1, top + 2 * thick + 1, 3 * cell, thick, burns, 0xFF8A1E)


@fast_inner
def draw_cursor(w: World, s: Any, left: int, top: int, cell: int) -> None:
    """Draws the item on the cursor, and the cursor: an arrow that points to the upper left."""
    x, y = left + int(w.cursor_x * cell), top + int(w.cursor_y * cell)
    if w.carried_count > 0:
        stack(
            s, whole(w.carried), whole(w.carried_count), x - cell // 2, y - cell // 2, cell, 1.0
        )  # fmt: skip
    pointer(s, x, y, max(cell // 2, 3))


@fast_inner
def draw_screen(w: World, s: Any) -> None:
    """Draws the open screen in the middle of the picture, at the largest integer scale."""
    cell = min(s.wide // (_WIDE + 1), s.tall * 8 // 9 // (_HIGH + 1))
    if cell < 2:
        return
    left, top = (s.wide - _WIDE * cell) // 2, max((s.tall * 8 // 9 - _HIGH * cell) // 2, 0)
    rim = max(cell // 5, 1)
    fill(s, 0, 0, whole(s.wide), whole(s.tall), 0x101010, 0.35)
    fill(s, left - rim, top - rim, _WIDE * cell + 2 * rim, _HIGH * cell + 2 * rim, 0xC6C6C6, 1.0)
    for row in range(_HIGH):
        for column in range(_WIDE):
            x, y = left + column * cell, top + row * cell
            if row < _BUTTON_ROWS:
                draw_button(w, s, row * _WIDE + column, x, y, cell)
                continue
            slot = slot_shown(w, column, row)
            if slot == _EMPTY:
                continue
            chosen = row == _HIGH - 1 and column == w.selected
            fill(s, x, y, cell - 1, cell - 1, 0xA8A878 if chosen else 0x8B8B8B, 1.0)
            item, count = slot_item(w, slot), slot_count(w, slot)
            stack(s, item, count, x, y, cell - 1, 1.0)
    if whole(w.screen) == FURNACE_SCREEN:
        draw_fire(w, s, left, top + _BUTTON_ROWS * cell, cell)
    draw_cursor(w, s, left, top, cell)


# the display --------------------------------------------------------------------------------------

_BREATH = 300.0


@fast_inner
def read_display(w: World, h: Any) -> None:
    """Stores in ``h`` what the player knows of itself."""
    for n in range(HOTBAR):
        item = whole(w.item[n])
        h.item[n], h.count[n], h.left[n] = item, whole(w.count[n]), 1.0
        if DURABILITY[item] > 0 and w.wear[n] > 0:
            h.left[n] = 1.0 - w.wear[n] / DURABILITY[item]
    h.selected = whole(w.selected)
    guard = 0
    for n in range(ARMOUR):
        guard += whole(PROTECTION[w.armour[n]])
    h.health, h.food, h.armour = math.ceil(w.health), float(w.food), float(guard)
    h.air = w.air / _BREATH * 20.0
    h.level, h.progress = 0, -1.0  # there is no experience in this game
    h.off = whole(w.off_item)
    h.swing = min(max(w.swing_ticks, 0), 6) / 6.0
    h.eating, h.raised = float(w.eat_ticks), whole(w.blocking)


@fast_inner
def draw_panels(w: World, s: Any, h: Any) -> None:
    """Draws hotbar and health, and the open screen or the crosshair."""
    draw_display(s, h, min(max(s.tall // 12, 5), s.wide // HOTBAR))
    if w.screen:
        draw_screen(w, s)
    else:
        draw_crosshair(s)
