"""Observations by class: rays from the eye, the ground as a square, creatures as rows.

Grids and rows exist as visible to the player and privileged. If not privileged, a cell or a
creature appears only inside the field of view, 100 degrees across and 70 up and down, and with
nothing opaque in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.pictures.semantic import (
    ACROSS,
    CLASS_OF,
    DROP_CLASS,
    FAR,
    SEEN,
    SIGHT,
    box_distance,
    creature_class,
    first_block,
    free_way,
    in_sight,
    in_view,
    liquid_at,
    per,
    within_edge,
)
from bridges.blockworld.rules.drops import DROP_WIDTH
from bridges.blockworld.rules.species import TALL, WIDTH
from bridges.blockworld.rules.world import (
    HEIGHT,
    MAX_CREATURES,
    MAX_DROPS,
    SIZE,
    cosine,
    eye_height,
    sine,
)

MOST_HEIGHT = 8
"""Heights in a grid are limited to this many blocks above and below the player's feet."""

ENTITY_COLUMNS = ("class", "forward", "right", "up", "distance", "hurt")
"""Columns of ``entities``: class, offset from the player's feet in blocks, rotated by its yaw,
distance in blocks, and 1 while it is red from a blow."""


@inner
def _surface(w: World, column: int, eye_y: float) -> tuple[int, int]:
    """Returns the block that a column shows at the eye's height or below, and its top's height.

    A roof or a canopy above the eye is skipped; a block at the eye's height is a wall, and its top
    is where air follows.
    """
    at = column * HEIGHT
    height = int(w.heights[column])
    level = min(int(np.floor(eye_y)), HEIGHT - 1)
    if height <= level:
        return int(w.blocks[at + max(height - 1, 0)]), height
    if w.blocks[at + level] != 0:
        top = level + 1
        while top < height and w.blocks[at + top] != 0:
            top += 1
        return int(w.blocks[at + level]), top
    while level > 0 and w.blocks[at + level] == 0:
        level -= 1
    return int(w.blocks[at + level]), level + 1


