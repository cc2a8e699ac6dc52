"""Observations of the player's own state, inventory and direction of view."""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.rules.items import BLOW_TICKS, COOK_TICKS, PROTECTION
from bridges.blockworld.rules.world import (
    ARMOUR,
    CLEAR,
    DAY,
    FURNACE_SCREEN,
    HEIGHT,
    MAX_FURNACES,
    NO_SCREEN,
    SIZE,
    SLOTS,
    THUNDER,
    cosine,
    sine,
)

VITALS = (
    "health",  # of 20 half hearts
    "food",  # of 20 half drumsticks
    "saturation",  # of 20
    "air",  # of 300 ticks of breath
    "armour",  # of 20 points
    "on_ground",
    "in_water",
    "sneaking",
    "sprinting",
    "burning",
    "asleep",
    "attack_strength",  # of a full blow with the item in hand
    "dig_share",  # of the block that is being broken
    "daylight",  # of the sky, regardless of what is above the player
    "raining",  # 1 in rain and thunder
)
"""Places of ``vitals``: shares from 0 to 1, or 0 and 1 for no and yes."""

SCREEN = (
    "screen",  # 0 none, 1 inventory, 2 crafting table, 3 furnace
    "cursor_x",  # in cells, 0 to 9, y downwards 0 to 7; 0 without a screen
    "cursor_y",
    "carried_item",  # on the cursor
    "carried_count",
    "furnace_in_item",  # this and the following: of an open furnace, else 0
    "furnace_in_count",
    "furnace_fuel_item",
    "furnace_fuel_count",
    "furnace_out_item",
    "furnace_out_count",
    "furnace_burning",  # 1 while the fire burns
    "furnace_cooked",  # progress of the piece in it
)
"""Places of ``inventory/screen``."""

COMPASS = ("yaw_sine", "yaw_cosine", "pitch")
"""Places of ``compass``: the pitch is 1 straight down and -1 straight up."""

PLACES = (
    "x",
    "y",
    "z",  # share of the world's width, height, depth
    "home_right",
    "home_ahead",  # bearing of the place where the player began, a unit vector
    "home_distance",  # blocks
    "hut_right",
    "hut_ahead",
    "hut_distance",
    "hut",  # 1 where there is one; without, its bearing and distance are 0
)
"""Places of ``privileged_compass``."""

POCKETS = SLOTS + ARMOUR + 1
"""Slots of ``inventory``: 36 of the bags, hotbar first, helmet to boots, the off hand."""

_RAIN_LIGHT, _THUNDER_LIGHT = 0.72, 0.46


