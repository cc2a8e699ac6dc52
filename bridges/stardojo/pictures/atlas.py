"""Sprites in one buffer, and compiled code that copies them onto a frame."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Hashable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from bridges.compilation import cache_root, compilation_lock, digest, keep_code
from bridges.stardojo.pictures.paint import Color, Pixels
from rollout.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _folder() -> Path:
    return cache_root() / f"stardojo-pictures-{digest([Path(__file__)])}"


def _kernel(function: F) -> F:
    made: Any = numba.njit(nogil=True, error_model="numpy")(function)
    keep_code(made, _folder())
    return made  # type: ignore[no-any-return]


@_kernel
def _tiles(frame: Any, tiles: Any, numbers: Any, left: int, top: int) -> None:
    """Copies tiles onto the frame, the first at ``left`` and ``top`` in bytes."""
    high, wide = tiles.shape[1:]
    for y in range(max(0, top), min(len(frame), top + high * len(numbers))):
        down, line = divmod(y - top, high)
        for across in range(numbers.shape[1]):
            x = left + across * wide
            tile = tiles[numbers[down, across], line, max(0, -x) :]
            row = frame[y, max(0, x) : max(0, x + wide)]
            for at in range(len(row)):
                row[at] = tile[at]


@_kernel
def _sprites(frame: Any, colors: Any, opacities: Any, table: Any, drawn: Any) -> None:
    """Lays sprites over the frame, in their order; ``drawn`` has rows of number, x, y."""
    for each in range(len(drawn)):
        number, x, y = drawn[each, 0], 3 * drawn[each, 1], drawn[each, 2]
        start, wide, high = table[number]
        for line in range(max(0, -y), min(high, len(frame) - y)):
            first = start + line * wide + max(0, -x)
            color, opacity = colors[first:], opacities[first:]
            row = frame[y + line, max(0, x) : max(0, x + wide)]
            for at in range(len(row)):  # simple enough for the compiler to do many at once
                row[at] = color[at] + ((row[at] * (256 - opacity[at])) >> 8)


@_kernel
def _tint(frame: Any, light: Any) -> None:
    """Multiplies each row with ``light``, in 256ths."""
    for line in range(len(frame)):
        row = frame[line]
        for at in range(len(row)):
            row[at] = (row[at] * light[at]) >> 8


class Atlas:
    """Sprites for one size of tiles, painted when they are first needed, shared by all valleys.

    Attributes:
        sizes: width and height of each sprite in pixels, by its number.
    """

    def __init__(self, side: int) -> None:
        self.side = side
        self.tiles = np.zeros((64, side, 3 * side), np.uint8)
        self._tile_count = 0
        self._numbers: dict[Hashable, int] = {}
        self._colors, self._opacities = np.zeros((2, 1 << 18), np.uint8)
        self._table = np.zeros((256, 3), np.int64)
        self._used = 0
        self.sizes: list[tuple[int, int]] = []
        self._advances: dict[Hashable, int] = {}
        with compilation_lock(_folder()):
            frame = np.zeros((1, 3), np.uint8)
            self.lay_tiles(frame, np.zeros((1, 1), np.int32), 0, 0)
            self.lay(frame, [])
            tint(frame, (256, 256, 256))

    def tile(self, key: Hashable, make: Callable[[], Pixels]) -> int:
        """Returns the number of an opaque tile; ``make`` paints it, ``(side, side, 3)``."""
        number = self._numbers.get(key)
        if number is None:
            if self._tile_count == len(self.tiles):
                self.tiles = _doubled(self.tiles)
            number = self._numbers[key] = self._tile_count
            self.tiles[number] = make().reshape(self.side, -1)
            self._tile_count += 1
        return number

    def sprite(self, key: Hashable, make: Callable[[], Pixels]) -> int:
        """Returns the number of a sprite, ``make`` painting it at first; see ``paint.paint``."""
        number = self._numbers.get(key)
        return self._add(key, make()) if number is None else number

    def known(self, key: Hashable) -> int | None:
        """Returns the number of a sprite that was painted before, or None."""
        return self._numbers.get(key)

    def _add(self, key: Hashable, image: Pixels) -> int:
        high, wide = image.shape[:2]
        end, number = self._used + 3 * high * wide, len(self.sizes)
        while end > len(self._colors):
            self._colors, self._opacities = _doubled(self._colors), _doubled(self._opacities)
        if number == len(self._table):
            self._table = _doubled(self._table)
        self._colors[self._used : end] = image[..., :3].ravel()
        self._opacities[self._used : end] = np.repeat(image[..., 3], 3)
        self._table[number] = self._used, 3 * wide, high
        self._numbers[key], self._used = number, end
        self.sizes.append((wide, high))
        return number

    def glyph(self, character: str, size: int, rgb: Color) -> tuple[int, int]:
        """Returns the number of a character's sprite and how far the next one is to the right."""
        key = (character, size, rgb)
        number = self._numbers.get(key)
        if number is None:
            face = _font(size)
            advance = max(1, round(face.getlength(character)))
            mask = Image.new("L", (advance + 2, round(size * 1.3)))
            ImageDraw.Draw(mask).text((0, 0), character, 255, font=face)
            opacity = np.asarray(mask, np.uint16)[..., None]
            image = np.concatenate([opacity * np.array(rgb, np.uint16) // 255, opacity], 2)
            number = self._add(key, image.astype(np.uint8))
            self._advances[key] = advance
        return number, self._advances[key]

    def lay_tiles(self, frame: Pixels, numbers: NDArray[np.int32], left: int, top: int) -> None:
        """Copies tiles onto a frame ``(height, 3 * width)``; the first at ``left`` and ``top``."""
        _tiles(frame, self.tiles, np.ascontiguousarray(numbers), 3 * left, top)

    def lay(self, frame: Pixels, drawn: list[tuple[int, int, int]]) -> None:
        """Lays sprites over a frame: rows of number, x and y."""
        rows = np.fromiter(chain.from_iterable(drawn), np.int32, 3 * len(drawn)).reshape(-1, 3)
        _sprites(frame, self._colors, self._opacities, self._table, rows)


def _doubled(full: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([full, np.zeros_like(full)])


def tint(frame: Pixels, light: Color) -> None:
    """Multiplies the colors of a frame ``(height, 3 * width)`` with ``light``, in 256ths."""
    _tint(frame, np.tile(np.array(light, np.uint16), frame.shape[1] // 3))


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    found = importlib.util.find_spec("matplotlib")
    folder = Path((found and found.origin) or "").parent / "mpl-data" / "fonts" / "ttf"
    path = folder / "DejaVuSans-Bold.ttf"
    if not path.is_file():
        raise ConfigError(f"expected the font {path} of matplotlib; install matplotlib again")
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
