"""The scene: the positions of the player and its subject, and the ground between and below.

Positions are drawn until one is suitable; if none is, the best of them is made suitable: its ground
is levelled, water filled, a way cut. So a scene always matches the state.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from bridges.blockworld.buildings import OUT_X, OUT_Z, side_towards
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.factors import (
    BED,
    BED_IN_HUT,
    HUT,
    IRON_ORE,
    MOUNTAIN,
    NO_SUBJECT,
    STONE,
    TREE,
)
from bridges.blockworld.plan import HIGHEST_SUBJECT, SEA, Plan, begin, level, level_square, uneven
from bridges.blockworld.species import SPIDER
from bridges.blockworld.world import SIZE, below, chance, cosine, sine

MARGIN = 7
"""Minimum columns from the player's start to the edge."""
HUT_HALF = 3
"""Columns from the middle of a subject hut to each side: it is 7 columns wide."""
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
    """Whether the two columns have the requested distance and bearing."""
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
