"""The textures of the blocks, drawn by rules: 16 x 16 texels each, the same on every machine.

A texel is ``opaque << 24 | red << 16 | green << 8 | blue``. Each tile is stored in five sizes, 16,
8, 4, 2 and 1 texels wide, one after another, so that a distant block is drawn with about as many
texels as it has pixels, and does not flicker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld import blocks as b
from bridges.blockworld.factors import BIOMES
from bridges.blockworld.tiles import TEXELS, Atlas, Picture, grain, plain

_ROW, _COLUMN = np.mgrid[0:TEXELS, 0:TEXELS]
# Grass and leaves have a different green in each biome, in the order of ``BIOMES``.
_GREENS = (
    (110, 170, 72),
    (92, 158, 62),
    (176, 168, 84),
    (96, 142, 96),
    (112, 156, 118),
    (170, 164, 78),
    (88, 112, 58),
    (116, 160, 92),
)


def _paint(tile: Picture, where: Any, colour: tuple[int, int, int]) -> Picture:
    """Returns the tile with one colour where the mask is set."""
    tile = tile.copy()
    tile[where] = (*colour, 1.0)
    return tile


def _cells(colour: tuple[int, int, int], dark: float, seed: int, points: int) -> Picture:
    """Returns rounded stones with dark joints: which of some points is nearest, and how much."""
    place = grain(seed).ravel()
    rows, columns = place[:points] * TEXELS, place[points : 2 * points] * TEXELS
    away = []
    for row, column in zip(rows, columns, strict=True):
        down = np.abs(_ROW - row)
        right = np.abs(_COLUMN - column)
        away.append(np.hypot(np.minimum(down, 16 - down), np.minimum(right, 16 - right)))
    order = np.sort(np.array(away), 0)
    nearest = np.argmin(np.array(away), 0)
    tile = plain(colour, seed + 7, 0.15)
    tile[..., :3] *= (0.8 + 0.4 * place[nearest + 40])[..., None]
    tile[..., :3] *= np.where(order[1] - order[0] < 1.3, dark, 1.0)[..., None]
    return tile


def _ore(colour: tuple[int, int, int], seed: int) -> Picture:
    tile = plain((126, 126, 126), 3, 0.18)
    for row, column in ((2, 3), (3, 10), (7, 6), (9, 12), (11, 2), (12, 8)):
        spot = (np.abs(_ROW - row) + np.abs(_COLUMN - column) <= 1) | (
            (row + 1 == _ROW) & (column + 1 == _COLUMN)
        )
        tile = _paint(tile, spot, colour)
        tile[row, column, :3] = np.minimum(np.array(colour) * 1.35 + 20, 255)
    tile[..., :3] *= (1.0 + 0.1 * (grain(seed) - 0.5))[..., None]
    return tile


def _log(
    bark: tuple[int, int, int], wood: tuple[int, int, int], seed: int
) -> tuple[Picture, Picture]:
    """Returns the bark and the rings of a log."""
    side = plain(bark, seed, 0.1)
    stripes = grain(seed + 3)[0]
    side[..., :3] *= (0.75 + 0.5 * stripes)[None, :, None]
    side[..., :3] *= np.where(grain(seed + 5) < 0.12, 0.7, 1.0)[..., None]
    rings = np.maximum(np.abs(_ROW - 7.5), np.abs(_COLUMN - 7.5))
    top = plain(wood, seed + 9, 0.1)
    top[..., :3] *= np.where(rings.astype(int) % 2 == 0, 0.82, 1.05)[..., None]
    top[rings > 6.6, :3] = np.array(bark) * 0.95
    return side, top


def _birch() -> Picture:
    tile = plain((216, 214, 205), 71, 0.08)
    for row, first, last in (
        (1, 2, 6),
        (4, 9, 13),
        (6, 0, 3),
        (9, 5, 10),
        (12, 11, 15),
        (14, 1, 4),
    ):
        tile[row, first:last, :3] = (52, 50, 46)
    return tile


def _leaves(colour: tuple[int, int, int], seed: int) -> Picture:
    tile = plain(colour, seed, 0.35)
    tile[..., :3] *= np.where(grain(seed + 2) < 0.3, 0.62, 1.0)[..., None]
    tile[..., :3] *= np.where(grain(seed + 4) > 0.88, 1.3, 1.0)[..., None]
    return tile


def _planks() -> Picture:
    tile = plain((168, 134, 82), 61, 0.12)
    tile[..., :3] *= (0.93 + 0.14 * grain(62)[:, :1].repeat(16, 1))[..., None]
    tile[3::4, :, :3] *= 0.68
    for row, column in ((0, 7), (4, 12), (8, 3), (12, 10)):
        tile[row : row + 3, column, :3] *= 0.72
    return tile


def _blank() -> Picture:
    return np.zeros((TEXELS, TEXELS, 4))


def _tall_grass(green: tuple[int, int, int]) -> Picture:
    tile = _blank()
    for n, start in enumerate((1, 3, 5, 7, 8, 10, 12, 14)):
        tall = 6 + int(9 * grain(91)[0, n])
        for step in range(tall):
            column = int(start + (step * (1.2 * grain(92)[0, n] - 0.6)) * 0.5)
            shade = 0.65 + 0.4 * step / tall
            tile[15 - step, column % 16] = (*(np.array(green) * shade), 1.0)
    return tile


def _flower() -> Picture:
    tile = _blank()
    tile[8:, 7:9] = (70, 130, 50, 1)
    tile[11, 5:7] = tile[12, 9:11] = (84, 150, 60, 1)
    bloom = np.hypot(_ROW - 5.5, _COLUMN - 7.5)
    tile = _paint(tile, bloom < 3.2, (216, 46, 44))
    return _paint(tile, bloom < 1.2, (246, 214, 70))


def _dead_bush() -> Picture:
    tile = _blank()
    for step in range(12):
        for column in (7, 7 - step // 2 - step // 4, 8 + step // 2 + step // 5):
            tile[15 - step, max(0, min(15, column))] = (134, 98, 52, 1)
    tile[6:9, 4] = tile[5:8, 11] = (110, 78, 40, 1)
    return tile


def _mushroom() -> Picture:
    tile = _blank()
    tile[10:, 7:9] = (226, 216, 200, 1)
    cap = (np.hypot((_ROW - 9.5) * 1.2, _COLUMN - 7.5) < 4.6) & (_ROW < 11)
    tile = _paint(tile, cap, (190, 40, 36))
    tile[7, 6] = tile[8, 9] = tile[9, 5] = (245, 240, 235, 1)
    return tile


def _torch() -> Picture:
    tile = _blank()
    tile[8:, 7:9] = (124, 92, 52, 1)
    tile[8:, 8] = (96, 70, 38, 1)
    tile[5:8, 6:10] = (255, 196, 60, 1)
    tile[6:8, 7:9] = (255, 244, 180, 1)
    tile[4, 7:9] = (255, 150, 40, 1)
    return tile


def _glass() -> Picture:
    tile = _blank()
    rim = (_ROW % 15 == 0) | (_COLUMN % 15 == 0)
    tile = _paint(tile, rim, (204, 226, 232))
    streak = ((_ROW + _COLUMN == 8) & (_ROW > 2) & (_ROW < 6)) | (
        (_ROW + _COLUMN == 20) & (_ROW > 8) & (_ROW < 12)
    )
    return _paint(tile, streak, (232, 244, 248))


def _grass_side(green: tuple[int, int, int]) -> Picture:
    tile, turf = plain((134, 96, 67), 11, 0.28), plain(green, 21, 0.3)
    deep = 2 + (grain(31)[0] * 3).astype(int)
    where = deep[None, :] >= _ROW
    tile[where] = turf[where]
    return tile


def _table_top() -> Picture:
    tile = _planks()
    tile = _paint(tile, (_ROW % 15 == 0) | (_COLUMN % 15 == 0), (92, 62, 34))
    return _paint(
        tile, ((_ROW == 5) | (_ROW == 10) | (_COLUMN == 5) | (_COLUMN == 10)), (108, 76, 42)
    )


def _table_side() -> Picture:
    tile = _planks()
    tile[0:3, :, :3] *= 0.62
    tile = _paint(tile, ((_COLUMN == 3) & (_ROW > 4) & (_ROW < 12)), (90, 60, 34))
    tile = _paint(tile, ((_ROW == 5) & (_COLUMN > 1) & (_COLUMN < 6)), (190, 190, 196))
    tile = _paint(tile, ((_ROW - 5 == _COLUMN - 9) & (_ROW > 4) & (_ROW < 12)), (176, 176, 182))
    return _paint(tile, ((_COLUMN % 15 == 0) | (_ROW == 15)), (96, 68, 38))


def _furnace(colour: tuple[int, int, int], *, lit: bool) -> Picture:
    tile = _cells(colour, 0.72, 41, 9)
    mouth = (_ROW >= 8) & (_ROW < 14) & (_COLUMN > 2) & (_COLUMN < 13)
    tile = _paint(tile, (_ROW >= 7) & (_ROW < 15) & (_COLUMN > 1) & (_COLUMN < 14), (92, 92, 92))
    tile = _paint(tile, mouth, (30, 28, 28))
    tile = _paint(tile, (_ROW == 3) & (_COLUMN > 3) & (_COLUMN < 12), (40, 40, 40))
    if lit:
        flame = mouth & (13 - 5 * grain(43)[0][None, :] < _ROW)
        tile = _paint(tile, flame, (255, 140, 30))
        tile = _paint(tile, mouth & (13 - 3 * grain(43)[0][None, :] < _ROW), (255, 224, 90))
    return tile


def _chest(*, top: bool) -> Picture:
    tile = plain((162, 112, 46), 51, 0.14)
    tile = _paint(tile, (_ROW % 15 == 0) | (_COLUMN % 15 == 0), (74, 50, 22))
    if not top:
        tile = _paint(tile, _ROW == 5, (60, 40, 18))
        tile = _paint(
            tile, (_ROW > 3) & (_ROW < 9) & (_COLUMN > 6) & (_COLUMN < 9), (200, 200, 206)
        )
    return tile


def _bed(*, top: bool) -> Picture:
    tile = plain((176, 34, 34), 55, 0.14)
    if top:
        tile = _paint(
            tile, (_ROW < 6) & (_ROW > 0) & (_COLUMN > 1) & (_COLUMN < 14), (236, 236, 236)
        )
        return _paint(tile, _ROW == 6, (140, 24, 24))
    tile = _paint(tile, _ROW >= 11, (150, 116, 68))
    return _paint(tile, (_ROW >= 13) & (_COLUMN > 2) & (_COLUMN < 13), (70, 52, 30))


def _pumpkin() -> Picture:
    tile = plain((210, 122, 26), 57, 0.14)
    tile[:, ::4, :3] *= 0.78
    eyes = (_ROW > 3) & (_ROW < 7) & ((np.abs(_COLUMN - 4) < 2) | (np.abs(_COLUMN - 11) < 2))
    tile = _paint(tile, eyes, (54, 30, 8))
    return _paint(
        tile,
        (_ROW > 9)
        & (_ROW < 13)
        & (_COLUMN > 2)
        & (_COLUMN < 13)
        & ((_COLUMN % 4 > 0) | (_ROW > 10)),
        (54, 30, 8),
    )


def _bookshelf() -> Picture:
    tile = _planks()
    for shelf in (1, 9):
        for column in range(1, 15):
            tone = grain(58)[shelf, column // 2]
            colour = ((140, 46, 40), (46, 84, 140), (60, 120, 60), (150, 120, 60))[int(tone * 4)]
            tile[shelf : shelf + 6, column] = (*(np.array(colour) * (1 - 0.3 * (column % 2))), 1)
    return tile


def _hay(*, top: bool) -> Picture:
    tile = plain((196, 164, 46), 59, 0.3)
    if not top:
        tile[:, ::3, :3] *= 0.82
        tile = _paint(tile, (_ROW % 11 == 3) | (_ROW % 11 == 4), (150, 60, 40))
    return tile


def _cactus() -> Picture:
    tile = plain((84, 140, 56), 65, 0.14)
    tile[:, ::4, :3] *= 0.7
    return _paint(tile, (_COLUMN % 4 == 2) & (_ROW % 4 == 1), (226, 228, 190))


def _lava() -> Picture:
    tile = plain((226, 96, 18), 67, 0.2)
    wave = np.sin(_ROW * 0.9 + 2.0 * np.sin(_COLUMN * 0.5)) + grain(68) - 0.5
    return _paint(_paint(tile, wave > 0.7, (255, 206, 70)), wave < -0.9, (176, 48, 10))


def _banded(base: tuple[int, int, int]) -> Picture:
    tile = plain(base, 69, 0.1)
    tile[0:2, :, :3] *= 1.08
    tile[5, :, :3] *= 0.86
    tile[11:13, :, :3] *= 0.9
    tile[15, :, :3] *= 0.8
    return tile


def _build() -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Draws all tiles; returns them and each block's tiles on its top, sides and bottom."""
    atlas = Atlas()
    faces = np.zeros((len(BIOMES), b.MAX_BLOCKS, 3), np.int32)

    def put(
        block: int, side: Picture, top: Picture | None = None, bottom: Picture | None = None
    ) -> None:
        at = atlas.add(side)
        above = at if top is None else atlas.add(top)
        below = above if bottom is None else atlas.add(bottom)
        faces[:, block] = above, at, below

    for block, tile in _simple().items():
        put(block, tile)
    put(b.SANDSTONE, _banded((216, 202, 152)), plain((222, 210, 160), 14, 0.08))
    put(b.OAK_LOG, *_log((104, 82, 50), (176, 142, 88), 101))
    put(b.BIRCH_LOG, _birch(), _log((206, 202, 190), (196, 178, 124), 111)[1])
    put(b.SPRUCE_LOG, *_log((62, 42, 24), (130, 98, 58), 121))
    put(b.ACACIA_LOG, *_log((106, 98, 88), (170, 92, 50), 131))
    put(b.CACTUS, _cactus(), plain((104, 160, 72), 66, 0.12))
    put(b.CRAFTING_TABLE, _table_side(), _table_top(), _planks())
    stone_top = _cells((124, 124, 124), 0.8, 44, 7)
    put(b.FURNACE, _furnace((124, 124, 124), lit=False), stone_top)
    put(b.LIT_FURNACE, _furnace((124, 124, 124), lit=True), stone_top)
    put(b.CHEST, _chest(top=False), _chest(top=True))
    put(b.BED, _bed(top=False), _bed(top=True))
    put(b.PUMPKIN, _pumpkin(), plain((192, 116, 34), 58, 0.2))
    put(b.BOOKSHELF, _bookshelf(), _planks())
    put(b.HAY_BALE, _hay(top=False), _hay(top=True))
    dirt = atlas.add(plain((134, 96, 67), 11, 0.28))
    for biome, green in enumerate(_GREENS):
        darker = (int(green[0] * 0.62), int(green[1] * 0.72), int(green[2] * 0.55))
        faces[biome, b.GRASS_BLOCK] = (
            atlas.add(plain(green, 21, 0.3)),
            atlas.add(_grass_side(green)),
            dirt,
        )
        faces[biome, b.TALL_GRASS] = atlas.add(_tall_grass(green))
        faces[biome, b.OAK_LEAVES] = atlas.add(_leaves(darker, 81))
    return np.concatenate(atlas.tiles), faces.reshape(-1)


