"""The screens: the inventory, a crafting table, a furnace.

All have 9 columns and 7 rows of cells, with a cursor that the camera moves, 15 degrees per cell.
Rows 0 and 1 are recipe buttons (``items.BUTTONS``). Row 2 contains the worn items and the off
hand (cells 0 to 4), or input, fuel and output of the furnace (cells 0 to 2). Rows 3 to 5 are the
slots 9 to 35, row 6 is the hotbar.

A left click (attack) takes, puts, joins or swaps a whole stack, or crafts a recipe once; a right
click (use) takes half or puts one, or crafts a recipe as often as possible; sneak and a left click
move a stack as Minecraft's shift-click does. Recipes take from the inventory and give to it; in the
furnace's screen they move an ingredient into the furnace.
"""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import CRAFTING_TABLE, FURNACE, LIT_FURNACE
from bridges.blockworld.rules.crafting import feed, make, quick_move
from bridges.blockworld.rules.drops import THROWN_AGE, spawn_drop
from bridges.blockworld.rules.inventory import (
    FIRST_WORN,
    FURNACE_IN,
    FURNACE_OUT,
    OFF_HAND,
    add_item,
    fits,
    furnace_of,
    note_taken,
    slot_count,
    slot_item,
    slot_wear,
    write_slot,
)
from bridges.blockworld.rules.items import BUTTONS, NOTHING, STACK
from bridges.blockworld.rules.world import (
    ARMOUR,
    ATTACK,
    FURNACE_SCREEN,
    HEIGHT,
    HOTBAR,
    INVENTORY,
    INVENTORY_SCREEN,
    NO_SCREEN,
    SIZE,
    SNEAK,
    TABLE_SCREEN,
    USE,
    eye_height,
)

WIDE, HIGH = 9, 7
"""Cells of a screen."""
DEGREES_PER_CELL = 15.0
"""Turn of the camera that moves the cursor by one cell."""
NO_SLOT = -1

_BUTTON_ROWS = 2
_FIRST_ROW = 3
_LEAVES_AT = 8.0
_MOST_CRAFTS = 64


@inner
def open_screen(w: World, screen: int, at: int) -> None:
    """Opens a screen, of the block at ``at`` if it belongs to one; actions of the hands stop."""
    w.screen = screen
    w.screen_at = at
    w.cursor_x = WIDE / 2.0
    w.cursor_y = HIGH / 2.0
    w.dig_at = -1
    w.dig_share = 0.0
    w.eat_ticks = 0
    w.blocking = 0


@inner
def close_screen(w: World) -> None:
    """Closes the screen; the item on the cursor goes into the inventory, or is dropped."""
    if whole(w.carried_count) > 0:
        item, wear = whole(w.carried), whole(w.carried_wear)
        left = add_item(w, item, whole(w.carried_count), wear)
        if left > 0:
            n = spawn_drop(w, item, left, wear, w.x, w.y + 1.0, w.z)
            if n >= 0:
                w.d_age[n] = THROWN_AGE
    _carry(w, NOTHING, 0, 0)
    w.screen = NO_SCREEN
    w.screen_at = -1


@inner
def move_cursor(w: World, yaw: float, pitch: float) -> None:
    """Moves the cursor by a turn of the camera, in degrees; it stops at the screen's border."""
    x, y = float(w.cursor_x) + yaw / DEGREES_PER_CELL, float(w.cursor_y) + pitch / DEGREES_PER_CELL
    w.cursor_x = min(max(x, 0.0), WIDE - 0.001)
    w.cursor_y = min(max(y, 0.0), HIGH - 0.001)


