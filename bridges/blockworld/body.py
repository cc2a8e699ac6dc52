"""The state of the player's body: hunger, healing, breath, fire, lava, the void, sleep.

Numbers are those of Minecraft 1.16 at normal difficulty: hunger always leaves one health.
"""

from __future__ import annotations

from bridges.blockworld.blocks import WATER
from bridges.blockworld.clock import clear_up, rained_on
from bridges.blockworld.combat import DROWNING, FIRE, HUNGER, LAVA, VOID, hurt_player
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.whole import whole
from bridges.blockworld.world import (
    BACK,
    FORWARD,
    HEIGHT,
    JUMP,
    LEFT,
    RIGHT,
    SIZE,
    SNEAK,
    block_at,
    eye_height,
)

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
