"""Builds worlds from orders.

Everything visible at the start is determined by the state. Each part of a world is drawn from a
hash of the factors that concern it: the ground and plants from terrain and biome; the positions of
the player and its subject from these and subject, number, distance and bearing, and obstacles
between them are removed; the other creatures, the clutter and the sky each from their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.bedroom import bedroom
from bridges.blockworld.buildings import build_shell, lone_hut
from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.factors import (
    BED_IN_HUT,
    HUT,
    IRON_ORE,
    MOUNTAIN,
    NO_SUBJECT,
    STONE,
)
from bridges.blockworld.outfit import fill_bags, set_player
from bridges.blockworld.plan import BARE, PLAN, SHADE, Plan, begin, fold, reserve
from bridges.blockworld.plants import grow
from bridges.blockworld.route import make_way
from bridges.blockworld.scene import HUT_HALF, RISE, choose, settle
from bridges.blockworld.subjects import put_others, put_subject
from bridges.blockworld.terrain import lava_pool, relief, underground
from bridges.blockworld.world import below

LEAST_WEATHER, MOST_WEATHER = 6_000, 18_000
"""Ticks until the weather changes for the first time."""


@inner
def _keys(p: Plan, o: Any) -> Any:
    """Sets the random keys of the ground and the scene; returns a hash of the whole state."""
    p.biome = o.biome
    p.ground_key = fold(fold(np.uint64(0x626C6F636B), o.terrain), o.biome)
    key = fold(fold(p.ground_key, o.subject), o.number)
    key = fold(fold(key, int(o.nearest * 16)), int(o.farthest * 16))
    p.scene_key = fold(key, int(o.bearing))
    key = fold(fold(fold(p.scene_key, o.time), o.weather), o.coat)
    key = fold(fold(key, o.others_kind), o.others_count)
    key = fold(fold(fold(key, o.main_hand), o.armour), o.off_hand)
    return fold(fold(key, o.kit), o.clutter)


@inner
def _set_scene(w: World, p: Plan, o: Any) -> None:
    """Places the player and its subject on the bare ground."""
    subject = int(o.subject)
    if subject == BED_IN_HUT:
        bedroom(w, p, o)
        return
    choose(w, p, o)
    settle(w, p, o)
    if subject == HUT:
        build_shell(w, p, p.centre_x, p.centre_z, HUT_HALF, p.side, p.height)
    if subject == MOUNTAIN:
        make_way(w, p, 0, p.feet + RISE, 0)
    elif subject == HUT:
        make_way(w, p, 0, p.height, 0)
    elif subject != NO_SUBJECT:
        make_way(w, p, 2 if subject in (STONE, IRON_ORE) else 1, p.height, p.radius)
    reserve(p, p.player_x, p.player_z, 1, SHADE)
    reserve(p, p.player_x, p.player_z, 0, BARE)
    put_subject(w, p, o)


@kernel
def generate(worlds: Any, orders: Any, lo: int, hi: int) -> None:
    """Builds the worlds of ``orders[lo:hi]``, each from its order alone.

    Args:
        worlds: all worlds, contiguous, of type ``WORLD``; former contents are overwritten.
        orders: of type ``ORDER``; ``orders[i].slot`` is the index of its world.
        lo: first order.
        hi: end of the orders.
    """
    bytes_of = worlds.view(np.uint8)
    length = len(bytes_of) // max(len(worlds), 1)
    plans = np.zeros(1, PLAN)
    p = plans[0]
    for i in range(lo, hi):
        o = orders[i]
        slot = int(o.slot)
        bytes_of[slot * length : (slot + 1) * length] = 0
        w = worlds[slot]
        p.keep[:] = 0
        state_key = _keys(p, o)
        w.biome, w.terrain = o.biome, o.terrain
        w.furnaces[:] = -1
        w.hut[:] = -1
        relief(w, p)
        underground(w, p)
        _set_scene(w, p, o)
        if w.hut[0] < 0:
            lone_hut(w, p)
        lava_pool(w, p)
        grow(w, p)
        put_others(w, p, o)
        set_player(w, p)
        fill_bags(w, p, o)
        begin(w, fold(fold(p.ground_key, o.weather), o.time), 8)
        w.time, w.weather = o.time, o.weather
        w.weather_ticks = LEAST_WEATHER + below(w, MOST_WEATHER - LEAST_WEATHER)
        w.random = fold(state_key, o.random)