@inner
def tick_screen(w: World, keys: int, pressed: int) -> None:
    """Applies the keys to the open screen for one tick."""
    if pressed & INVENTORY or _out_of_reach(w):
        close_screen(w)
        return
    if not pressed & (ATTACK | USE):
        return
    column, row = whole(w.cursor_x), whole(w.cursor_y)
    right = not pressed & ATTACK
    if row < _BUTTON_ROWS:
        _push(w, row * WIDE + column, right)
        return
    slot = slot_under(w, column, row)
    if slot == NO_SLOT:
        return
    if keys & SNEAK and not right:
        quick_move(w, slot)
    else:
        _click(w, slot, right)


@inner
def slot_under(w: World, column: int, row: int) -> int:
    """Returns the slot that a cell shows, as in ``slots``; ``NO_SLOT`` for none."""
    if row == HIGH - 1:
        return column
    if row >= _FIRST_ROW:
        return HOTBAR + (row - _FIRST_ROW) * WIDE + column
    if row < _BUTTON_ROWS:
        return NO_SLOT
    if whole(w.screen) == FURNACE_SCREEN:
        return FURNACE_IN + column if column < 3 else NO_SLOT
    if column < ARMOUR:
        return FIRST_WORN + column
    return OFF_HAND if column == ARMOUR else NO_SLOT


@inner
def _out_of_reach(w: World) -> bool:
    """True if the block that the screen belongs to is gone, or more than 8 blocks away."""
    screen, at = whole(w.screen), whole(w.screen_at)
    if screen == INVENTORY_SCREEN:
        return False
    if at < 0:
        return True
    block, column = whole(w.blocks[at]), at // HEIGHT
    if screen == TABLE_SCREEN and block != CRAFTING_TABLE:
        return True
    if screen == FURNACE_SCREEN and (block not in (FURNACE, LIT_FURNACE) or furnace_of(w) < 0):
        return True
    dx, dz = column // SIZE + 0.5 - w.x, column % SIZE + 0.5 - w.z
    dy = at % HEIGHT + 0.5 - (w.y + eye_height(w))
    return dx * dx + dy * dy + dz * dz > _LEAVES_AT * _LEAVES_AT  # type: ignore[no-any-return]


@inner
def _push(w: World, button: int, all_of_them: bool) -> None:
    """Uses a recipe button, once or as often as possible."""
    recipe = whole(BUTTONS[whole(w.screen) - 1, button])
    if recipe < 0:
        return
    in_furnace = whole(w.screen) == FURNACE_SCREEN
    for _ in range(_MOST_CRAFTS if all_of_them else 1):
        if not (feed(w, recipe) if in_furnace else make(w, recipe)):
            return


@inner
def _carry(w: World, item: int, count: int, wear: int) -> None:
    w.carried = item if count > 0 else NOTHING
    w.carried_count = count
    w.carried_wear = wear if count > 0 else 0


@inner
def _click(w: World, slot: int, right: bool) -> None:
    """Clicks on a slot with the cursor and its item."""
    item, count, wear = slot_item(w, slot), slot_count(w, slot), slot_wear(w, slot)
    held, held_count, held_wear = whole(w.carried), whole(w.carried_count), whole(w.carried_wear)
    if held_count == 0:
        if count > 0:
            taken = (count + 1) // 2 if right else count
            write_slot(w, slot, item, count - taken, wear)
            _carry(w, item, taken, wear)
            note_taken(w, slot, item, taken)
        return
    same = count > 0 and item == held and wear == 0 and held_wear == 0
    if slot == FURNACE_OUT:
        if same and held_count + count <= whole(STACK[item]):
            write_slot(w, slot, NOTHING, 0, 0)
            _carry(w, item, held_count + count, 0)
            note_taken(w, slot, item, count)
        return
    most = fits(slot, held, held_wear)
    if count == 0 or same:
        moved = min(1 if right else held_count, most - count)
        if moved > 0:
            write_slot(w, slot, held, count + moved, held_wear)
            _carry(w, held, held_count - moved, held_wear)
    elif held_count <= most:
        write_slot(w, slot, held, held_count, held_wear)
        _carry(w, item, count, wear)
