"""Huts: walls and a roof on levelled ground, one doorway, windows, some furniture."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.blocks import (
    ACACIA_LOG,
    AIR,
    BOOKSHELF,
    CHEST,
    COBBLESTONE,
    CRAFTING_TABLE,
    GLASS,
    MOSSY_COBBLESTONE,
    OAK_LOG,
    OAK_PLANKS,
    SANDSTONE,
    SPRUCE_LOG,
    TERRACOTTA,
    TORCH,
)
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.plan import (
    BARE,
    HIGHEST_SUBJECT,
    Plan,
    begin,
    level_square,
    put,
    reserve,
    uneven,
)
from bridges.blockworld.world import HEIGHT, SIZE, below, chance, place, set_block

WALLS = 3
"""Height of the walls, in blocks."""

# By biome: corners, walls and floor, roof.
_CORNER = np.array(
    [OAK_LOG, OAK_LOG, SANDSTONE, SPRUCE_LOG, SPRUCE_LOG, ACACIA_LOG, OAK_LOG, COBBLESTONE],
    np.uint8,
)
_WALL = np.array(
    [
        OAK_PLANKS,
        OAK_PLANKS,
        SANDSTONE,
        OAK_PLANKS,
        COBBLESTONE,
        OAK_PLANKS,
        MOSSY_COBBLESTONE,
        COBBLESTONE,
    ],
    np.uint8,
)
_ROOF = np.array(
    [
        COBBLESTONE,
        COBBLESTONE,
        TERRACOTTA,
        SPRUCE_LOG,
        OAK_PLANKS,
        TERRACOTTA,
        OAK_PLANKS,
        OAK_PLANKS,
    ],
    np.uint8,
)

# Sides of a hut, by number: the direction in which a door there leads out.
OUT_X = np.array([-1, 0, 0, 1])
OUT_Z = np.array([0, -1, 1, 0])


@inner
def side_towards(dx: int, dz: int) -> int:
    """Returns the side of a hut that faces someone at ``(dx, dz)`` from it."""
    if abs(dx) >= abs(dz):
        return 0 if dx < 0 else 3
    return 1 if dz < 0 else 2


@inner
def build_shell(w: World, p: Plan, x: int, z: int, half: int, side: int, height: int) -> None:
    """Builds a hut without furniture around column ``(x, z)``, on levelled ground.

    Its footprint is ``2 * half + 1`` columns wide, its floor is just below ``height``. Nothing else
    is placed in its columns afterwards.
    """
    biome = p.biome
    wall, corner, roof = int(_WALL[biome]), int(_CORNER[biome]), int(_ROOF[biome])
    for i in range(x - half, x + half + 1):
        for k in range(z - half, z + half + 1):
            at_x, at_z = abs(i - x) == half, abs(k - z) == half
            put(w, i, height - 1, k, wall)
            for y in range(height, height + WALLS):
                if at_x and at_z:
                    put(w, i, y, k, corner)
                elif at_x or at_z:
                    window = (i == x or k == z) and y == height + 1
                    put(w, i, y, k, GLASS if window else wall)
            put(w, i, height + WALLS, k, roof)
            if not (at_x or at_z):
                put(w, i, height + WALLS + 1, k, roof)
            p.ground[i * SIZE + k] = 0
    door = (x + half * OUT_X[side]) * SIZE + z + half * OUT_Z[side]
    w.blocks[door * HEIGHT + height] = AIR
    w.blocks[door * HEIGHT + height + 1] = AIR
    reserve(p, x, z, half + 1, BARE)
    w.hut[0], w.hut[1], w.hut[2], w.hut[3] = x - half, z - half, x + half, z + half


@inner
def furnish(w: World, x: int, z: int, half: int, side: int, height: int) -> None:
    """Puts a chest with a torch on it into a corner, and sometimes a bookshelf or a table."""
    wide = half - 1
    # The two corners opposite the door, then the two beside it.
    back_x, back_z = -OUT_X[side] * wide, -OUT_Z[side] * wide
    along_x, along_z = abs(OUT_Z[side]) * wide, abs(OUT_X[side]) * wide
    turned = 1 if chance(w) < 0.5 else -1
    i, k = x + back_x + turned * along_x, z + back_z + turned * along_z
    put(w, i, height, k, CHEST)
    set_block(w, place(i, height + 1, k), TORCH)
    i, k = x + back_x - turned * along_x, z + back_z - turned * along_z
    share = chance(w)
    if share < 0.35:
        put(w, i, height, k, BOOKSHELF)
        put(w, i, height + 1, k, BOOKSHELF)
    elif share < 0.7:
        put(w, i, height, k, CRAFTING_TABLE)


@inner
def lone_hut(w: World, p: Plan) -> None:
    """Builds a hut in a third of the worlds, away from the player and its subject."""
    begin(w, p.ground_key, 6)
    if chance(w) > 0.4:
        return
    for _ in range(4):
        x, z = 8 + below(w, SIZE - 16), 8 + below(w, SIZE - 16)
        half, side = 2 + below(w, 2), below(w, 4)
        height = int(p.ground[x * SIZE + z])
        near_player = max(abs(x - p.player_x), abs(z - p.player_z)) < 13 + half
        near_subject = max(abs(x - p.subject_x), abs(z - p.subject_z)) < 10 + half
        if near_player or near_subject or height == 0 or height > HIGHEST_SUBJECT:
            continue
        if uneven(p, x, z, half + 1, height, 1) > 4 or _kept(p, x, z, half + 1):
            continue
        level_square(w, p, x, z, half + 1, height, 0)
        build_shell(w, p, x, z, half, side, height)
        furnish(w, x, z, half, side, height)
        return


@inner
def _kept(p: Plan, x: int, z: int, radius: int) -> bool:
    """Whether any column of a square is reserved."""
    for i in range(x - radius, x + radius + 1):
        for k in range(z - radius, z + radius + 1):
            if p.keep[i * SIZE + k] != 0:
                return True
    return False
