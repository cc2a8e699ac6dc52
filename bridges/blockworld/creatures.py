"""The behaviour of creatures: they wander, flee, chase, strike and shoot, and avoid dangers.

It is cheap: a creature that stands still is not moved, and decisions are made only every few ticks,
in turn.
"""

from __future__ import annotations

import math

import numpy as np

from bridges.blockworld.arrows import shoot
from bridges.blockworld.collision import free_share, heading
from bridges.blockworld.combat import (
    BLOW,
    CHASE_TICKS,
    NOT_BY_PLAYER,
    PARRIED,
    hurt_creature,
    hurt_player,
    knock_creature,
)
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.gait import daylight, safe_ahead, step_creature
from bridges.blockworld.species import (
    DAMAGE,
    HEALTH,
    HOSTILE,
    NOBODY,
    RUN,
    SKELETON,
    SPECIES,
    SPIDER,
    TALL,
    WALK,
    WIDTH,
    ZOMBIE,
)
from bridges.blockworld.whole import whole
from bridges.blockworld.world import (
    CHASE,
    CLEAR,
    FLEE,
    IDLE,
    MAX_CREATURES,
    RAIN,
    STANDING,
    TICKS_PER_SECOND,
    WANDER,
    chance,
    eye_height,
)

NOTICE = 16.0
"""Blocks within which a hostile creature notices the player."""
BLOW_PAUSE = 20
"""Ticks between two blows of a creature."""
NEAREST_SHOT, FARTHEST_SHOT = 4.0, 10.0
"""Distance in blocks that a skeleton keeps from the player."""
BURN_TICKS = 160
_SEEN_TICKS = CHASE_TICKS - 16  # with more of the chase left it has just seen the player
_ARROW_SPEED, _ARROW_SPREAD = 1.6, 0.09
_EYES = 0.85  # of its height
_PUSH = 0.05
_SHUNS_DAY = np.isin(np.arange(len(SPECIES)), (ZOMBIE, SKELETON))


@inner
def add_creature(w: World, kind: int, x: float, y: float, z: float) -> int:
    """Puts a creature of a kind at a position, in full health; returns its number, -1 if full."""
    for n in range(MAX_CREATURES):
        if w.c_kind[n] == NOBODY:
            w.c_kind[n], w.c_coat[n], w.c_mode[n], w.c_ground[n] = kind, 0, IDLE, 0
            w.c_x[n], w.c_y[n], w.c_z[n] = x, y, z
            w.c_vx[n], w.c_vy[n], w.c_vz[n] = 0.0, 0.0, 0.0
            w.c_yaw[n], w.c_health[n], w.c_fall[n] = 0.0, HEALTH[kind], 0.0
            w.c_timer[n], w.c_hurt[n], w.c_attack[n], w.c_burn[n] = 20 + 7 * n, 0, 0, 0
            w.c_blame[n] = 0
            return n
    return -1


@inner
def sees_player(w: World, n: int) -> bool:
    """Whether no solid block is between a creature's eyes and the player's."""
    x, z = np.float64(w.c_x[n]), np.float64(w.c_z[n])
    y = np.float64(w.c_y[n]) + _EYES * np.float64(TALL[whole(w.c_kind[n])])
    return free_share(w, x, y, z, w.x - x, w.y + eye_height(w) - y, w.z - z) >= 1.0


@inner
def _choose(w: World, n: int) -> None:
    """Lets a creature whose time is up make a new decision."""
    if w.c_mode[n] == IDLE and int(3 * chance(w)) > 0:
        w.c_mode[n] = WANDER
        w.c_yaw[n] = 360.0 * chance(w) - 180.0
        w.c_timer[n] = 20 + int(80 * chance(w))
        return
    if w.c_mode[n] == IDLE and not HOSTILE[whole(w.c_kind[n])]:
        w.c_yaw[n] = np.float64(w.c_yaw[n]) + 120.0 * chance(w) - 60.0
    w.c_mode[n] = IDLE
    w.c_timer[n] = 40 + int(120 * chance(w))


