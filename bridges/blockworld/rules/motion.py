"""Motion of the player, tick by tick, by Minecraft 1.16's formulae.

Resulting speeds: walking 4.317, sprinting 5.612, sneaking 1.295 blocks per second; a jump rises
1.252 blocks.
"""

from __future__ import annotations

import math

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import ICE
from bridges.blockworld.rules.collision import (
    CROUCHED,
    HIT_X,
    HIT_Y,
    HIT_Z,
    body_fits,
    liquid_depths,
    move_body,
    touches_cactus,
)
from bridges.blockworld.rules.combat import CACTUS, FALL, hurt_player
from bridges.blockworld.rules.world import (
    BACK,
    FORWARD,
    JUMP,
    LEFT,
    RIGHT,
    SLIM,
    SNEAK,
    SPRINT,
    STANDING,
    block_at,
    cosine,
    sine,
)

GRAVITY, AIR_DRAG = 0.08, 0.98
JUMP_SPEED, JUMP_PAUSE = 0.42, 10
SLIPPERY, ROUGH = 0.98, 0.6
BANK_SPEED = 0.3
SAFE_FALL = 3.0
_STILL = 0.003  # a lower speed counts as zero
_EDGE_STEP = 0.05
_STEP_DOWN = 0.6
_LEAST_FOOD = 7  # to sprint


@inner
def body_height(w: World) -> float:
    """Returns the player's height, in blocks."""
    return CROUCHED if w.sneaking else STANDING


@inner
def slipperiness(w: World, x: float, y: float, z: float) -> float:
    """Returns the slipperiness of the ground under a body: 0.6, on ice 0.98."""
    return SLIPPERY if block_at(w, x, y - 0.5, z) == ICE else ROUGH


@inner
def fall_cost(fall: float) -> float:
    """Returns the damage of a landing: blocks fallen beyond three, rounded up."""
    return np.float64(math.ceil(fall - SAFE_FALL - 0.001))  # a thousandth is 32-bit rounding


@inner
def sinking(vy: float) -> float:
    """Returns the vertical speed of a body in a liquid after one tick of gravity."""
    if vy <= 0.0 and abs(vy - 0.005) >= 0.003 and abs(vy - GRAVITY / 16.0) < 0.003:
        return -0.003
    return vy - GRAVITY / 16.0


@inner
def _posture(w: World, keys: int) -> None:
    """Decides whether the player sneaks or sprints in this tick."""
    low = not body_fits(w, w.x, w.y, w.z, SLIM, STANDING)
    w.sneaking = 1 if keys & SNEAK or (w.sneaking and low) else 0
    onward = keys & FORWARD and not keys & BACK
    busy = w.eat_ticks > 0 or w.blocking
    able = onward and not w.sneaking and not w.in_water and not w.in_lava and not busy
    if not able or w.food < _LEAST_FOOD:
        w.sprinting = 0
    elif keys & SPRINT:
        w.sprinting = 1


@inner
def _jump(w: World, keys: int, water: float, lava: float) -> None:
    if w.jump_ticks > 0:
        w.jump_ticks -= 1
    if not keys & JUMP:
        w.jump_ticks = 0
    elif (water > 0.0 and (not w.on_ground or water > 0.4)) or (
        lava > 0.0 and (not w.on_ground or lava > 0.4)
    ):
        w.vy += 0.04
    elif w.on_ground and w.jump_ticks == 0:
        w.vy = JUMP_SPEED
        w.jump_ticks = JUMP_PAUSE
        w.exhaustion += 0.05
        if w.sprinting:
            yaw = np.float64(w.yaw)
            w.vx -= 0.2 * sine(yaw)
            w.vz += 0.2 * cosine(yaw)
            w.exhaustion += 0.15
    if water > 0.0 and keys & SNEAK:
        w.vy -= 0.04


@inner
def _push(w: World, keys: int, acceleration: float) -> None:
    """Accelerates the player according to the keys that are held."""
    onward = (1.0 if keys & FORWARD else 0.0) - (1.0 if keys & BACK else 0.0)
    aside = (1.0 if keys & LEFT else 0.0) - (1.0 if keys & RIGHT else 0.0)
    scale = 0.98
    if w.sneaking:
        scale *= 0.3
    if w.eat_ticks > 0 or w.blocking:
        scale *= 0.2
    onward, aside = onward * scale, aside * scale
    length = onward * onward + aside * aside
    if length == 0.0:
        return
    if length > 1.0:
        acceleration /= math.sqrt(length)
    yaw = np.float64(w.yaw)
    sin, cos = sine(yaw), cosine(yaw)
    w.vx += (aside * cos - onward * sin) * acceleration
    w.vz += (onward * cos + aside * sin) * acceleration


@inner
def _over_edge(w: World, dx: float, dz: float) -> bool:
    return body_fits(w, w.x + dx, w.y - _STEP_DOWN, w.z + dz, SLIM, CROUCHED)


@inner
def _shorter(move: float) -> float:
    if abs(move) < _EDGE_STEP:
        return 0.0
    return move - _EDGE_STEP if move > 0.0 else move + _EDGE_STEP


