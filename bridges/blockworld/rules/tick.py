"""One tick of a world and of the player's body, and the entry point that steps many worlds.

The body's numbers are those of Minecraft 1.16 at normal difficulty: hunger always leaves one
health.
"""

from __future__ import annotations

from typing import Any

from bridges.blockworld.compiled import World, inner, kernel, whole
from bridges.blockworld.rules.blocks import WATER
from bridges.blockworld.rules.combat import (
    DROWNING,
    FIRE,
    HUNGER,
    LAVA,
    VOID,
    hurt_player,
    tick_arrows,
)
from bridges.blockworld.rules.crafting import tick_furnaces
from bridges.blockworld.rules.creatures import tick_creatures
from bridges.blockworld.rules.drops import tick_drops
from bridges.blockworld.rules.hands import tick_hands
from bridges.blockworld.rules.motion import tick_player
from bridges.blockworld.rules.screen import move_cursor, tick_screen
from bridges.blockworld.rules.world import (
    ATTACK,
    AUTO_CLICK,
    AUTO_JUMP,
    BACK,
    DROP,
    FORWARD,
    HEIGHT,
    INVENTORY,
    JUMP,
    LEFT,
    NO_SCREEN,
    RIGHT,
    SIZE,
    SNEAK,
    USE,
    block_at,
    clear_up,
    eye_height,
    rained_on,
    tick_clock,
)

# the body -----------------------------------------------------------------------------------------

FULL_HEALTH = 20.0
FULL_FOOD = 20
FULL_AIR = 300
"""Ticks of breath: 15 s."""
AIR_BACK = 4
"""Ticks of breath regained per tick above water."""
SUFFOCATES = 20
"""Ticks between two losses of health without breath, and in fire."""
DROWNING_COST, FIRE_COST, LAVA_COST, HUNGER_COST = 2.0, 1.0, 4.0, 1.0
LAVA_FIRE = 300
"""Ticks of burning after touching lava."""

HEALS_FAST, HEALS, STARVES = 10, 80, 80
"""Ticks per healing when full and saturated, when well fed, and per loss when starving."""
WELL_FED = 18

SLEEPS = 100
"""Ticks of sleep until it is morning."""
DEEP = 20
"""Ticks of sleep before a movement key can wake the player."""
_WAKING = FORWARD | BACK | LEFT | RIGHT | JUMP | SNEAK


@inner
def tick_body(w: World) -> None:
    """Applies hunger, healing, breath, fire, lava and the void for one tick."""
    w.hurt_ticks = max(whole(w.hurt_ticks) - 1, 0)
    amount, cause = _lost_to_surroundings(w)
    starved = _digest(w)
    if amount == 0.0 and starved:
        amount, cause = HUNGER_COST, HUNGER
    if amount > 0.0:
        hurt_player(w, amount, w.x, w.z, cause)
    if w.health > 0.0 and w.pillar < 255:
        _note_pillar(w)


@inner
def _lost_to_surroundings(w: World) -> tuple[float, int]:
    """Returns the largest damage of void, lava, drowning and fire in this tick, and its cause."""
    amount, cause = 0.0, FIRE
    column = whole(w.x) * SIZE + whole(w.z)
    burning = whole(w.fire_ticks)
    if w.in_water or (burning > 0 and rained_on(w, column, w.y + 1.0)):
        burning = 0
    if burning > 0:
        if burning % SUFFOCATES == 0:
            amount = FIRE_COST
        burning -= 1
    air = whole(w.air)
    if block_at(w, w.x, w.y + eye_height(w), w.z) == WATER:
        air -= 1
        if air <= -SUFFOCATES:
            air = 0
            amount, cause = DROWNING_COST, DROWNING
    else:
        air = min(air + AIR_BACK, FULL_AIR)
    w.air = air
    if w.in_lava:
        burning = LAVA_FIRE
        amount, cause = LAVA_COST, LAVA
    w.fire_ticks = burning
    if w.y < 0.0:
        w.hurt_ticks = 0
        amount, cause = 1000.0, VOID
    return amount, cause


@inner
def _digest(w: World) -> bool:
    """Converts exhaustion to hunger and food to health; returns whether hunger costs health."""
    if w.exhaustion >= 4.0:
        w.exhaustion = float(w.exhaustion) - 4.0
        if w.saturation > 0.0:
            w.saturation = max(float(w.saturation) - 1.0, 0.0)
        else:
            w.food = max(whole(w.food) - 1, 0)
    food, ticks, hurt = whole(w.food), whole(w.food_ticks) + 1, w.health < FULL_HEALTH
    starves = False
    if hurt and food >= FULL_FOOD and w.saturation > 0.0:
        if ticks >= HEALS_FAST:
            spent = min(float(w.saturation), 6.0)
            _heal(w, spent / 6.0, spent)
            ticks = 0
    elif hurt and food >= WELL_FED:
        if ticks >= HEALS:
            _heal(w, 1.0, 6.0)
            ticks = 0
    elif food <= 0:
        if ticks >= STARVES:
            starves = w.health > 1.0
            ticks = 0
    else:
        ticks = 0
    w.food_ticks = ticks
    return starves


