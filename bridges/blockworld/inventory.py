"""The player's inventory: 36 slots of which the first nine are the hotbar, and durability."""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.items import DURABILITY, NOTHING, STACK
from bridges.blockworld.whole import whole
from bridges.blockworld.world import SLOTS


@inner
def fill_slots(w: World, item: int, count: int, wear: int, first: int, last: int) -> int:
    """Puts items into the slots ``first`` to ``last`` (exclusive); returns how many did not fit.

    They join stacks of their kind first, then take free slots. Items with wear never stack.
    """
    most = whole(STACK[item])
    if most > 1 and wear == 0:
        for slot in range(first, last):
            if (
                whole(w.item[slot]) == item
                and whole(w.wear[slot]) == 0
                and whole(w.count[slot]) < most
            ):
                moved = min(count, most - whole(w.count[slot]))
                w.count[slot] = whole(w.count[slot]) + moved
                count -= moved
                if count == 0:
                    return 0
    for slot in range(first, last):
        if whole(w.item[slot]) == NOTHING:
            moved = min(count, most)
            w.item[slot], w.count[slot], w.wear[slot] = item, moved, wear
            count -= moved
            if count == 0:
                return 0
    return count


@inner
def add_item(w: World, item: int, count: int, wear: int) -> int:
    """Puts items into the inventory, the hotbar first, and returns how many did not fit.

    See ``fill_slots``.
    """
    return fill_slots(w, item, count, wear, 0, SLOTS)


@inner
def room_for(w: World, item: int) -> int:
    """Returns how many unused items of a kind would still fit into the inventory."""
    room, most = 0, whole(STACK[item])
    for slot in range(SLOTS):
        if whole(w.item[slot]) == NOTHING:
            room += most
        elif whole(w.item[slot]) == item and whole(w.wear[slot]) == 0:
            room += most - whole(w.count[slot])
    return room


@inner
def count_item(w: World, item: int) -> int:
    """Returns how many items of a kind are in the inventory."""
    total = 0
    for slot in range(SLOTS):
        if whole(w.item[slot]) == item:
            total += whole(w.count[slot])
    return total


@inner
def remove_items(w: World, item: int, count: int) -> int:
    """Removes items of a kind from the inventory, and returns how many were missing.

    The last slots are emptied first, to keep the hotbar as long as possible.
    """
    for back in range(SLOTS):
        slot = SLOTS - 1 - back
        if count > 0 and whole(w.item[slot]) == item:
            taken = min(count, whole(w.count[slot]))
            take_from(w, slot, taken)
            count -= taken
    return count


@inner
def take_from(w: World, slot: int, count: int) -> None:
    """Removes items from a slot; a slot that becomes empty is cleared."""
    left = whole(w.count[slot]) - count
    w.count[slot] = left
    if left <= 0:
        w.item[slot] = NOTHING
        w.count[slot] = 0
        w.wear[slot] = 0


@inner
def wear_out(w: World, slot: int, uses: int) -> None:
    """Reduces the durability of the tool in a slot; it breaks at the end of it."""
    most = whole(DURABILITY[whole(w.item[slot])])
    if most > 0:
        worn = whole(w.wear[slot]) + uses
        w.wear[slot] = worn
        if worn >= most:
            take_from(w, slot, whole(w.count[slot]))
