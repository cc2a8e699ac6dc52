"""The scene that begins inside a hut with a bed and furniture: MCU's hard "sleep" task."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from bridges.blockworld.blocks import (
    AIR,
    BED,
    BOOKSHELF,
    CHEST,
    CRAFTING_TABLE,
    FURNACE,
    TORCH,
)
from bridges.blockworld.buildings import OUT_X, OUT_Z, build_shell
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.plan import HIGHEST_SUBJECT, SEA, Plan, begin, level_square, put, uneven
from bridges.blockworld.scene import HUT_HALF
from bridges.blockworld.world import SIZE, below, chance, cosine, place, set_block, sine

NEAREST, FARTHEST = 2.0, 4.0
"""Maximum distance of the bed from the player, for any state: more does not fit."""

_IN = HUT_HALF - 1
_FURNITURE = np.array([CHEST, CRAFTING_TABLE, FURNACE, BOOKSHELF], np.uint8)


@inner
def _settle_hut(w: World, p: Plan) -> None:
    """Levels the ground for the hut where the fewest changes are needed, and builds its shell."""
    best = 1 << 30
    for _ in range(16):
        x, z = 12 + below(w, SIZE - 24), 12 + below(w, SIZE - 24)
        ground = int(p.ground[x * SIZE + z])
        height = min(ground if ground > 0 else SEA, HIGHEST_SUBJECT)
        faults = uneven(p, x, z, HUT_HALF + 1, height, 1)
        if faults < best:
            best = faults
            p.centre_x, p.centre_z, p.height = x, z, height
        if faults == 0:
            break
    p.feet = p.height
    p.side = below(w, 3)  # never the last one: see ``_lay_bed``
    level_square(w, p, p.centre_x, p.centre_z, HUT_HALF + 1, p.height, 0)
    build_shell(w, p, p.centre_x, p.centre_z, HUT_HALF, p.side, p.height)


@inner
def _free(p: Plan, x: int, z: int) -> bool:
    """Whether furniture may stand on a column: inside, not at the player or the door."""
    i, k = x - int(p.centre_x), z - int(p.centre_z)
    if abs(i) > _IN or abs(k) > _IN:
        return False
    if max(abs(x - p.player_x), abs(z - p.player_z)) < 2:
        return False
    out_x, out_z = int(OUT_X[p.side]), int(OUT_Z[p.side])
    return not (i * out_x + k * out_z > 0 and i * out_z + k * out_x == 0)


@inner
def _lay_bed(w: World, p: Plan, o: Any) -> None:
    """Draws the direction of the look and the bed's place, at the requested bearing from it."""
    x, z, height = int(p.centre_x), int(p.centre_z), int(p.height)
    for _ in range(400):
        p.yaw = float(below(w, 360))
        dx, dz = -sine(p.yaw + o.bearing), cosine(p.yaw + o.bearing)
        distance = NEAREST + chance(w) * (FARTHEST - NEAREST)
        p.player_x, p.player_z = x - 1 + below(w, 3), z - 1 + below(w, 3)
        p.subject_x = int(p.player_x + 0.5 + distance * dx)
        p.subject_z = int(p.player_z + 0.5 + distance * dz)
        side = below(w, 4)
        i, k = p.subject_x - p.player_x, p.subject_z - p.player_z
        away = sqrt(float(i * i + k * k))
        if away < NEAREST or away >= FARTHEST or i * dx + k * dz < 0:
            continue
        if abs(i * dz - k * dx) > 0.13 * away or not _free(p, p.subject_x, p.subject_z):
            continue
        if _free(p, p.subject_x + OUT_X[side], p.subject_z + OUT_Z[side]):
            break
    else:
        # Three blocks along +x, where the door never is.
        p.yaw = float((630 - int(o.bearing)) % 360)
        p.player_x, p.player_z, side = x - 1, z, 2
        p.subject_x, p.subject_z = x + 2, z
    put(w, p.subject_x, height, p.subject_z, BED)
    put(w, p.subject_x + OUT_X[side], height, p.subject_z + OUT_Z[side], BED)


@inner
def bedroom(w: World, p: Plan, o: Any) -> None:
    """Builds a hut with the player, a bed and furniture in it."""
    begin(w, p.scene_key, 1)
    _settle_hut(w, p)
    _lay_bed(w, p, o)
    wide = 2 * _IN + 1
    piece, start = 0, below(w, wide * wide)
    for turn in range(wide * wide):
        cell = (start + turn * 7) % (wide * wide)  # 7 and 25 are coprime: each comes once
        i, k = cell // wide - _IN, cell % wide - _IN
        x, z = int(p.centre_x) + i, int(p.centre_z) + k
        at = place(x, int(p.height), z)
        if max(abs(i), abs(k)) < _IN or not _free(p, x, z) or w.blocks[at] != AIR:
            continue
        put(w, x, p.height, z, _FURNITURE[piece])
        if piece == 0:
            set_block(w, at + 1, TORCH)
        elif piece == 2:
            w.furnaces[0] = at
        piece += 1
        if piece == len(_FURNITURE):
            return
