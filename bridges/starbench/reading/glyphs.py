"""Reads the renderer's own texts and bars: fast, exact, and for our own screen only."""

from __future__ import annotations

import functools
import re
import string

import cv2
import numpy as np
from numpy.typing import NDArray

from bridges.starbench.pictures.art import DARK
from bridges.starbench.pictures.layout import Box
from bridges.starbench.pictures.sprites import Picture, glyph

NUMBERS = "0123456789"
LETTERS = string.ascii_letters + string.digits + " '.,:;/%()+-"
_FAINT = 30  # the least range of brightness of a text
_WORST = 0.3  # of the brightness of a text, the part that glyphs may leave unexplained
_LIT = 96  # brightness that a filled part of a bar has at least

Plane = NDArray[np.float32]


def crop(picture: Picture, box: Box) -> Picture:
    """Returns the part of a picture in a box; what leaves the picture is black."""
    x, y, w, h = box
    height, width = picture.shape[:2]
    left, top, right, bottom = max(0, x), max(0, y), min(width, x + w), min(height, y + h)
    if (left, top, right, bottom) == (x, y, x + w, y + h):
        return picture[y : y + h, x : x + w]
    out = np.zeros((h, w, 3), np.uint8)
    if left < right and top < bottom:
        out[top - y : bottom - y, left - x : right - x] = picture[top:bottom, left:right]
    return out


@functools.lru_cache(256)
def _alphabet(characters: str, size: int, bold: bool) -> tuple[tuple[str, Plane, float], ...]:
    """Returns each character with its opacity, 0 to 1, and the sum of its squares."""
    found = []
    for each in characters:
        mask: Plane = (glyph(each, size, bold=bold) / np.float32(255)).astype(np.float32)
        found.append((each, mask, float((mask * mask).sum())))
    return tuple(found)


def read_text(
    part: Picture, size: int, *, bold: bool, characters: str = LETTERS, slack: int = 0
) -> str:
    """Returns the text in a crop; empty if there is none.

    A text is a row of glyphs of whole pixels, so the sequence of glyphs that differs least from
    the crop is found exactly, by dynamic programming over columns.

    Args:
        part: the crop of a box.
        size: of the text in pixels, as in the map.
        bold: as in the map.
        characters: that may occur.
        slack: pixels by which the text may be higher or lower than the middle of the box.
    """
    light = part.max(axis=2)
    return _text(light.tobytes(), light.shape[1], size, bold, characters, slack)


@functools.lru_cache(1024)  # most texts of a screen are those of the screen before
def _text(light_of: bytes, width: int, size: int, bold: bool, characters: str, slack: int) -> str:
    """Returns the text in the brightness of a crop, row by row."""
    light = np.frombuffer(light_of, np.uint8).reshape(-1, width).astype(np.float32)
    few = max(2, size // 3)  # a lone digit has few bright pixels
    low, high = float(np.median(light)), float(np.partition(light, -few, axis=None)[-few])
    if high - low < _FAINT:
        return ""
    ink = np.clip((light - low) / (high - low), 0, 1)
    tall = _alphabet(characters, size, bold)[0][1].shape[0]
    middle = (light.shape[0] - tall) // 2
    best = (np.inf, "")
    for shift in range(-slack, slack + 1):
        best = min(best, _decode(_rows(ink, middle + shift, tall), characters, size, bold))
    # What is far from the rest is scenery.
    return max(re.split(r"\s{3,}", best[1].strip()), key=len)


def _rows(ink: Plane, top: int, tall: int) -> Plane:
    """Returns ``tall`` rows from ``top``, with empty ones where the crop ends."""
    out = np.zeros((tall, ink.shape[1]), np.float32)
    begin, end = max(0, top), min(ink.shape[0], top + tall)
    if begin < end:
        out[begin - top : end - top] = ink[begin:end]
    return out


def _decode(strip: Plane, characters: str, size: int, bold: bool) -> tuple[float, str]:
    """Returns the least squared difference of any row of glyphs, and that row if it fits."""
    width = strip.shape[1]
    empty = (strip * strip).sum(axis=0)
    before = np.concatenate([[0.0], np.cumsum(empty)])
    columns = np.flatnonzero(empty > 0.05)
    if not len(columns):
        return 0.0, ""
    first, last = max(0, int(columns[0]) - size // 4), int(columns[-1]) + 1
    part = strip[:, first : min(width, last + size)]
    fits: dict[int, tuple[Plane, Plane]] = {}  # of each width: the least cost, and whose it is
    for k, (_, mask, weight) in enumerate(_alphabet(characters, size, bold)):
        wide = mask.shape[1]
        if wide > part.shape[1]:
            continue
        match = cv2.matchTemplate(part, mask, cv2.TM_CCORR)[0]
        own = before[first + wide : first + wide + len(match)] - before[first : first + len(match)]
        cost = (own - 2 * match + weight).astype(np.float32)
        if wide in fits:
            least, who = fits[wide]
            better = cost < least
            least[better], who[better] = cost[better], k
        else:
            fits[wide] = cost, np.full(len(cost), k, np.float32)
    choices = [(wide, cost.tolist(), who) for wide, (cost, who) in fits.items()]
    n = part.shape[1]
    total = float(before[-1])
    costs = [float(before[first + x]) for x in range(n + 1)]  # of a text that begins at x
    came: list[tuple[int, int] | None] = [None] * (n + 1)  # where a glyph began, and which
    for x in range(n):
        here = costs[x]
        for wide, cost, who in choices:
            if x < len(cost) and here + cost[x] < costs[x + wide] - 1e-6:
                costs[x + wide] = here + cost[x]
                came[x + wide] = (x, int(who[x]))
    ends = [costs[x] + total - float(before[first + x]) for x in range(n + 1)]
    at = int(np.argmin(ends))
    found, best, end = [], ends[at], at
    while (step := came[at]) is not None:
        at, which = step
        found.append(characters[which])
    inside = costs[end] - costs[at]
    if inside > _WORST * float(before[first + end] - before[first + at]):  # scenery
        return best, ""
    return best, "".join(reversed(found))


def read_bar(picture: Picture, box: Box) -> float:
    """Returns the filled share of a bar, 0 to 1, exact to a pixel of its width."""
    row = crop(picture, box)[box.h // 2].max(axis=1)
    return float((row > _LIT).sum()) / box.w


def snap(picture: Picture, box: Box, edge: int, reach: int) -> tuple[int, int]:
    """Returns by how many pixels a bar is off its expected box, found by its dark outline.

    Args:
        picture: the screen.
        box: where the bar is expected.
        edge: width of its outline in pixels.
        reach: the farthest it may be off.
    """
    pad = edge + reach
    around = Box(box.x - pad, box.y - pad, box.w + 2 * pad, box.h + 2 * pad)
    off = np.abs(crop(picture, around).astype(np.int16) - np.array(DARK, np.int16))
    dark = (off.max(axis=2) <= 3).astype(np.float32)
    outline = np.ones((box.h + 2 * edge, box.w + 2 * edge), np.float32)
    outline[edge:-edge, edge:-edge] = -1
    found = cv2.matchTemplate(dark, outline, cv2.TM_CCORR)
    y, x = np.unravel_index(int(np.argmax(found)), found.shape)
    return int(x) - reach, int(y) - reach
