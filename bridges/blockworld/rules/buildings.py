"""Huts: walls and a roof on levelled ground, one doorway, windows, some furniture.

``bedroom`` is the scene that begins inside one: MCU's hard "sleep" task.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import (
    ACACIA_LOG,
    AIR,
    BED,
    BOOKSHELF,
    CHEST,
    COBBLESTONE,
    CRAFTING_TABLE,
    FURNACE,
    GLASS,
    MOSSY_COBBLESTONE,
    OAK_LOG,
    OAK_PLANKS,
    SANDSTONE,
    SPRUCE_LOG,
    TERRACOTTA,
    TORCH,
)
from bridges.blockworld.rules.ground import (
    BARE,
    HIGHEST_SUBJECT,
    SEA,
    Plan,
    begin,
    level_square,
    put,
    reserve,
    uneven,
)
from bridges.blockworld.rules.world import (
    HEIGHT,
    SIZE,
    below,
    chance,
    cosine,
    place,
    set_block,
    sine,
)

WALLS = 3
"""Height of the walls, in blocks."""
HUT_HALF = 3
"""Columns from the middle of a subject hut to each side: it is 7 columns wide."""

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
    """True if any column of a square is reserved."""
    for i in range(x - radius, x + radius + 1):
        for k in range(z - radius, z + radius + 1):
            if p.keep[i * SIZE + k] != 0:
                return True
    return False


# bedroom ------------------------------------------------------------------------------------------

NEAREST, FARTHEST = 2.0, 4.0
"""Maximum distance of the bed from the player, for any state: more does not fit."""

_IN = HUT_HALF - 1
_FURNITURE = np.array([CHEST, CRAFTING_TABLE, FURNACE, BOOKSHELF], np.uint8)


@inner
def _settle_hut(w: World, p: Plan) -> None:
    """Levels the ground for the hut where the fewest changes are needed, and builds its shell."""
    best = 1 << 30
    for _ in range(16):
        x, z = 12 + below(w, SIZE - 24), 12 + below(w, SIZE - 24)
        ground = int(p.ground[x * SIZE + z])
        height = min(ground if ground > 0 else SEA, HIGHEST_SUBJECT)
        faults = uneven(p, x, z, HUT_HALF + 1, height, 1)
        if faults < best:
            best = faults
            p.centre_x, p.centre_z, p.height = x, z, height
        if faults == 0:
            break
    p.feet = p.height
    p.side = below(w, 3)  # never the last one: see ``_lay_bed``
    level_square(w, p, p.centre_x, p.centre_z, HUT_HALF + 1, p.height, 0)
    build_shell(w, p, p.centre_x, p.centre_z, HUT_HALF, p.side, p.height)


@inner
def _free(p: Plan, x: int, z: int) -> bool:
    """True if furniture may stand on a column: inside, not at the player or the door."""
    i, k = x - int(p.centre_x), z - int(p.centre_z)
    if abs(i) > _IN or abs(k) > _IN:
        return False
    if max(abs(x - p.player_x), abs(z - p.player_z)) < 2:
        return False
    out_x, out_z = int(OUT_X[p.side]), int(OUT_Z[p.side])
    return not (i * out_x + k * out_z > 0 and i * out_z + k * out_x == 0)


@inner
def _lay_bed(w: World, p: Plan, o: Any) -> None:
    """Draws the direction of the look and the bed's place, at the requested bearing from it."""
    x, z, height = int(p.centre_x), int(p.centre_z), int(p.height)
    for _ in range(400):
        p.yaw = float(below(w, 360))
        dx, dz = -sine(p.yaw + o.bearing), cosine(p.yaw + o.bearing)
        distance = NEAREST + chance(w) * (FARTHEST - NEAREST)
        p.player_x, p.player_z = x - 1 + below(w, 3), z - 1 + below(w, 3)
        p.subject_x = int(p.player_x + 0.5 + distance * dx)
        p.subject_z = int(p.player_z + 0.5 + distance * dz)
        side = below(w, 4)
        i, k = p.subject_x - p.player_x, p.subject_z - p.player_z
        away = sqrt(float(i * i + k * k))
        if away < NEAREST or away >= FARTHEST or i * dx + k * dz < 0:
            continue
        if abs(i * dz - k * dx) > 0.13 * away or not _free(p, p.subject_x, p.subject_z):
            continue
        if _free(p, p.subject_x + OUT_X[side], p.subject_z + OUT_Z[side]):
            break
    else:
        # Three blocks along +x, where the door never is.
        p.yaw = float((630 - int(o.bearing)) % 360)
        p.player_x, p.player_z, side = x - 1, z, 2
        p.subject_x, p.subject_z = x + 2, z
    put(w, p.subject_x, height, p.subject_z, BED)
    put(w, p.subject_x + OUT_X[side], height, p.subject_z + OUT_Z[side], BED)


@inner
def bedroom(w: World, p: Plan, o: Any) -> None:
    """Builds a hut with the player, a bed and furniture in it."""
    begin(w, p.scene_key, 1)
    _settle_hut(w, p)
    _lay_bed(w, p, o)
    wide = 2 * _IN + 1
    piece, start = 0, below(w, wide * wide)
    for turn in range(wide * wide):
        cell = (start + turn * 7) % (wide * wide)  # 7 and 25 are coprime: each comes once
        i, k = cell // wide - _IN, cell % wide - _IN
        x, z = int(p.centre_x) + i, int(p.centre_z) + k
        at = place(x, int(p.height), z)
        if max(abs(i), abs(k)) < _IN or not _free(p, x, z) or w.blocks[at] != AIR:
            continue
        put(w, x, p.height, z, _FURNITURE[piece])
        if piece == 0:
            set_block(w, at + 1, TORCH)
        elif piece == 2:
            w.furnaces[0] = at
        piece += 1
        if piece == len(_FURNITURE):
            return