@inner
def _notice(w: World, n: int, kind: int, distance: float) -> None:
    """Lets a hostile creature notice the player, or remember it."""
    chasing = w.c_mode[n] == CHASE
    if distance > NOTICE or w.dead:
        return
    if kind == SPIDER and w.weather <= RAIN and daylight(w, n):
        # by day a spider attacks only a player that hurt it, and forgets after a while
        if not chasing:
            return
        if chance(w) < 0.08:
            w.c_timer[n] = 0
            return
    if sees_player(w, n):
        w.c_mode[n], w.c_timer[n] = CHASE, CHASE_TICKS


@inner
def _shoot(w: World, n: int) -> None:
    x, z = np.float64(w.c_x[n]), np.float64(w.c_z[n])
    y = np.float64(w.c_y[n]) + _EYES * np.float64(TALL[SKELETON])
    dx, dy, dz = w.x - x, w.y + STANDING / 3.0 - y, w.z - z
    flat = math.sqrt(dx * dx + dz * dz)
    dy += flat * 0.2  # compensates for the fall of the arrow
    length = math.sqrt(flat * flat + dy * dy)
    if length > 0.0:
        spread = _ARROW_SPREAD * length
        dx += spread * (chance(w) + chance(w) - 1.0)
        dy += spread * (chance(w) + chance(w) - 1.0)
        dz += spread * (chance(w) + chance(w) - 1.0)
        speed = _ARROW_SPEED / length
        shoot(w, x, y, z, dx * speed, dy * speed, dz * speed)
    w.c_attack[n] = 30 + int(11 * chance(w))


@inner
def _attack(w: World, n: int, kind: int, dx: float, dz: float, flat: float) -> None:
    """Lets a creature that chases the player strike, leap or shoot if it can."""
    if kind == SKELETON:
        if w.c_attack[n] == 0 and w.c_timer[n] > _SEEN_TICKS and flat < NOTICE:
            _shoot(w, n)
        return
    up = w.y - np.float64(w.c_y[n])
    width = np.float64(WIDTH[kind])
    reach = 4.0 + 0.6 if kind == SPIDER else 4.0 * width * width + 0.6
    if w.c_attack[n] == 0 and flat * flat + up * up <= reach and sees_player(w, n):
        w.c_attack[n] = BLOW_PAUSE
        x, z = np.float64(w.c_x[n]), np.float64(w.c_z[n])
        if hurt_player(w, np.float64(DAMAGE[kind]), x, z, BLOW) == PARRIED:
            knock_creature(w, n, -dx, -dz, 0.5)
    elif kind == SPIDER and w.c_ground[n] and 2.0 < flat < 4.0 and chance(w) < 0.2:
        w.c_vx[n] = np.float64(w.c_vx[n]) * 0.2 + 0.4 * dx / flat
        w.c_vz[n] = np.float64(w.c_vz[n]) * 0.2 + 0.4 * dz / flat
        w.c_vy[n] = 0.4
        w.c_ground[n] = 0


@inner
def _chase(w: World, n: int, kind: int, think: bool) -> float:
    """Moves a creature towards the player; returns its step, 1 forwards to -1 backwards."""
    dx, dz = w.x - np.float64(w.c_x[n]), w.z - np.float64(w.c_z[n])
    flat = math.sqrt(dx * dx + dz * dz)
    yaw = heading(dx, dz)
    w.c_yaw[n] = yaw
    step = 1.0
    if kind == SKELETON and w.c_timer[n] > _SEEN_TICKS:
        step = -1.0 if flat < NEAREST_SHOT else (1.0 if flat > FARTHEST_SHOT else 0.0)
    elif flat < 0.5 * np.float64(WIDTH[kind]):
        step = 0.0
    _attack(w, n, kind, dx, dz, flat)
    if step != 0.0 and not safe_ahead(w, n, kind, yaw if step > 0.0 else yaw + 180.0):
        step = 0.0
        for turn in range(-1, 2, 2):  # around obstacles
            if safe_ahead(w, n, kind, yaw + 50.0 * turn) and think:
                w.c_yaw[n] = yaw + 50.0 * turn
                return 1.0
    return step


@inner
def _mind(w: World, n: int, kind: int, think: bool) -> float:
    """Lets a creature decide; returns its step in this tick."""
    mode = whole(w.c_mode[n])
    if mode == CHASE:
        return _chase(w, n, kind, think)
    if mode == IDLE:
        return 0.0
    if think and not safe_ahead(w, n, kind, np.float64(w.c_yaw[n])):
        w.c_yaw[n] = np.float64(w.c_yaw[n]) + 90.0 + 180.0 * chance(w)
        if mode == WANDER:
            w.c_mode[n], w.c_timer[n] = IDLE, 10 + int(30 * chance(w))
        if mode == WANDER or not safe_ahead(w, n, kind, np.float64(w.c_yaw[n])):
            return 0.0
    elif think and mode == FLEE and int(5 * chance(w)) == 0:
        w.c_yaw[n] = np.float64(w.c_yaw[n]) + 120.0 * chance(w) - 60.0
    return 1.0


