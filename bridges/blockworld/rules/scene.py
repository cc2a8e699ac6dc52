"""The scene: the player, its subject, other creatures, and the ground between and below.

Positions are drawn until one is suitable; if none is, the best of them is made suitable: its ground
is levelled, water filled, a way cut. So a scene always matches the state.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import BED as BED_BLOCK
from bridges.blockworld.rules.blocks import CRAFTING_TABLE as TABLE_BLOCK
from bridges.blockworld.rules.blocks import FURNACE as FURNACE_BLOCK
from bridges.blockworld.rules.blocks import IRON_ORE as IRON_BLOCK
from bridges.blockworld.rules.blocks import SOLID
from bridges.blockworld.rules.blocks import STONE as STONE_BLOCK
from bridges.blockworld.rules.buildings import HUT_HALF, OUT_X, OUT_Z, furnish, side_towards
from bridges.blockworld.rules.factors import (
    BED,
    BED_IN_HUT,
    CRAFTING_TABLE,
    FURNACE,
    HUT,
    IRON_ORE,
    MOUNTAIN,
    NO_SUBJECT,
    STONE,
    TREE,
)
from bridges.blockworld.rules.ground import (
    BARE,
    HIGHEST_SUBJECT,
    SEA,
    SHADE,
    Plan,
    begin,
    fold,
    level,
    level_square,
    put,
    reserve,
    uneven,
)
from bridges.blockworld.rules.plants import grow_tree, tree_kind
from bridges.blockworld.rules.species import COATS, HEALTH, SHEEP, SPIDER
from bridges.blockworld.rules.world import MAX_CREATURES, SIZE, below, chance, cosine, place, sine

MARGIN = 7
"""Minimum columns from the player's start to the edge."""
RISE = 11
"""Height of a subject mountain's top above the player's feet in blocks."""
SLOPE = 12
"""Columns from the foot of such a mountain to its top."""
HIGHEST_START = 17
"""Maximum feet of a player who is to climb: the mountain must stay below the sky."""

_CANDIDATES = 24
_TRIES = 240
_OFF = 0.13  # sine of the largest deviation of a subject from the bearing: 7.5 degrees


@inner
def _radius(subject: int, number: int) -> int:
    """Returns the half width of the level ground that a subject needs around its centre."""
    if subject == HUT:
        return HUT_HALF + 1
    if subject in (STONE, IRON_ORE, BED):
        return 2
    if subject >= TREE or number == 1:
        return 1
    return 4 if subject == SPIDER else 3


@inner
def _slack(subject: int) -> int:
    """Returns the unevenness that is allowed for that ground."""
    return 0 if subject in (SPIDER, HUT) else 1


@inner
def _wanted(p: Plan, o: Any, distance: float) -> int:
    """Returns the height of the ground at the subject: unchanged, if it can be reached.

    A subject nearby is level with the player.
    """
    feet = int(p.feet)
    if distance < 7.0:
        return feet
    now = int(p.ground[p.subject_x * SIZE + p.subject_z])
    if now == 0:
        now = SEA
    most = int(distance / 2) - 2  # less than a way up or down needs
    return min(max(now, feet - most), feet + most, HIGHEST_SUBJECT)


@inner
def _set_places(p: Plan, o: Any, distance: float, dx: float, dz: float) -> None:
    """Fills the plan from the columns of the player and the subject."""
    subject = int(o.subject)
    ground = int(p.ground[p.player_x * SIZE + p.player_z])
    most = HIGHEST_START if subject == MOUNTAIN else HIGHEST_SUBJECT
    p.feet = min(ground if ground > 0 else SEA, most)
    p.height = _wanted(p, o, distance)
    p.centre_x = p.target_x = p.subject_x
    p.centre_z = p.target_z = p.subject_z
    p.radius = _radius(subject, o.number)
    if subject == HUT:
        p.side = side_towards(p.player_x - p.subject_x, p.player_z - p.subject_z)
        p.centre_x -= HUT_HALF * OUT_X[p.side]
        p.centre_z -= HUT_HALF * OUT_Z[p.side]
        p.target_x += OUT_X[p.side]
        p.target_z += OUT_Z[p.side]
    elif subject == MOUNTAIN:
        p.centre_x = p.target_x = int(p.subject_x + 0.5 + SLOPE * dx)
        p.centre_z = p.target_z = int(p.subject_z + 0.5 + SLOPE * dz)


@inner
def _fits(p: Plan, o: Any, dx: float, dz: float) -> bool:
    """True if the two columns have the requested distance and bearing."""
    i, k = p.subject_x - p.player_x, p.subject_z - p.player_z
    distance = sqrt(float(i * i + k * k))
    if distance < o.nearest or distance >= o.farthest:
        return False
    if abs(i * dz - k * dx) > _OFF * distance or i * dx + k * dz < 0:
        return False
    return o.subject not in (STONE, IRON_ORE) or max(abs(i), abs(k)) > 2


@inner
def _faults(p: Plan, o: Any) -> int:
    """Returns how many changes the positions of a plan would need."""
    ground = int(p.ground[p.player_x * SIZE + p.player_z])
    faults = uneven(p, p.player_x, p.player_z, 1, p.feet, 1)
    if ground != p.feet:
        faults += 4
    if o.subject == MOUNTAIN:
        return faults
    faults += uneven(p, p.centre_x, p.centre_z, p.radius, p.height, _slack(o.subject))
    if p.ground[p.subject_x * SIZE + p.subject_z] != p.height:
        faults += 1
    return faults


