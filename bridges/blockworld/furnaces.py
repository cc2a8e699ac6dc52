"""The furnaces: fuel and cooking."""

from __future__ import annotations

from bridges.blockworld.blocks import FURNACE, LIT_FURNACE
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.crafting import there_is
from bridges.blockworld.items import FUEL, NOTHING, STACK
from bridges.blockworld.recipes import COOK_TICKS, COOKED, MAKES, MAKES_COUNT
from bridges.blockworld.whole import whole
from bridges.blockworld.world import MAX_FURNACES, set_block

_COOLS = 2
"""Ticks of cooking progress that are lost per tick without fire."""


@inner
def tick_furnaces(w: World) -> None:
    """Updates all furnaces for one tick, as in Minecraft 1.16.

    Fuel is lit only when there is something to cook and room for the product; a fire once lit burns
    down.
    """
    for n in range(MAX_FURNACES):
        if whole(w.furnaces[n]) < 0:
            continue
        burn = max(whole(w.furnace_burn[n]) - 1, 0)
        recipe = _cooking(w, n)
        if burn == 0 and recipe >= 0 and whole(w.furnace_fuel_count[n]) > 0:
            burn = _light(w, n)
        cook = whole(w.furnace_cook[n])
        if recipe < 0:
            cook = 0
        elif burn > 0:
            cook += 1
            if cook >= COOK_TICKS:
                cook = 0
                _finish(w, n, recipe)
        else:
            cook = max(cook - _COOLS, 0)
        w.furnace_burn[n], w.furnace_cook[n] = burn, cook
        block = LIT_FURNACE if burn > 0 else FURNACE
        if whole(w.blocks[w.furnaces[n]]) != block:
            set_block(w, whole(w.furnaces[n]), block)


@inner
def _cooking(w: World, n: int) -> int:
    """Returns the recipe that a furnace could cook now; -1 for none."""
    if whole(w.furnace_in_count[n]) == 0:
        return -1
    recipe = whole(COOKED[whole(w.furnace_in[n])])
    if recipe < 0 or not there_is(w, recipe):
        return -1
    product, lies = whole(MAKES[recipe]), whole(w.furnace_out[n])
    room = whole(STACK[product]) - whole(w.furnace_out_count[n])
    if lies not in (NOTHING, product) or room < whole(MAKES_COUNT[recipe]):
        return -1
    return recipe


@inner
def _light(w: World, n: int) -> int:
    """Burns one piece of fuel, and returns its ticks of burning."""
    fuel, left = whole(w.furnace_fuel[n]), whole(w.furnace_fuel_count[n]) - 1
    w.furnace_fuel_count[n] = left
    if left == 0:
        w.furnace_fuel[n] = NOTHING
    return whole(FUEL[fuel])


@inner
def _finish(w: World, n: int, recipe: int) -> None:
    """Moves one cooked piece to the output."""
    left = whole(w.furnace_in_count[n]) - 1
    w.furnace_in_count[n] = left
    if left == 0:
        w.furnace_in[n] = NOTHING
    w.furnace_out[n] = MAKES[recipe]
    w.furnace_out_count[n] = whole(w.furnace_out_count[n]) + whole(MAKES_COUNT[recipe])
