"""The player's hands: striking, digging, using, eating, throwing and placing.

Ranges, times and the order of the two hands are Minecraft 1.16's.
"""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.aim import REACH, STRIKE_REACH, creature_on_ray, trace_block
from bridges.blockworld.rules.blocks import (
    AIR,
    BED,
    CRAFTING_TABLE,
    DEAD_BUSH,
    FORM,
    FURNACE,
    LAVA,
    LIT_FURNACE,
    MAX_BLOCKS,
    PLANT,
    SOLID,
    TALL_GRASS,
    WATER,
)
from bridges.blockworld.rules.combat import strike
from bridges.blockworld.rules.digging import clear_furnace, dig
from bridges.blockworld.rules.drops import THROWN_AGE, spawn_drop
from bridges.blockworld.rules.inventory import (
    FIRST_WORN,
    OFF_HAND,
    slot_count,
    slot_item,
    slot_wear,
    take_from,
    write_slot,
)
from bridges.blockworld.rules.items import BLOW_TICKS, FOOD, NOTHING, SATURATION, WORN_IN
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.screen import open_screen
from bridges.blockworld.rules.species import HOSTILE, NOBODY, TALL, WIDTH
from bridges.blockworld.rules.world import (
    ATTACK,
    AUTO_CLICK,
    DROP,
    FURNACE_SCREEN,
    HEIGHT,
    HOTBAR,
    HOTBAR_1,
    INVENTORY,
    INVENTORY_SCREEN,
    MAX_CREATURES,
    MAX_FURNACES,
    SIZE,
    SLIM,
    SNEAK,
    STANDING,
    TABLE_SCREEN,
    USE,
    can_sleep_now,
    eye_height,
    look,
    set_block,
)

EAT_TICKS = 32
"""Ticks to eat an item: 1.6 s."""
USE_EVERY = 4
"""Ticks between two uses while the key is held."""
SHIELD_TICKS = 5
"""Ticks until a raised shield protects."""
SWING_TICKS = 6
"""Ticks of an arm movement; counted down."""
FULL_FOOD = 20

_SHIELD = ITEM["shield"]
_MONSTERS_NEAR = 8.0
_THROWN = 0.3
"""Speed of a thrown item, in blocks per tick."""


@inner
def tick_hands(w: World, keys: int, pressed: int) -> None:
    """Applies the keys to the world for one tick; no screen is open.

    Args:
        w: the world.
        keys: keys that are held.
        pressed: those of them that were not held in the tick before.
    """
    w.blow_ticks = min(float(w.blow_ticks) + 1.0, 1000.0)
    w.swing_ticks = max(whole(w.swing_ticks) - 1, 0)
    w.use_ticks = max(whole(w.use_ticks) - 1, 0)
    _select(w, pressed)
    if pressed & DROP:
        _throw_away(w)
    if pressed & INVENTORY:
        open_screen(w, INVENTORY_SCREEN, -1)
        return
    if not keys & USE:
        w.eat_ticks = 0
        w.blocking = 0
    if w.blocking and not _holds_shield(w):
        w.blocking = 0
    busy = w.blocking or w.eat_ticks > 0
    attacks = keys & ATTACK and not busy
    uses = keys & USE and not busy and (pressed & USE or w.use_ticks == 0)
    if not attacks:
        w.dig_at, w.dig_share = -1, 0.0
    if attacks or uses:
        dx, dy, dz = look(w.yaw, w.pitch)
        eye = w.y + eye_height(w)
        at, face, distance = trace_block(w, w.x, eye, w.z, dx, dy, dz, REACH)
        if attacks:
            reach = min(distance, STRIKE_REACH)
            n, _ = creature_on_ray(w, w.x, eye, w.z, dx, dy, dz, reach)
            _attack(w, keys, pressed, n, at)
        if uses:
            _use(w, keys, pressed, at, face)
    if w.eat_ticks > 0:
        _chew(w)


@inner
def _select(w: World, pressed: int) -> None:
    """Selects a slot of the hotbar; of several keys the last one counts."""
    before = whole(w.selected)
    for slot in range(HOTBAR):
        if pressed & (HOTBAR_1 << slot):
            w.selected = slot
    if whole(w.selected) != before:
        if w.item[whole(w.selected)] != w.item[before]:
            w.blow_ticks = 0.0
        w.eat_ticks = 0
        w.dig_share = 0.0


