"""The display over a picture: hotbar, health, food, experience, hands, and cells with items.

Blockworld and Minecraft draw it with these functions, which are compiled into their kernels. ``s``
is a record with at least the fields of ``CANVAS``, ``h`` one of type ``HUD``. Shapes are clipped at
the picture's borders.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.core import types

from bridges.compilation import part, reader, writer

_TYPES: Any = types  # numba's own annotations are incomplete

HOTBAR = 9
CANVAS = (
    ("picture", "i8"),  # address of the pixels, (tall, wide, 3) bytes
    ("wide", "i8"),
    ("tall", "i8"),
    ("texels", "i8"),  # address of the texels, int32 as in ``bridges.atlas``
    ("looks", "i8"),  # address of the looks, (items, LOOK) int32
    ("digits_from", "i8"),  # width of a cell from which counts are digits
    ("red", "f8"),  # light on the hands
    ("green", "f8"),
    ("blue", "f8"),
)
"""What the functions here read of a picture."""

LOOK = 5
"""Numbers of an item's look: the first texel of its top, left and right, 16 x 16 each; its height
in sixteenths; and how a hand holds it. The second is -1 for a flat drawing, which is the first."""
STICK, BLOCK, THING, SHIELD = 1, 2, 3, 4
"""How a hand holds an item: by its lower end, as a block, as anything else, as a shield."""

HUD = np.dtype(
    [
        ("item", "i8", (HOTBAR,)),  # by their numbers in the looks; 0 for none
        ("count", "i8", (HOTBAR,)),
        ("left", "f8", (HOTBAR,)),  # share of the durability; 1 for whole, and for none
        ("selected", "i8"),
        ("health", "f8"),  # points of 20
        ("food", "f8"),
        ("armour", "f8"),
        ("air", "f8"),
        ("level", "i8"),
        ("progress", "f8"),  # to the next level, 0 to 1; -1 in a game without experience
        ("off", "i8"),  # the item in the off hand
        ("swing", "f8"),  # of the hand, 0 to 1, at rest at both
        ("eating", "f8"),  # ticks since the player began to eat
        ("raised", "i8"),  # the shield
    ],
    align=True,
)
"""What a player knows of itself at a glance."""


def inner(function: Any) -> Any:
    """Compiles a function for pictures that kernels call."""
    return part(function, fastmath=True, floats=False)


_texel: Any = reader("i4", _TYPES.int64)
_number: Any = reader("f8", _TYPES.float64)
_get_byte: Any = reader("u1", _TYPES.uint8)
_set_byte: Any = writer("u1", _TYPES.int64)

# shapes -------------------------------------------------------------------------------------------

# Three by five dots, from the top left, row by row: digits, then letters.
_DOTS = (
    "111101101101111 010110010010111 111001111100111 111001011001111 101101111001001 "
    "111100111001111 111100111101111 111001010010010 111101111101111 111101111001111 "
    "010101111101101 110101110101110 011100100100011 110101101101110 111100110100111 "
    "111100110100100 011100101101011 101101111101101 111010010010111 001001001101010 "
    "101101110101101 100100100100111 101111111101101 111101101101101 010101101101010 "
    "110101110100100 010101101111011 110101110101101 011100010001110 111010010010010 "
    "101101101101111 101101101101010 101101111111101 101101010101101 101101010010010 "
    "111001010100111"
)
GLYPHS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""The characters that can be written, by their numbers."""
_GLYPHS = np.array([[int(dot) for dot in dots] for dots in _DOTS.split()], np.uint8).reshape(-1)
WHITE, _SHADOW, _DARKEST = 0xFFFFFF, 0x303030, 0x505050


@inner
def blend(s: Any, row: int, column: int, colour: int, share: float) -> None:
    """Blends a share of a colour ``red << 16 | green << 8 | blue`` into a pixel of the picture."""
    if 0 <= row < s.tall and 0 <= column < s.wide:
        pixel = (row * s.wide + column) * 3
        for n in range(3):
            below = _get_byte(s.picture, pixel + n)
            over = (colour >> (16 - 8 * n)) & 255
            _set_byte(s.picture, pixel + n, int(below + (over - below) * share))