@inner
def sky_brightness(w: World) -> float:
    """Returns the brightness of the sky by time and weather, 0 to 1, as in ``pictures.view``."""
    bright = cosine((int(w.time) - DAY // 4) * (360.0 / DAY)) * 1.7 + 0.55
    bright = min(max(bright, 0.0), 1.0)
    if w.weather == CLEAR:
        return bright
    return bright * (_THUNDER_LIGHT if w.weather == THUNDER else _RAIN_LIGHT)


@kernel
def vitals(worlds: Any, out: Any, lo: int, hi: int) -> None:
    """Writes the state of each player: ``out`` is float32 ``(n, len(VITALS))``."""
    for k in range(lo, hi):
        w = worlds[k]
        row = out[k]
        row[0], row[1], row[2] = w.health / 20.0, w.food / 20.0, w.saturation / 20.0
        row[3] = max(float(w.air), 0.0) / 300.0
        points = 0
        for piece in range(ARMOUR):
            points += int(PROTECTION[int(w.armour[piece])])
        row[4] = points / 20.0
        row[5], row[6], row[7], row[8] = w.on_ground, w.in_water, w.sneaking, w.sprinting
        row[9] = 1.0 if w.fire_ticks > 0 else 0.0
        row[10] = 1.0 if w.sleep_ticks > 0 else 0.0
        row[11] = min(w.blow_ticks / BLOW_TICKS[int(w.item[int(w.selected)])], 1.0)
        row[12] = min(float(w.dig_share), 1.0) if w.dig_at >= 0 else 0.0
        row[13] = sky_brightness(w)
        row[14] = 1.0 if w.weather != CLEAR else 0.0
        for place in range(5):
            row[place] = min(max(row[place], 0.0), 1.0)


@inner
def _furnace(w: World, row: Any) -> None:
    """Writes the contents of the open furnace."""
    for n in range(MAX_FURNACES):
        if w.furnaces[n] == w.screen_at:
            row[5], row[6] = w.furnace_in[n], w.furnace_in_count[n]
            row[7], row[8] = w.furnace_fuel[n], w.furnace_fuel_count[n]
            row[9], row[10] = w.furnace_out[n], w.furnace_out_count[n]
            row[11] = 1.0 if w.furnace_burn[n] > 0 else 0.0
            row[12] = min(w.furnace_cook[n] / COOK_TICKS, 1.0)
            return


@kernel
def inventory(
    worlds: Any, items: Any, counts: Any, selected: Any, screen: Any, lo: int, hi: int
) -> None:
    """Writes what each player carries and its open screen.

    Args:
        worlds: records of type ``WORLD``.
        items: numbers of the items, uint8 ``(n, POCKETS)``; 0 for nothing.
        counts: how many of them, uint8, same shape.
        selected: slot of the hotbar in hand, int64 ``(n,)``.
        screen: float32 ``(n, len(SCREEN))``.
        lo: first world.
        hi: end of the range of worlds.
    """
    for k in range(lo, hi):
        w = worlds[k]
        for slot in range(SLOTS):
            count = w.count[slot]
            counts[k, slot] = count
            items[k, slot] = w.item[slot] if count > 0 else 0
        for piece in range(ARMOUR):
            worn = w.armour[piece]
            items[k, SLOTS + piece] = worn
            counts[k, SLOTS + piece] = 1 if worn > 0 else 0
        items[k, POCKETS - 1] = w.off_item if w.off_count > 0 else 0
        counts[k, POCKETS - 1] = w.off_count
        selected[k] = w.selected
        row = screen[k]
        for place in range(row.shape[0]):
            row[place] = 0.0
        if w.screen != NO_SCREEN:
            row[0], row[1], row[2] = w.screen, w.cursor_x, w.cursor_y
            row[3], row[4] = w.carried if w.carried_count > 0 else 0, w.carried_count
            if w.screen == FURNACE_SCREEN:
                _furnace(w, row)


@kernel
def compass(worlds: Any, out: Any, lo: int, hi: int) -> None:
    """Writes where each player looks: ``out`` is float32 ``(n, 3)``, see ``COMPASS``."""
    for k in range(lo, hi):
        w = worlds[k]
        out[k, 0], out[k, 1], out[k, 2] = sine(w.yaw), cosine(w.yaw), w.pitch / 90.0


@inner
def _bearing(w: World, x: float, z: float, row: Any, first: int) -> None:
    """Writes the position of a point relative to the player: a unit vector and a distance."""
    x, z = x - w.x, z - w.z
    distance = np.sqrt(x * x + z * z)
    row[first] = row[first + 1] = 0.0
    if distance > 1e-6:
        yaw_sine, yaw_cosine = sine(w.yaw), cosine(w.yaw)
        row[first] = (-x * yaw_cosine - z * yaw_sine) / distance
        row[first + 1] = (z * yaw_cosine - x * yaw_sine) / distance
    row[first + 2] = distance


@kernel
def places(worlds: Any, out: Any, lo: int, hi: int) -> None:
    """Writes where each player, its home and the hut are: float32 ``(n, 10)``, see ``PLACES``."""
    for k in range(lo, hi):
        w = worlds[k]
        row = out[k]
        row[0], row[1], row[2] = w.x / SIZE, w.y / HEIGHT, w.z / SIZE
        _bearing(w, w.home_x, w.home_z, row, 3)
        row[6] = row[7] = row[8] = row[9] = 0.0
        # A world that was never generated has zeros here, and no hut either.
        if w.hut[0] > 0:
            x = 0.5 * (int(w.hut[0]) + int(w.hut[2]) + 1)
            z = 0.5 * (int(w.hut[1]) + int(w.hut[3]) + 1)
            _bearing(w, x, z, row, 6)
            row[9] = 1.0
