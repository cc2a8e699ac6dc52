"""The ground of a new world, and the generator's working data while it builds one.

A part of the generation that draws numbers first sets the world's generator to a key of its own
(``begin``), so that no part changes the numbers of another one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import (
    AIR,
    BEDROCK,
    CLAY,
    COAL_ORE,
    DIAMOND_ORE,
    DIRT,
    EDGE,
    GOLD_ORE,
    GRASS_BLOCK,
    GRAVEL,
    ICE,
    IRON_ORE,
    LAVA,
    SAND,
    SANDSTONE,
    SNOW_BLOCK,
    SOLID,
    STONE,
    TERRACOTTA,
    WATER,
)
from bridges.blockworld.rules.factors import DESERT, MOUNTAINS, SAVANNA, SNOWY, SWAMP, TAIGA
from bridges.blockworld.rules.world import COLUMNS, HEIGHT, SIZE, below, chance, mixed

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


# terrain ------------------------------------------------------------------------------------------

CELL = 8
LOWEST, HIGHEST = 9, 26
"""Heights of the ground, the beds of lakes included."""

# By biome: mean height, and the amplitudes of wide hills, narrow hills and peaks.
_MEAN = np.array([13.9, 14.2, 14.3, 14.6, 14.1, 14.0, 12.7, 14.3])
_WIDE = np.array([2.8, 3.2, 2.6, 4.0, 3.2, 2.4, 1.3, 3.0])
_NARROW = np.array([0.7, 1.0, 1.0, 1.2, 0.8, 0.6, 0.9, 1.8])
_PEAK = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 11.5])

# Interpolation weights between two points of the coarse and of the fine lattice, by column.
_SLOW = np.array([(3 - 2 * t) * t * t for t in (np.arange(16) / 16.0)])
_FAST = np.array([(3 - 2 * t) * t * t for t in (np.arange(8) / 8.0)])

# Ores: block, veins, maximum blocks in a vein, lowest and highest start.
_VEINS = np.array(
    [
        (COAL_ORE, 18, 7, 3, 13),
        (IRON_ORE, 14, 5, 2, 11),
        (GOLD_ORE, 7, 4, 2, 6),
        (DIAMOND_ORE, 5, 4, 1, 4),
        (COAL_ORE, 14, 6, 12, 24),  # from here on only in the mountains
        (IRON_ORE, 12, 5, 12, 24),
    ]
)


@inner
def _point(key: Any, i: int, k: int) -> float:
    """Returns the value of one point of a lattice, from -1 to 1."""
    bits = mixed(key + np.uint64(i * 64 + k)) >> np.uint64(11)
    return np.float64(bits) * (2.0 / 9007199254740992.0) - 1.0


@inner
def _top(biome: int, rise: float, patch: float) -> int:
    """Returns the topmost block of dry ground, whose height is ``rise`` rounded down."""
    height = int(rise)
    if biome == MOUNTAINS:
        if height > SNOW_LINE:
            return SNOW_BLOCK
        if patch > 0.3:
            return GRAVEL
        return GRASS_BLOCK if height <= 15 else STONE
    if biome == SAVANNA:
        if patch > 0.35:
            return DIRT
        return TERRACOTTA if patch < -0.5 else GRASS_BLOCK
    if rise < SEA + 0.5 and biome not in (SNOWY, TAIGA, SWAMP):
        return SAND
    return int(TOP[biome])


@inner
def _bed(biome: int, patch: float) -> int:
    """Returns the topmost block under water."""
    if biome == SWAMP:
        return CLAY if patch > -0.2 else DIRT
    if patch > 0.4:
        return CLAY
    return GRAVEL if biome in (TAIGA, SNOWY, MOUNTAINS) else SAND


@inner
def _column(w: World, p: Plan, column: int, wide: float, narrow: float) -> None:
    """Fills one column from the two heights of the hills there, each -1 to 1."""
    biome = p.biome
    rise = _MEAN[biome] + _WIDE[biome] * wide + _NARROW[biome] * narrow
    if wide > 0:
        rise += _PEAK[biome] * wide
    height = min(max(int(rise), LOWEST), HIGHEST)
    if height >= SEA:
        lay(w, p, column, height, _top(biome, rise, narrow))
        return
    lay(w, p, column, height, _bed(biome, narrow))
    at = column * HEIGHT
    for y in range(height, SEA):
        w.blocks[at + y] = WATER
    if biome == SNOWY:
        w.blocks[at + SEA - 1] = ICE
    w.heights[column] = SEA
    p.ground[column] = 0


@inner
def relief(w: World, p: Plan) -> None:
    """Fills all columns of an empty world: two octaves of value noise.

    The fine lattice is traversed cell by cell, so that each point is hashed four times and not once
    for each column.
    """
    coarse, fine = fold(p.ground_key, 1), fold(p.ground_key, 2)
    for i in range(SIZE // CELL):
        for k in range(SIZE // CELL):
            a, b = _point(coarse, i // 2, k // 2), _point(coarse, i // 2, k // 2 + 1)
            c, d = _point(coarse, i // 2 + 1, k // 2), _point(coarse, i // 2 + 1, k // 2 + 1)
            e, f = _point(fine, i, k), _point(fine, i, k + 1)
            g, h = _point(fine, i + 1, k), _point(fine, i + 1, k + 1)
            for x in range(CELL):
                s, t = _SLOW[i % 2 * CELL + x], _FAST[x]
                ac, bd = a + (c - a) * s, b + (d - b) * s
                eg, fh = e + (g - e) * t, f + (h - f) * t
                column = (i * CELL + x) * SIZE + k * CELL
                for z in range(CELL):
                    wide = ac + (bd - ac) * _SLOW[k % 2 * CELL + z]
                    narrow = eg + (fh - eg) * _FAST[z]
                    _column(w, p, column + z, wide, narrow)
    _edges(w, p)


@inner
def _edges(w: World, p: Plan) -> None:
    for i in range(SIZE):
        for column in (i, (SIZE - 1) * SIZE + i, i * SIZE, i * SIZE + SIZE - 1):
            for y in range(column * HEIGHT, (column + 1) * HEIGHT):
                w.blocks[y] = EDGE
            w.heights[column] = HEIGHT
            p.ground[column] = 0


@inner
def _vein(w: World, ore: int, length: int, x: int, y: int, z: int) -> None:
    """Turns stone into ore along a walk of ``length`` steps."""
    for _ in range(length):
        at = (x * SIZE + z) * HEIGHT + y
        if w.blocks[at] == STONE:
            w.blocks[at] = ore
        way = below(w, 6)
        if way == 0:
            x = min(x + 1, SIZE - 2)
        elif way == 1:
            x = max(x - 1, 1)
        elif way == 2:
            z = min(z + 1, SIZE - 2)
        elif way == 3:
            z = max(z - 1, 1)
        elif way == 4:
            y = min(y + 1, HIGHEST)
        else:
            y = max(y - 1, 1)


@inner
def _hollow(w: World, block: int, x: int, y: int, z: int) -> None:
    """Fills a cube of two blocks below the ground."""
    for i in range(x, x + 2):
        for k in range(z, z + 2):
            for j in range(y, y + 2):
                w.blocks[(i * SIZE + k) * HEIGHT + j] = block


@inner
def underground(w: World, p: Plan) -> None:
    """Places ores, pockets of lava and a cave in the stone; none of them reaches the ground."""
    begin(w, p.ground_key, 3)
    for row in range(len(_VEINS) if p.biome == MOUNTAINS else 4):
        ore, veins, most, low, high = _VEINS[row]
        for _ in range(veins):
            x, z = 2 + below(w, SIZE - 4), 2 + below(w, SIZE - 4)
            _vein(w, ore, 2 + below(w, most), x, low + below(w, high - low + 1), z)
    # A cave may be anywhere below LOWEST - 2: the beds of the lakes stay intact.
    x, y, z = 8 + below(w, SIZE - 16), 5, 8 + below(w, SIZE - 16)
    heading = below(w, 4)
    for _ in range(30 + below(w, 30)):
        _hollow(w, AIR, x, y, z)
        if chance(w) < 0.25:
            heading = below(w, 4)
            y = min(max(y + below(w, 3) - 1, 2), LOWEST - 4)
        x = min(max(x + (heading == 0) - (heading == 1), 2), SIZE - 4)
        z = min(max(z + (heading == 2) - (heading == 3), 2), SIZE - 4)
    for _ in range(4):
        x, z = 3 + below(w, SIZE - 7), 3 + below(w, SIZE - 7)
        _hollow(w, LAVA, x, 1 + below(w, 2), z)


@inner
def lava_pool(w: World, p: Plan) -> None:
    """Makes a pool of lava in some deserts and mountains, far from the player and its subject."""
    if p.biome not in (DESERT, MOUNTAINS):
        return
    begin(w, p.ground_key, 4)
    if chance(w) > 0.4:
        return
    x, z = 5 + below(w, SIZE - 10), 5 + below(w, SIZE - 10)
    height = p.ground[x * SIZE + z]
    for i in range(x - 2, x + 3):
        for k in range(z - 2, z + 3):
            column = i * SIZE + k
            if p.ground[column] != height or p.keep[column] & ROUTE:
                return
    for ox, oz in ((p.player_x, p.player_z), (p.subject_x, p.subject_z)):
        if max(abs(x - ox), abs(z - oz)) < 12:
            return
    for i in range(x - 1, x + 2):
        for k in range(z - 1, z + 2):
            if abs(i - x) + abs(k - z) < 2 or chance(w) < 0.5:
                w.blocks[(i * SIZE + k) * HEIGHT + height - 1] = LAVA
                p.ground[i * SIZE + k] = 0
