"""Crafting and furnaces: recipes, fuel, cooking, and stacks moved between slots."""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import FURNACE, LIT_FURNACE, LOGS
from bridges.blockworld.rules.inventory import (
    FIRST_WORN,
    FURNACE_FUEL,
    FURNACE_IN,
    FURNACE_OUT,
    OFF_HAND,
    add_item,
    count_item,
    fill_slots,
    fits,
    note_taken,
    remove_items,
    room_for,
    slot_count,
    slot_item,
    slot_wear,
    write_slot,
)
from bridges.blockworld.rules.items import (
    COOK_TICKS,
    COOKED,
    FUEL,
    MAKES,
    MAKES_COUNT,
    MAX_NEEDS,
    NEEDS,
    NEEDS_ANY_LOG,
    NEEDS_COUNT,
    NOTHING,
    STACK,
    WORN_IN,
)
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.world import FURNACE_SCREEN, HOTBAR, MAX_FURNACES, SLOTS, set_block

_SHIELD = ITEM["shield"]
_FIRST_LOG, _LAST_LOG = min(LOGS), max(LOGS)  # they are consecutive


@inner
def _range(need: int) -> tuple[int, int]:
    """Returns the first and the last item that an ingredient can be."""
    return (_FIRST_LOG, _LAST_LOG) if need == NEEDS_ANY_LOG else (need, need)


@inner
def there_is(w: World, recipe: int) -> bool:
    """True if a recipe exists in this world."""
    return (whole(w.recipes) >> recipe) & 1 == 1


@inner
def make(w: World, recipe: int) -> bool:
    """Crafts a recipe once, from the inventory into it; returns whether it could.

    Nothing happens if the world does not have the recipe, if an ingredient is missing, or if there
    is no room for the product beside the ingredients. Where any log is accepted, those of the
    lowest number are used first.
    """
    product, made = whole(MAKES[recipe]), whole(MAKES_COUNT[recipe])
    if not there_is(w, recipe) or room_for(w, product) < made:
        return False
    for n in range(MAX_NEEDS):
        first, last = _range(whole(NEEDS[recipe, n]))
        found = 0
        for item in range(first, last + 1):
            found += count_item(w, item)
        if found < whole(NEEDS_COUNT[recipe, n]):
            return False
    for n in range(MAX_NEEDS):
        first, last = _range(whole(NEEDS[recipe, n]))
        missing = whole(NEEDS_COUNT[recipe, n])
        for item in range(first, last + 1):
            missing = remove_items(w, item, missing)
    add_item(w, product, made, 0)
    w.made[product] = whole(w.made[product]) + made
    return True


@inner
def feed(w: World, recipe: int) -> bool:
    """Moves one ingredient of a recipe into the open furnace; returns whether it could.

    The input must contain the same item, with room for one more.
    """
    if not there_is(w, recipe):
        return False
    first, last = _range(whole(NEEDS[recipe, 0]))
    lies, count = slot_item(w, FURNACE_IN), slot_count(w, FURNACE_IN)
    for item in range(first, last + 1):
        joins = (count == 0 or lies == item) and count < fits(FURNACE_IN, item, 0)
        if joins and remove_items(w, item, 1) == 0:
            write_slot(w, FURNACE_IN, item, count + 1, 0)
            return True
    return False


@inner
def quick_move(w: World, slot: int) -> None:
    """Moves a stack as Minecraft's shift-click does.

    Worn items and those in a furnace go into the inventory. From the inventory, armour and shields
    are put on if their slot is free, and a furnace's ingredients go into it, input before fuel; all
    else moves between the hotbar and the other slots.
    """
    item, count, wear = slot_item(w, slot), slot_count(w, slot), slot_wear(w, slot)
    if count == 0:
        return
    left = count
    if slot >= SLOTS:
        left = fill_slots(w, item, count, wear, 0, SLOTS)
        note_taken(w, slot, item, count - left)
    else:
        if whole(w.screen) == FURNACE_SCREEN:
            left = _join(w, FURNACE_IN, item, left, wear)
            left = _join(w, FURNACE_FUEL, item, left, wear)
        elif whole(WORN_IN[item]) >= 0:
            left = _join(w, FIRST_WORN + whole(WORN_IN[item]), item, left, wear)
        elif item == _SHIELD:
            left = _join(w, OFF_HAND, item, left, wear)
        if left == count:
            first, last = (HOTBAR, SLOTS) if slot < HOTBAR else (0, HOTBAR)
            left = fill_slots(w, item, count, wear, first, last)
    write_slot(w, slot, item, left, wear)


@inner
def _join(w: World, slot: int, item: int, count: int, wear: int) -> int:
    """Adds as many items as fit to a slot that is empty or of the same kind; returns the rest."""
    lies = slot_item(w, slot)
    if slot == FURNACE_OUT or lies not in (NOTHING, item):
        return count
    before = slot_count(w, slot)
    moved = min(count, fits(slot, item, wear) - before)
    if moved <= 0:
        return count
    write_slot(w, slot, item, before + moved, wear)
    return count - moved


# furnaces -----------------------------------------------------------------------------------------

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
