"""The display over the picture: hotbar, health, crosshair, and screens of 9 by 7 cells.

Rows 0 and 1 of a screen are recipe buttons, row 2 is the worn items and the off hand, or the
contents of the furnace; then the inventory and, at the bottom, the hotbar. See ``rules.screen`` for
the effect of clicks. Shapes are clipped at the picture's borders.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, fast_inner, get_byte, set_byte, whole
from bridges.blockworld.pictures.textures import icon_texel
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

# shapes -------------------------------------------------------------------------------------------

# Three by five dots per digit, from the top left, row by row.
_DIGITS = (
    "111101101101111 010110010010111 111001111100111 111001011001111 101101111001001 "
    "111100111001111 111100111101111 111001010010010 111101111101111 111101111001111"
)
DIGITS = np.array([[int(dot) for dot in digit] for digit in _DIGITS.split()], np.uint8).reshape(-1)


@fast_inner
def blend(s: Any, row: int, column: int, colour: int, share: float) -> None:
    """Blends a share of a colour ``red << 16 | green << 8 | blue`` into a pixel of the picture."""
    if 0 <= row < s.tall and 0 <= column < s.wide:
        pixel = (row * s.wide + column) * 3
        for n in range(3):
            below = get_byte(s.picture, pixel + n)
            over = (colour >> (16 - 8 * n)) & 255
            set_byte(s.picture, pixel + n, int(below + (over - below) * share))


@fast_inner
def fill(s: Any, left: int, top: int, wide: int, tall: int, colour: int, share: float) -> None:
    """Blends a share of a colour into a box."""
    for row in range(max(top, 0), min(top + tall, s.tall)):
        for column in range(max(left, 0), min(left + wide, s.wide)):
            blend(s, row, column, colour, share)


@fast_inner
def bar(s: Any, left: int, top: int, wide: int, tall: int, share: float, colour: int) -> None:
    """Draws a bar that is filled to a share, from the left."""
    full = int(wide * min(max(share, 0.0), 1.0) + 0.5)
    fill(s, left, top, wide, tall, 0x202020, 0.7)
    fill(s, left, top, full, tall, colour, 1.0)


@fast_inner
def icon(s: Any, item: int, left: int, top: int, size: int, share: float) -> None:
    """Draws an item's picture into a square with opacity ``share``."""
    for row in range(max(top, 0), min(top + size, s.tall)):
        for column in range(max(left, 0), min(left + size, s.wide)):
            texel = icon_texel(item, (column + 0.5 - left) / size, (row + 0.5 - top) / size)
            if texel >> 24:
                blend(s, row, column, texel, share)