def _simple() -> dict[int, Picture]:
    """Tiles of the blocks with the same look on all sides."""
    return {
        b.AIR: _blank(),
        b.BEDROCK: _cells((70, 70, 70), 0.5, 5, 12),
        b.STONE: plain((126, 126, 126), 3, 0.18),
        b.DIRT: plain((134, 96, 67), 11, 0.28),
        b.SAND: plain((219, 207, 160), 13, 0.12),
        b.GRAVEL: _cells((136, 128, 124), 0.8, 15, 20),
        b.SNOW_BLOCK: plain((242, 248, 250), 17, 0.05),
        b.TERRACOTTA: _banded((160, 90, 62)),
        b.COBBLESTONE: _cells((132, 132, 132), 0.55, 45, 11),
        b.OAK_PLANKS: _planks(),
        b.BIRCH_LEAVES: _leaves((106, 138, 70), 83),
        b.SPRUCE_LEAVES: _leaves((54, 84, 54), 85),
        b.ACACIA_LEAVES: _leaves((112, 134, 44), 87),
        b.WATER: plain((52, 96, 212), 89, 0.18),
        b.LAVA: _lava(),
        b.ICE: _paint(
            plain((160, 194, 244), 18, 0.06), (_ROW + 2 * _COLUMN) % 13 == 0, (198, 220, 250)
        ),
        b.COAL_ORE: _ore((38, 38, 40), 151),
        b.IRON_ORE: _ore((214, 172, 144), 153),
        b.GOLD_ORE: _ore((246, 208, 62), 155),
        b.DIAMOND_ORE: _ore((86, 226, 222), 157),
        b.TORCH: _torch(),
        b.GLASS: _glass(),
        b.WOOL: plain((232, 234, 234), 19, 0.12),
        b.FLOWER: _flower(),
        b.DEAD_BUSH: _dead_bush(),
        b.MUSHROOM: _mushroom(),
        b.CLAY: plain((158, 164, 176), 20, 0.08),
        b.MOSSY_COBBLESTONE: _mossy(),
        b.OBSIDIAN: _paint(plain((26, 18, 40), 23, 0.5), grain(24) > 0.9, (66, 46, 96)),
    }


def _mossy() -> Picture:
    tile = _cells((128, 130, 128), 0.55, 45, 11)
    moss = grain(46)[::2, ::2].repeat(2, 0).repeat(2, 1) < 0.42
    tile[moss, :3] = tile[moss, :3] * 0.5 + np.array((64, 104, 40)) * 0.55
    return tile


TILES, FACES = _build()
"""All texels, and the tile of a block's face by ``(biome * MAX_BLOCKS + block) * 3 + face``, where
face 0 is the top, 1 a side and 2 the bottom."""

CRACKS = np.argsort(
    np.argsort(
        (
            np.abs(_ROW - 7.5 + 3 * np.sin(_COLUMN * 1.3))
            * np.abs(_COLUMN - 7.5 + 3 * np.sin(_ROW * 1.1))
            + 12 * grain(161)
        ).ravel()
    )
).astype(np.int32)
"""Order in which the texels of a block that is being broken become dark, 0 to 255."""