@inner
def _draw(w: World, p: Plan, o: Any) -> bool:
    """Draws positions and a yaw; returns whether they match the state."""
    yaw = float(below(w, 360))
    dx, dz = -sine(yaw + o.bearing), cosine(yaw + o.bearing)
    distance = o.nearest + chance(w) * (o.farthest - o.nearest)
    subject = int(o.subject)
    reach = 0.0 if subject == NO_SUBJECT else distance
    margin = 11 if subject == HUT else 8
    if subject == MOUNTAIN:
        reach, margin = distance + SLOPE, 6
    # The player stands so that the subject at its distance keeps the margin.
    low_x, high_x = max(MARGIN, margin - reach * dx), min(56.0, 63 - margin - reach * dx)
    low_z, high_z = max(MARGIN, margin - reach * dz), min(56.0, 63 - margin - reach * dz)
    p.player_x = int(low_x + chance(w) * (high_x - low_x + 1))
    p.player_z = int(low_z + chance(w) * (high_z - low_z + 1))
    p.subject_x, p.subject_z = p.player_x, p.player_z
    if subject != NO_SUBJECT:
        p.subject_x = int(p.player_x + 0.5 + distance * dx)
        p.subject_z = int(p.player_z + 0.5 + distance * dz)
        if not _fits(p, o, dx, dz):
            return False
    p.yaw = yaw
    _set_places(p, o, distance if subject != NO_SUBJECT else 0.0, dx, dz)
    return True


@inner
def choose(w: World, p: Plan, o: Any) -> None:
    """Chooses the positions of the player and its subject, and the direction of the look."""
    begin(w, p.scene_key, 1)
    best, seen = 1 << 30, 0
    best_random = w.random
    for _ in range(_TRIES):
        before = w.random
        if not _draw(w, p, o):
            continue
        faults = _faults(p, o)
        if faults < best:
            best, best_random = faults, before
        seen += 1
        if best == 0 or seen == _CANDIDATES:
            break
    if best < 1 << 30:
        w.random = best_random
        _draw(w, p, o)  # the same numbers again
        return
    # Straight along +z a whole number of blocks fits any range of distances.
    distance = int(o.nearest) + 1
    p.yaw = float((360 - int(o.bearing)) % 360)
    p.player_x, p.player_z = SIZE // 2, MARGIN + 5
    p.subject_x, p.subject_z = p.player_x, p.player_z + distance
    _set_places(p, o, float(distance), 0.0, 1.0)


@inner
def settle(w: World, p: Plan, o: Any) -> None:
    """Levels the ground under the player and its subject, as far as needed."""
    subject = int(o.subject)
    if subject == MOUNTAIN:
        raise_mountain(w, p)
    elif subject not in (NO_SUBJECT, BED_IN_HUT):
        level_square(w, p, p.centre_x, p.centre_z, p.radius, p.height, _slack(subject))
        if subject in (STONE, IRON_ORE, BED):
            level_square(w, p, p.subject_x, p.subject_z, 1, p.height, 0)
        level(w, p, p.subject_x * SIZE + p.subject_z, p.height)
    level_square(w, p, p.player_x, p.player_z, 1, p.feet, 1)
    level(w, p, p.player_x * SIZE + p.player_z, p.feet)


@inner
def _cone(w: World, p: Plan, x: int, z: int, top: int) -> None:
    """Raises the ground to a cone that rises one block per column, with a flat top."""
    wide = top - SEA + 2
    for i in range(max(x - wide, 2), min(x + wide, SIZE - 3) + 1):
        for k in range(max(z - wide, 2), min(z + wide, SIZE - 3) + 1):
            away = sqrt(float((i - x) * (i - x) + (k - z) * (k - z)))
            height = top - int(max(0.0, away - 1.0))
            if height >= SEA and height > p.ground[i * SIZE + k]:
                level(w, p, i * SIZE + k, height)


@inner
def raise_mountain(w: World, p: Plan) -> None:
    """Raises a mountain with two shoulders; any straight way up rises block by block.

    The maximum of functions that change by at most one per column is such a function.
    """
    begin(w, p.scene_key, 2)
    x, z = int(p.centre_x), int(p.centre_z)
    _cone(w, p, x, z, p.feet + RISE)
    across_x, across_z = z - p.subject_z, p.subject_x - x
    for turned in (-1, 1):
        share = turned * (0.4 + 0.2 * chance(w))
        _cone(w, p, int(x + share * across_x), int(z + share * across_z), p.feet + RISE - 4)


# subjects and creatures ---------------------------------------------------------------------------

NEAREST_OTHER, FARTHEST_OTHER = 4.0, 14.0
"""Distance of the other creatures from the player, in blocks."""
HERD = 3.5
"""Distance of the rest of the subject from the first of its kind, in blocks."""
ELBOW_ROOM = 1.8
"""Minimum distance of creatures from the player at the start, in blocks."""


@inner
def _roomy(w: World, p: Plan, x: int, z: int, kind: int) -> bool:
    """True if a creature has room to stand in the middle of a column."""
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
    """True if a creature stands fewer than ``gap`` columns away."""
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
