"""The ground around the player as a square of classes, and the creatures around it as rows.

Both exist as visible to the player and privileged. If not privileged, a cell or a creature appears
only inside the field of view, 100 degrees across and 70 up and down, and with nothing opaque in
between.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.semantic import (
    ACROSS,
    CLASS_OF,
    DROP_CLASS,
    FAR,
    SIGHT,
    creature_class,
    free_way,
    in_sight,
    in_view,
    within_edge,
)
from bridges.blockworld.world import (
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
