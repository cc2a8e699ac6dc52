"""Sprites in one buffer, and compiled code that copies them onto a frame."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Hashable
from functools import cache
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
def _sprites(frame: Any, pixels: Any, table: Any, spans: Any, drawn: Any) -> None:
    """Lays sprites over the frame, in their order; ``drawn`` has rows of number, x, y."""
    height, width = len(frame), frame.shape[1] // 3
    for each in range(len(drawn)):
        number, x, y = drawn[each, 0], drawn[each, 1], drawn[each, 2]
        start, wide, high, first = table[number]
        for line in range(max(0, -y), min(high, height - y)):
            row = frame[y + line]
            at = start + line * wide
            for column in range(
                max(spans[first + line, 0], -x), min(spans[first + line, 1], width - x)
            ):
                opacity = pixels[at + column, 3]
                to = 3 * (x + column)
                if opacity == 255:
                    row[to] = pixels[at + column, 0]
                    row[to + 1] = pixels[at + column, 1]
                    row[to + 2] = pixels[at + column, 2]
                elif opacity:
                    rest = 256 - opacity
                    row[to] = pixels[at + column, 0] + ((row[to] * rest) >> 8)
                    row[to + 1] = pixels[at + column, 1] + ((row[to + 1] * rest) >> 8)
                    row[to + 2] = pixels[at + column, 2] + ((row[to + 2] * rest) >> 8)


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
        self._pixels = np.zeros((1 << 16, 4), np.uint8)
        self._table = np.zeros((256, 4), np.int32)
        self._spans = np.zeros((4096, 2), np.int32)
        self._used = self._count = self._rows = 0
        self.sizes: list[tuple[int, int]] = []
        self._advances: dict[Hashable, int] = {}
        with compilation_lock(_folder()):
            frame = np.zeros((1, 3), np.uint8)
            self.lay(frame, [])
            tint(frame, (256, 256, 256))

    def tile(self, key: Hashable, make: Callable[[], Pixels]) -> int:
        """Returns the number of an opaque tile; ``make`` paints it, ``(side, side, 3)``."""
        number = self._numbers.get(key)
        if number is None:
            if self._tile_count == len(self.tiles):
                self.tiles = np.concatenate([self.tiles, np.zeros_like(self.tiles)])
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
        while self._used + high * wide > len(self._pixels):
            self._pixels = np.concatenate([self._pixels, np.zeros_like(self._pixels)])
        if self._count == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        while self._rows + high > len(self._spans):
            self._spans = np.concatenate([self._spans, np.zeros_like(self._spans)])
        number = self._numbers[key] = self._count
        self.sizes.append((wide, high))
        self._pixels[self._used : self._used + high * wide] = image.reshape(-1, 4)
        self._table[number] = (self._used, wide, high, self._rows)
        seen = image[..., 3] > 0
        spans = self._spans[self._rows : self._rows + high]
        spans[:, 0] = np.argmax(seen, 1)
        spans[:, 1] = np.where(seen.any(1), wide - np.argmax(seen[:, ::-1], 1), 0)
        self._used, self._rows, self._count = (
            self._used + high * wide,
            self._rows + high,
            number + 1,
        )
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
        (height, width), side, wide = frame.shape, self.side, 3 * self.side
        for y, row in enumerate(numbers.tolist()):
            at = top + y * side
            first, last = max(0, -at), min(side, height - at)
            for x, number in enumerate(row):
                to = 3 * left + x * wide
                if to >= 0 and to + wide <= width:
                    frame[at + first : at + last, to : to + wide] = self.tiles[number, first:last]
                elif -wide < to < width:
                    start, end = max(0, -to), min(wide, width - to)
                    part = self.tiles[number, first:last, start:end]
                    frame[at + first : at + last, to + start : to + end] = part

    def lay(self, frame: Pixels, drawn: list[tuple[int, int, int]]) -> None:
        """Lays sprites over a frame: rows of number, x and y."""
        rows = np.array(drawn, np.int32).reshape(-1, 3)
        _sprites(frame, self._pixels, self._table, self._spans, rows)


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
