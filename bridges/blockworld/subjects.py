"""What is placed in a scene: its subject, and the creatures."""

from __future__ import annotations

from math import sqrt
from typing import Any

from bridges.blockworld.blocks import BED as BED_BLOCK
from bridges.blockworld.blocks import CRAFTING_TABLE as TABLE_BLOCK
from bridges.blockworld.blocks import FURNACE as FURNACE_BLOCK
from bridges.blockworld.blocks import IRON_ORE as IRON_BLOCK
from bridges.blockworld.blocks import SOLID
from bridges.blockworld.blocks import STONE as STONE_BLOCK
from bridges.blockworld.buildings import OUT_X, OUT_Z, furnish, side_towards
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.factors import (
    BED,
    CRAFTING_TABLE,
    FURNACE,
    HUT,
    IRON_ORE,
    STONE,
    TREE,
)
from bridges.blockworld.plan import BARE, SHADE, Plan, begin, fold, level, put, reserve
from bridges.blockworld.plants import grow_tree, tree_kind
from bridges.blockworld.scene import HUT_HALF
from bridges.blockworld.species import COATS, HEALTH, SHEEP, SPIDER
from bridges.blockworld.world import (
    MAX_CREATURES,
    SIZE,
    below,
    chance,
    cosine,
    place,
    sine,
)

NEAREST_OTHER, FARTHEST_OTHER = 4.0, 14.0
"""Distance of the other creatures from the player, in blocks."""
HERD = 3.5
"""Distance of the rest of the subject from the first of its kind, in blocks."""
ELBOW_ROOM = 1.8
"""Minimum distance of creatures from the player at the start, in blocks."""


@inner
def _roomy(w: World, p: Plan, x: int, z: int, kind: int) -> bool:
    """Whether a creature has room to stand in the middle of a column."""
    ground = int(p.ground[x * SIZE + z])
    if ground == 0:
        return False
    at = place(x, ground, z)
    if SOLID[w.blocks[at]] or SOLID[w.blocks[at + 1]]:
        return False
    if kind == SPIDER:  # wider than a column
        for i in range(x - 1, x + 2):
            for k in range(z - 1, z + 2):
                if SOLID[w.blocks[place(i, ground, k)]]:
                    return False
    return True


@inner
def _crowded(w: World, x: int, z: int, gap: int) -> bool:
    """Whether a creature stands fewer than ``gap`` columns away."""
    for n in range(MAX_CREATURES):
        if w.c_kind[n] > 0:
            away_x, away_z = abs(int(w.c_x[n]) - x), abs(int(w.c_z[n]) - z)
            if max(away_x, away_z) < gap:
                return True
    return False


@inner
def _add(w: World, p: Plan, n: int, kind: int, coat: int, x: int, z: int) -> None:
    w.c_kind[n], w.c_coat[n] = kind, coat
    w.c_x[n], w.c_y[n], w.c_z[n] = x + 0.5, p.ground[x * SIZE + z], z + 0.5
    w.c_yaw[n] = below(w, 360)
    w.c_health[n] = HEALTH[kind]
    w.c_timer[n] = 10 + below(w, 80)
    w.c_ground[n] = 1
    reserve(p, x, z, 1, SHADE)


@inner
def _player_away(p: Plan, x: int, z: int) -> float:
    i, k = float(x - p.player_x), float(z - p.player_z)
    return sqrt(i * i + k * k)


@inner
def _place_beside(w: World, p: Plan, n: int, o: Any) -> None:
    """Places one more of a herd: no nearer to the player than requested, if there is room."""
    kind = int(o.subject)
    coat = int(o.coat) if kind == SHEEP else 0
    for _ in range(40):
        i, k = below(w, 7) - 3, below(w, 7) - 3
        x, z = int(p.subject_x) + i, int(p.subject_z) + k
        if i * i + k * k > HERD * HERD or _player_away(p, x, z) < o.nearest:
            continue
        if not _crowded(w, x, z, 2) and _roomy(w, p, x, z, kind):
            _add(w, p, n, kind, coat, x, z)
            return
    gap = 2 if kind == SPIDER else 1
    first = below(w, 49)
    for turn in range(49):
        i, k = (first + turn) % 49 // 7 - 3, (first + turn) % 7 - 3
        x, z = int(p.subject_x) + i, int(p.subject_z) + k
        if i * i + k * k > HERD * HERD or _player_away(p, x, z) < ELBOW_ROOM:
            continue
        if not _crowded(w, x, z, gap) and _roomy(w, p, x, z, kind):
            _add(w, p, n, kind, coat, x, z)
            return


