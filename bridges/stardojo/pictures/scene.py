"""Draws what is around the farmer: the ground, what stands and grows on it, and who is there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo.valley import planes as views
from bridges.stardojo.valley.valley import Valley

TILES_HIGH = 11.25
"""Tiles from top to bottom, as the game shows at its usual zoom."""
GROUND = np.array(
    [(40, 34, 44), (58, 118, 178), (150, 110, 72), (104, 158, 74), (222, 204, 150),
     (146, 146, 150), (168, 132, 96), (142, 98, 62), (122, 122, 130), (96, 58, 36)], np.uint8
)  # fmt: skip
"""Colors of ``maps``: wall, water, dirt, grass, sand, stone, floor, wood, spot, door."""


def draw(valley: Valley, width: int, height: int) -> NDArray[np.uint8]:
    """Returns the screen, ``(height, width, 3)`` bytes."""
    side = max(2, round(height / TILES_HIGH))
    across = max(width // side, height // side) // 2 + 2
    planes = views.window(valley.world, across)
    image = np.repeat(np.repeat(GROUND[planes[0]], side, 0), side, 1)
    middle = across * side + side // 2
    top, left = middle - height // 2, middle - width // 2
    return np.ascontiguousarray(image[top : top + height, left : left + width])