@inner
def _cells(w: World, ids: Any, heights: Any, player_row: int, privileged: bool, view: Any) -> None:
    """Writes the cells of one grid, without creatures and drops."""
    size = ids.shape[0]
    yaw_sine, yaw_cosine, pitch_sine, pitch_cosine = view
    eye = (float(w.x), w.y + eye_height(w), float(w.z))
    feet = int(np.floor(w.y + 1e-3))
    inside = within_edge(eye[0], eye[2])
    # No cell is higher than the eye here, so a visible cell is never farther from the middle.
    spread = max(pitch_sine, 0.0) * eye[1]
    for row in range(size):
        ahead = float(player_row - row)
        widest = FAR if privileged else (ahead * pitch_cosine + spread) * ACROSS
        for place in range(size):
            ids[row, place] = heights[row, place] = 0
            right = float(place - size // 2)
            if abs(right) > widest:
                continue
            x = w.x - ahead * yaw_sine - right * yaw_cosine
            z = w.z + ahead * yaw_cosine - right * yaw_sine
            if not (inside and within_edge(x, z)):
                continue
            column = int(np.floor(x)) * SIZE + int(np.floor(z))
            if w.heights[column] == 0:
                continue
            block, top = _surface(w, column, eye[1])
            if not privileged:
                y = min(top + 0.01, eye[1])
                if not in_view(right, y - eye[1], ahead, pitch_sine, pitch_cosine):
                    continue
                if not free_way(w, eye, x - eye[0], y - eye[1], z - eye[2], False):
                    continue
            ids[row, place] = CLASS_OF[block]
            heights[row, place] = min(max(top - feet, -MOST_HEIGHT), MOST_HEIGHT)


@inner
def _cell_of(
    x: float, z: float, yaw_sine: float, yaw_cosine: float, player_row: int, size: int
) -> tuple[int, int]:
    """Returns row and column of the cell at an offset from the player; -1 for outside."""
    row = player_row - int(np.floor(z * yaw_cosine - x * yaw_sine + 0.5))
    place = size // 2 + int(np.floor(-x * yaw_cosine - z * yaw_sine + 0.5))
    if row < 0 or row >= size or place < 0 or place >= size:
        return -1, -1
    return row, place


@kernel
def grid(
    worlds: Any, ids: Any, heights: Any, player_row: int, privileged: bool, lo: int, hi: int
) -> None:
    """Writes what is around each player, a square of cells of one block, rotated by its yaw.

    Row 0 is the farthest ahead, column 0 the leftmost; each cell shows the column of blocks that
    contains its middle, at the eye's height or below. Dropped items cover the ground, creatures
    cover both; of two creatures in a cell the one with the lower number is shown.

    Args:
        worlds: records of type ``WORLD``.
        ids: classes, uint8 ``(n, size, size)``; 0 where nothing is seen.
        heights: of the top of what is shown above the player's feet, int8, same shape; 0 where
            nothing is seen.
        player_row: row of the player, who is in its middle column.
        privileged: whether to also show what is hidden or out of view.
        lo: first world.
        hi: end of the range of worlds.
    """
    size = ids.shape[1]
    for k in range(lo, hi):
        w = worlds[k]
        view = (sine(w.yaw), cosine(w.yaw), sine(w.pitch), cosine(w.pitch))
        _cells(w, ids[k], heights[k], player_row, privileged, view)
        eye = (float(w.x), w.y + eye_height(w), float(w.z))
        if not within_edge(eye[0], eye[2]):
            continue
        for n in range(MAX_DROPS):
            if w.d_item[n] != 0:
                row, place = _cell_of(
                    w.d_x[n] - w.x, w.d_z[n] - w.z, view[0], view[1], player_row, size
                )
                if row >= 0 and ids[k, row, place] != 0:
                    ids[k, row, place] = DROP_CLASS
        for n in range(MAX_CREATURES - 1, -1, -1):
            if w.c_kind[n] != 0:
                row, place = _cell_of(
                    w.c_x[n] - w.x, w.c_z[n] - w.z, view[0], view[1], player_row, size
                )
                if row >= 0 and (privileged or in_sight(w, eye, n, view)):
                    ids[k, row, place] = creature_class(w, n)


@kernel
def entities(worlds: Any, out: Any, privileged: bool, lo: int, hi: int) -> None:
    """Writes the creatures around each player, the nearest first.

    Args:
        worlds: records of type ``WORLD``.
        out: rows of ``ENTITY_COLUMNS``, float32 ``(n, slots, 6)``; a row without a creature is 0.
        privileged: whether to also show creatures that are hidden, out of view or beyond ``SIGHT``.
        lo: first world.
        hi: end of the range of worlds.
    """
    away = np.empty(MAX_CREATURES)
    for k in range(lo, hi):
        w = worlds[k]
        out[k] = 0.0
        view = (sine(w.yaw), cosine(w.yaw), sine(w.pitch), cosine(w.pitch))
        eye = (float(w.x), w.y + eye_height(w), float(w.z))
        inside = within_edge(eye[0], eye[2])
        for n in range(MAX_CREATURES):
            x, y, z = w.c_x[n] - w.x, w.c_y[n] - w.y, w.c_z[n] - w.z
            there = w.c_kind[n] != 0 and inside
            away[n] = np.sqrt(x * x + y * y + z * z) if there else np.inf
        slot = 0
        while slot < out.shape[1]:
            n = int(np.argmin(away))  # the first of equals
            distance = away[n]
            if distance == np.inf or (distance > SIGHT and not privileged):
                break
            away[n] = np.inf
            if privileged or in_sight(w, eye, n, view):
                x, z = w.c_x[n] - w.x, w.c_z[n] - w.z
                row = out[k, slot]
                row[0] = creature_class(w, n)
                row[1], row[2] = z * view[1] - x * view[0], -x * view[1] - z * view[0]
                row[3], row[4] = w.c_y[n] - w.y, distance
                row[5] = 1.0 if w.c_hurt[n] > 0 else 0.0
                slot += 1


# rays ---------------------------------------------------------------------------------------------

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
