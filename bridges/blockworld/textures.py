"""The textures of the blocks, from the atlas ``data/textures.png``; see ``bridges.atlas``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import SIDE, Atlas, read_tiles
from bridges.blockworld.blocks import BLOCKS, MAX_BLOCKS
from bridges.blockworld.factors import BIOMES

DATA = Path(__file__).parent / "data"
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