@inner
def _throw_away(w: World) -> None:
    """Throws one item of the stack in hand in the direction of the look."""
    slot = whole(w.selected)
    item, wear = whole(w.item[slot]), whole(w.wear[slot])
    if item == NOTHING:
        return
    take_from(w, slot, 1)
    n = spawn_drop(w, item, 1, wear, w.x, w.y + eye_height(w) - 0.3, w.z)
    if n >= 0:
        dx, dy, dz = look(w.yaw, w.pitch)
        w.d_age[n] = THROWN_AGE
        w.d_vx[n], w.d_vy[n], w.d_vz[n] = dx * _THROWN, dy * _THROWN + 0.1, dz * _THROWN


@inner
def _attack(w: World, keys: int, pressed: int, n: int, at: int) -> None:
    """Strikes creature ``n`` or digs block ``at``; -1 for none."""
    auto = keys & AUTO_CLICK
    if n >= 0:
        w.dig_at, w.dig_share = -1, 0.0
        full = float(w.blow_ticks) >= float(BLOW_TICKS[whole(w.item[whole(w.selected)])])
        if full if auto else pressed & ATTACK:
            strike(w, n)
            w.swing_ticks = SWING_TICKS
        return
    if pressed & ATTACK:
        w.swing_ticks = SWING_TICKS
        if at < 0 and not auto:
            w.blow_ticks = 0.0
    dig(w, at)
    if at >= 0 and w.swing_ticks <= SWING_TICKS // 2:
        w.swing_ticks = SWING_TICKS


@inner
def _use(w: World, keys: int, pressed: int, at: int, face: int) -> None:
    """Uses the block that is looked at, else the items in the hands, the main hand first."""
    waited = not pressed & USE
    w.use_ticks = USE_EVERY
    main, off = whole(w.selected), OFF_HAND
    empty = w.item[main] == NOTHING and w.off_item == NOTHING
    if at >= 0 and (empty or not keys & SNEAK) and _use_block(w, at):
        w.swing_ticks = SWING_TICKS
        return
    for hand in range(2):
        slot = main if hand == 0 else off
        item = slot_item(w, slot)
        if item == NOTHING:
            continue
        if item < MAX_BLOCKS:
            if at >= 0 and place_block(w, item, at, face):
                write_slot(w, slot, item, slot_count(w, slot) - 1, slot_wear(w, slot))
                w.swing_ticks = SWING_TICKS
                return
        elif FOOD[item] > 0:
            if w.food < FULL_FOOD:
                w.eat_ticks = 1
                return
        elif WORN_IN[item] >= 0:
            _wear(w, slot)
            return
        elif item == _SHIELD:
            w.blocking = waited  # a key that was just pressed has to raise it first
            w.use_ticks = SHIELD_TICKS
            return


@inner
def _use_block(w: World, at: int) -> bool:
    """Uses a block, and returns whether it is one that can be used."""
    block = whole(w.blocks[at])
    if block == CRAFTING_TABLE:
        open_screen(w, TABLE_SCREEN, at)
    elif block in (FURNACE, LIT_FURNACE):
        open_screen(w, FURNACE_SCREEN, at)
    elif block == BED:
        if can_sleep_now(w) and not _monster_near(w):
            w.sleep_ticks = 1
            w.dig_at, w.dig_share = -1, 0.0
    else:
        return False
    return True


@inner
def _monster_near(w: World) -> bool:
    """True if a hostile creature is within 8 blocks of the player."""
    for n in range(MAX_CREATURES):
        if HOSTILE[whole(w.c_kind[n])]:
            dx, dy, dz = float(w.c_x[n]) - w.x, float(w.c_y[n]) - w.y, float(w.c_z[n]) - w.z
            if dx * dx + dy * dy + dz * dz < _MONSTERS_NEAR * _MONSTERS_NEAR:
                return True
    return False


@inner
def _wear(w: World, slot: int) -> None:
    """Puts on the armour from a slot, and puts the former one into the hand."""
    item, wear = slot_item(w, slot), slot_wear(w, slot)
    worn = FIRST_WORN + whole(WORN_IN[item])
    old, old_count, old_wear = slot_item(w, worn), slot_count(w, worn), slot_wear(w, worn)
    write_slot(w, worn, item, 1, wear)
    write_slot(w, slot, old, old_count, old_wear)


@inner
def _holds_shield(w: World) -> bool:
    return w.off_item == _SHIELD or w.item[whole(w.selected)] == _SHIELD  # type: ignore[no-any-return]


