"""Game time: 60 ticks a second, ten minutes of the game in seven seconds."""

from __future__ import annotations

from bridges.stardojo.rules import farmer
from bridges.stardojo.rules.night import faint, pass_out
from bridges.stardojo.rules.registry import TEN, TICKS
from bridges.stardojo.rules.world import TEN_MINUTES, World

LAST = 120 * TEN_MINUTES
"""Ticks of a day: at 2:00 in the night the farmer passes out."""
_SLICE = 15


def advance(world: World, ticks: int) -> None:
    """Lets game time pass; an open menu stops the clock, not the farmer's animation."""
    while ticks > 0:
        if world.menu is not None:
            world.busy = max(0, world.busy - ticks)
            return
        monsters = bool(world.here.monsters)
        step = min(ticks, TEN_MINUTES - world.ticks % TEN_MINUTES)
        if monsters:
            step = min(step, _SLICE)
        world.ticks += step
        world.busy = max(0, world.busy - step)
        world.farmer.safe_ticks = max(0, world.farmer.safe_ticks - step)
        ticks -= step
        if monsters:
            TICKS.call(world, step)
        if world.farmer.health <= 0:
            faint(world)
        if world.ticks % TEN_MINUTES == 0:
            TEN.call(world)
            if world.ticks >= LAST:
                pass_out(world)
        if world.farmer.energy <= farmer.EXHAUSTED:
            pass_out(world)
