"""Small parts of the screen that only change their size and colour."""

from __future__ import annotations

import functools

import numpy as np

from bridges.starbench.pictures import art
from bridges.starbench.pictures.art import DARK, EDGE, GOLD, PANEL, RED, WHITE
from bridges.starbench.pictures.sprites import Colour, Pen, Picture, Sprite, sprite


@functools.lru_cache(256)
def shade(high: Colour, low: Colour, h: int) -> Picture:
    """Returns the colours of the rows of a bar."""
    t = np.linspace(0, 1, h)[:, None, None]
    return np.rint(np.array(high) * (1 - t) + np.array(low) * t).astype(np.uint8)


@functools.lru_cache(32)
def veil(w: int, h: int) -> Sprite:
    """Returns a shadow that fades at both ends."""
    x = np.abs(np.linspace(-1, 1, w, dtype=np.float32))
    alpha = 0.5 * np.clip((1 - x) * 2.5, 0, 1)
    clear = np.rint(255 * (1 - alpha)).astype(np.uint8)
    return Sprite(np.zeros((h, w, 3), np.uint8), np.tile(clear[None, :, None], (h, 1, 3)))


@functools.lru_cache(32)
def pip(size: int, on: bool) -> Sprite:
    """Returns a skill point."""
    pen = Pen(size, size)
    diamond = [(0, -0.9), (0.66, 0), (0, 0.9), (-0.66, 0)]
    if on:
        pen.glow((0, 0), 1.0, GOLD, 0.6)
    pen.polygon(diamond, GOLD if on else PANEL, low=(226, 158, 78) if on else DARK)
    pen.line(diamond, WHITE if on else EDGE, 0.1, closed=True)
    return pen.finish()


@functools.lru_cache(64)
def dial(size: int, tone: Colour, ready: bool) -> Sprite:
    """Returns the ring of an ultimate, without its energy."""
    pen = Pen(size, size)
    if ready:
        pen.glow((0, 0), 1.0, GOLD, 0.9)
        pen.polygon(art.burst(12), GOLD, alpha=0.9)
    pen.ellipse((0, 0), (0.86, 0.86), DARK)
    pen.ellipse((0, 0), (0.8, 0.8), (48, 54, 82), width=0.16)
    pen.ellipse((0, 0), (0.66, 0.66), art.blend(GOLD if ready else tone, DARK, 0.78))
    return pen.finish()


@functools.lru_cache(32)
def brackets(w: int, h: int, tone: Colour) -> Sprite:
    """Returns the mark of what is selected."""
    pen = Pen(w, h)
    short = min(w, h)
    x, y = w / short * 0.96, h / short * 0.96
    for a in (-1, 1):
        for b in (-1, 1):
            corner = [(a * x, b * (y - 0.3)), (a * x, b * y), (a * (x - 0.3), b * y)]
            pen.line(corner, tone, 0.05)
    pen.polygon([(-0.1, -y), (0.1, -y), (0, -y + 0.14)], tone)
    return pen.finish()


@functools.lru_cache(16)
def alarm(size: int) -> Sprite:
    """Returns the warning around an enemy that prepares a heavy move."""
    pen = Pen(size, size)
    pen.glow((0, 0), 1.0, RED, 0.6)
    pen.ellipse((0, 0), (0.94, 0.94), RED, width=0.03)
    pen.polygon([(0, -0.98), (0.2, -0.64), (-0.2, -0.64)], RED)
    pen.line([(0, -0.88), (0, -0.76)], WHITE, 0.05)
    return pen.finish()


@functools.lru_cache(8)
def banner(w: int, h: int, tone: Colour) -> Sprite:
    """Returns a band of dark light across the screen."""
    rgba = np.zeros((h, w, 4), np.float32)
    x = np.abs(np.linspace(-1, 1, w, dtype=np.float32))
    rgba[..., :3] = art.blend(tone, DARK, 0.82)
    rgba[..., 3] = 235 * np.clip(1.15 - x, 0, 1)
    line = max(1, h // 90)
    for rows in (slice(0, line), slice(h - line, h)):
        rgba[rows, :, :3] = tone
        rgba[rows, :, 3] = 255 * np.clip(1 - x, 0, 1)
    return sprite(rgba)
