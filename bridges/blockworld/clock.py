"""The time of day and the weather."""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.factors import DESERT, SAVANNA, SNOWY
from bridges.blockworld.whole import whole
from bridges.blockworld.world import CLEAR, DAY, HEIGHT, RAIN, THUNDER, below, chance

_CLEAR_TICKS = (12_000, 180_000)
_WET_TICKS = (12_000, 24_000)
"""Minimum and maximum ticks of fair weather, and of rain or thunder; Minecraft 1.16's."""
_THUNDER = 0.2
"""Share of storms with thunder; Minecraft uses a separate clock for it."""

NIGHT = (12_542, 23_459)
"""First and last tick of a clear day at which one can sleep; Minecraft 1.16's."""
WET_NIGHT = (12_010, 23_991)
"""The same in rain."""


@inner
def tick_clock(w: World) -> None:
    """Advances the time of day and the weather by one tick."""
    w.time = (whole(w.time) + 1) % DAY
    left = whole(w.weather_ticks) - 1
    if left <= 0:
        if whole(w.weather) == CLEAR:
            w.weather = THUNDER if chance(w) < _THUNDER else RAIN
            left = _WET_TICKS[0] + below(w, _WET_TICKS[1] - _WET_TICKS[0])
        else:
            left = clear_up(w)
    w.weather_ticks = left


@inner
def clear_up(w: World) -> int:
    """Makes the weather fair, and returns for how many ticks."""
    w.weather = CLEAR
    return _CLEAR_TICKS[0] + below(w, _CLEAR_TICKS[1] - _CLEAR_TICKS[0])


@inner
def can_sleep_now(w: World) -> bool:
    """Whether it is night, or thunders, so that the player can sleep."""
    time, weather = whole(w.time), whole(w.weather)
    if weather == THUNDER:
        return True
    first, last = WET_NIGHT if weather == RAIN else NIGHT
    return first <= time <= last


@inner
def rained_on(w: World, column: int, y: float) -> bool:
    """Whether rain falls on a point of a column: bad weather, open sky, and a climate with rain."""
    if whole(w.weather) == CLEAR or whole(w.heights[column]) > y:
        return False
    biome = whole(w.biome)
    return biome not in (DESERT, SAVANNA, SNOWY) and whole(w.heights[column]) < HEIGHT