@inner
def _burn(w: World, n: int, kind: int, turn: int) -> None:
    """Burns zombies and skeletons in daylight, and creatures that already burn."""
    if turn & 15 == 0 and _SHUNS_DAY[kind] and w.weather == CLEAR and daylight(w, n):
        w.c_burn[n] = BURN_TICKS
    if w.c_burn[n] > 0:
        w.c_burn[n] -= 1
        if turn % TICKS_PER_SECOND == 0:
            hurt_creature(w, n, 1.0, np.float64(w.c_x[n]), np.float64(w.c_z[n]), NOT_BY_PLAYER)


@inner
def _push_apart(w: World, n: int, kind: int) -> None:
    """Pushes a creature and those it overlaps gently apart, also the player."""
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    half, tall = np.float64(WIDTH[kind]) * 0.5, np.float64(TALL[kind])
    for m in range(n + 1, MAX_CREATURES + 1):
        if m == MAX_CREATURES:
            dx, dy, dz = w.x - x, w.y - y, w.z - z
            near, high = half + 0.3, STANDING
        else:
            other = whole(w.c_kind[m])
            if other == NOBODY:
                continue
            dx, dy, dz = (
                np.float64(w.c_x[m]) - x,
                np.float64(w.c_y[m]) - y,
                np.float64(w.c_z[m]) - z,
            )
            near, high = half + np.float64(WIDTH[other]) * 0.5, np.float64(TALL[other])
        if abs(dx) >= near or abs(dz) >= near or dy >= tall or -dy >= high:
            continue
        away = math.sqrt(max(abs(dx), abs(dz)))
        if away < 0.1:
            dx, dz, away = 0.1, 0.1, 1.0  # at the same position: apart along the diagonal
        push = _PUSH / away * min(1.0, 1.0 / away)
        w.c_vx[n], w.c_vz[n] = np.float64(w.c_vx[n]) - dx * push, np.float64(w.c_vz[n]) - dz * push
        if m == MAX_CREATURES:
            w.vx, w.vz = w.vx + dx * push, w.vz + dz * push
        else:
            w.c_vx[m], w.c_vz[m] = (
                np.float64(w.c_vx[m]) + dx * push,
                np.float64(w.c_vz[m]) + dz * push,
            )


@inner
def _tick_creature(w: World, n: int, kind: int) -> None:
    turn = whole(w.tick) + n
    if w.c_hurt[n] > 0:
        w.c_hurt[n] -= 1
    if w.c_blame[n] > 0:
        w.c_blame[n] -= 1
    if w.c_attack[n] > 0:
        w.c_attack[n] -= 1
    if HOSTILE[kind] and turn & 7 == 0:
        dx, dy, dz = (
            w.x - np.float64(w.c_x[n]),
            w.y - np.float64(w.c_y[n]),
            w.z - np.float64(w.c_z[n]),
        )
        _notice(w, n, kind, math.sqrt(dx * dx + dy * dy + dz * dz))
    if w.c_timer[n] > 0:
        w.c_timer[n] -= 1
    else:
        _choose(w, n)
    step = _mind(w, n, kind, turn & 3 == 0)
    hasty = w.c_mode[n] >= FLEE
    speed = np.float64(RUN[kind]) if hasty else np.float64(WALK[kind])
    step_creature(w, n, kind, step * speed / TICKS_PER_SECOND)
    if w.c_burn[n] > 0 or turn & 15 == 0:
        _burn(w, n, kind, turn)


@inner
def tick_creatures(w: World) -> None:
    """Updates every creature for one tick."""
    for n in range(MAX_CREATURES):
        kind = whole(w.c_kind[n])
        if kind != NOBODY:
            _tick_creature(w, n, kind)
    for n in range(MAX_CREATURES):
        kind = whole(w.c_kind[n])
        if kind != NOBODY:
            _push_apart(w, n, kind)
