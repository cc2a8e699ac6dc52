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
from bridges.blockworld.rules.blocks import BLOCKS, DATA, FORM, MAX_BLOCKS, PLANT
from bridges.blockworld.rules.factors import BIOMES
from bridges.blockworld.rules.items import ITEMS, MAX_ITEMS, TOOL
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.species import COATS, NAMES
from bridges.hud import BLOCK, LOOK, SHIELD, STICK, THING
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


ICON_TEXELS = np.concatenate([TILES, ICONS])
"""Texels of all icons; see ``bridges.hud``."""


def _looks() -> NDArray[np.int32]:
    """Returns the looks of all items, ``(MAX_ITEMS, LOOK)``; see ``bridges.hud``."""
    looks = np.zeros((MAX_ITEMS, LOOK), np.int32)
    for number in range(MAX_ITEMS):
        if number >= MAX_BLOCKS:
            first = len(TILES) + (number - MAX_BLOCKS) * SIDE * SIDE
            looks[number] = first, -1, -1, SIDE, THING
            continue
        top, side, _ = FACES[number * 3 : number * 3 + 3] * TEXELS
        flat = FORM[number] == PLANT
        looks[number] = (side, -1, -1, SIDE, BLOCK) if flat else (top, side, side, SIDE, BLOCK)
    for number, item in enumerate(ITEMS):
        if item.name in {"stick", "bone", "arrow"} or TOOL[number] > 0:
            looks[number, -1] = STICK
    looks[ITEM["shield"], -1] = SHIELD
    return looks.reshape(-1)


ICON_LOOKS = _looks()


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
