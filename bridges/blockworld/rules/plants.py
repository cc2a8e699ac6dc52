"""Plants: trees of four kinds, cactus, pumpkins, grass, flowers and mushrooms.

Leaves are at least three blocks above the ground below them: one can walk and jump below any tree.
"""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import (
    ACACIA_LEAVES,
    ACACIA_LOG,
    AIR,
    BIRCH_LEAVES,
    BIRCH_LOG,
    CACTUS,
    DEAD_BUSH,
    DIRT,
    FLOWER,
    GRASS_BLOCK,
    MUSHROOM,
    OAK_LEAVES,
    OAK_LOG,
    PUMPKIN,
    SAND,
    SNOW_BLOCK,
    SPRUCE_LEAVES,
    SPRUCE_LOG,
    TALL_GRASS,
)
from bridges.blockworld.rules.factors import (
    DESERT,
    FOREST,
    MOUNTAINS,
    PLAINS,
    SAVANNA,
    SNOWY,
    TAIGA,
)
from bridges.blockworld.rules.ground import BARE, ROUTE, SHADE, Plan, begin, put, reserve
from bridges.blockworld.rules.world import HEIGHT, SIZE, below, chance

OAK, BIRCH, SPRUCE, ACACIA = range(4)
CEILING = 30
"""Maximum height of leaves."""

_LOG = np.array([OAK_LOG, BIRCH_LOG, SPRUCE_LOG, ACACIA_LOG], np.uint8)
_LEAVES = np.array([OAK_LEAVES, BIRCH_LEAVES, SPRUCE_LEAVES, ACACIA_LEAVES], np.uint8)

# By biome: attempts to grow a tree, a solid small plant, a low plant.
_TREES = np.array([9, 60, 0, 45, 12, 16, 26, 14])
_SOLIDS = np.array([3, 2, 40, 3, 0, 2, 0, 0])
_LOWS = np.array([330, 220, 70, 160, 12, 300, 240, 60])
_LOW_PLANTS = np.array(
    [
        (TALL_GRASS, TALL_GRASS, TALL_GRASS, FLOWER),
        (TALL_GRASS, TALL_GRASS, FLOWER, MUSHROOM),
        (DEAD_BUSH, DEAD_BUSH, DEAD_BUSH, DEAD_BUSH),
        (TALL_GRASS, TALL_GRASS, TALL_GRASS, MUSHROOM),
        (DEAD_BUSH, DEAD_BUSH, TALL_GRASS, TALL_GRASS),
        (TALL_GRASS, TALL_GRASS, TALL_GRASS, DEAD_BUSH),
        (TALL_GRASS, TALL_GRASS, MUSHROOM, FLOWER),
        (TALL_GRASS, TALL_GRASS, FLOWER, DEAD_BUSH),
    ],
    np.uint8,
)


@inner
def tree_kind(w: World, biome: int) -> int:
    """Returns a kind of tree that grows in a biome; a single acacia in the desert."""
    share = chance(w)
    if biome == FOREST:
        return OAK if share < 0.55 else BIRCH
    if biome in (TAIGA, SNOWY, MOUNTAINS):
        return SPRUCE
    if biome in (DESERT, SAVANNA):
        return ACACIA
    return BIRCH if biome == PLAINS and share < 0.15 else OAK


@inner
def _crown(kind: int, dy: int, trunk: int) -> int:
    """Returns the radius of the leaves ``dy`` above the ground; -1 for none."""
    if dy < 3:
        return -1
    top = trunk + 1 - dy
    if kind == SPRUCE:
        return 0 if top == 0 else 1 if top in (1, 3) else 2
    if kind == ACACIA:
        return 2 if top == 0 else 3 if top == 1 else -1
    return 1 if top < 2 else 2 if top < 4 else -1


