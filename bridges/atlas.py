"""Atlases: pictures of blocks and items as PNG files, which the renderers read.

A texel is ``tinted << 25 | there << 24 | red << 16 | green << 8 | blue``; tinted ones take the
colour of the biome. In a file, alpha tells both: 255 for a texel that is there, 254 for a tinted
one, 0 for neither, 1 for a tinted one that is not there. Transparent texels have colours, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE = 16
"""Width of a tile."""
LEVELS = np.array([0, 256, 320, 336, 340], np.int64)
"""Offset of each size within a tile."""
TEXELS = 341
"""Number of texels of a tile in all its sizes."""
_PLACES = ((0, 0, 16), (0, 16, 8), (8, 16, 4), (12, 16, 2), (14, 16, 1))
"""Row, column and width of each size within a cell of 16 x 24 texels of an atlas."""
_FLAGS = np.array([0, 2, *[0] * 252, 3, 1], np.int32) << 24


def read_tiles(path: Path, height: int, width: int) -> NDArray[np.int32]:
    """Returns the tiles of a picture ``(N, height, width)``, row by row.

    Raises:
        ValueError: it is no PNG with alpha whose size is a multiple of the tile's.
    """
    content = np.frombuffer(path.read_bytes(), np.uint8)
    pixels: Any = cv2.imdecode(content, cv2.IMREAD_UNCHANGED)
    got: tuple[int, ...] = () if pixels is None else pixels.shape
    if len(got) != 3 or got[2] != 4 or got[0] % height or got[1] % width:
        raise ValueError(f"{path}: expected RGBA in tiles of {width} x {height}, got {got}")
    blue, green, red, alpha = np.moveaxis(pixels.astype(np.int32), 2, 0)
    texels = _FLAGS[alpha] | red << 16 | green << 8 | blue
    rows = texels.reshape(got[0] // height, height, got[1] // width, width)
    return np.asarray(rows.swapaxes(1, 2).reshape(-1, height, width), np.int32)


class Atlas:
    """Tiles of 16 x 16 texels in five sizes, and the tiles of each block and item.

    A distant block is drawn with about as many texels as it has pixels, and does not flicker.

    Args:
        path: the PNG file: cells with all sizes of a tile, as in ``_PLACES``. Beside it is a JSON
            file of the same name: ``blocks``, lists of the tiles on the sides, the top, the bottom
            and the front, by name, or by name and state as in ``furnace[lit=true]``; what a list
            does not have is as the side, the bottom is as the top. ``items``: tile by name.

    Attributes:
        tiles: ``(N, TEXELS)``.
        items: tile of each item that does not look like its block.
    """

    def __init__(self, path: Path) -> None:
        cells = read_tiles(path, 16, 24)
        sizes = [cells[:, row : row + n, column : column + n] for row, column, n in _PLACES]
        self.tiles = np.concatenate([size.reshape(len(cells), -1) for size in sizes], 1)
        table = json.loads(path.with_suffix(".json").read_text())
        self.items: Mapping[str, int] = table.get("items", {})
        self._blocks: Mapping[str, list[int]] = table["blocks"]

    def faces(self, name: str, state: Mapping[str, Any]) -> list[int] | None:
        """Returns the tiles of a block: side, top, bottom, and front if it has one; or None."""
        named = (f"{name}[{key}={value}]".lower() for key, value in state.items())
        known = next((each for each in named if each in self._blocks), name)
        tiles = self._blocks.get(known)
        if tiles is None:
            return None
        return [*tiles, *[tiles[-1]] * (3 - len(tiles))]
