"""Collision: positions where bodies fit, free distances, and liquids that bodies are in.

A body is an axis-aligned box on a square base: ``x`` and ``z`` are the middle of the base, ``y``
its lowest point. A box overlaps a block only by more than ``TOUCH``: positions of creatures are
stored in 32 bits, and their rounding must not count as a collision.
"""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules.blocks import CACTUS, FORM, LIQUID, SOLID, WATER
from bridges.blockworld.rules.world import HEIGHT, SIZE

TOUCH = 1e-5
"""Overlap in blocks that does not count as a collision; more than the error of 32-bit rounding."""
HIT_X, HIT_Y, HIT_Z = 1, 2, 4
"""Bits of ``move_body``: the axes with a collision."""
CROUCHED = 1.5
"""Height of the player when it sneaks."""
SURFACE = 8.0 / 9.0
"""Height of the topmost block of a liquid, as in Minecraft."""


@inner
def any_solid(w: World, i0: int, i1: int, j0: int, j1: int, k0: int, k1: int) -> bool:
    """True if there is a solid block in a range of blocks, both ends included.

    Columns must be in the world. Everything below the world is solid; above it only the edge is.
    """
    if j0 < 0:
        return True
    lowest, highest = min(j0, HEIGHT - 1), min(j1, HEIGHT - 1)
    for i in range(i0, i1 + 1):
        for k in range(k0, k1 + 1):
            column = (i * SIZE + k) * HEIGHT
            for at in range(column + lowest, column + highest + 1):
                if SOLID[w.blocks[at]]:
                    return True
    return False


@inner
def floor(number: float) -> int:
    """Returns the floor of a number."""
    return int(np.floor(number))


@inner
def body_fits(w: World, x: float, y: float, z: float, width: float, height: float) -> bool:
    """True if a body can be at a position: in the world, and in no solid block."""
    half = width * 0.5 - TOUCH
    if x < half or z < half or x >= SIZE - half or z >= SIZE - half:
        return False
    return not any_solid(
        w,
        floor(x - half),
        floor(x + half),
        floor(y + TOUCH),
        floor(y + height - TOUCH),
        floor(z - half),
        floor(z + half),
    )


@inner
def _along_y(
    w: World, x: float, y: float, z: float, half: float, height: float, move: float
) -> float:
    near = half - TOUCH
    i0, i1, k0, k1 = floor(x - near), floor(x + near), floor(z - near), floor(z + near)
    if move < 0.0:
        for j in range(floor(y + TOUCH) - 1, floor(y + move) - 1, -1):
            if any_solid(w, i0, i1, j, j, k0, k1):
                return j + 1.0
    else:
        for j in range(floor(y + height - TOUCH) + 1, floor(y + height + move) + 1):
            if any_solid(w, i0, i1, j, j, k0, k1):
                return j - height
    return y + move


@inner
def _along_x(
    w: World, x: float, y: float, z: float, half: float, height: float, move: float
) -> float:
    near = half - TOUCH
    j0, j1, k0, k1 = floor(y + TOUCH), floor(y + height - TOUCH), floor(z - near), floor(z + near)
    if move < 0.0:
        for i in range(floor(x - near) - 1, floor(x - half + move) - 1, -1):
            if any_solid(w, i, i, j0, j1, k0, k1):
                return i + 1.0 + half
    else:
        for i in range(floor(x + near) + 1, floor(x + half + move) + 1):
            if any_solid(w, i, i, j0, j1, k0, k1):
                return i - half
    return x + move


@inner
def _along_z(
    w: World, x: float, y: float, z: float, half: float, height: float, move: float
) -> float:
    near = half - TOUCH
    i0, i1, j0, j1 = floor(x - near), floor(x + near), floor(y + TOUCH), floor(y + height - TOUCH)
    if move < 0.0:
        for k in range(floor(z - near) - 1, floor(z - half + move) - 1, -1):
            if any_solid(w, i0, i1, j0, j1, k, k):
                return k + 1.0 + half
    else:
        for k in range(floor(z + near) + 1, floor(z + half + move) + 1):
            if any_solid(w, i0, i1, j0, j1, k, k):
                return k - half
    return z + move


