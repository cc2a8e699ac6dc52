"""Arrows in flight. Only creatures shoot them, only the player is hit."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.collision import CROUCHED, free_share
from bridges.blockworld.combat import ARROW_HIT, hurt_player
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.species import DAMAGE, SKELETON
from bridges.blockworld.world import MAX_ARROWS, SLIM, STANDING

STUCK_TICKS = 100
"""Ticks that an arrow stays in a block before it vanishes."""
FLIGHT_TICKS = 200
"""Maximum ticks of flight of an arrow."""
_GRAVITY, _DRAG = 0.05, 0.99
_GROWN = 0.3  # blocks by which a body is wider for an arrow, as in Minecraft
_MISSED = 2.0


@inner
def shoot(w: World, x: float, y: float, z: float, vx: float, vy: float, vz: float) -> int:
    """Shoots an arrow from a point with a velocity in blocks per tick; returns its place.

    If no place is free, it takes that of the oldest arrow.
    """
    place = 0
    for n in range(MAX_ARROWS):
        if w.a_age[n] == 0:
            place = n
            break
        if w.a_age[n] > w.a_age[place]:
            place = n
    w.a_age[place] = 1
    w.a_x[place], w.a_y[place], w.a_z[place] = x, y, z
    w.a_vx[place], w.a_vy[place], w.a_vz[place] = vx, vy, vz
    return place


@inner
def _span(
    start: float, move: float, low: float, high: float, first: float, last: float
) -> tuple[float, float]:
    """Returns the part of a way, ``first`` to ``last``, on which a coordinate is within a range."""
    if move == 0.0:
        return (first, last) if low <= start <= high else (_MISSED, -_MISSED)
    enter, leave = (low - start) / move, (high - start) / move
    return max(first, min(enter, leave)), min(last, max(enter, leave))


@inner
def player_share(w: World, x: float, y: float, z: float, dx: float, dy: float, dz: float) -> float:
    """Returns the share of a straight way at which it hits the player; 2 if it does not."""
    half = SLIM * 0.5 + _GROWN
    height = CROUCHED if w.sneaking else STANDING
    first, last = _span(x, dx, w.x - half, w.x + half, 0.0, 1.0)
    first, last = _span(y, dy, w.y - _GROWN, w.y + height + _GROWN, first, last)
    first, last = _span(z, dz, w.z - half, w.z + half, first, last)
    return first if first <= last else _MISSED


@inner
def _fly(w: World, n: int) -> None:
    x, y, z = np.float64(w.a_x[n]), np.float64(w.a_y[n]), np.float64(w.a_z[n])
    vx, vy, vz = np.float64(w.a_vx[n]), np.float64(w.a_vy[n]), np.float64(w.a_vz[n])
    share = free_share(w, x, y, z, vx, vy, vz)
    met = player_share(w, x, y, z, vx, vy, vz)
    if met <= share:
        hurt_player(w, np.float64(DAMAGE[SKELETON]), w.x - vx, w.z - vz, ARROW_HIT)
        w.a_age[n] = 0
        return
    w.a_x[n], w.a_y[n], w.a_z[n] = x + vx * share, y + vy * share, z + vz * share
    if share < 1.0:
        w.a_vx[n], w.a_vy[n], w.a_vz[n] = 0.0, 0.0, 0.0
        w.a_age[n] = 1
        return
    w.a_vx[n], w.a_vy[n], w.a_vz[n] = vx * _DRAG, vy * _DRAG - _GRAVITY, vz * _DRAG


@inner
def tick_arrows(w: World) -> None:
    """Moves the arrows for one tick: they fly, hit the player, get stuck in blocks, vanish."""
    for n in range(MAX_ARROWS):
        if w.a_age[n] == 0:
            continue
        w.a_age[n] += 1
        stuck = w.a_vx[n] == 0.0 and w.a_vy[n] == 0.0 and w.a_vz[n] == 0.0
        if w.a_age[n] > (STUCK_TICKS if stuck else FLIGHT_TICKS):
            w.a_age[n] = 0
        elif not stuck:
            _fly(w, n)
