"""Worlds built from orders.

Everything visible at the start is determined by the state. Each part of a world is drawn from a
hash of the factors that concern it: the ground and plants from terrain and biome; the positions of
the player and its subject from these and subject, number, distance and bearing, and obstacles
between them are removed; the other creatures, the clutter and the sky each from their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.rules.buildings import HUT_HALF, bedroom, build_shell, lone_hut
from bridges.blockworld.rules.factors import (
    BED_IN_HUT,
    HUT,
    IRON_ORE,
    KITS,
    MOUNTAIN,
    NO_SUBJECT,
    STONE,
)
from bridges.blockworld.rules.ground import (
    BARE,
    PLAN,
    ROUTE,
    SHADE,
    Plan,
    begin,
    fold,
    lava_pool,
    level,
    relief,
    reserve,
    underground,
)
from bridges.blockworld.rules.items import ARMOUR_PIECES, ARMOUR_TIERS, NUMBER, STACK
from bridges.blockworld.rules.plants import grow
from bridges.blockworld.rules.scene import RISE, choose, put_others, put_subject, settle
from bridges.blockworld.rules.world import ARMOUR, HOTBAR, SIZE, SLOTS, below

# inventory and player at the start ----------------------------------------------------------------

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


# the way to the subject ---------------------------------------------------------------------------

MOST_UP, MOST_DOWN = 1, 3
"""Blocks that a step of the way may go up and down."""


@inner
def _search(p: Plan, near: int) -> int:
    """Returns a column reachable on foot at most ``near`` columns from the target, or -1.

    Breadth first over dry ground; afterwards ``came`` leads back to the player.
    """
    ground, came, queue = p.ground, p.came, p.queue
    for column in range(SIZE * SIZE):
        came[column] = -1
    start = p.player_x * SIZE + p.player_z
    came[start] = start
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        column = int(queue[head])
        head += 1
        away_x, away_z = abs(column // SIZE - p.target_x), abs(column % SIZE - p.target_z)
        if away_x <= near and away_z <= near:
            return column
        here = int(ground[column])
        for way in range(4):
            beside = column + (SIZE if way == 0 else -SIZE if way == 1 else 1 if way == 2 else -1)
            there = int(ground[beside])
            if there == 0 or came[beside] >= 0:
                continue
            if there <= here + MOST_UP and there >= here - MOST_DOWN:
                came[beside] = column
                queue[tail] = beside
                tail += 1
    return -1


@inner
def _cut(w: World, p: Plan, height: int, radius: int) -> None:
    """Cuts a straight way to the target, whose ground is level at ``height`` within ``radius``.

    It follows the ground as far as steps of one block allow, and fills water.
    """
    x, z, here = int(p.player_x), int(p.player_z), int(p.feet)
    p.keep[x * SIZE + z] |= ROUTE
    while x != p.target_x or z != p.target_z:
        left_x, left_z = int(p.target_x) - x, int(p.target_z) - z
        if abs(left_x) >= abs(left_z):
            x += 1 if left_x > 0 else -1
        else:
            z += 1 if left_z > 0 else -1
        left = max(abs(int(p.target_x) - x) - radius, 0) + max(abs(int(p.target_z) - z) - radius, 0)
        column = x * SIZE + z
        now = int(p.ground[column])
        now = min(max(now, here - 1), here + 1) if now > 0 else here
        here = min(max(now, height - left), height + left)
        level(w, p, column, here)
        p.keep[column] |= ROUTE
        for beside in (column - SIZE, column + SIZE, column - 1, column + 1):
            if p.ground[beside] > here + 1 and p.keep[beside] & ROUTE == 0:
                level(w, p, beside, here + 1)


@inner
def make_way(w: World, p: Plan, near: int, height: int, radius: int) -> None:
    """Reserves a way from the player to within ``near`` columns of the target.

    If none is found, one is cut that ends at ``height``, where the ground is level within
    ``radius`` of the target.
    """
    column = _search(p, near)
    if column < 0:
        _cut(w, p, height, radius)
        return
    while p.came[column] != column:
        p.keep[column] |= ROUTE
        column = int(p.came[column])
    p.keep[column] |= ROUTE


# worlds -------------------------------------------------------------------------------------------

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