@inner
def _heal(w: World, amount: float, exhaustion: float) -> None:
    w.health = min(float(w.health) + amount, FULL_HEALTH)
    w.exhaustion = float(w.exhaustion) + exhaustion


@inner
def _note_pillar(w: World) -> None:
    """Updates the highest stack of its own blocks that the player has stood on."""
    if w.on_ground:
        column = whole(w.x) * SIZE + whole(w.z)
        stacked = whole(w.pillars[column])
        if (
            stacked > whole(w.pillar)
            and whole(w.heights[column]) == whole(w.y + 1e-6)
            and w.y < HEIGHT
        ):
            w.pillar = stacked


@inner
def tick_sleep(w: World, pressed: int) -> None:
    """Continues the player's sleep for one tick, until morning or until a key wakes it.

    A complete sleep of 100 ticks brings the next morning and fair weather, and counts as slept. A
    movement key wakes the player after a second, and then nothing has changed.
    """
    w.sleep_ticks = whole(w.sleep_ticks) + 1
    if whole(w.sleep_ticks) > SLEEPS:
        w.sleep_ticks = 0
        w.time = 0
        w.weather_ticks = clear_up(w)
        w.slept = whole(w.slept) + 1
    elif pressed & _WAKING and whole(w.sleep_ticks) > DEEP:
        w.sleep_ticks = 0


# the tick -----------------------------------------------------------------------------------------

_STILL = 1e-3  # squared speed, in blocks per tick; unobstructed walking is faster


@kernel
def advance(worlds: Any, controls: Any, playing: Any, ticks: int, lo: int, hi: int) -> None:
    """Steps worlds by a number of ticks, in place.

    Worlds whose player is dead, and those that do not play, are not changed. Each world depends on
    nothing but itself and its controls: any split of ``lo`` to ``hi`` gives the same.

    Args:
        worlds: the worlds, ``(W,)`` of type ``WORLD``.
        controls: of each player, ``(W,)`` of type ``CONTROLS``; finite degrees.
        playing: which worlds play, ``(W,)`` uint8.
        ticks: ticks of this step; the camera turns in the first of them.
        lo: first world to step.
        hi: end of the range of worlds.
    """
    for k in range(lo, hi):
        if playing[k]:
            w = worlds[k]
            keys = whole(controls[k].keys)
            for number in range(ticks):
                if w.dead:
                    break
                if number == 0:
                    turn(w, float(controls[k].yaw), float(controls[k].pitch))
                tick(w, keys, number == 0)


@inner
def stands_still(w: World) -> bool:
    """True if the player stands still after it ran into an obstacle."""
    return bool(w.on_ground != 0 and w.vx * w.vx + w.vz * w.vz < _STILL)


@inner
def turn(w: World, yaw: float, pitch: float) -> None:
    """Turns the camera by some degrees, or moves the cursor if a screen is open."""
    if w.screen != NO_SCREEN:
        move_cursor(w, yaw, pitch)
        return
    w.yaw = (float(w.yaw) + yaw) % 360.0
    if w.yaw >= 360.0:  # rounded up to it
        w.yaw = 0.0
    w.pitch = min(max(float(w.pitch) + pitch, -90.0), 90.0)


@inner
def tick(w: World, keys: int, first: bool) -> None:
    """Runs one tick with these keys held; ``first`` says whether a step begins with it.

    The order is part of the game's rules: clock, screen or hands, the player's motion, its body,
    creatures, arrows, drops, furnaces.
    """
    before = whole(w.keys_before)
    pressed = keys & ~before
    w.keys_before = keys
    if first and keys & AUTO_CLICK:
        pressed |= keys & (DROP | INVENTORY)
        if w.screen != NO_SCREEN:
            pressed |= keys & (ATTACK | USE)
    w.tick += 1
    tick_clock(w)
    moving = keys
    if w.sleep_ticks > 0:
        tick_sleep(w, pressed)
        moving = 0
    elif w.screen != NO_SCREEN:
        tick_screen(w, keys, pressed)
        moving = 0
    else:
        tick_hands(w, keys, pressed)
        if w.screen != NO_SCREEN or w.sleep_ticks > 0:
            moving = 0
    if moving & before & AUTO_JUMP and moving & before & FORWARD and stands_still(w):
        moving |= JUMP
    tick_player(w, moving)
    tick_body(w)
    tick_creatures(w)
    tick_arrows(w)
    tick_drops(w)
    tick_furnaces(w)
