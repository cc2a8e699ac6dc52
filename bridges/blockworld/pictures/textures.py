"""Textures of blocks, icons of items and boxes of creatures; see ``bridges.atlas``.

A creature's box is given in sixteenths of a block from the middle of its feet, before rotation:
``x`` to its right, ``y`` up, ``z`` ahead. Its front has a picture of its own; all other faces share
one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import SIDE, TEXELS, Atlas, read_tiles
from bridges.blockworld.compiled import fast_inner
from bridges.blockworld.rules.blocks import BLOCKS, FORM, MAX_BLOCKS, PLANT
from bridges.blockworld.rules.factors import BIOMES
from bridges.blockworld.rules.items import MAX_ITEMS
from bridges.blockworld.rules.species import COATS

DATA = Path(__file__).parents[1] / "data"
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

_NAMES = (
    "wool", "sheep", "sheep face", "cow", "cow face", "cow leg", "horn", "pig", "pig face", "snout",
    "feather", "chicken face", "beak", "wattle", "zombie", "zombie face", "shirt", "trousers",
    "bone", "skull", "ribs", "bow", "spider", "spider face", "arrow", "flight",
)  # fmt: skip
_SKIN = {name: number for number, name in enumerate(_NAMES)}
"""Number of each skin in ``data/skins.png``, row by row."""
SKINS = read_tiles(DATA / "skins.png", 8, 8).reshape(-1) & 0xFFFFFF
"""Texels ``red << 16 | green << 8 | blue``, by ``skin * 64 + row * 8 + column``."""
assert len(SKINS) == 64 * len(_NAMES)

COAT_COLOURS = (
    np.array(
        [
            (250, 252, 252),
            (158, 158, 152),
            (84, 88, 92),
            (40, 40, 46),
            (126, 82, 48),
            (240, 148, 176),
            (252, 214, 62),
            (92, 184, 226),
        ],
        np.float64,
    )
    / 240.0
)
"""Reflectance of the wool of each coat, in the order of ``COATS``."""
assert len(COAT_COLOURS) == len(COATS)

_Box = tuple[float, float, float, float, float, float, str, str, int, int]
"""Least x, y, z and greatest x, y, z; skin, skin of the front; the swing when the creature walks;
whether its colour is the coat's."""


def _legs(x: float, z: float, size: float, high: float, skin: str) -> list[_Box]:
    """Returns four legs, which swing in two pairs."""
    h = size / 2
    return [
        (a * x - h, 0, b * z - h, a * x + h, high, b * z + h, skin, skin, a * b, 0)
        for a in (-1, 1)
        for b in (-1, 1)
    ]


def _two(x: float, box: tuple[float, float, float], skin: str, swing: int) -> list[_Box]:
    """Returns a pair of limbs beside the middle: height from and to, and width."""
    low, high, size = box
    h = size / 2
    return [(a * x - h, low, -h, a * x + h, high, h, skin, skin, a * swing, 0) for a in (-1, 1)]


def _spider() -> list[_Box]:
    made: list[_Box] = [
        (-4, 4, 3, 4, 12, 11, "spider", "spider face", 0, 0),
        (-3, 5, -3, 3, 11, 3, "spider", "spider", 0, 0),
        (-5, 4, -14, 5, 13, -3, "spider", "spider", 0, 0),
    ]
    for n, z in enumerate((-5.0, -1.5, 2.0, 5.5)):
        swing = 1 if n % 2 else -1
        made.append((-11, 8, z, 11, 9.5, z + 1.5, "spider", "spider", 0, 0))
        made += [
            (x - 0.8, 0, z, x + 0.8, 9, z + 1.5, "spider", "spider", swing, 0) for x in (-11, 11)
        ]
    return made


_BOXES: tuple[list[_Box], ...] = (
    [],
    [  # sheep
        (-5, 8.5, -8, 5, 19, 8, "wool", "wool", 0, 1),
        (-3, 14, 7, 3, 20, 13.5, "sheep", "sheep face", 0, 0),
        (-3.6, 17.5, 6, 3.6, 21, 12, "wool", "wool", 0, 1),
        *_legs(3, 5, 3.6, 9, "sheep"),
    ],
    [  # cow
        (-6, 10, -9, 6, 20, 9, "cow", "cow", 0, 0),
        (-4, 13, 8, 4, 21, 14, "cow", "cow face", 0, 0),
        (-5.2, 19.5, 9.5, -4, 22.5, 11, "horn", "horn", 0, 0),
        (4, 19.5, 9.5, 5.2, 22.5, 11, "horn", "horn", 0, 0),
        *_legs(4, 6, 4, 10, "cow leg"),
    ],
    [  # pig
        (-5, 5, -8, 5, 13, 7, "pig", "pig", 0, 0),
        (-4, 6, 6, 4, 14, 13, "pig", "pig face", 0, 0),
        (-2, 7, 13, 2, 10, 14.2, "pig", "snout", 0, 0),
        *_legs(3, 5, 4, 5, "pig"),
    ],
    [  # chicken
        (-3, 3, -4, 3, 8, 4, "feather", "feather", 0, 0),
        (-2, 7, 2.5, 2, 11.5, 5.5, "feather", "chicken face", 0, 0),
        (-1.5, 8.3, 5.5, 1.5, 9.8, 7.5, "beak", "beak", 0, 0),
        (-0.8, 6.8, 5.2, 0.8, 8.3, 6.4, "wattle", "wattle", 0, 0),
        (-3.8, 4, -3, -3, 7.6, 3, "feather", "feather", 0, 0),
        (3, 4, -3, 3.8, 7.6, 3, "feather", "feather", 0, 0),
        *_two(1.6, (0, 3, 1.0), "beak", 1),
    ],
    [  # zombie
        (-4, 11.5, -2, 4, 23.5, 2, "shirt", "shirt", 0, 0),
        (-4, 23.5, -4, 4, 31.2, 4, "zombie", "zombie face", 0, 0),
        (-8, 19.5, -2, -4, 23.5, 10, "zombie", "zombie", 0, 0),
        (4, 19.5, -2, 8, 23.5, 10, "zombie", "zombie", 0, 0),
        *_two(2.05, (0, 11.5, 4), "trousers", 1),
    ],
    [  # skeleton
        (-4, 12, -1.5, 4, 24, 1.5, "ribs", "ribs", 0, 0),
        (-4, 24, -4, 4, 31.8, 4, "bone", "skull", 0, 0),
        (-6, 20, -1, -4, 22, 9, "bone", "bone", 0, 0),
        (4, 20, -1, 6, 22, 9, "bone", "bone", 0, 0),
        (4.4, 14, 9, 5.6, 28, 10.2, "bow", "bow", 0, 0),
        *_two(2, (0, 12, 2), "bone", 1),
    ],
    _spider(),
    [  # arrow
        (-0.6, -0.6, -8, 0.6, 0.6, 6, "arrow", "bone", 0, 0),
        (-1.4, -1.4, -8, 1.4, 1.4, -5, "flight", "flight", 0, 0),
    ],
)
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
"""How far from its middle a creature reaches, in blocks."""
