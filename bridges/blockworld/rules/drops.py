"""Dropped items: they fall, float, burn in lava, and move to a player who is near."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import LAVA, WATER
from bridges.blockworld.rules.collision import HIT_X, HIT_Y, HIT_Z, any_solid, floor, move_body
from bridges.blockworld.rules.inventory import add_item
from bridges.blockworld.rules.items import NOTHING, STACK
from bridges.blockworld.rules.world import MAX_DROPS, SLIM, STANDING, block_at, chance

DROP_WIDTH = 0.25
"""Width and height of a dropped item."""
LIFE_TICKS = 6000
"""Items vanish after five minutes."""
FIRST_TICKS = 10
"""Age at which an item can be picked up; one that the player throws starts at -30."""
THROWN_AGE = -30
"""Initial age of an item that the player throws."""
_GRAVITY, _DRAG, _GROUND_DRAG = 0.04, 0.98, 0.588
_REACH, _REACH_UP = 1.0, 0.5
_NEAR = 2.0  # blocks within which items of a kind merge when places run out
_STILL = 0.003


@inner
def _free_place(w: World, item: int, count: int, x: float, y: float, z: float) -> int:
    """Returns a place for an item, -1 if it merged with one nearby.

    If no place is free, it merges with an equal item nearby, else takes the oldest item's place.
    """
    oldest, age = 0, -32768
    for n in range(MAX_DROPS):
        if w.d_item[n] == NOTHING:
            return n
        if w.d_age[n] > age:
            oldest, age = n, whole(w.d_age[n])
    for n in range(MAX_DROPS):
        away = abs(w.d_x[n] - x) + abs(w.d_y[n] - y) + abs(w.d_z[n] - z)
        together = whole(w.d_count[n]) + count
        if whole(w.d_item[n]) == item and together <= whole(STACK[item]) and away < _NEAR:
            w.d_count[n] = together
            return -1
    return oldest


@inner
def spawn_drop(w: World, item: int, count: int, wear: int, x: float, y: float, z: float) -> int:
    """Drops an item; it jumps a little aside, as in Minecraft.

    Returns:
        Its place, to set another velocity or age; -1 if it merged with another one.
    """
    if item == NOTHING or count <= 0:
        return -1
    n = _free_place(w, item, count, x, y, z)
    if n < 0:
        return n
    w.d_item[n], w.d_count[n], w.d_wear[n], w.d_age[n] = item, count, wear, 0
    w.d_x[n], w.d_y[n], w.d_z[n] = x, y, z
    w.d_vx[n] = chance(w) * 0.2 - 0.1
    w.d_vy[n] = 0.2
    w.d_vz[n] = chance(w) * 0.2 - 0.1
    return n


@inner
def _rests(w: World, n: int, x: float, y: float, z: float) -> bool:
    """True if an item is at rest on the ground."""
    if w.d_vx[n] != 0.0 or w.d_vy[n] != 0.0 or w.d_vz[n] != 0.0:
        return False
    near = DROP_WIDTH * 0.5 - 0.001
    j = floor(y - 0.01)
    return any_solid(w, floor(x - near), floor(x + near), j, j, floor(z - near), floor(z + near))


@inner
def _fall(w: World, n: int) -> None:
    x: float = np.float64(w.d_x[n])
    y: float = np.float64(w.d_y[n])
    z: float = np.float64(w.d_z[n])
    inside = block_at(w, x, y + 0.1, z)
    if inside == LAVA:
        w.d_item[n] = NOTHING
        return
    if inside != WATER and _rests(w, n, x, y, z):
        return
    vx: float = np.float64(w.d_vx[n])
    vy: float = np.float64(w.d_vy[n])
    vz: float = np.float64(w.d_vz[n])
    if inside == WATER:
        vx, vz = vx * 0.99, vz * 0.99
        vy += 0.0005 if vy < 0.06 else 0.0
    else:
        vy -= _GRAVITY
    x, y, z, hit = move_body(w, x, y, z, DROP_WIDTH, DROP_WIDTH, vx, vy, vz)
    ground = hit & HIT_Y and vy < 0.0
    drag = _GROUND_DRAG if ground else _DRAG
    vx = 0.0 if hit & HIT_X else vx * drag
    vz = 0.0 if hit & HIT_Z else vz * drag
    vy = 0.0 if hit & HIT_Y else vy * _DRAG
    if ground and abs(vx) < _STILL and abs(vz) < _STILL:
        vx, vz = 0.0, 0.0
    w.d_x[n], w.d_y[n], w.d_z[n] = x, y, z
    w.d_vx[n], w.d_vy[n], w.d_vz[n] = vx, vy, vz


@inner
def _pick_up(w: World, n: int) -> None:
    near = SLIM * 0.5 + DROP_WIDTH * 0.5 + _REACH
    up = w.d_y[n] - w.y
    if abs(w.d_x[n] - w.x) > near or abs(w.d_z[n] - w.z) > near:
        return
    if up > STANDING + _REACH_UP or up < -_REACH_UP - DROP_WIDTH:
        return
    item, count = whole(w.d_item[n]), whole(w.d_count[n])
    left = add_item(w, item, count, whole(w.d_wear[n]))
    if left < count:
        w.picked[item] += np.uint16(count - left)
        w.d_count[n] = left
        if left == 0:
            w.d_item[n] = NOTHING


@inner
def tick_drops(w: World) -> None:
    """Moves dropped items for one tick; the player picks up those that are near.

    Minecraft's numbers: after half a second, within one block beside the player's body and half a
    block above or below.
    """
    for n in range(MAX_DROPS):
        if w.d_item[n] == NOTHING:
            continue
        _fall(w, n)
        w.d_age[n] += 1
        if w.d_age[n] >= LIFE_TICKS:
            w.d_item[n] = NOTHING
        elif w.d_item[n] != NOTHING and w.d_age[n] >= FIRST_TICKS and not w.dead:
            _pick_up(w, n)