@inner
def _chew(w: World) -> None:
    """Continues eating for one tick; the main hand's food has priority."""
    slot = whole(w.selected)
    if FOOD[whole(w.item[slot])] == 0:
        slot = OFF_HAND
    item = slot_item(w, slot)
    if FOOD[item] == 0:
        w.eat_ticks = 0
        return
    w.eat_ticks = whole(w.eat_ticks) + 1
    if whole(w.eat_ticks) <= EAT_TICKS:
        return
    w.eat_ticks = 0
    w.use_ticks = USE_EVERY
    write_slot(w, slot, item, slot_count(w, slot) - 1, slot_wear(w, slot))
    w.food = min(whole(w.food) + whole(FOOD[item]), FULL_FOOD)
    w.saturation = min(float(w.saturation) + float(SATURATION[item]), float(w.food))
    w.eaten = whole(w.eaten) + 1


# placing ------------------------------------------------------------------------------------------

HIGHEST = 30
"""Maximum height of placed blocks; the layer above stays air."""
SNEAKING = 1.5
"""Height of the player when it sneaks."""

REPLACEABLE = np.isin(np.arange(MAX_BLOCKS), (AIR, WATER, LAVA, TALL_GRASS, DEAD_BUSH))
"""Blocks that a placed block replaces, by number of the block."""

_STEPS = np.array([-SIZE * HEIGHT, SIZE * HEIGHT, -1, 1, -HEIGHT, HEIGHT])
"""Index offset from a block to its neighbour, by face."""


@inner
def place_block(w: World, block: int, at: int, face: int) -> bool:
    """Places a block at a face of another, and returns whether it could.

    It replaces grass that is aimed at. It cannot overlap a body, and torches, plants and beds need
    solid ground. A bed takes a second cell, away from the player. A furnace cannot be placed if the
    world's list is full. The caller removes the item from the hand.
    """
    y = at % HEIGHT
    if not REPLACEABLE[whole(w.blocks[at])]:
        if (face == 2 and y == 0) or (face == 3 and y >= HIGHEST):
            return False
        at += _STEPS[face]
        y = at % HEIGHT
    if not _free(w, at, block):
        return False
    if block == BED:
        head = at + _ahead(w.yaw)
        if not _free(w, head, block):
            return False
        set_block(w, head, BED)
    if block == FURNACE and not _register(w, at):
        return False
    column = at // HEIGHT
    top = whole(w.heights[column])
    on_top = y == top or (y == top - 1)
    set_block(w, at, block)
    if on_top and block != BED and SOLID[block]:
        w.pillars[column] = min(whole(w.pillars[column]) + 1, 255)
    w.placed[block] = whole(w.placed[block]) + 1
    return True


@inner
def _free(w: World, at: int, block: int) -> bool:
    """True if a block can stand in a cell."""
    y = at % HEIGHT
    if y < 1 or y > HIGHEST or not REPLACEABLE[whole(w.blocks[at])]:
        return False
    if (FORM[block] == PLANT or block == BED) and not SOLID[whole(w.blocks[at - 1])]:
        return False
    return not SOLID[block] or not _occupied(w, at)


@inner
def _occupied(w: World, at: int) -> bool:
    """True if the player or a creature is in a cell."""
    column, y = at // HEIGHT, float(at % HEIGHT)
    x, z = column // SIZE + 0.5, column % SIZE + 0.5
    reach, tall = 0.5 + SLIM / 2, SNEAKING if w.sneaking else STANDING
    if abs(w.x - x) < reach and abs(w.z - z) < reach and w.y < y + 1.0 and w.y + tall > y:
        return True
    for n in range(MAX_CREATURES):
        kind = whole(w.c_kind[n])
        if kind != NOBODY:
            reach, low = 0.5 + float(WIDTH[kind]) / 2, float(w.c_y[n])
            if (
                abs(float(w.c_x[n]) - x) < reach
                and abs(float(w.c_z[n]) - z) < reach
                and low < y + 1.0
                and low + float(TALL[kind]) > y
            ):
                return True
    return False


@inner
def _ahead(yaw: float) -> int:
    """Returns the offset to the neighbour in the direction of the player's look."""
    quarter = int(np.floor(yaw / 90.0 + 0.5)) & 3
    return (  # +z, -x, -z, +x
        HEIGHT
        if quarter == 0
        else -SIZE * HEIGHT
        if quarter == 1
        else -HEIGHT
        if quarter == 2
        else SIZE * HEIGHT
    )


@inner
def _register(w: World, at: int) -> bool:
    """Adds a furnace to the world's list; returns whether there was room."""
    for n in range(MAX_FURNACES):
        if whole(w.furnaces[n]) < 0:
            w.furnaces[n] = at
            clear_furnace(w, n)
            return True
    return False
