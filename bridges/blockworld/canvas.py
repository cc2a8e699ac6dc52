"""Flat shapes drawn over a picture: boxes, icons, numbers. All are clipped at its borders."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.bare import get_byte, set_byte
from bridges.blockworld.compiled import fast_inner
from bridges.blockworld.icons import icon_texel

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
