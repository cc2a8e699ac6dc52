"""Behaviour and motion of creatures: they wander, flee, chase, strike, shoot and avoid dangers.

It is cheap: a creature that stands still is not moved, and decisions are made only every few ticks,
in turn.
"""

from __future__ import annotations

import math

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import CACTUS, FORM, ICE, LAVA, LIQUID, SOLID, WATER
from bridges.blockworld.rules.collision import (
    HIT_X,
    HIT_Y,
    HIT_Z,
    SURFACE,
    TOUCH,
    any_solid,
    body_fits,
    floor,
    free_share,
    heading,
    move_body,
)
from bridges.blockworld.rules.combat import (
    BLOW,
    CHASE_TICKS,
    NOT_BY_PLAYER,
    PARRIED,
    hurt_creature,
    hurt_player,
    knock_creature,
    shoot,
)
from bridges.blockworld.rules.motion import (
    AIR_DRAG,
    BANK_SPEED,
    GRAVITY,
    JUMP_SPEED,
    SAFE_FALL,
    SLIPPERY,
    fall_cost,
    sinking,
)
from bridges.blockworld.rules.species import (
    CHICKEN,
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
from bridges.blockworld.rules.world import (
    CHASE,
    CLEAR,
    COLUMNS,
    DAY,
    FLEE,
    HEIGHT,
    IDLE,
    MAX_CREATURES,
    RAIN,
    SIZE,
    STANDING,
    TICKS_PER_SECOND,
    WANDER,
    block_at,
    chance,
    cosine,
    eye_height,
    place,
    sine,
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
    """True if no solid block is between a creature's eyes and the player's."""
    x, z = np.float64(w.c_x[n]), np.float64(w.c_z[n])
    y = np.float64(w.c_y[n]) + _EYES * np.float64(TALL[whole(w.c_kind[n])])
    return free_share(w, x, y, z, w.x - x, w.y + eye_height(w) - y, w.z - z) >= 1.0


@inner
def _choose(w: World, n: int) -> None:
    """Makes a new decision for a creature whose time is up."""
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
    """Updates whether a hostile creature notices or remembers the player."""
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
    """Makes a creature that chases the player strike, leap or shoot if it can."""
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
    """Decides for a creature; returns its step in this tick."""
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


# motion -------------------------------------------------------------------------------------------

DARES_TO_FALL = 3
"""Maximum blocks that a creature steps down."""
_STILL = 0.003
_GROUND_DRAG = 0.6 * 0.91
_AIR_PUSH = 0.02
_FOOTHOLD = 0.1  # blocks beyond an obstacle that must be free to climb it
_LAVA_COST, _LAVA_BURN_TICKS = 4.0, 300


@inner
def daylight(w: World, n: int) -> bool:
    """True if it is day with open sky above a creature's head; water counts as shade."""
    if whole(w.time) % DAY >= DAY // 2:
        return False
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    column = floor(x) * SIZE + floor(z)
    if column < 0 or column >= COLUMNS:
        return False
    return y + TOUCH >= w.heights[column] and block_at(w, x, y, z) != WATER


@inner
def safe_ahead(w: World, n: int, kind: int, yaw: float) -> bool:
    """True if it is safe for a creature to continue along ``yaw``.

    It avoids lava, cacti, water deeper than one block unless it already swims, and steps down of
    more than three blocks. A wall is safe: it only stops the creature.
    """
    reach = np.float64(WIDTH[kind]) * 0.5 + 0.6
    x = np.float64(w.c_x[n]) - sine(yaw) * reach
    y = np.float64(w.c_y[n]) + 0.5
    z = np.float64(w.c_z[n]) + cosine(yaw) * reach
    i, j, k = floor(x), floor(y), floor(z)
    if i <= 0 or k <= 0 or i >= SIZE - 1 or k >= SIZE - 1 or j < 1 or j >= HEIGHT:
        return False
    at = place(i, j, k)
    block = whole(w.blocks[at])
    if SOLID[block]:
        return block != CACTUS
    swims = block_at(w, np.float64(w.c_x[n]), y, np.float64(w.c_z[n])) == WATER
    for down in range(min(j, DARES_TO_FALL + 1) + 1):
        block = whole(w.blocks[at - down])
        if block == LAVA:
            return False
        if block == WATER:
            return swims or SOLID[w.blocks[at - min(j, down + 1)]] != 0
        if SOLID[block]:
            return block != CACTUS
    return swims


@inner
def _stands_still(w: World, n: int, kind: int) -> bool:
    """True if a creature that does not step would not move."""
    if not w.c_ground[n] or w.c_vx[n] != 0.0 or w.c_vz[n] != 0.0 or w.c_vy[n] > 0.0:
        return False
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    at = place(floor(x), floor(y + 0.5), floor(z))
    if FORM[w.blocks[at]] == LIQUID:
        return False
    half = np.float64(WIDTH[kind]) * 0.5 - TOUCH
    j = floor(y + 0.5) - 1
    if SOLID[w.blocks[at - 1]]:
        return True
    return any_solid(w, floor(x - half), floor(x + half), j, j, floor(z - half), floor(z + half))


@inner
def _obstructed(w: World, n: int, kind: int, swims: bool, stands: bool) -> None:
    """Makes a creature that ran into an obstacle climb it, or turn."""
    if not swims and not stands:
        return
    yaw = np.float64(w.c_yaw[n])
    x = np.float64(w.c_x[n]) - _FOOTHOLD * sine(yaw)
    y = np.float64(w.c_y[n]) + 1.0
    z = np.float64(w.c_z[n]) + _FOOTHOLD * cosine(yaw)
    if body_fits(w, x, y, z, np.float64(WIDTH[kind]), np.float64(TALL[kind])):
        w.c_vy[n] = BANK_SPEED if swims else JUMP_SPEED
        w.c_ground[n] = 0
    elif w.c_mode[n] == WANDER:
        w.c_mode[n], w.c_timer[n] = IDLE, 20
    elif w.c_mode[n] == FLEE:
        w.c_yaw[n] = yaw + 90.0 + 180.0 * chance(w)


@inner
def _suffer(w: World, n: int, kind: int, landed: bool) -> None:
    """Applies damage of falls and lava to a creature."""
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    cost = 0.0
    if landed:
        fallen = np.float64(w.c_fall[n])
        w.c_fall[n] = 0.0
        if fallen > SAFE_FALL and kind != CHICKEN:
            cost = fall_cost(fallen)
    inside = block_at(w, x, y, z)
    if inside == LAVA:
        w.c_burn[n] = _LAVA_BURN_TICKS
        cost = max(cost, _LAVA_COST)
    elif inside == WATER:
        w.c_burn[n] = 0
    if cost > 0.0:
        hurt_creature(w, n, cost, x, z, NOT_BY_PLAYER)


@inner
def _depth(w: World, x: float, y: float, z: float) -> float:
    """Returns the height of a liquid above a creature's feet; over one block counts as deep."""
    inside = block_at(w, x, y, z)
    if FORM[inside] != LIQUID:
        return 0.0
    deep = block_at(w, x, y + 1.0, z) == inside
    return max(floor(y) + (2.0 if deep else SURFACE) - y, 0.0)


@inner
def step_creature(w: World, n: int, kind: int, speed: float) -> None:
    """Moves a creature for one tick.

    Args:
        w: the world.
        n: the creature.
        kind: its species.
        speed: blocks per tick that it steps in its direction; negative for backwards.
    """
    if speed == 0.0 and _stands_still(w, n, kind):
        return
    x: float = np.float64(w.c_x[n])
    y: float = np.float64(w.c_y[n])
    z: float = np.float64(w.c_z[n])
    vx: float = np.float64(w.c_vx[n])
    vy: float = np.float64(w.c_vy[n])
    vz: float = np.float64(w.c_vz[n])
    depth = _depth(w, x, y, z)
    ground = w.c_ground[n] != 0
    drag = _GROUND_DRAG if ground else 0.91
    if ground and block_at(w, x, y - 0.5, z) == ICE:
        drag = SLIPPERY * 0.91
    if speed != 0.0:
        push = speed * (1.0 - drag)
        if depth > 0.0 or not ground:
            push = min(max(push, -_AIR_PUSH), _AIR_PUSH)
        yaw = np.float64(w.c_yaw[n])
        vx, vz = vx - sine(yaw) * push, vz + cosine(yaw) * push
    if depth > 0.4:
        vy += 0.04  # swims up
    wide, tall = np.float64(WIDTH[kind]), np.float64(TALL[kind])
    x, y, z, hit = move_body(w, x, y, z, wide, tall, vx, vy, vz)
    landed = bool(hit & HIT_Y and vy < 0.0)
    fallen = 0.0
    if depth == 0.0:
        fallen = np.float64(w.c_fall[n]) + max(np.float64(w.c_y[n]) - y, 0.0)
    w.c_x[n], w.c_y[n], w.c_z[n] = x, y, z
    w.c_ground[n], w.c_fall[n] = landed, fallen
    vx = 0.0 if hit & HIT_X else vx
    vy = 0.0 if hit & HIT_Y else vy
    vz = 0.0 if hit & HIT_Z else vz
    if depth > 0.0:
        vx, vy, vz = vx * 0.8, sinking(vy * 0.8), vz * 0.8
    else:
        vx, vy, vz = vx * drag, (vy - GRAVITY) * AIR_DRAG, vz * drag
        if kind == CHICKEN and vy < 0.0 and not landed:
            vy *= 0.6  # flutters
    w.c_vx[n] = vx if abs(vx) >= _STILL else 0.0
    w.c_vy[n] = vy
    w.c_vz[n] = vz if abs(vz) >= _STILL else 0.0
    if hit & (HIT_X | HIT_Z) and speed != 0.0:
        _obstructed(w, n, kind, depth > 0.0, landed)
    _suffer(w, n, kind, landed)
