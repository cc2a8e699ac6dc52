"""Crafts from recipes, feeds a furnace, and moves stacks between slots."""

from __future__ import annotations

from bridges.blockworld.blocks import LOGS
from bridges.blockworld.compiled import World, inner
from bridges.blockworld.inventory import add_item, count_item, fill_slots, remove_items, room_for
from bridges.blockworld.items import NOTHING, WORN_IN
from bridges.blockworld.items import NUMBER as ITEM
from bridges.blockworld.recipes import (
    MAKES,
    MAKES_COUNT,
    MAX_NEEDS,
    NEEDS,
    NEEDS_ANY_LOG,
    NEEDS_COUNT,
)
from bridges.blockworld.slots import (
    FIRST_WORN,
    FURNACE_FUEL,
    FURNACE_IN,
    FURNACE_OUT,
    OFF_HAND,
    fits,
    note_taken,
    slot_count,
    slot_item,
    slot_wear,
    write_slot,
)
from bridges.blockworld.whole import whole
from bridges.blockworld.world import FURNACE_SCREEN, HOTBAR, SLOTS

_SHIELD = ITEM["shield"]
_FIRST_LOG, _LAST_LOG = min(LOGS), max(LOGS)  # they are consecutive


@inner
def _range(need: int) -> tuple[int, int]:
    """Returns the first and the last item that an ingredient can be."""
    return (_FIRST_LOG, _LAST_LOG) if need == NEEDS_ANY_LOG else (need, need)


@inner
def there_is(w: World, recipe: int) -> bool:
    """Whether a recipe exists in this world."""
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