@inner
def move_body(
    w: World,
    x: float,
    y: float,
    z: float,
    width: float,
    height: float,
    dx: float,
    dy: float,
    dz: float,
) -> tuple[float, float, float, int]:
    """Moves a body until something stops it; it passes through nothing at any speed.

    Axis by axis as in Minecraft: up or down first, then the larger of the horizontal moves. A body
    that is stuck in a block is free to leave it.

    Returns:
        The new position of the body, and bits ``HIT_X``, ``HIT_Y``, ``HIT_Z`` of the axes on which
        it was stopped.
    """
    half = width * 0.5
    x = min(max(x, 1.0 + half), SIZE - 1.0 - half)
    z = min(max(z, 1.0 + half), SIZE - 1.0 - half)
    hit = 0
    if dy != 0.0:
        reached = _along_y(w, x, y, z, half, height, dy)
        if reached != y + dy:
            hit |= HIT_Y
        y = reached
    z_first = abs(dx) < abs(dz)
    if z_first:
        reached = _along_z(w, x, y, z, half, height, dz)
        if reached != z + dz:
            hit |= HIT_Z
        z = reached
    if dx != 0.0:
        reached = _along_x(w, x, y, z, half, height, dx)
        if reached != x + dx:
            hit |= HIT_X
        x = reached
    if dz != 0.0 and not z_first:
        reached = _along_z(w, x, y, z, half, height, dz)
        if reached != z + dz:
            hit |= HIT_Z
        z = reached
    return x, y, z, hit


@inner
def liquid_depths(
    w: World, x: float, y: float, z: float, width: float, height: float
) -> tuple[float, float]:
    """Returns the height of water and lava above the lowest point of a body, in blocks; 0 if dry.

    Minecraft's rule: the highest surface of all blocks of it that the body is in.
    """
    half = width * 0.5 - 0.001
    bottom, top = max(floor(y + 0.001), 0), min(floor(y + height - 0.001), HEIGHT - 2)
    water, lava = 0.0, 0.0
    for i in range(floor(x - half), floor(x + half) + 1):
        for k in range(floor(z - half), floor(z + half) + 1):
            column = (i * SIZE + k) * HEIGHT
            for j in range(bottom, top + 1):
                block = w.blocks[column + j]
                if FORM[block] != LIQUID:
                    continue
                full = w.blocks[column + j + 1] == block
                depth = j + (1.0 if full else SURFACE) - y
                if block == WATER:
                    water = max(water, depth)
                else:
                    lava = max(lava, depth)
    return water, lava


@inner
def touches_cactus(w: World, x: float, y: float, z: float, width: float, height: float) -> bool:
    """True if a cactus touches a body: within a hundredth of a block."""
    half = width * 0.5 + 0.01
    top = min(floor(y + height), HEIGHT - 1)
    for i in range(max(floor(x - half), 0), min(floor(x + half), SIZE - 1) + 1):
        for k in range(max(floor(z - half), 0), min(floor(z + half), SIZE - 1) + 1):
            column = (i * SIZE + k) * HEIGHT
            for j in range(max(floor(y - 0.01), 0), top + 1):
                if w.blocks[column + j] == CACTUS:
                    return True
    return False


@inner
def free_share(w: World, x: float, y: float, z: float, dx: float, dy: float, dz: float) -> float:
    """Returns the share of a straight way that is free of solid blocks, 1 for all of it.

    The block at its beginning does not count.
    """
    i, j, k = floor(x), floor(y), floor(z)
    far = 1e30
    grow_x = abs(1.0 / dx) if dx != 0.0 else far
    grow_y = abs(1.0 / dy) if dy != 0.0 else far
    grow_z = abs(1.0 / dz) if dz != 0.0 else far
    next_x = (i + 1.0 - x if dx > 0.0 else x - i) * grow_x if dx != 0.0 else far
    next_y = (j + 1.0 - y if dy > 0.0 else y - j) * grow_y if dy != 0.0 else far
    next_z = (k + 1.0 - z if dz > 0.0 else z - k) * grow_z if dz != 0.0 else far
    step_x, step_y, step_z = 1 if dx > 0.0 else -1, 1 if dy > 0.0 else -1, 1 if dz > 0.0 else -1
    while True:
        if next_x <= next_y and next_x <= next_z:
            share, i, next_x = next_x, i + step_x, next_x + grow_x
        elif next_y <= next_z:
            share, j, next_y = next_y, j + step_y, next_y + grow_y
        else:
            share, k, next_z = next_z, k + step_z, next_z + grow_z
        if share >= 1.0:
            return 1.0
        if i < 0 or k < 0 or i >= SIZE or k >= SIZE or any_solid(w, i, i, j, j, k, k):
            return share


@inner
def heading(dx: float, dz: float) -> float:
    """Returns the yaw of the direction ``(dx, dz)``, in degrees from -180 to 180.

    A polynomial, accurate to 0.001 degrees: the same on every machine with any mathematics library.
    """
    across, along = abs(dx), abs(dz)
    if across + along == 0.0:
        return 0.0
    ratio = min(across, along) / max(across, along)
    square = ratio * ratio
    bent = -0.0851330 + square * 0.0208351
    bent = 0.9998660 + square * (-0.3302995 + square * (0.1801410 + square * bent))
    angle = ratio * bent * (180.0 / np.pi)
    if across > along:
        angle = 90.0 - angle
    if dz < 0.0:
        angle = 180.0 - angle
    return -angle if dx > 0.0 else angle
