"""How creatures move: steps, jumps onto blocks, swimming, falls, and which dangers they avoid."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.blocks import CACTUS, FORM, ICE, LAVA, LIQUID, SOLID, WATER
from bridges.blockworld.collision import (
    HIT_X,
    HIT_Y,
    HIT_Z,
    SURFACE,
    TOUCH,
    any_solid,
    body_fits,
    floor,
    move_body,
)
from bridges.blockworld.combat import NOT_BY_PLAYER, hurt_creature
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.motion import (
    AIR_DRAG,
    BANK_SPEED,
    GRAVITY,
    JUMP_SPEED,
    SAFE_FALL,
    SLIPPERY,
    fall_cost,
    sinking,
)
from bridges.blockworld.species import CHICKEN, TALL, WIDTH
from bridges.blockworld.whole import whole
from bridges.blockworld.world import (
    COLUMNS,
    DAY,
    FLEE,
    HEIGHT,
    IDLE,
    SIZE,
    WANDER,
    block_at,
    chance,
    cosine,
    place,
    sine,
)

DARES_TO_FALL = 3
"""Maximum blocks that a creature steps down."""
_STILL = 0.003
_GROUND_DRAG = 0.6 * 0.91
_AIR_PUSH = 0.02
_FOOTHOLD = 0.1  # blocks beyond an obstacle that must be free to climb it
_LAVA_COST, _LAVA_BURN_TICKS = 4.0, 300


@inner
def daylight(w: World, n: int) -> bool:
    """Whether it is day with open sky above a creature's head; water counts as shade."""
    if whole(w.time) % DAY >= DAY // 2:
        return False
    x, y, z = np.float64(w.c_x[n]), np.float64(w.c_y[n]), np.float64(w.c_z[n])
    column = floor(x) * SIZE + floor(z)
    if column < 0 or column >= COLUMNS:
        return False
    return y + TOUCH >= w.heights[column] and block_at(w, x, y, z) != WATER


@inner
def safe_ahead(w: World, n: int, kind: int, yaw: float) -> bool:
    """Whether it is safe for a creature to continue along ``yaw``.

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
    """Whether a creature that does not step would not move."""
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
    """Lets a creature that ran into an obstacle climb it, or turn."""
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
