"""The target of the player: the first block, or the first creature, along its look."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import AIR, EDGE, FORM, LIQUID
from bridges.blockworld.rules.species import NOBODY, TALL, WIDTH
from bridges.blockworld.rules.world import HEIGHT, MAX_CREATURES, SIZE, eye_height, look

STRIKE_REACH = 3.0
"""Reach of a blow, in blocks."""
REACH = 4.5
"""Reach of the hand to dig, place and use, in blocks."""

_FAR = 1e30
_MARGIN = 0.1
"""A creature's box is enlarged by this much on each side when it is aimed at."""
_WIDEST = 2.5
"""Maximum distance of any part of a creature from its feet, in blocks."""


@inner
def _first_crossing(start: float, step: float) -> float:
    """Returns the distance along a ray to its first crossing of a block border, on one axis."""
    if step > 0.0:
        return (np.floor(start) + 1.0 - start) / step  # type: ignore[no-any-return]
    if step < 0.0:
        return (np.floor(start) - start) / step  # type: ignore[no-any-return]
    return _FAR


@inner
def trace_block(
    w: World, x: float, y: float, z: float, dx: float, dy: float, dz: float, reach: float
) -> tuple[int, int, float]:
    """Returns the first block with a shape along a ray: its index, its face, its distance.

    Solid blocks and plants have a shape, each fills its whole cell; air and liquids have none. The
    edge of the world stops the ray, but cannot be aimed at. The cell in which the ray begins is
    skipped.

    Args:
        w: the world.
        x: where the ray begins, with ``y`` and ``z``; may be above the world.
        y: see ``x``.
        z: see ``x``.
        dx: its direction, with ``dy`` and ``dz``, a unit vector.
        dy: see ``dx``.
        dz: see ``dx``.
        reach: maximum distance, in blocks.

    Returns:
        The index of the block, -1 for none; the face that was hit, 0 to 5 for -x, +x, -y, +y, -z,
        +z; the distance to that face, ``reach`` if there is none.
    """
    i, j, k = int(np.floor(x)), int(np.floor(y)), int(np.floor(z))
    step_i, step_j, step_k = 1 if dx > 0 else -1, 1 if dy > 0 else -1, 1 if dz > 0 else -1
    next_i, next_j, next_k = _first_crossing(x, dx), _first_crossing(y, dy), _first_crossing(z, dz)
    while True:
        if next_i <= next_j and next_i <= next_k:
            distance, face = next_i, 0 if step_i > 0 else 1
            i += step_i
            next_i += abs(1.0 / dx)
        elif next_j <= next_k:
            distance, face = next_j, 2 if step_j > 0 else 3
            j += step_j
            next_j += abs(1.0 / dy)
        else:
            distance, face = next_k, 4 if step_k > 0 else 5
            k += step_k
            next_k += abs(1.0 / dz)
        if distance > reach or i < 0 or i >= SIZE or k < 0 or k >= SIZE or j < 0:
            return -1, 0, reach
        if j < HEIGHT:
            at = (i * SIZE + k) * HEIGHT + j
            block = whole(w.blocks[at])
            if block == EDGE:
                return -1, 0, reach
            if block != AIR and FORM[block] != LIQUID:
                return at, face, distance


@inner
def aim_block(w: World, reach: float) -> tuple[int, int, float]:
    """Returns the block that the player looks at within reach; see ``trace_block``."""
    dx, dy, dz = look(w.yaw, w.pitch)
    return trace_block(w, w.x, w.y + eye_height(w), w.z, dx, dy, dz, reach)


@inner
def _box_distance(start: float, step: float, low: float, high: float) -> tuple[float, float]:
    """Returns where a ray enters and leaves the range between two planes of one axis."""
    if step == 0.0:
        return (-_FAR, _FAR) if low <= start <= high else (_FAR, -_FAR)
    a, b = (low - start) / step, (high - start) / step
    return min(a, b), max(a, b)


@inner
def creature_on_ray(
    w: World, x: float, y: float, z: float, dx: float, dy: float, dz: float, reach: float
) -> tuple[int, float]:
    """Returns the nearest creature that a ray hits within reach, -1 for none, and its distance.

    Ignores blocks. Boxes are 0.1 larger on each side than the bodies. A ray that begins in a box
    hits it at distance 0. For the arguments see ``trace_block``.
    """
    nearest, best = -1, reach
    for n in range(MAX_CREATURES):
        kind = whole(w.c_kind[n])
        if kind == NOBODY:
            continue
        cx, cy, cz = float(w.c_x[n]), float(w.c_y[n]), float(w.c_z[n])
        far = best + _WIDEST
        if (cx - x) ** 2 + (cy - y) ** 2 + (cz - z) ** 2 > far * far:
            continue
        half = 0.5 * float(WIDTH[kind]) + _MARGIN
        in_x, out_x = _box_distance(x, dx, cx - half, cx + half)
        in_y, out_y = _box_distance(y, dy, cy - _MARGIN, cy + float(TALL[kind]) + _MARGIN)
        in_z, out_z = _box_distance(z, dz, cz - half, cz + half)
        enters = max(in_x, in_y, in_z, 0.0)
        if enters <= min(out_x, out_y, out_z) and (
            enters < best or (nearest < 0 and enters <= reach)
        ):
            nearest, best = n, enters
    return nearest, best


@inner
def aim_creature(w: World, reach: float) -> tuple[int, float]:
    """Returns the creature that the player looks at within reach, and its distance.

    It is -1, with ``reach``, if there is none or if a block is nearer.
    """
    dx, dy, dz = look(w.yaw, w.pitch)
    eye = w.y + eye_height(w)
    n, distance = creature_on_ray(w, w.x, eye, w.z, dx, dy, dz, reach)
    if n >= 0:
        at, _, _ = trace_block(w, w.x, eye, w.z, dx, dy, dz, distance)
        if at >= 0:
            return -1, reach
    return n, distance
