"""Breaking blocks: digging speed of tools, and drops."""

from __future__ import annotations

import numpy as np

from bridges.blockworld.compiled import World, inner, whole
from bridges.blockworld.rules.blocks import (
    AIR,
    BED,
    BEST_TOOL,
    FORM,
    FURNACE,
    HARDNESS,
    LEAST_TIER,
    LEAVES,
    LIT_FURNACE,
    MAX_BLOCKS,
    NO_TOOL,
    OAK_LEAVES,
    PLANT,
    SWORD,
    WATER,
)
from bridges.blockworld.rules.drops import spawn_drop
from bridges.blockworld.rules.inventory import wear_out
from bridges.blockworld.rules.items import DROP, NOTHING, SPEED, TIER, TOOL
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.world import (
    HEIGHT,
    MAX_FURNACES,
    SIZE,
    block_at,
    chance,
    eye_height,
    set_block,
)

IS_LEAVES = np.isin(np.arange(MAX_BLOCKS), LEAVES)
"""By number of the block."""

_APPLE, _STICK = ITEM["apple"], ITEM["stick"]
_LEAVES_YIELD = 0.05
_EXHAUSTION = 0.005
_ALMOST_ONE = 0.9999
"""Twenty times a twentieth is less than 1 in single precision."""


@inner
def yields(block: int, item: int) -> bool:
    """True if breaking a block with an item yields its drop."""
    tier = whole(LEAST_TIER[block])
    return tier == 0 or (TOOL[item] == BEST_TOOL[block] and whole(TIER[item]) >= tier)


@inner
def dig_step(w: World, block: int, item: int) -> float:
    """Returns the share of a block that one tick of digging breaks; 0 if never.

    Minecraft 1.16's rule: ``speed / hardness / 30``, or 100 in place of 30 if the block yields
    nothing to this tool; a fifth of it with the head in water, a fifth of it off the ground.
    """
    hardness = float(HARDNESS[block])
    if hardness < 0.0:
        return 0.0
    if hardness == 0.0:
        return 1.0
    speed, tool = 1.0, whole(TOOL[item])
    if tool != NO_TOOL and (tool == BEST_TOOL[block] or (tool == SWORD and IS_LEAVES[block])):
        speed = float(SPEED[item])
    if not w.on_ground:
        speed /= 5.0
    if block_at(w, w.x, w.y + eye_height(w), w.z) == WATER:
        speed /= 5.0
    return speed / hardness / (30.0 if yields(block, item) else 100.0)


@inner
def dig(w: World, at: int) -> None:
    """Continues breaking the block that the player looks at, for one tick; -1 for none.

    Looking at another block starts again.
    """
    if at != whole(w.dig_at):
        w.dig_at = at
        w.dig_share = 0.0
    if at < 0:
        return
    item = whole(w.item[whole(w.selected)])
    step = dig_step(w, whole(w.blocks[at]), item)
    if step <= 0.0:
        w.dig_at = -1
        return
    w.dig_share = float(w.dig_share) + step
    if float(w.dig_share) >= _ALMOST_ONE:
        break_block(w, at, item)
        w.dig_at = -1
        w.dig_share = 0.0


@inner
def break_block(w: World, at: int, item: int) -> None:
    """Removes a block as if the player broke it with an item, which loses durability.

    Its drop appears at its middle, and so do those of what stood on it or was in it. A bed is
    removed with its other half. Water does not flow, sand and gravel do not fall.
    """
    block = whole(w.blocks[at])
    _clear(w, at)
    w.mined[block] = whole(w.mined[block]) + 1
    w.exhaustion = float(w.exhaustion) + _EXHAUSTION
    if HARDNESS[block] > 0.0:
        wear_out(w, whole(w.selected), 1)
    found = NOTHING
    if IS_LEAVES[block]:
        if chance(w) < _LEAVES_YIELD:
            found = _APPLE if block == OAK_LEAVES else _STICK
    elif yields(block, item):
        found = whole(DROP[block])
    _fall_out(w, at, found, 1)
    if block == BED:
        other = other_half(w, at)
        if other >= 0:
            _clear(w, other)
    elif block in (FURNACE, LIT_FURNACE):
        _empty_furnace(w, at)
    above = whole(w.blocks[at + 1]) if at % HEIGHT < HEIGHT - 1 else AIR
    if FORM[above] == PLANT:
        _clear(w, at + 1)
        _fall_out(w, at + 1, whole(DROP[above]), 1)


@inner
def other_half(w: World, at: int) -> int:
    """Returns the index of the other half of a bed: the first bed beside it; -1 for none."""
    column = SIZE * HEIGHT
    for n in range(4):
        beside = at + (column if n == 0 else -column if n == 1 else HEIGHT if n == 2 else -HEIGHT)
        if w.blocks[beside] == BED:
            return beside
    return -1


@inner
def _clear(w: World, at: int) -> None:
    column, block = at // HEIGHT, whole(w.blocks[at])
    stacked = whole(w.pillars[column])
    on_top = at % HEIGHT + 1 == whole(w.heights[column])
    if stacked > 0 and on_top and FORM[block] != PLANT and block != BED:
        w.pillars[column] = stacked - 1
    set_block(w, at, AIR)


@inner
def _fall_out(w: World, at: int, item: int, count: int) -> None:
    if item != NOTHING and count > 0:
        column = at // HEIGHT
        spawn_drop(w, item, count, 0, column // SIZE + 0.5, at % HEIGHT + 0.25, column % SIZE + 0.5)


@inner
def _empty_furnace(w: World, at: int) -> None:
    for n in range(MAX_FURNACES):
        if whole(w.furnaces[n]) == at:
            _fall_out(w, at, whole(w.furnace_in[n]), whole(w.furnace_in_count[n]))
            _fall_out(w, at, whole(w.furnace_fuel[n]), whole(w.furnace_fuel_count[n]))
            _fall_out(w, at, whole(w.furnace_out[n]), whole(w.furnace_out_count[n]))
            clear_furnace(w, n)
            w.furnaces[n] = -1


@inner
def clear_furnace(w: World, n: int) -> None:
    """Empties a furnace's record and extinguishes its fire."""
    w.furnace_in[n], w.furnace_in_count[n] = NOTHING, 0
    w.furnace_fuel[n], w.furnace_fuel_count[n] = NOTHING, 0
    w.furnace_out[n], w.furnace_out_count[n] = NOTHING, 0
    w.furnace_burn[n], w.furnace_cook[n] = 0, 0
