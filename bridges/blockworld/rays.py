"""What a fan of rays from the eye hits first, and how near it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.drops import DROP_WIDTH
from bridges.blockworld.semantic import (
    CLASS_OF,
    DROP_CLASS,
    SEEN,
    box_distance,
    creature_class,
    first_block,
    liquid_at,
    per,
    within_edge,
)
from bridges.blockworld.species import TALL, WIDTH
from bridges.blockworld.world import MAX_CREATURES, MAX_DROPS, cosine, eye_height, sine

_CLASS, _X, _Y, _Z, _HALF, _HALF_TALL, _BALL, _AWAY = range(8)
"""Data of a body near the player: its class, its middle relative to the eye, half its width and
height, the squared radius of the sphere around it, and its squared distance."""


def fan(rows: int, columns: int, across: float, up_and_down: float) -> NDArray[np.float64]:
    """Returns the directions of a fan of rays from the eye, ``(rows, columns, 3)``.

    Each is a unit vector: right, up, ahead. Angles in degrees are spread evenly over the field,
    each ray in the middle of its part; row 0 is the topmost, column 0 the leftmost. Rounded, so
    that mathematics libraries make no difference.
    """
    side = np.radians(((np.arange(columns) + 0.5) / columns - 0.5) * across)
    rise = np.radians((0.5 - (np.arange(rows) + 0.5) / rows) * up_and_down)
    made = np.zeros((rows, columns, 3))
    made[..., 0] = np.sin(side) * np.cos(rise)[:, None]
    made[..., 1] = np.sin(rise)[:, None]
    made[..., 2] = np.cos(side) * np.cos(rise)[:, None]
    return np.round(made, 7)


@inner
def _note(
    bodies: Any, count: int, number: int, x: float, y: float, z: float, width: float, tall: float
) -> int:
    """Adds a body to the list, and returns the new length."""
    half, half_tall = 0.5 * width, 0.5 * tall
    y += half_tall
    bodies[count, _CLASS] = number
    bodies[count, _X], bodies[count, _Y], bodies[count, _Z] = x, y, z
    bodies[count, _HALF], bodies[count, _HALF_TALL] = half, half_tall
    bodies[count, _BALL] = 2.0 * half * half + half_tall * half_tall
    bodies[count, _AWAY] = x * x + y * y + z * z
    return count + 1


@inner
def _bodies(
    w: World, bodies: Any, eye_y: float, ahead: tuple[float, float, float], reach: float
) -> int:
    """Lists what could be hit: creatures and drops that are near and not behind the eye."""
    ahead_x, ahead_y, ahead_z = ahead
    most = (reach + 3.0) * (reach + 3.0)
    count = 0
    for n in range(MAX_CREATURES):
        kind = int(w.c_kind[n])
        if kind != 0:
            x, y, z = w.c_x[n] - w.x, w.c_y[n] - eye_y, w.c_z[n] - w.z
            if x * x + y * y + z * z < most and x * ahead_x + y * ahead_y + z * ahead_z > -3.0:
                width, tall = float(WIDTH[kind]), float(TALL[kind])
                count = _note(bodies, count, creature_class(w, n), x, y, z, width, tall)
    for n in range(MAX_DROPS):
        if w.d_item[n] != 0:
            x, y, z = w.d_x[n] - w.x, w.d_y[n] - eye_y, w.d_z[n] - w.z
            if x * x + y * y + z * z < most and x * ahead_x + y * ahead_y + z * ahead_z > -1.0:
                count = _note(bodies, count, DROP_CLASS, x, y, z, DROP_WIDTH, DROP_WIDTH)
    return count


@inner
def _first_body(
    bodies: Any, count: int, ray: tuple[float, float, float], reach: float
) -> tuple[int, float]:
    """Returns class and distance of the first body along a ray; ``(0, reach)`` for none."""
    steps = (per(ray[0]), per(ray[1]), per(ray[2]))
    number, best = 0, reach
    for n in range(count):
        x, y, z = bodies[n, _X], bodies[n, _Y], bodies[n, _Z]
        along, away = x * ray[0] + y * ray[1] + z * ray[2], bodies[n, _AWAY]
        # Most rays miss the sphere around a body, which is tested before its box.
        ball = bodies[n, _BALL]
        if away - along * along > ball or (along < 0.0 and away > ball):
            continue
        met = box_distance(x, y, z, bodies[n, _HALF], bodies[n, _HALF_TALL], steps)
        if met < best:
            number, best = int(bodies[n, _CLASS]), met
    return number, best


@kernel
def rays(worlds: Any, ids: Any, near: Any, directions: Any, reach: float, lo: int, hi: int) -> None:
    """Writes what each ray hits first.

    A block fills its whole cube here, plants and torches too. The liquid in which the eye is does
    not stop a ray.

    Args:
        worlds: records of type ``WORLD``.
        ids: class of what is hit, uint8 ``(n, rows, columns)``; 0 for nothing within reach.
        near: 1 at the eye, 0 at the reach and for nothing, float32, same shape.
        directions: of the rays, see ``fan``.
        reach: of the rays, in blocks.
        lo: first world.
        hi: end of the range of worlds.
    """
    bodies = np.empty((MAX_CREATURES + MAX_DROPS, 8))
    for k in range(lo, hi):
        w = worlds[k]
        eye = (float(w.x), w.y + eye_height(w), float(w.z))
        can_see = within_edge(eye[0], eye[2])
        yaw_sine, yaw_cosine = sine(w.yaw), cosine(w.yaw)
        pitch_sine, pitch_cosine = sine(w.pitch), cosine(w.pitch)
        look = (-yaw_sine * pitch_cosine, -pitch_sine, yaw_cosine * pitch_cosine)
        count, through = 0, 0
        if can_see:
            count = _bodies(w, bodies, eye[1], look, reach)
            through = liquid_at(w, eye[0], eye[1], eye[2])
        for i in range(directions.shape[0]):
            for j in range(directions.shape[1]):
                number, met = 0, reach
                if can_see:
                    right, up, ahead = directions[i, j, 0], directions[i, j, 1], directions[i, j, 2]
                    level = ahead * pitch_cosine + up * pitch_sine
                    ray = (
                        -level * yaw_sine - right * yaw_cosine,
                        up * pitch_cosine - ahead * pitch_sine,
                        level * yaw_cosine - right * yaw_sine,
                    )
                    number, met = _first_body(bodies, count, ray, reach)
                    block, met = first_block(w, eye, ray, met, SEEN, through)
                    if block != 0:
                        number = int(CLASS_OF[block])
                ids[k, i, j] = number
                near[k, i, j] = 1.0 - met / reach if number != 0 else 0.0