@inner
def _kept_on(w: World, dx: float, dz: float) -> tuple[float, float]:
    """Returns a sneaking player's move, shortened until there is ground below its end."""
    while dx != 0.0 and _over_edge(w, dx, 0.0):
        dx = _shorter(dx)
    while dz != 0.0 and _over_edge(w, 0.0, dz):
        dz = _shorter(dz)
    while dx != 0.0 and dz != 0.0 and _over_edge(w, dx, dz):
        dx, dz = _shorter(dx), _shorter(dz)
    return dx, dz


@inner
def _move(w: World) -> int:
    """Moves the player by its velocity, and returns the collisions."""
    dx, dz = w.vx, w.vz
    if w.sneaking and w.on_ground and w.vy <= 0.0:
        dx, dz = _kept_on(w, dx, dz)
    x, y, z, hit = move_body(w, w.x, w.y, w.z, SLIM, body_height(w), dx, w.vy, dz)
    moved_x, moved_y, moved_z = x - w.x, y - w.y, z - w.z
    w.x, w.y, w.z = x, y, z
    w.on_ground = 1 if hit & HIT_Y and w.vy < 0.0 else 0
    flat = moved_x * moved_x + moved_z * moved_z
    if w.in_water:
        w.exhaustion += 0.01 * math.sqrt(flat + moved_y * moved_y)
    elif w.sprinting and w.on_ground:
        w.exhaustion += 0.1 * math.sqrt(flat)
    if moved_y < 0.0:
        w.fall -= moved_y
    if hit & HIT_X:
        w.vx = 0.0
    if hit & HIT_Y:
        w.vy = 0.0
    if hit & HIT_Z:
        w.vz = 0.0
    if hit & (HIT_X | HIT_Z):
        w.sprinting = 0
    return hit


@inner
def _land(w: World) -> None:
    """Applies fall damage when a fall ends on the ground."""
    if not w.on_ground:
        return
    fall = np.float64(w.fall)
    w.fall = 0.0
    if fall > SAFE_FALL and liquid_depths(w, w.x, w.y, w.z, SLIM, STANDING)[0] == 0.0:
        hurt_player(w, fall_cost(fall), w.x, w.z, FALL)


@inner
def _walk(w: World, keys: int) -> None:
    slip = slipperiness(w, w.x, w.y, w.z)
    if w.on_ground:
        drag = slip * 0.91
        speed = 0.13 if w.sprinting else 0.1
        _push(w, keys, speed * (0.216 / (slip * slip * slip)))
    else:
        drag = 0.91
        _push(w, keys, 0.026 if w.sprinting else 0.02)
    _move(w)
    w.vx, w.vy, w.vz = w.vx * drag, (w.vy - GRAVITY) * AIR_DRAG, w.vz * drag


@inner
def _swim(w: World, keys: int, lava: float) -> None:
    before = w.y
    _push(w, keys, 0.02)
    hit = _move(w)
    if w.in_water:
        w.vx, w.vy, w.vz = w.vx * 0.8, sinking(w.vy * 0.8), w.vz * 0.8
    elif lava > 0.4:
        w.vx, w.vy, w.vz = w.vx * 0.5, w.vy * 0.5 - GRAVITY / 4.0, w.vz * 0.5
    else:
        w.vx, w.vy, w.vz = w.vx * 0.5, sinking(w.vy * 0.8) - GRAVITY / 4.0, w.vz * 0.5
    if not hit & (HIT_X | HIT_Z):
        return
    x, y, z = w.x + w.vx, before + w.vy + 0.6, w.z + w.vz
    water, lava = liquid_depths(w, x, y, z, SLIM, STANDING)
    if water + lava == 0.0 and body_fits(w, x, y, z, SLIM, STANDING):
        w.vy = BANK_SPEED  # out onto the bank


@inner
def tick_player(w: World, keys: int) -> None:
    """Moves the player for one tick according to its movement keys; others are ignored.

    Falls and cacti cause damage. A sleeping player does not move.
    """
    if w.sleep_ticks > 0:
        keys = 0
    water, lava = liquid_depths(w, w.x, w.y, w.z, SLIM, body_height(w))
    w.in_water = 1 if water > 0.0 else 0
    w.in_lava = 1 if lava > 0.0 else 0
    if water > 0.0:
        w.fall = 0.0
    elif lava > 0.0:
        w.fall *= 0.5
    _posture(w, keys)
    w.vx = w.vx if abs(w.vx) >= _STILL else 0.0
    w.vy = w.vy if abs(w.vy) >= _STILL else 0.0
    w.vz = w.vz if abs(w.vz) >= _STILL else 0.0
    if w.on_ground and w.vy == 0.0:
        w.vy = -GRAVITY * AIR_DRAG  # gravity, so that it touches the ground
    _jump(w, keys, water, lava)
    if water > 0.0 or lava > 0.0:
        _swim(w, keys, lava)
    else:
        _walk(w, keys)
    _land(w)
    if touches_cactus(w, w.x, w.y, w.z, SLIM, body_height(w)):
        hurt_player(w, 1.0, w.x, w.z, CACTUS)