@inner
def grow_tree(w: World, p: Plan, x: int, z: int, kind: int) -> None:
    """Grows a tree on a column; draws its height and the gaps in its crown."""
    ground = int(p.ground[x * SIZE + z])
    trunk = 4 + below(w, 2) if kind == ACACIA else 5 + below(w, 2)
    trunk = min(trunk, CEILING - 1 - ground)
    leaves = _LEAVES[kind]
    for dy in range(3, trunk + 2):
        radius = _crown(kind, dy, trunk)
        for i in range(max(x - radius, 2), min(x + radius, SIZE - 3) + 1):
            for k in range(max(z - radius, 2), min(z + radius, SIZE - 3) + 1):
                corner = radius > 0 and abs(i - x) == radius and abs(k - z) == radius
                if corner and (radius != 2 or kind != OAK or chance(w) < 0.6):
                    continue
                y = ground + dy
                column = i * SIZE + k
                if y >= p.ground[column] + 3 and w.blocks[column * HEIGHT + y] == AIR:
                    put(w, i, y, k, leaves)
    for y in range(ground, ground + trunk):
        put(w, x, y, z, _LOG[kind])
    if w.blocks[(x * SIZE + z) * HEIGHT + ground - 1] in (GRASS_BLOCK, SNOW_BLOCK):
        put(w, x, ground - 1, z, DIRT)
    p.keep[x * SIZE + z] |= BARE
    reserve(p, x, z, 2, SHADE)


@inner
def _fertile(w: World, p: Plan, x: int, z: int) -> bool:
    """True if a trunk may stand on a column."""
    column = x * SIZE + z
    ground = int(p.ground[column])
    if ground == 0 or ground > CEILING - 7 or p.keep[column] != 0:
        return False
    return bool(w.blocks[column * HEIGHT + ground] == AIR)


@inner
def _trees(w: World, p: Plan) -> None:
    for n in range(_TREES[p.biome]):
        # A key for each tree: one that finds no room changes none of the others.
        begin(w, p.ground_key, 1000 + n)
        x, z = 5 + below(w, SIZE - 10), 5 + below(w, SIZE - 10)
        kind = tree_kind(w, p.biome)
        if _fertile(w, p, x, z):
            grow_tree(w, p, x, z, kind)


@inner
def _solids(w: World, p: Plan) -> None:
    """Grows cactus in the desert and pumpkins elsewhere, away from the route."""
    for n in range(_SOLIDS[p.biome]):
        begin(w, p.ground_key, 2000 + n)
        x, z = 3 + below(w, SIZE - 6), 3 + below(w, SIZE - 6)
        tall = 1 + below(w, 3)
        if not _fertile(w, p, x, z):
            continue
        column = x * SIZE + z
        ground = int(p.ground[column])
        if p.biome != DESERT:
            put(w, x, ground, z, PUMPKIN)
        else:
            # As in Minecraft nothing solid touches a cactus; and no route passes one.
            touched = w.blocks[column * HEIGHT + ground - 1] != SAND
            for beside in (column - SIZE, column + SIZE, column - 1, column + 1):
                touched |= w.heights[beside] > ground or p.keep[beside] & ROUTE != 0
            if touched:
                continue
            for y in range(ground, ground + tall):
                put(w, x, y, z, CACTUS)
        p.keep[column] |= BARE
        reserve(p, x, z, 1, SHADE)


@inner
def _lows(w: World, p: Plan) -> None:
    """Grows plants that one can walk through, where there is soil for them."""
    begin(w, p.ground_key, 5)
    for _ in range(_LOWS[p.biome]):
        x, z = 2 + below(w, SIZE - 4), 2 + below(w, SIZE - 4)
        plant = int(_LOW_PLANTS[p.biome, below(w, 4)])
        column = x * SIZE + z
        ground = int(p.ground[column])
        if ground == 0 or ground >= CEILING or p.keep[column] & BARE:
            continue
        at = column * HEIGHT + ground
        soil = w.blocks[at - 1]
        if w.blocks[at] != AIR:
            continue
        if soil in (GRASS_BLOCK, DIRT, SNOW_BLOCK) or (soil == SAND and plant == DEAD_BUSH):
            put(w, x, ground, z, plant)


@inner
def grow(w: World, p: Plan) -> None:
    """Grows all plants of a biome on the columns that are not reserved."""
    _trees(w, p)
    _solids(w, p)
    _lows(w, p)