@inner
def _boulder(w: World, p: Plan, with_iron: bool) -> None:
    """Places a boulder of stone, two blocks high; iron is visible at least on the player's side."""
    x, z, height = int(p.subject_x), int(p.subject_z), int(p.height)
    for i in range(x - 1, x + 2):
        for k in range(z - 1, z + 2):
            for y in range(height, height + 2):
                corner = i != x and k != z
                if y == height or not corner or chance(w) < 0.6:
                    put(w, i, y, k, STONE_BLOCK)
            p.keep[i * SIZE + k] |= BARE
            p.ground[i * SIZE + k] = 0
    reserve(p, x, z, 2, SHADE)
    if not with_iron:
        return
    facing = side_towards(p.player_x - x, p.player_z - z) + 4
    put(w, x + OUT_X[facing - 4], height + 1, z + OUT_Z[facing - 4], IRON_BLOCK)
    # Eight blocks are visible on the four sides; in steps of three each comes up once.
    cell, more = below(w, 8), 1 + below(w, 3)
    while more > 0:
        cell = (cell + 3) % 8
        if cell != facing:
            put(w, x + OUT_X[cell % 4], height + cell // 4, z + OUT_Z[cell % 4], IRON_BLOCK)
            more -= 1


@inner
def _stand(p: Plan, x: int, z: int) -> None:
    """Reserves a column for a block that was placed there."""
    p.keep[x * SIZE + z] |= BARE
    p.ground[x * SIZE + z] = 0
    reserve(p, x, z, 1, SHADE)


@inner
def put_subject(w: World, p: Plan, o: Any) -> None:
    """Places the subject of the scene; the shell of a hut stands already."""
    begin(w, p.scene_key, 3)
    subject, x, z = int(o.subject), int(p.subject_x), int(p.subject_z)
    height = int(p.height)
    if 0 < subject < TREE:
        _add(w, p, 0, subject, int(o.coat) if subject == SHEEP else 0, x, z)
        for n in range(1, o.number):
            _place_beside(w, p, n, o)
    elif subject == TREE:
        grow_tree(w, p, x, z, tree_kind(w, p.biome))
    elif subject in (STONE, IRON_ORE):
        _boulder(w, p, subject == IRON_ORE)
    elif subject == HUT:
        furnish(w, p.centre_x, p.centre_z, HUT_HALF, p.side, height)
    elif subject == BED:
        side = side_towards(x - p.player_x, z - p.player_z)
        i, k = x + OUT_X[side], z + OUT_Z[side]
        level(w, p, i * SIZE + k, height)
        put(w, x, height, z, BED_BLOCK)
        put(w, i, height, k, BED_BLOCK)
        _stand(p, x, z)
        _stand(p, i, k)
    elif subject == CRAFTING_TABLE:
        put(w, x, height, z, TABLE_BLOCK)
        _stand(p, x, z)
    elif subject == FURNACE:
        put(w, x, height, z, FURNACE_BLOCK)
        w.furnaces[0] = place(x, height, z)
        _stand(p, x, z)


@inner
def _try_other(w: World, p: Plan, n: int, kind: int, x: int, z: int) -> bool:
    """Adds another creature if it may stand on a column."""
    if not (3 <= x <= SIZE - 4 and 3 <= z <= SIZE - 4):
        return False
    away = _player_away(p, x, z)
    if away < NEAREST_OTHER or away > FARTHEST_OTHER or _crowded(w, x, z, 2):
        return False
    if not _roomy(w, p, x, z, kind):
        return False
    _add(w, p, n, kind, 0, x, z)
    if kind == SHEEP:
        w.c_coat[n] = below(w, len(COATS))
    return True


@inner
def put_others(w: World, p: Plan, o: Any) -> None:
    """Places the other creatures on free ground around the player; changes no block."""
    kind = int(o.others_kind)
    begin(w, fold(fold(p.scene_key, kind), o.others_count), 4)
    first = 0
    while first < MAX_CREATURES and w.c_kind[first] > 0:
        first += 1
    for n in range(first, first + o.others_count):
        placed = False
        for _ in range(40):
            yaw = float(below(w, 360))
            away = NEAREST_OTHER + chance(w) * (FARTHEST_OTHER - NEAREST_OTHER)
            x = int(p.player_x + 0.5 - away * sine(yaw))
            z = int(p.player_z + 0.5 + away * cosine(yaw))
            if _try_other(w, p, n, kind, x, z):
                placed = True
                break
        if not placed:
            start = below(w, SIZE * SIZE)
            for turn in range(SIZE * SIZE):
                column = (start + turn) % (SIZE * SIZE)
                if _try_other(w, p, n, kind, column // SIZE, column % SIZE):
                    break
