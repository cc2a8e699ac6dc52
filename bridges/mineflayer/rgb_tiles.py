"""Textures, drawn by rules: 16 x 16 texels, the same on every machine.

A texel is ``tinted << 25 | there << 24 | red << 16 | green << 8 | blue``; tinted ones take the
colour of the biome. Each tile is stored in five sizes, one after another, the smaller ones for
distant blocks. No picture of the game is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

Tile = NDArray[np.float64]
"""``(16, 16, 5)``: red, green, blue, 0 to 255; 1 where not transparent; 1 where tinted."""
Colour = tuple[int, int, int]

SIDE = 16
LEVELS = np.array([0, 256, 320, 336, 340], np.int64)
"""Offset of each size within a tile."""
TEXELS = 341
"""Number of texels of a tile in all its sizes."""
ROW, COLUMN = np.mgrid[0:SIDE, 0:SIDE]


def grain(seed: int) -> NDArray[np.float64]:
    """Returns ``(16, 16)`` numbers in [0, 1): a hash of the seed and the position."""
    at = np.arange(SIDE * SIDE, dtype=np.uint64) + np.uint64((seed * 2654435761) & 0xFFFFFFFF)
    for factor in (0x7FEB352D, 0x846CA68B):
        at = ((at ^ (at >> np.uint64(16))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return ((at ^ (at >> np.uint64(16))).astype(np.float64) / 2.0**32).reshape(SIDE, SIDE)


def empty() -> Tile:
    """Returns a transparent tile."""
    return np.zeros((SIDE, SIDE, 5))


def plain(colour: Colour, seed: int, rough: float = 0.16, *, tinted: bool = False) -> Tile:
    """Returns a tile of one colour with noise; ``rough`` is the range of its brightness."""
    tile = empty()
    fine, coarse = grain(seed), grain(seed + 1)[::2, ::2].repeat(2, 0).repeat(2, 1)
    tile[..., :3] = np.array(colour) * (1 + rough * (fine + 0.6 * coarse - 0.8))[..., None]
    tile[..., 3] = 1
    tile[..., 4] = tinted
    return tile


def paint(tile: Tile, where: NDArray[np.bool_], colour: Colour) -> Tile:
    """Returns a copy with one colour, untinted, where the mask is set."""
    tile = tile.copy()
    tile[where] = (*colour, 1, 0)
    return tile


def dim(tile: Tile, where: NDArray[np.bool_], factor: float) -> Tile:
    """Returns a copy that is darker or lighter where the mask is set."""
    tile = tile.copy()
    tile[where, :3] *= factor
    return tile


def stones(colour: Colour, seed: int, points: int = 11, joint: float = 0.62) -> Tile:
    """Returns rounded stones with dark joints: cobblestone, gravel."""
    place = grain(seed).ravel()
    rows, columns = place[:points] * SIDE, place[points : 2 * points] * SIDE
    down = np.abs(ROW[..., None] - rows)
    right = np.abs(COLUMN[..., None] - columns)
    away = np.hypot(np.minimum(down, SIDE - down), np.minimum(right, SIDE - right))
    order = np.sort(away, -1)
    tile = plain(colour, seed + 7, 0.12)
    tile[..., :3] *= (0.84 + 0.32 * place[np.argmin(away, -1) + 40])[..., None]
    return dim(tile, order[..., 1] - order[..., 0] < 1.2, joint)


def ore(base: Colour, gem: Colour, seed: int) -> Tile:
    """Returns rock with spots of another colour."""
    tile = plain(base, 3, 0.18)
    for row, column in ((2, 3), (3, 10), (7, 6), (9, 12), (11, 2), (12, 8)):
        near = np.abs(ROW - row) + np.abs(COLUMN - column) <= 1
        tile = paint(tile, near | ((row + 1 == ROW) & (column + 1 == COLUMN)), gem)
        tile[row, column, :3] = np.minimum(np.array(gem) * 1.3 + 16, 255)
    tile[..., :3] *= (0.94 + 0.12 * grain(seed))[..., None]
    return tile


def planks(colour: Colour, seed: int) -> Tile:
    """Returns four boards with dark joints."""
    tile = plain(colour, seed, 0.1)
    tile[..., :3] *= (0.92 + 0.16 * grain(seed + 2)[:, :1])[:, :, None]
    tile = dim(tile, ROW % 4 == 3, 0.7)
    ends = (((COLUMN + ROW // 4 * 7) % 16) == 3) & (ROW % 4 != 3)
    return dim(tile, ends, 0.76)


def bricks(colour: Colour, mortar: Colour, seed: int, tall: int = 4) -> Tile:
    """Returns bricks in a bond."""
    joint = (ROW % tall == tall - 1) | ((COLUMN + (ROW // tall % 2) * 4) % 8 == 7)
    return paint(plain(colour, seed, 0.16), joint, mortar)


def bark(colour: Colour, seed: int) -> Tile:
    """Returns vertical stripes."""
    tile = plain(colour, seed, 0.1)
    tile[..., :3] *= (0.78 + 0.44 * grain(seed + 3)[0])[None, :, None]
    return dim(tile, grain(seed + 5) < 0.1, 0.72)


def birch_bark(colour: Colour, seed: int) -> Tile:
    """Returns light bark with short dark marks."""
    tile = plain(colour, seed, 0.08)
    marks = (grain(seed + 3)[:, ::4].repeat(4, 1) < 0.16) & (ROW % 2 == 0)
    return paint(tile, marks, (58, 54, 48))


def rings(wood: Colour, edge: Colour, seed: int) -> Tile:
    """Returns the cut of a log."""
    away = np.maximum(np.abs(ROW - 7.5), np.abs(COLUMN - 7.5))
    tile = dim(plain(wood, seed, 0.08), away.astype(int) % 2 == 0, 0.84)
    return paint(tile, away > 6.6, edge)


def leaves(colour: Colour, seed: int, *, tinted: bool = False, holes: float = 0.2) -> Tile:
    """Returns leaves with transparent holes."""
    tile = plain(colour, seed, 0.3, tinted=tinted)
    tile = dim(tile, grain(seed + 2) < 0.3, 0.68)
    tile = dim(tile, grain(seed + 4) > 0.86, 1.25)
    tile[grain(seed + 6) < holes] = 0
    return tile


def glass(colour: Colour) -> Tile:
    """Returns a pane of glass: a rim and two streaks."""
    rim = (ROW % 15 == 0) | (COLUMN % 15 == 0)
    streak = ((ROW + COLUMN == 8) & (ROW > 2) & (ROW < 6)) | (
        (ROW + COLUMN == 20) & (ROW > 8) & (ROW < 12)
    )
    return paint(paint(empty(), rim, colour), streak, (236, 246, 250))


def framed(tile: Tile, colour: Colour) -> Tile:
    """Returns a copy with a rim."""
    return paint(tile, (ROW % 15 == 0) | (COLUMN % 15 == 0), colour)


def turf(side: Tile, top: Tile, seed: int, deepest: int = 3) -> Tile:
    """Returns a side with a ragged strip of another tile along its upper edge."""
    tile = side.copy()
    where = 2 + (grain(seed)[0] * deepest).astype(int)[None, :] > ROW
    tile[where] = top[where]
    return tile


def blades(colour: Colour, seed: int, tall: int = 12, *, tinted: bool = True) -> Tile:
    """Returns stalks of grass or grain."""
    tile = empty()
    lean, length = grain(seed)[0], grain(seed + 1)[0]
    for n, start in enumerate((1, 3, 5, 6, 8, 10, 11, 13, 14)):
        top = max(2, int(tall * (0.55 + 0.45 * length[n])))
        for step in range(top):
            column = int(start + step * (lean[n] - 0.5) * 0.5) % SIDE
            shade = 0.62 + 0.42 * step / top
            tile[15 - step, column] = (*(np.array(colour) * shade), 1, tinted)
    return tile


def flower(petal: Colour, heart: Colour, seed: int, *, high: int = 6) -> Tile:
    """Returns a stalk with a flower."""
    tile = empty()
    tile[high:, 7] = (62, 122, 44, 1, 0)
    tile[11, 5:7] = tile[12, 8:10] = (80, 148, 58, 1, 0)
    bloom = np.hypot(ROW - high, COLUMN - 7.3 - (seed % 3 - 1) * 0.4)
    return paint(paint(tile, bloom < 3.1, petal), bloom < 1.2, heart)


def bush(colour: Colour, seed: int) -> Tile:
    """Returns bare twigs."""
    tile = empty()
    for step in range(11):
        spread = step // 2 + int(grain(seed)[0, step] * 2)
        for column in (7, 7 - spread, 8 + spread, 8 - spread // 2):
            tile[15 - step, min(max(column, 0), 15)] = (*colour, 1, 0)
    return tile


def mushroom(cap: Colour, seed: int) -> Tile:
    """Returns a mushroom: a stalk with a cap."""
    tile = empty()
    tile[10:, 7:9] = (224, 214, 198, 1, 0)
    tile = paint(tile, (np.hypot((ROW - 9.5) * 1.2, COLUMN - 7.5) < 4.4) & (ROW < 11), cap)
    return (
        tile
        if seed % 2
        else paint(
            tile, (ROW == 8) & (COLUMN % 3 == 0) & tile[..., 3].astype(bool), (240, 236, 230)
        )
    )


def torch(flame: Colour, seed: int) -> Tile:
    """Returns a torch; also used for a box that is two texels wide."""
    tile = plain((118, 88, 50), seed, 0.2)
    return paint(paint(tile, ROW < 8, flame), (ROW >= 2) & (ROW < 5), (255, 244, 190))


def hexed(digits: str) -> Colour:
    """Returns the colour of six hexadecimal digits."""
    return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16))


def shade(colour: Colour, factor: float) -> Colour:
    """Returns a darker (factor below 1) or lighter colour."""
    red, green, blue = (min(int(part * factor), 255) for part in colour)
    return red, green, blue


def drawn(strokes: Iterable[str], main: Colour, on: Tile) -> Tile:
    """Returns a copy of a tile with strokes on it.

    A stroke is a form, its numbers in texels and a colour: ``line X Y X Y WIDTH``, ``disc X Y
    RADIUS``, ``box X Y X Y`` with both corners, ``rim``; ``main``, ``light``, ``dark``, six
    digits, or ``0`` for transparent. See ``drawings.yaml``.
    """
    tile = on.copy()
    colours = {"main": main, "light": shade(main, 1.35), "dark": shade(main, 0.62)}
    for stroke in strokes:
        form, *numbers, name = stroke.split()
        x, y, *more = map(float, numbers or (0, 0))
        if form == "rim":
            where = (ROW % 15 == 0) | (COLUMN % 15 == 0)
        elif form == "line":
            run, fall = more[0] - x, more[1] - y
            along = ((COLUMN - x) * run + (ROW - y) * fall) / (run * run + fall * fall)
            along = np.clip(along, 0.0, 1.0)
            where = np.hypot(COLUMN - x - along * run, ROW - y - along * fall) <= more[2] / 2
        elif form == "disc":
            where = np.hypot(COLUMN - x, ROW - y) <= more[0]
        else:
            where = (x <= COLUMN) & (more[0] >= COLUMN) & (y <= ROW) & (more[1] >= ROW)
        tile = paint(tile, where, colours.get(name) or hexed(name if name != "0" else "000000"))
        if name == "0":
            tile[where] = 0
    return tile


def rimmed(tile: Tile) -> Tile:
    """Returns a copy whose outermost texels are darker."""
    there = np.pad(tile[..., 3] > 0, 1)
    inside = there[:-2, 1:-1] & there[2:, 1:-1] & there[1:-1, :-2] & there[1:-1, 2:]
    return dim(tile, (tile[..., 3] > 0) & ~inside, 0.62)


def shrunk(tile: Tile) -> Tile:
    """Returns a tile at half its size; a texel is opaque if two of four are."""
    half = tile.shape[0] // 2
    four = tile.reshape(half, 2, half, 2, 5).transpose(0, 2, 1, 3, 4).reshape(half, half, 4, 5)
    there = four[..., 3:4].sum(2)
    mean = (four * four[..., 3:4]).sum(2) / np.maximum(there, 1)
    mean[..., 3:4] = there >= 1.5
    return np.asarray(mean, np.float64)


def packed(tile: Tile) -> NDArray[np.int32]:
    """Returns a tile in all its sizes, ``(TEXELS,)``."""
    parts = []
    while True:
        whole = np.clip(np.rint(tile[..., :3]), 0, 255).astype(np.int32)
        flags = (tile[..., 3] > 0.5) * 1 + (tile[..., 4] > 0.5) * 2
        texels = flags.astype(np.int32) << 24
        for n in range(3):
            texels |= whole[..., n] << (16 - 8 * n)
        parts.append(texels.ravel())
        if tile.shape[0] == 1:
            return np.concatenate(parts)
        tile = shrunk(tile)


Painter = Callable[[], Tile]
