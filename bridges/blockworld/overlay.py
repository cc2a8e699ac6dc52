"""What the game draws over the picture: hotbar, health, crosshair, screens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridges.blockworld.canvas import bar, blend, fill, stack
from bridges.blockworld.compiled import World, fast_inner
from bridges.blockworld.items import DURABILITY, PROTECTION
from bridges.blockworld.overlay_screen import draw_screen
from bridges.blockworld.whole import whole
from bridges.blockworld.world import ARMOUR, HOTBAR

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
