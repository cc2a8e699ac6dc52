"""What the player starts with: health, tools, armour, a kit, and clutter."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.factors import KITS
from bridges.blockworld.items import ARMOUR_PIECES, ARMOUR_TIERS, NUMBER, STACK
from bridges.blockworld.plan import Plan, begin, fold
from bridges.blockworld.world import ARMOUR, HOTBAR, SLOTS, below

MOST_KIT = 4
"""Maximum number of stacks of a kit."""
FULL_STRENGTH = 100.0
"""Ticks since the last blow after which any tool strikes with full strength."""
USELESS = (
    "feather",
    "bone",
    "string",
    "flint",
    "wheat",
    "dead_bush",
    "flower",
    "glass",
    "pumpkin",
    "leather",
    "rotten_flesh",
    "gold_ingot",
    "mushroom",
    "spider_eye",
    "terracotta",
    "arrow",
)
"""Items that are of no use for any task, for clutter."""

_USELESS = np.array([NUMBER[name] for name in USELESS], np.uint8)
_KIT = np.zeros((len(KITS), MOST_KIT, 2), np.uint8)
for _row, _stacks in enumerate(KITS.values()):
    for _place, (_name, _count) in enumerate(_stacks):
        _KIT[_row, _place] = NUMBER[_name], _count
_SUIT = np.zeros((1 + len(ARMOUR_TIERS), ARMOUR), np.uint8)
for _row, _tier in enumerate(ARMOUR_TIERS, 1):
    _SUIT[_row] = [NUMBER[f"{_tier}_{piece}"] for piece in ARMOUR_PIECES]
_OFF_COUNT = np.ones(len(STACK), np.uint8)
_OFF_COUNT[NUMBER["torch"]] = 16
_OFF_COUNT[NUMBER["bread"]] = 4

_FEWEST = np.array([0, 3, 12])
_SPREAD = np.array([1, 4, 9])


@inner
def _shuffle(w: World, slots: Any, first: int, end: int) -> None:
    for n in range(end - 1, first, -1):
        other = first + below(w, n - first + 1)
        slots[n], slots[other] = slots[other], slots[n]


@inner
def fill_bags(w: World, p: Plan, o: Any) -> None:
    """Fills the inventory.

    Without clutter the main hand is slot 0 and the kit follows; with clutter both are anywhere in
    the hotbar. The slots and the clutter depend on nothing but the ground and the amount of
    clutter.
    """
    slots = p.queue
    for n in range(SLOTS):
        slots[n] = n
    begin(w, fold(p.ground_key, o.clutter), 7)
    if o.clutter > 0:
        _shuffle(w, slots, 0, HOTBAR)
        _shuffle(w, slots, HOTBAR, SLOTS)
        # Of five slots for clutter in the hotbar some are filled, some stay free.
        _shuffle(w, slots, 1 + MOST_KIT, SLOTS)
    if o.main_hand > 0:
        w.item[slots[0]], w.count[slots[0]] = o.main_hand, 1
    for n in range(MOST_KIT):
        if _KIT[o.kit, n, 1] > 0:
            slot = slots[1 + n]
            w.item[slot], w.count[slot] = _KIT[o.kit, n, 0], _KIT[o.kit, n, 1]
    for n in range(_FEWEST[o.clutter] + below(w, _SPREAD[o.clutter]) if o.clutter > 0 else 0):
        slot = slots[1 + MOST_KIT + n]
        item = int(_USELESS[below(w, len(_USELESS))])
        w.item[slot], w.count[slot] = item, 1 + below(w, min(int(STACK[item]), 16))
    for n in range(ARMOUR):
        w.armour[n] = _SUIT[o.armour, n]
    if o.off_hand > 0:
        w.off_item, w.off_count = o.off_hand, _OFF_COUNT[o.off_hand]


@inner
def set_player(w: World, p: Plan) -> None:
    """Places the player, healthy and rested."""
    w.x, w.y, w.z = p.player_x + 0.5, float(p.feet), p.player_z + 0.5
    w.home_x, w.home_y, w.home_z = w.x, w.y, w.z
    w.yaw = p.yaw
    w.on_ground = 1
    w.health, w.food, w.saturation, w.air = 20.0, 20, 5.0, 300
    w.blow_ticks = FULL_STRENGTH
    w.dig_at = w.screen_at = -1
