"""The slots for stacks, by one number: inventory, worn items, off hand, furnace; and durability.

0 to 35 are the inventory, of which the first nine are the hotbar, 36 to 39 helmet to boots, 40 the
off hand; 41 to 43 are input, fuel and output of the furnace whose screen is open.
"""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.items import COOKED, DURABILITY, FUEL, NOTHING, STACK, WORN_IN
from bridges.blockworld.rules.world import ARMOUR, MAX_FURNACES, SLOTS

FIRST_WORN = SLOTS
OFF_HAND = FIRST_WORN + ARMOUR
FURNACE_IN, FURNACE_FUEL, FURNACE_OUT = OFF_HAND + 1, OFF_HAND + 2, OFF_HAND + 3


@inner
def furnace_of(w: World) -> int:
    """Returns the index in the list of the furnace whose screen is open; -1 for none."""
    for n in range(MAX_FURNACES):
        if w.furnaces[n] >= 0 and w.furnaces[n] == w.screen_at:
            return n
    return -1


@inner
def slot_item(w: World, slot: int) -> int:
    """Returns the item in a slot; ``NOTHING`` if it is empty."""
    if slot < SLOTS:
        return whole(w.item[slot])
    if slot < OFF_HAND:
        return whole(w.armour[slot - FIRST_WORN])
    if slot == OFF_HAND:
        return whole(w.off_item)
    n = furnace_of(w)
    if slot == FURNACE_IN:
        return whole(w.furnace_in[n])
    return whole(w.furnace_fuel[n]) if slot == FURNACE_FUEL else whole(w.furnace_out[n])


@inner
def slot_count(w: World, slot: int) -> int:
    """Returns how many items are in a slot."""
    if slot < SLOTS:
        return whole(w.count[slot])
    if slot < OFF_HAND:
        return 1 if whole(w.armour[slot - FIRST_WORN]) != NOTHING else 0
    if slot == OFF_HAND:
        return whole(w.off_count)
    n = furnace_of(w)
    if slot == FURNACE_IN:
        return whole(w.furnace_in_count[n])
    return whole(w.furnace_fuel_count[n]) if slot == FURNACE_FUEL else whole(w.furnace_out_count[n])


@inner
def slot_wear(w: World, slot: int) -> int:
    """Returns the wear of the item in a slot, in uses."""
    if slot < SLOTS:
        return whole(w.wear[slot])
    if slot < OFF_HAND:
        return whole(w.armour_wear[slot - FIRST_WORN])
    return whole(w.off_wear) if slot == OFF_HAND else 0


@inner
def write_slot(w: World, slot: int, item: int, count: int, wear: int) -> None:
    """Replaces the contents of a slot by a stack; a count of 0 empties it."""
    if count == 0:
        item, wear = NOTHING, 0
    if slot < SLOTS:
        w.item[slot], w.count[slot], w.wear[slot] = item, count, wear
    elif slot < OFF_HAND:
        w.armour[slot - FIRST_WORN], w.armour_wear[slot - FIRST_WORN] = item, wear
    elif slot == OFF_HAND:
        w.off_item, w.off_count, w.off_wear = item, count, wear
    else:
        n = furnace_of(w)
        if slot == FURNACE_IN:
            w.furnace_in[n], w.furnace_in_count[n] = item, count
        elif slot == FURNACE_FUEL:
            w.furnace_fuel[n], w.furnace_fuel_count[n] = item, count
        else:
            w.furnace_out[n], w.furnace_out_count[n] = item, count


@inner
def fits(slot: int, item: int, wear: int) -> int:
    """Returns how many items of a kind a slot can contain when empty.

    Armour goes into its own slot. A furnace takes what can be cooked and what burns, but nothing
    with wear: it would come out as new. Nothing can be put into its output.
    """
    if slot < SLOTS or slot == OFF_HAND:
        return whole(STACK[item])
    if slot < OFF_HAND:
        return 1 if whole(WORN_IN[item]) == slot - FIRST_WORN else 0
    if wear > 0 or slot == FURNACE_OUT:
        return 0
    if slot == FURNACE_IN:
        return whole(STACK[item]) if COOKED[item] >= 0 else 0
    return whole(STACK[item]) if FUEL[item] > 0 else 0


@inner
def note_taken(w: World, slot: int, item: int, count: int) -> None:
    """Counts items taken out of a furnace's output as crafted by the player."""
    if slot == FURNACE_OUT:
        w.made[item] = whole(w.made[item]) + count


# the inventory ------------------------------------------------------------------------------------


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
