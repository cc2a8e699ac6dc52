"""Pictures with transparency, drawn once, and text made of glyphs of whole pixels."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from rollout.errors import ConfigError

Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]

_FINE = 2  # shapes are drawn this many times larger, then shrunk: smooth edges


class Sprite(NamedTuple):
    """A picture ready to be drawn over another: its colours times its opacity, and the rest.

    Attributes:
        ink: (h, w, 3).
        clear: (h, w, 3), how much of what is below stays, of 255.
    """

    ink: Picture
    clear: Picture

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.ink.shape[1], self.ink.shape[0]


def sprite(rgba: NDArray[Any]) -> Sprite:
    """Returns a sprite from a picture with four channels, 0 to 255."""
    alpha = rgba[..., 3:].astype(np.float32) / 255
    ink = np.rint(rgba[..., :3].astype(np.float32) * alpha).astype(np.uint8)
    clear = np.repeat(255 - np.rint(rgba[..., 3:]).astype(np.uint8), 3, axis=2)
    return Sprite(np.ascontiguousarray(ink), np.ascontiguousarray(clear))


def blit(canvas: Picture, what: Sprite, x: int, y: int) -> None:
    """Draws a sprite with its corner at a pixel; what leaves the canvas is cut off."""
    ink, clear = what
    h, w = ink.shape[:2]
    height, width = canvas.shape[:2]
    if x < 0 or y < 0 or x + w > width or y + h > height:
        left, top, right, bottom = max(0, -x), max(0, -y), min(w, width - x), min(h, height - y)
        if left >= right or top >= bottom:
            return
        ink, clear = ink[top:bottom, left:right], clear[top:bottom, left:right]
        x, y, w, h = x + left, y + top, right - left, bottom - top
    below = canvas[y : y + h, x : x + w]
    cv2.multiply(below, clear, below, 1 / 255)
    cv2.add(below, ink, below)


def stacked(w: int, h: int, *parts: tuple[Sprite, int, int]) -> Sprite:
    """Returns sprites at their places in a box of some size as one."""
    ink, clear = np.zeros((h, w, 3), np.uint8), np.full((h, w, 3), 255, np.uint8)
    for part, x, y in parts:
        blit(ink, part, x, y)
        blit(clear, Sprite(np.zeros_like(part.ink), part.clear), x, y)
    return Sprite(ink, clear)


class Pen:
    """Draws smooth shapes; coordinates run from -1 to 1 across the shorter side, y down.

    Args:
        width: of the sprite, in pixels.
        height: likewise.
    """

    def __init__(self, width: int, height: int) -> None:
        self._out = (max(1, width), max(1, height))
        w, h = (each * _FINE for each in self._out)
        self.rgba = np.zeros((h, w, 4), np.float32)
        self._unit = min(w, h) / 2

    def _points(self, points: Any) -> NDArray[np.int32]:
        h, w = self.rgba.shape[:2]
        found = np.asarray(points, np.float64).reshape(-1, 2) * self._unit + (w / 2, h / 2)
        return np.rint(found * 16).astype(np.int32)  # 4 bits of fraction

    def _lay(
        self, mask: NDArray[Any], colour: Colour, alpha: float, low: Colour | None = None
    ) -> None:
        """Lays a colour, or a vertical blend of two, where a mask is set."""
        x, y, w, h = cv2.boundingRect(mask)
        if not w:
            return
        within = (slice(y, y + h), slice(x, x + w))
        strength = mask[within].astype(np.float32)[..., None] * (alpha / 255)
        paint: NDArray[Any] = np.asarray(colour, np.float32)
        if low is not None:
            t = np.linspace(0, 1, h, dtype=np.float32)[:, None, None]
            paint = paint * (1 - t) + np.asarray(low, np.float32) * t
        below = self.rgba[within][..., 3:] / 255 * (1 - strength)
        above = strength + below
        mixed = paint * strength + self.rgba[within][..., :3] * below
        self.rgba[within][..., :3] = mixed / np.maximum(above, 1e-6)
        self.rgba[within][..., 3:] = above * 255

    def _mask(self) -> Picture:
        return np.zeros(self.rgba.shape[:2], np.uint8)

    def polygon(
        self, points: Any, colour: Colour, *, low: Colour | None = None, alpha: float = 1.0
    ) -> None:
        """Fills a polygon; ``low`` is the colour at its bottom."""
        mask = self._mask()
        cv2.fillPoly(mask, [self._points(points)], 255, cv2.LINE_AA, 4)
        self._lay(mask, colour, alpha, low)

    def line(
        self, points: Any, colour: Colour, width: float, *, closed: bool = False, alpha: float = 1.0
    ) -> None:
        """Draws a line through points."""
        mask = self._mask()
        thick = max(1, round(width * self._unit))
        cv2.polylines(mask, [self._points(points)], closed, 255, thick, cv2.LINE_AA, 4)
        self._lay(mask, colour, alpha)

    def ellipse(
        self,
        centre: tuple[float, float],
        radii: tuple[float, float],
        colour: Colour,
        *,
        low: Colour | None = None,
        alpha: float = 1.0,
        width: float = 0.0,
        arc: tuple[float, float] = (0, 360),
    ) -> None:
        """Fills an ellipse, or draws its outline or an arc of it; degrees, clockwise from right."""
        mask = self._mask()
        middle = self._points([centre])[0]
        axes = [round(each * self._unit * 16) for each in radii]
        thick = max(1, round(width * self._unit)) if width else -1
        cv2.ellipse(mask, middle.tolist(), axes, 0, arc[0], arc[1], 255, thick, cv2.LINE_AA, 4)
        self._lay(mask, colour, alpha, low)

    def glow(
        self, centre: tuple[float, float], radius: float, colour: Colour, alpha: float
    ) -> None:
        """Draws light that fades with the distance from a point."""
        h, w = self.rgba.shape[:2]
        y, x = np.mgrid[0:h, 0:w].astype(np.float32)
        cx, cy = self._points([centre])[0] / 16
        away = np.hypot(x - cx, y - cy) / max(1.0, radius * self._unit)
        self._lay((np.clip(1 - away, 0, 1) ** 2 * 255).astype(np.uint8), colour, alpha)

    def rounded(
        self,
        radius: float,
        colour: Colour,
        *,
        low: Colour | None = None,
        alpha: float = 1.0,
        border: Colour | None = None,
        width: float = 1.0,
    ) -> None:
        """Fills the whole sprite with rounded corners; ``radius``, ``width`` in its pixels."""
        h, w = self.rgba.shape[:2]
        inset = 0.0
        for paint, shade, strength in ((border, None, 1.0), (colour, low, alpha)):
            if paint is None:
                continue
            image = Image.new("L", (w, h), 0)
            edges = (inset, inset, w - 1 - inset, h - 1 - inset)
            ImageDraw.Draw(image).rounded_rectangle(edges, max(0, radius * _FINE - inset), 255)
            mask = np.array(image)
            if border is not None and inset:  # see through the border's inside
                self.rgba[mask > 127] = 0
            self._lay(mask, paint, strength, shade)
            inset = max(1.0, width * _FINE)

    def finish(self) -> Sprite:
        """Returns the sprite."""
        premultiplied = self.rgba.copy()
        premultiplied[..., :3] *= premultiplied[..., 3:] / 255
        small = cv2.resize(premultiplied, self._out, interpolation=cv2.INTER_AREA)
        small = small.reshape(self._out[1], self._out[0], 4)
        ink = np.clip(np.rint(small[..., :3]), 0, 255).astype(np.uint8)
        alpha = np.clip(np.rint(small[..., 3:]), 0, 255).astype(np.uint8)
        return Sprite(np.ascontiguousarray(ink), np.repeat(255 - alpha, 3, axis=2))


def font_file(*, bold: bool) -> Path:
    """Returns the file of DejaVu Sans, which comes with matplotlib under its free licence.

    Raises:
        ConfigError: matplotlib has no fonts.
    """
    found = importlib.util.find_spec("matplotlib")  # importing it takes long
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path((found and found.origin) or "").parent / "mpl-data" / "fonts" / "ttf" / name
    if not path.is_file():
        raise ConfigError(f"expected the font {path} of matplotlib; install matplotlib again")
    return path


@functools.lru_cache(64)
def font(size: int, *, bold: bool) -> ImageFont.FreeTypeFont:
    """Returns the font with a line height of ``size`` pixels."""
    layout = ImageFont.Layout.BASIC
    return ImageFont.truetype(
        font_file(bold=bold), max(4, round(size * 0.86)), layout_engine=layout
    )


@functools.lru_cache(8192)
def glyph(character: str, size: int, *, bold: bool) -> Picture:
    """Returns the opacity of one character, as wide as its advance in whole pixels.

    Text is a row of them, so what is read is cut where it was written.
    """
    face = font(size, bold=bold)
    ascent, descent = face.getmetrics()
    width = max(1, round(face.getlength(character)))
    image = Image.new("L", (width, ascent + descent), 0)
    ImageDraw.Draw(image).text((0, 0), character, 255, font=face)
    return np.array(image)


def text_width(text: str, size: int, *, bold: bool) -> int:
    """Returns the width of a text in pixels."""
    return sum(glyph(each, size, bold=bold).shape[1] for each in text)


@functools.lru_cache(8192)
def fitted(text: str, width: int, size: int, *, bold: bool) -> str:
    """Returns as much of a text as fits into a width."""
    while len(text) > 1 and text_width(text, size, bold=bold) > width:
        text = text[:-2] + "."
    return text


@functools.lru_cache(8192)
def _coloured(character: str, size: int, bold: bool, colour: Colour) -> Sprite:
    mask = glyph(character, size, bold=bold)
    rgba = np.empty((*mask.shape, 4), np.uint8)
    rgba[..., :3], rgba[..., 3] = colour, mask
    return sprite(rgba)


@functools.lru_cache(8192)
def text_sprite(text: str, size: int, colour: Colour, *, bold: bool) -> Sprite:
    """Returns a text as a sprite."""
    parts = [_coloured(each, size, bold, colour) for each in text or " "]
    return Sprite(
        np.concatenate([part.ink for part in parts], axis=1),
        np.concatenate([part.clear for part in parts], axis=1),
    )
