"""The generator's working data while it builds a world, and functions that change columns.

A part of the generation that draws numbers first sets the world's generator to a key of its own
(``begin``), so that no part changes the numbers of another one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bridges.blockworld.blocks import (
    AIR,
    BEDROCK,
    DIRT,
    GRASS_BLOCK,
    SAND,
    SANDSTONE,
    SNOW_BLOCK,
    SOLID,
    STONE,
)
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.factors import MOUNTAINS
from bridges.blockworld.world import COLUMNS, HEIGHT, SIZE, mixed

SEA = 12
"""Open water fills up to below this height; dry ground is at it or higher."""
SNOW_LINE = 22
"""Minimum height of mountain ground with snow."""
HIGHEST_SUBJECT = 22
"""Maximum ground for a subject, so that a tree or a hut stays below the sky."""

# What a column is reserved for: bits of ``keep``.
ROUTE = 1  # the way from the player to its subject: nothing solid grows there
SHADE = 2  # near a trunk or a creature: no other trunk
BARE = 4  # nothing at all grows there

PLAN = np.dtype(
    [
        ("ground", "i2", (COLUMNS,)),  # y of feet that stand there; 0 where none should
        ("keep", "u1", (COLUMNS,)),
        ("came", "i2", (COLUMNS,)),  # column from which the search for a way came
        ("queue", "i2", (COLUMNS,)),
        ("biome", "i8"),
        ("ground_key", "u8"),  # terrain and biome
        ("scene_key", "u8"),  # and subject, number, distance, bearing
        ("yaw", "f8"),
        ("player_x", "i8"),  # columns
        ("player_z", "i8"),
        ("feet", "i8"),  # y of the player's feet
        ("subject_x", "i8"),
        ("subject_z", "i8"),
        ("height", "i8"),  # y of feet at the subject
        ("centre_x", "i8"),  # half of the square of ground that the subject needs
        ("centre_z", "i8"),
        ("radius", "i8"),
        ("target_x", "i8"),  # where the way to the subject ends
        ("target_z", "i8"),
        ("side", "i8"),  # of the hut's door
    ],
    align=True,
)
"""Workspace for one world at a time."""

Plan: TypeAlias = Any
"""One record of type ``PLAN``, as compiled code sees it."""

# By biome: the topmost block, the two below it, and the two below those.
TOP = np.array(
    [GRASS_BLOCK, GRASS_BLOCK, SAND, GRASS_BLOCK, SNOW_BLOCK, GRASS_BLOCK, GRASS_BLOCK, STONE],
    np.uint8,
)
FILLER = np.array([DIRT, DIRT, SAND, DIRT, DIRT, DIRT, DIRT, STONE], np.uint8)
UNDER = np.array([DIRT, DIRT, SANDSTONE, DIRT, DIRT, DIRT, DIRT, STONE], np.uint8)


@inner
def fold(key: Any, value: Any) -> Any:
    """Returns a hash of a hash and one more number."""
    return mixed(key ^ np.uint64(value))


@inner
def begin(w: World, key: Any, part: int) -> None:
    """Sets the world's generator to the numbers of one part of the generation."""
    w.random = fold(key, part)


@inner
def put(w: World, x: int, y: int, z: int, block: int) -> None:
    """Places a block that is not air and gives no light, and updates the heights."""
    column = x * SIZE + z
    w.blocks[column * HEIGHT + y] = block
    if y >= w.heights[column]:
        w.heights[column] = y + 1


@inner
def lay(w: World, p: Plan, column: int, height: int, top: int) -> None:
    """Makes a column of an empty world solid up to ``height``, at least 9."""
    blocks, at = w.blocks, column * HEIGHT
    under, filler = UNDER[p.biome], FILLER[p.biome]
    blocks[at] = BEDROCK
    for y in range(at + 1, at + height - 5):
        blocks[y] = STONE
    blocks[at + height - 5] = under
    blocks[at + height - 4] = under
    blocks[at + height - 3] = filler
    blocks[at + height - 2] = filler
    blocks[at + height - 1] = top
    w.heights[column] = height
    p.ground[column] = height


@inner
def level(w: World, p: Plan, column: int, height: int) -> None:
    """Sets the ground of a column to ``height``, air above it; ores deep below remain."""
    if p.ground[column] == height:
        return
    at = column * HEIGHT
    for y in range(1, height - 5):
        if not SOLID[w.blocks[at + y]]:
            w.blocks[at + y] = STONE
    for y in range(height, HEIGHT):
        w.blocks[at + y] = AIR
    for y in range(height - 5, height - 3):
        w.blocks[at + y] = UNDER[p.biome]
    for y in range(height - 3, height - 1):
        w.blocks[at + y] = FILLER[p.biome]
    snow = p.biome == MOUNTAINS and height > SNOW_LINE
    w.blocks[at + height - 1] = SNOW_BLOCK if snow else TOP[p.biome]
    w.heights[column] = height
    p.ground[column] = height


@inner
def level_square(w: World, p: Plan, x: int, z: int, radius: int, height: int, slack: int) -> None:
    """Levels a square of ground to within ``slack`` of ``height``; water is filled."""
    for i in range(x - radius, x + radius + 1):
        for k in range(z - radius, z + radius + 1):
            column = i * SIZE + k
            now = int(p.ground[column])
            if now == 0:
                level(w, p, column, height)
            else:
                level(w, p, column, min(max(now, height - slack), height + slack))


@inner
def uneven(p: Plan, x: int, z: int, radius: int, height: int, slack: int) -> int:
    """Returns how many columns of a square ``level_square`` would change."""
    count = 0
    for i in range(x - radius, x + radius + 1):
        for k in range(z - radius, z + radius + 1):
            now = int(p.ground[i * SIZE + k])
            if now < height - slack or now > height + slack:
                count += 1
    return count


@inner
def reserve(p: Plan, x: int, z: int, radius: int, purpose: int) -> None:
    """Reserves a square of columns."""
    for i in range(x - radius, x + radius + 1):
        for k in range(z - radius, z + radius + 1):
            p.keep[i * SIZE + k] |= purpose
