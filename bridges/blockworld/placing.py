"""Placing blocks: where they may stand, and counting them."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.blocks import (
    AIR,
    BED,
    DEAD_BUSH,
    FORM,
    FURNACE,
    LAVA,
    MAX_BLOCKS,
    PLANT,
    SOLID,
    TALL_GRASS,
    WATER,
)
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.digging import clear_furnace
from bridges.blockworld.species import NOBODY, TALL, WIDTH
from bridges.blockworld.whole import whole
from bridges.blockworld.world import (
    HEIGHT,
    MAX_CREATURES,
    MAX_FURNACES,
    SIZE,
    SLIM,
    STANDING,
    set_block,
)

HIGHEST = 30
"""Maximum height of placed blocks; the layer above stays air."""
SNEAKING = 1.5
"""Height of the player when it sneaks."""

REPLACEABLE = np.isin(np.arange(MAX_BLOCKS), (AIR, WATER, LAVA, TALL_GRASS, DEAD_BUSH))
"""Blocks that a placed block replaces, by number of the block."""

_STEPS = np.array([-SIZE * HEIGHT, SIZE * HEIGHT, -1, 1, -HEIGHT, HEIGHT])
"""Index offset from a block to its neighbour, by face."""


@inner
def place_block(w: World, block: int, at: int, face: int) -> bool:
    """Places a block at a face of another, and returns whether it could.

    It replaces grass that is aimed at. It cannot overlap a body, and torches, plants and beds need
    solid ground. A bed takes a second cell, away from the player. A furnace cannot be placed if the
    world's list is full. The caller removes the item from the hand.
    """
    y = at % HEIGHT
    if not REPLACEABLE[whole(w.blocks[at])]:
        if (face == 2 and y == 0) or (face == 3 and y >= HIGHEST):
            return False
        at += _STEPS[face]
        y = at % HEIGHT
    if not _free(w, at, block):
        return False
    if block == BED:
        head = at + _ahead(w.yaw)
        if not _free(w, head, block):
            return False
        set_block(w, head, BED)
    if block == FURNACE and not _register(w, at):
        return False
    column = at // HEIGHT
    top = whole(w.heights[column])
    on_top = y == top or (y == top - 1)
    set_block(w, at, block)
    if on_top and block != BED and SOLID[block]:
        w.pillars[column] = min(whole(w.pillars[column]) + 1, 255)
    w.placed[block] = whole(w.placed[block]) + 1
    return True


@inner
def _free(w: World, at: int, block: int) -> bool:
    """Whether a block can stand in a cell."""
    y = at % HEIGHT
    if y < 1 or y > HIGHEST or not REPLACEABLE[whole(w.blocks[at])]:
        return False
    if (FORM[block] == PLANT or block == BED) and not SOLID[whole(w.blocks[at - 1])]:
        return False
    return not SOLID[block] or not _occupied(w, at)


@inner
def _occupied(w: World, at: int) -> bool:
    """Whether the player or a creature is in a cell."""
    column, y = at // HEIGHT, float(at % HEIGHT)
    x, z = column // SIZE + 0.5, column % SIZE + 0.5
    reach, tall = 0.5 + SLIM / 2, SNEAKING if w.sneaking else STANDING
    if abs(w.x - x) < reach and abs(w.z - z) < reach and w.y < y + 1.0 and w.y + tall > y:
        return True
    for n in range(MAX_CREATURES):
        kind = whole(w.c_kind[n])
        if kind != NOBODY:
            reach, low = 0.5 + float(WIDTH[kind]) / 2, float(w.c_y[n])
            if (
                abs(float(w.c_x[n]) - x) < reach
                and abs(float(w.c_z[n]) - z) < reach
                and low < y + 1.0
                and low + float(TALL[kind]) > y
            ):
                return True
    return False


@inner
def _ahead(yaw: float) -> int:
    """Returns the offset to the neighbour in the direction of the player's look."""
    quarter = int(np.floor(yaw / 90.0 + 0.5)) & 3
    return (  # +z, -x, -z, +x
        HEIGHT
        if quarter == 0
        else -SIZE * HEIGHT
        if quarter == 1
        else -HEIGHT
        if quarter == 2
        else SIZE * HEIGHT
    )


@inner
def _register(w: World, at: int) -> bool:
    """Adds a furnace to the world's list; returns whether there was room."""
    for n in range(MAX_FURNACES):
        if whole(w.furnaces[n]) < 0:
            w.furnaces[n] = at
            clear_furnace(w, n)
            return True
    return False