@inner
def fill(s: Any, left: int, top: int, wide: int, tall: int, colour: int, share: float) -> None:
    """Blends a share of a colour into a box."""
    for row in range(max(top, 0), min(top + tall, s.tall)):
        for column in range(max(left, 0), min(left + wide, s.wide)):
            blend(s, row, column, colour, share)


@inner
def bar(s: Any, left: int, top: int, wide: int, tall: int, share: float, colour: int) -> None:
    """Draws a bar that is filled to a share, from the left."""
    full = int(wide * min(max(share, 0.0), 1.0) + 0.5)
    fill(s, left, top, wide, tall, 0x202020, 0.7)
    fill(s, left, top, full, tall, colour, 1.0)


@inner
def glyph(s: Any, code: int, left: int, top: int, dot: int, colour: int) -> None:
    """Writes a character of ``GLYPHS`` in dots of some pixels; a light one has a shadow."""
    for n in range(15):
        if _GLYPHS[code * 15 + n] and colour > _DARKEST:
            x, y = left + n % 3 * dot, top + n // 3 * dot
            fill(s, x + max(dot // 2, 1), y + max(dot // 2, 1), dot, dot, _SHADOW, 1.0)
    for n in range(15):
        if _GLYPHS[code * 15 + n]:
            fill(s, left + n % 3 * dot, top + n // 3 * dot, dot, dot, colour, 1.0)


@inner
def number(s: Any, value: int, right: int, bottom: int, dot: int, colour: int) -> None:
    """Writes a number that ends at the lower right."""
    left = right
    while value > 0:
        left -= 4 * dot
        glyph(s, value % 10, left, bottom - 5 * dot, dot, colour)
        value //= 10


# items --------------------------------------------------------------------------------------------


@inner
def shaded(texel: int, share: int) -> int:
    """Returns a texel with its brightness times so many 256ths."""
    red, green, blue = (texel >> 16) & 255, (texel >> 8) & 255, texel & 255
    return (
        (texel & (1 << 24))
        | ((red * share >> 8) << 16)
        | ((green * share >> 8) << 8)
        | (blue * share >> 8)
    )


@inner
def icon_texel(s: Any, item: int, u: float, v: float) -> int:
    """Returns the texel of an item's icon at a position in [0, 1) x [0, 1); 0 where it is empty."""
    look = item * LOOK
    front = _texel(s.looks, look + 1)
    if front < 0:
        return int(_texel(s.texels, _texel(s.looks, look) + int(v * 16.0) * 16 + int(u * 16.0)))
    low = (16 - _texel(s.looks, look + 3)) / 16.0
    x = u - 0.5
    right, left = 2.0 * (v - 0.5 * low) + x, 2.0 * (v - 0.5 * low) - x
    if 0.0 <= right < 1.0 and 0.0 <= left < 1.0:
        at = int(left * 16.0) * 16 + int(right * 16.0)
        return int(_texel(s.texels, _texel(s.looks, look) + at))
    across = 2.0 * x + 1.0 if x < 0.0 else 2.0 * x
    edge = 0.25 + 0.25 * across if x < 0.0 else 0.5 - 0.25 * across
    down = (v - edge) * 2.0
    if not low <= down < 1.0:
        return 0
    at = int(down * 16.0) * 16 + int(across * 16.0)
    side = front if x < 0.0 else _texel(s.looks, look + 2)
    return int(shaded(_texel(s.texels, side + at), 200 if x < 0.0 else 150))


@inner
def icon(s: Any, item: int, left: int, top: int, size: int, share: float) -> None:
    """Draws an item's picture into a square with opacity ``share``."""
    for row in range(max(top, 0), min(top + size, s.tall)):
        for column in range(max(left, 0), min(left + size, s.wide)):
            texel = icon_texel(s, item, (column + 0.5 - left) / size, (row + 0.5 - top) / size)
            if texel >> 24:
                blend(s, row, column, texel, share)


@inner
def stack(s: Any, item: int, count: int, left: int, top: int, cell: int, share: float) -> None:
    """Draws an item in a cell and its count: digits, or a mark where cells are small."""
    if item == 0:
        return
    rim = cell // 10
    icon(s, item, left + rim, top + rim, cell - 2 * rim, share)
    if count > 1 and cell >= s.digits_from:
        number(s, count, left + cell, top + cell, max(cell // 16, 1), WHITE)
    elif count > 1 and cell >= 4:
        fill(s, left, top + cell - 1, max(cell * min(count, 64) // 64, 1), 1, WHITE, 0.85)


@inner
def wear(s: Any, left: int, top: int, cell: int, share: float) -> None:
    """Draws the share of an item's durability that is left, at the bottom of its cell."""
    colour = 0x30D030 if share > 0.5 else 0xE0A020
    bar(s, left + 2, top + cell - 3, cell - 4, max(cell // 12, 1), share, colour)


@inner
def pointer(s: Any, x: int, y: int, size: int) -> None:
    """Draws the cursor: an arrow that points to the upper left."""
    for n in range(size):
        fill(s, x, y + n, size - n, 1, 0x000000, 1.0)
        fill(s, x, y + n, max(size - n - 1, 1), 1, WHITE, 1.0 if n < size - 1 else 0.0)


# the display --------------------------------------------------------------------------------------

_HEARTS_FROM = 180
"""Height of the picture from which health and food are drawn as hearts and drumsticks."""
_MARKS = 10

_HEART = ".##.##. ####### ####### ####### .#####. ..###.. ...#..."
_MEAT = "....##. ..##### ..##### ..##### ...###. .##.... ##....."
_SHIRT = "##...## ####### ####### .#####. .#####. .#####. ....... "
_BUBBLE = "..###.. .#...#. #.#...# #.....# #.....# .#...#. ..###.."
SHAPES = np.array(
    [[dot == "#" for dot in "".join(s.split())] for s in (_HEART, _MEAT, _SHIRT, _BUBBLE)], np.uint8
)
"""Seven by seven dots of a heart, a drumstick, a piece of armour and an air bubble."""
_COLOURS = np.array([0xE01818, 0xB86E2C, 0xC8C8D0, 0x5AA0F0], np.int64)


@inner
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
                    side = (size - column) if back else column + 1
                    full = side <= here * 0.5 * size
                    colour = np.int64(_COLOURS[shape]) if full else 0x2A2A2A
                    blend(s, top + row, start + column, colour, 1.0 if full else 0.75)


@inner
def draw_crosshair(s: Any) -> None:
    """Draws a cross in the middle."""
    arm = max(s.tall // 60, 1)
    thick = max(s.tall // 240, 1)
    middle_row, middle = s.tall // 2, s.wide // 2
    for n in range(-arm, arm + thick):
        for m in range(thick):
            fill(s, middle + n, middle_row + m, 1, 1, WHITE, 0.75)
            if not 0 <= n < thick:
                fill(s, middle + m, middle_row + n, 1, 1, WHITE, 0.75)


@inner
def draw_hotbar(s: Any, h: Any, cell: int) -> None:
    """Draws nine cells with the contents of the hotbar, and a frame around the selected one."""
    left, top = (s.wide - HOTBAR * cell) // 2, s.tall - cell
    fill(s, left, top, HOTBAR * cell, cell, 0x101010, 0.55)
    chosen = left + h.selected * cell
    fill(s, chosen, top, cell, cell, WHITE, 0.55)
    line = max(cell // 12, 1)
    if cell >= 10:
        for n in range(HOTBAR + 1):
            fill(s, left + n * cell - (1 if n == HOTBAR else 0), top, 1, cell, 0x8C8C8C, 0.6)
        fill(s, chosen, top, cell, line, WHITE, 1.0)
        fill(s, chosen, top, line, cell, WHITE, 1.0)
        fill(s, chosen + cell - line, top, line, cell, WHITE, 1.0)
    for n in range(HOTBAR):
        stack(s, h.item[n], h.count[n], left + n * cell, top, cell, 1.0)
        if h.left[n] < 1.0 and cell >= 10:
            wear(s, left + n * cell, top, cell, h.left[n])


@inner
def draw_experience(s: Any, h: Any, cell: int) -> int:
    """Draws the progress to the next level, and the level; returns the height of the bar."""
    thick = max(cell // 4, 2)
    left, top = (s.wide - HOTBAR * cell) // 2, s.tall - cell - thick - 1
    bar(s, left, top, HOTBAR * cell, thick, h.progress, 0x7EDC20)
    if h.level > 0:
        dot = max(cell // 16, 1)
        digits = 1 + int(h.level > 9) + int(h.level > 99) + int(h.level > 999)
        right = s.wide // 2 + (4 * digits * dot + 1) // 2
        number(s, h.level, right, top - max(dot, 1), dot, 0x7EFC20)
    return int(thick + 1)


@inner
def draw_vitals(s: Any, h: Any, cell: int, lift: int) -> None:
    """Draws health, food, armour and breath above the hotbar, as marks or as bars."""
    half = HOTBAR * cell // 2
    left, right = s.wide // 2 - half, s.wide // 2 + (1 if HOTBAR * cell % 2 else 0)
    if s.tall >= _HEARTS_FROM:
        size = max((half - 12) // 11, 5)
        gap = size + 3
        end = left + HOTBAR * cell - _MARKS * (size + max(size // 8, 1))
        top = s.tall - cell - lift - gap
        draw_marks(s, 0, left, top, size, h.health, 0)
        draw_marks(s, 1, end, top, size, h.food, 1)
        if h.armour > 0:
            draw_marks(s, 2, left, top - gap, size, h.armour, 0)
        if h.air < 20.0:
            draw_marks(s, 3, end, top - gap, size, h.air, 1)
        return
    thick = max(cell // 3, 1)
    top = s.tall - cell - lift - thick - 1
    bar(s, left, top, half - 1, thick, h.health / 20.0, 0xE01818)
    bar(s, right, top, half, thick, h.food / 20.0, 0xC87830)
    if h.armour > 0:
        bar(s, left, top - thick, half - 1, thick, h.armour / 20.0, 0xC8C8D0)
    if h.air < 20.0:
        bar(s, right, top - thick, half, thick, h.air / 20.0, 0x5AA0F0)


@inner
def draw_display(s: Any, h: Any, cell: int) -> None:
    """Draws the hotbar and what is above it, in cells of some pixels; nothing in less than 3."""
    if cell < 3:
        return
    draw_hotbar(s, h, cell)
    lift = 0
    if h.progress >= 0.0:
        lift = draw_experience(s, h, cell)
    draw_vitals(s, h, cell, lift)


# hands --------------------------------------------------------------------------------------------

_SKIN, _SLEEVE = 0xC68E6E, 0x2E8C92


@inner
def lit(s: Any, texel: int) -> int:
    """Returns a texel under the light in ``s``."""
    red, green, blue = (texel >> 16) & 255, (texel >> 8) & 255, texel & 255
    return (
        (int(min(red * s.red, 255.0)) << 16)
        | (int(min(green * s.green, 255.0)) << 8)
        | int(min(blue * s.blue, 255.0))
    )


@inner
def draw_held(s: Any, item: int, left: float, top: float, size: float, turned: int) -> None:
    """Draws an item into a square; mirrored if ``turned`` is 1."""
    first, end = int(max(left, 0.0)), int(min(left + size, float(s.wide)))
    upper, lower = int(max(top, 0.0)), int(min(top + size, float(s.tall)))
    for row in range(upper, lower):
        v = min(max((row + 0.5 - top) / size, 0.0), 0.999)
        for column in range(first, end):
            u = min(max((column + 0.5 - left) / size, 0.0), 0.999)
            texel = icon_texel(s, item, 0.999 - u if turned else u, v)
            if texel >> 24:
                blend(s, row, column, lit(s, texel), 1.0)


@inner
def draw_arm(s: Any, aside: float, up: float) -> None:
    """Draws the bare arm: it comes from the lower right corner and leans to the middle."""
    tall, wide = float(s.tall), float(s.wide)
    reach = 0.34 * tall
    for row in range(int(max(tall - reach - up, 0.0)), s.tall):
        along = (tall + 0.5 - row + up * 0.5) / reach
        middle = wide - 0.05 * tall - aside - 0.2 * tall * along
        half = 0.085 * tall * (1.1 - 0.2 * along)
        skin = _SKIN if along > 0.42 else _SLEEVE
        for column in range(int(max(middle - half, 0.0)), int(min(middle + half, wide))):
            shade = 0xC0 if column > middle + 0.35 * half else 0x100
            red, green, blue = skin >> 16, (skin >> 8) & 255, skin & 255
            colour = ((red * shade >> 8) << 16) | ((green * shade >> 8) << 8) | (blue * shade >> 8)
            blend(s, row, column, lit(s, colour), 1.0)


@inner
def draw_hands(s: Any, h: Any) -> None:
    """Draws the items in both hands, in the light that ``s`` has."""
    item, off = h.item[h.selected], h.off
    tall, wide = float(s.tall), float(s.wide)
    swing = math.sin(h.swing * math.pi)
    aside, up = 0.16 * swing * tall, 0.1 * swing * tall
    if h.eating > 0:
        aside, up = 0.3 * wide, 0.04 * tall * math.sin(h.eating * 1.6)
    hold = _texel(s.looks, item * LOOK + 4)
    if item == 0 or h.count[h.selected] == 0:
        draw_arm(s, aside, up)
    elif hold == STICK:
        size = 0.58 * tall
        draw_held(s, item, wide - 0.86 * size - aside, tall - 0.84 * size - up, size, 1)
    else:
        size = (0.42 if hold == BLOCK else 0.36) * tall
        draw_held(s, item, wide - 1.1 * size - aside, tall - 0.82 * size - up, size, 1)
    if off > 0:
        size = (0.52 if _texel(s.looks, off * LOOK + 4) == SHIELD else 0.36) * tall
        lift = 0.34 if h.raised else 0.0
        draw_held(s, off, -0.1 * size + lift * 0.5 * wide, tall - (0.66 + lift) * size, size, 0)


# windows ------------------------------------------------------------------------------------------

FILL, STACK, WEAR, NUMBER, GLYPH, BAR, POINTER = range(7)
"""The first number of a row of ``draw_rows``."""
ROW = 7


@inner
def draw_rows(s: Any, rows: int, count: int) -> None:
    """Draws a list of shapes, ``(count, ROW)`` float64 at an address.

    A row has the number of a shape, and what its function takes: ``FILL`` left, top, wide, tall,
    colour, share; ``STACK`` item, count, left, top, cell, share; ``WEAR`` left, top, cell, share;
    ``NUMBER`` value, right, bottom, dot, colour; ``GLYPH`` code, left, top, dot, colour; ``BAR``
    left, top, wide, tall, share, colour; ``POINTER`` x, y, size.
    """
    for n in range(count):
        at = n * ROW
        kind = int(_number(rows, at))
        a, b, c = (
            int(_number(rows, at + 1)),
            int(_number(rows, at + 2)),
            int(_number(rows, at + 3)),
        )
        d, e = int(_number(rows, at + 4)), int(_number(rows, at + 5))
        last = _number(rows, at + 6)
        if kind == FILL:
            fill(s, a, b, c, d, e, last)
        elif kind == STACK:
            stack(s, a, b, c, d, e, last)
        elif kind == WEAR:
            wear(s, a, b, c, _number(rows, at + 4))
        elif kind == NUMBER:
            number(s, a, b, c, d, e)
        elif kind == GLYPH:
            glyph(s, a, b, c, d, e)
        elif kind == BAR:
            bar(s, a, b, c, d, _number(rows, at + 5), int(last))
        else:
            pointer(s, a, b, c)
