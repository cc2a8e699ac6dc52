"""The icons of the items: ``data/icons.png``; for a block, a small cube made of its tiles."""

from __future__ import annotations

from bridges.atlas import SIDE, TEXELS, read_tiles
from bridges.blockworld.blocks import FORM, MAX_BLOCKS, PLANT
from bridges.blockworld.compiled import fast_inner
from bridges.blockworld.items import MAX_ITEMS
from bridges.blockworld.textures import DATA, FACES, TILES

ICONS = read_tiles(DATA / "icons.png", SIDE, SIDE).reshape(-1)
assert len(ICONS) == (MAX_ITEMS - MAX_BLOCKS) * SIDE * SIDE
"""Texels of the items that are not blocks, by ``(item - MAX_BLOCKS) * 256 + row * 16 + column``."""


@fast_inner
def shaded(texel: int, share: int) -> int:
    """Returns a texel with its brightness times so many 256ths."""
    red, green, blue = (texel >> 16) & 255, (texel >> 8) & 255, texel & 255
    return (
        (texel & (1 << 24))
        | ((red * share >> 8) << 16)
        | ((green * share >> 8) << 8)
        | (blue * share >> 8)
    )


@fast_inner
def icon_texel(item: int, u: float, v: float) -> int:
    """Returns the texel of an item's icon at a position in [0, 1) x [0, 1); 0 where it is empty."""
    if item >= MAX_BLOCKS:
        return int(ICONS[(item - MAX_BLOCKS) * 256 + int(v * 16.0) * 16 + int(u * 16.0)])
    if FORM[item] == PLANT:
        return int(TILES[FACES[item * 3 + 1] * TEXELS + int(v * 16.0) * 16 + int(u * 16.0)])
    x = u - 0.5
    right, left = 2.0 * v + x, 2.0 * v - x
    if 0.0 <= right < 1.0 and 0.0 <= left < 1.0:
        at = int(left * 16.0) * 16 + int(right * 16.0)
        return int(TILES[FACES[item * 3] * TEXELS + at])
    across = 2.0 * x + 1.0 if x < 0.0 else 2.0 * x
    edge = 0.25 + 0.25 * across if x < 0.0 else 0.5 - 0.25 * across
    down = (v - edge) * 2.0
    if not 0.0 <= down < 1.0:
        return 0
    at = int(down * 16.0) * 16 + int(across * 16.0)
    return shaded(int(TILES[FACES[item * 3 + 1] * TEXELS + at]), 200 if x < 0.0 else 150)