@fast_inner
def number(s: Any, value: int, right: int, bottom: int, dot: int) -> None:
    """Writes a number that ends at the lower right, in dots of some pixels, with a shadow."""
    left = right
    while value > 0:
        left -= 4 * dot
        digit = value % 10
        for n in range(15):
            if DIGITS[digit * 15 + n]:
                x, y = left + n % 3 * dot, bottom - 5 * dot + n // 3 * dot
                fill(s, x + max(dot // 2, 1), y + max(dot // 2, 1), dot, dot, 0x303030, 1.0)
        for n in range(15):
            if DIGITS[digit * 15 + n]:
                fill(
                    s, left + n % 3 * dot, bottom - 5 * dot + n // 3 * dot, dot, dot, 0xFFFFFF, 1.0
                )
        value //= 10


@fast_inner
def stack(s: Any, item: int, count: int, left: int, top: int, cell: int, share: float) -> None:
    """Draws an item in a cell and its count: digits, or a mark where cells are small."""
    if item == 0:
        return
    rim = cell // 10
    icon(s, item, left + rim, top + rim, cell - 2 * rim, share)
    if count > 1 and cell >= 16:
        number(s, count, left + cell, top + cell, max(cell // 16, 1))
    elif count > 1 and cell >= 4:
        fill(s, left, top + cell - 1, max(cell * min(count, 64) // 64, 1), 1, 0xFFFFFF, 0.85)


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
    size = max(cell // 2, 3)
    for n in range(size):
        fill(s, x, y + n, size - n, 1, 0x000000, 1.0)
        fill(s, x, y + n, max(size - n - 1, 1), 1, 0xFFFFFF, 1.0 if n < size - 1 else 0.0)


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

_HEARTS_FROM = 180
"""Height of the picture from which health and food are drawn as hearts and drumsticks."""
_MARKS = 10
_BREATH = 300.0

_HEART = ".##.##. ####### ####### ####### .#####. ..###.. ...#..."
_MEAT = "....##. ..##### ..##### ..##### ...###. .##.... ##....."
_SHIRT = "##...## ####### ####### .#####. .#####. .#####. ....... "
_BUBBLE = "..###.. .#...#. #.#...# #.....# #.....# .#...#. ..###.."
SHAPES = np.array(
    [[dot == "#" for dot in "".join(s.split())] for s in (_HEART, _MEAT, _SHIRT, _BUBBLE)], np.uint8
)
"""Seven by seven dots of a heart, a drumstick, a piece of armour and an air bubble."""
_COLOURS = np.array([0xE01818, 0xB86E2C, 0xC8C8D0, 0x5AA0F0], np.int64)


@fast_inner
def draw_marks(
    s: Any, shape: int, left: int, top: int, size: int, points: float, back: int
) -> None:
    """Draws a row of ten marks of two points each, from the right if ``back`` is 1."""
    for n in range(_MARKS):
        here = min(max(points - 2 * n, 0.0), 2.0)
        start = left + ((_MARKS - 1 - n) if back else n) * (size + max(size // 8, 1))
        for row in range(size):
            for column in range(size):
                dot = SHAPES[shape, row * 7 // size * 7 + column * 7 // size]
                if dot:
                    # a half is filled on the side where the row begins
                    part = (size - column) if back else column + 1
                    full = part <= here * 0.5 * size
                    colour = whole(_COLOURS[shape]) if full else 0x2A2A2A
                    blend(s, top + row, start + column, colour, 1.0 if full else 0.75)


@fast_inner
def draw_crosshair(s: Any) -> None:
    """Draws a cross in the middle that inverts colours."""
    arm = max(s.tall // 60, 1)
    thick = max(s.tall // 240, 1)
    middle_row, middle = s.tall // 2, s.wide // 2
    for n in range(-arm, arm + thick):
        for m in range(thick):
            fill(s, middle + n, middle_row + m, 1, 1, 0xFFFFFF, 0.75)
            if not 0 <= n < thick:
                fill(s, middle + m, middle_row + n, 1, 1, 0xFFFFFF, 0.75)


@fast_inner
def draw_hotbar(w: World, s: Any, cell: int) -> None:
    """Draws nine cells with the contents of the hotbar, and a frame around the selected one."""
    left, top = (s.wide - HOTBAR * cell) // 2, s.tall - cell
    fill(s, left, top, HOTBAR * cell, cell, 0x101010, 0.55)
    chosen = left + w.selected * cell
    fill(s, chosen, top, cell, cell, 0xFFFFFF, 0.55)
    line = max(cell // 12, 1)
    if cell >= 10:
        for n in range(HOTBAR + 1):
            fill(s, left + n * cell - (1 if n == HOTBAR else 0), top, 1, cell, 0x8C8C8C, 0.6)
        fill(s, chosen, top, cell, line, 0xFFFFFF, 1.0)
        fill(s, chosen, top, line, cell, 0xFFFFFF, 1.0)
        fill(s, chosen + cell - line, top, line, cell, 0xFFFFFF, 1.0)
    for n in range(HOTBAR):
        item = whole(w.item[n])
        stack(s, item, whole(w.count[n]), left + n * cell, top, cell, 1.0)
        if DURABILITY[item] > 0 and w.wear[n] > 0 and cell >= 10:
            share = 1.0 - w.wear[n] / DURABILITY[item]
            colour = 0x30D030 if share > 0.5 else 0xE0A020
            bar(s, left + n * cell + 2, top + cell - 3, cell - 4, line, share, colour)


@fast_inner
def draw_vitals(w: World, s: Any, cell: int) -> None:
    """Draws health, food, armour and breath above the hotbar, as marks or as bars."""
    half = HOTBAR * cell // 2
    left, right = s.wide // 2 - half, s.wide // 2 + (1 if HOTBAR * cell % 2 else 0)
    guard = 0
    for n in range(ARMOUR):
        guard += whole(PROTECTION[w.armour[n]])
    health, food, air = math.ceil(w.health), float(w.food), w.air / _BREATH * 20.0
    if s.tall >= _HEARTS_FROM:
        size = max((half - 12) // 11, 5)
        gap = size + 3
        end = left + HOTBAR * cell - _MARKS * (size + max(size // 8, 1))
        top = s.tall - cell - gap
        draw_marks(s, 0, left, top, size, health, 0)
        draw_marks(s, 1, end, top, size, food, 1)
        if guard > 0:
            draw_marks(s, 2, left, top - gap, size, float(guard), 0)
        if air < 20.0:
            draw_marks(s, 3, end, top - gap, size, air, 1)
        return
    thick = max(cell // 3, 1)
    top = s.tall - cell - thick - 1
    bar(s, left, top, half - 1, thick, health / 20.0, 0xE01818)
    bar(s, right, top, half, thick, food / 20.0, 0xC87830)
    if guard > 0:
        bar(s, left, top - thick, half - 1, thick, guard / 20.0, 0xC8C8D0)
    if air < 20.0:
        bar(s, right, top - thick, half, thick, air / 20.0, 0x5AA0F0)


@fast_inner
def draw_panels(w: World, s: Any) -> None:
    """Draws hotbar and health, and the open screen or the crosshair."""
    cell = min(max(s.tall // 12, 5), s.wide // HOTBAR)
    if cell >= 3:
        draw_hotbar(w, s, cell)
        draw_vitals(w, s, cell)
    if w.screen:
        draw_screen(w, s)
    else:
        draw_crosshair(s)
