"""Visibility, reach and nearest blocks of a kind, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.rules.aim import REACH, STRIKE_REACH, aim_block, aim_creature, trace_block
from bridges.blockworld.rules.blocks import AIR
from bridges.blockworld.rules.world import HEIGHT, SIZE, eye_height

_SPREAD = 0.3
"""Distance of the tested points of a face from its middle."""
_BESIDE = np.array([1, SIZE * HEIGHT, -SIZE * HEIGHT, HEIGHT, -HEIGHT])
_DEEPER = 2
"""Blocks below the feet that are searched in the player's own column."""


@inner
def _face_point(face: int, number: int) -> tuple[float, float, float]:
    """Returns one of five points of a face of a block: the middle, and four around it."""
    a = b = 0.5
    if number > 0:
        a += _SPREAD if number & 1 else -_SPREAD
        b += _SPREAD if number & 2 else -_SPREAD
    side = 1.0 if face & 1 else 0.0
    axis = face >> 1
    if axis == 0:
        return side, b, a
    if axis == 1:
        return a, side, b
    return a, b, side


@inner
def block_point(
    w: World, x: float, y: float, z: float, at: int, reach: float
) -> tuple[float, float, float, float]:
    """Returns a point of a block that is visible from another point, and its distance.

    The middle of each face towards the eyes is tested first, then four points around it.

    Args:
        w: the world.
        x: where the eyes are, with ``y`` and ``z``.
        y: see ``x``.
        z: see ``x``.
        at: index of the block.
        reach: maximum distance, in blocks.

    Returns:
        The point and the distance to it; a negative distance if none is visible.
    """
    column = at // HEIGHT
    i, j, k = float(column // SIZE), float(at % HEIGHT), float(column % SIZE)
    for number in range(5):
        for face in range(6):
            hidden = (
                (face == 0 and x >= i)
                or (face == 1 and x <= i + 1.0)
                or (face == 2 and y >= j)
                or (face == 3 and y <= j + 1.0)
                or (face == 4 and z >= k)
                or (face == 5 and z <= k + 1.0)
            )
            if hidden:
                continue
            u, v, t = _face_point(face, number)
            px, py, pz = i + u, j + v, k + t
            dx, dy, dz = px - x, py - y, pz - z
            away = np.sqrt(dx * dx + dy * dy + dz * dz)
            if away > reach or away < 1e-6:
                continue
            hit, _, _ = trace_block(w, x, y, z, dx / away, dy / away, dz / away, away + 0.05)
            if hit == at:
                return px, py, pz, away
    return 0.0, 0.0, 0.0, -1.0


@kernel
def visible_point(worlds: Any, k: int, at: int, reach: float) -> tuple[float, float, float, float]:
    """Returns a point of a block that the player sees, and its distance; see ``block_point``."""
    w = worlds[k]
    return block_point(w, w.x, w.y + eye_height(w), w.z, at, reach)


@kernel
def crosshair(worlds: Any, k: int) -> tuple[int, int]:
    """Returns the creature and the block within reach that the player looks at.

    Each is -1 for none; a creature counts only if no block is nearer.
    """
    w = worlds[k]
    n, _ = aim_creature(w, STRIKE_REACH)
    at, _, _ = aim_block(w, REACH)
    return n, at


@kernel
def nearest_blocks(worlds: Any, k: int, wanted: Any, sky: bool, found: Any) -> int:
    """Writes the indices of the nearest blocks of some kinds, by rings around the player.

    Args:
        worlds: the worlds, of type ``WORLD``.
        k: which of them.
        wanted: by block, uint8, whether it counts.
        sky: whether only blocks that are open to the sky count.
        found: output, int32; the search ends when it is full.

    Returns:
        How many were found. Only those count that touch air, and that one could walk to on a slope
        of one block per step: no cave deep below.
    """
    w = worlds[k]
    x, y, z, count = int(w.x), int(w.y), int(w.z), 0
    for ring in range(SIZE):
        for i in range(max(x - ring, 1), min(x + ring, SIZE - 2) + 1):
            across = abs(i - x) == ring
            step = 1 if across or ring == 0 else 2 * ring
            for j in range(z - ring, z + ring + 1, step):
                if j < 1 or j >= SIZE - 1:
                    continue
                column = i * SIZE + j
                low, high = max(y - ring - _DEEPER, 1), min(y + ring + 4, int(w.heights[column]))
                for at in range(column * HEIGHT + low, column * HEIGHT + high):
                    if wanted[w.blocks[at]] and _bare(w, at, sky):
                        if count >= len(found):
                            return count
                        found[count] = at
                        count += 1
    return count


@inner
def _bare(w: World, at: int, sky: bool) -> bool:
    """True if a block has air beside it, or above; with ``sky``, air under the open sky."""
    for side in range(5):
        beside = at + _BESIDE[side]
        open_sky = beside % HEIGHT >= int(w.heights[beside // HEIGHT])
        if w.blocks[beside] == AIR and (open_sky or not sky):
            return True
    return False


@kernel
def first_block(worlds: Any, k: int, x: float, y: float, z: float) -> int:
    """Returns the block that hides a point from the player, plants included; -1 for none."""
    w = worlds[k]
    eye = w.y + eye_height(w)
    dx, dy, dz = x - w.x, y - eye, z - w.z
    away = np.sqrt(dx * dx + dy * dy + dz * dz)
    if away < 1e-6:
        return -1
    at, _, _ = trace_block(w, w.x, eye, w.z, dx / away, dy / away, dz / away, away)
    return at
