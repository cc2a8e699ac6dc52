"""Textures of blocks, icons of items and boxes of creatures; see ``bridges.atlas``.

A creature's box, in ``data/bodies.yaml``, is given from the middle of its feet, before rotation:
``x`` to its right, ``y`` up, ``z`` ahead. Its front has a picture of its own; all other faces share
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import SIDE, TEXELS, Atlas, read_tiles
from bridges.blockworld.compiled import fast_inner
from bridges.blockworld.rules.blocks import BLOCKS, DATA, FORM, MAX_BLOCKS, PLANT
from bridges.blockworld.rules.factors import BIOMES
from bridges.blockworld.rules.items import MAX_ITEMS
from bridges.blockworld.rules.species import COATS, NAMES
from rollout.yaml12 import load_yaml

_ATLAS = Atlas(DATA / "textures.png")


def _faces() -> NDArray[np.int32]:
    """Returns the tiles on the top, the sides and the bottom of each block in each biome."""
    faces = np.zeros((len(BIOMES), MAX_BLOCKS, 3), np.int32)
    for n, biome in enumerate(BIOMES):
        for number, block in enumerate(BLOCKS):
            tiles = _ATLAS.faces(block.name, {"biome": biome})
            assert tiles is not None, block.name
            side, top, bottom = tiles
            faces[n, number] = top, side, bottom
    return faces.reshape(-1)


TILES = _ATLAS.tiles.reshape(-1)
"""All texels, in all sizes of the tiles."""

FACES = _faces()
"""The tile of a block's face by ``(biome * MAX_BLOCKS + block) * 3 + face``, where face 0 is the
top, 1 a side and 2 the bottom."""

CRACKS = read_tiles(DATA / "cracks.png", SIDE, SIDE).reshape(-1) & 255
"""Order in which the texels of a block that is being broken become dark, 0 to 255."""


# icons --------------------------------------------------------------------------------------------

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


# creatures ----------------------------------------------------------------------------------------

_BODIES: Mapping[str, Any] = load_yaml(DATA / "bodies.yaml", ours=True)
_SKIN = {name: number for number, name in enumerate(_BODIES["skins"])}
"""Number of each skin in ``data/skins.png``, row by row."""
SKINS = read_tiles(DATA / "skins.png", 8, 8).reshape(-1) & 0xFFFFFF
"""Texels ``red << 16 | green << 8 | blue``, by ``skin * 64 + row * 8 + column``."""
assert len(SKINS) == 64 * len(_SKIN)

COAT_COLOURS = np.array([_BODIES["coats"][coat] for coat in COATS], np.float64) / 240.0
"""Reflectance of the wool of each coat, in the order of ``COATS``."""

_BOXES = [[], *(_BODIES["bodies"][name] for name in (*NAMES, "arrow"))]
ARROW = len(_BOXES) - 1
"""Number of the arrow, after those of the species."""

BOX_FIRST = np.cumsum([0, *(len(boxes) for boxes in _BOXES)]).astype(np.int64)
"""First box of each species; the next one's is where they end."""
BOX_SIZES = np.array([b[:6] for boxes in _BOXES for b in boxes], np.float64) / 16.0
"""``(boxes, 6)``: least x, y, z and greatest x, y, z of each box, in blocks."""
BOX_LOOKS = np.array(
    [(_SKIN[b[6]], _SKIN[b[7]], b[8], b[9]) for boxes in _BOXES for b in boxes], np.int64
)
"""``(boxes, 4)``: skin, skin of the front, swing, whether it has the coat's colour."""
BOX_REACH = np.array(
    [
        np.abs(np.array([b[:6] for b in boxes] or [(0.0,) * 6])[:, [0, 2, 3, 5]]).max()
        for boxes in _BOXES
    ]
) * (1.5 / 16.0)
"""Distance from its middle that a creature reaches, in blocks."""
