"""Which item to use: duration of digging, number of blows of a kill."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.blocks import (
    BED,
    BEST_TOOL,
    CHEST,
    CRAFTING_TABLE,
    FURNACE,
    HARDNESS,
    LEAST_TIER,
    LEAVES,
    LIT_FURNACE,
    MAX_BLOCKS,
    NO_TOOL,
    SWORD,
)
from bridges.blockworld.combat import SAFE_TICKS
from bridges.blockworld.items import BLOW_TICKS, DAMAGE, SPEED, TIER, TOOL
from bridges.blockworld.oracle.paths import STEP
from bridges.blockworld.world import HOTBAR

_TICKS_PER_STEP = 4.6
"""Ticks to walk one block."""
_PRICE = 2.0
"""Digging costs this many times as much as walking for the same time."""
_KEEP = (BED, CHEST, CRAFTING_TABLE, FURNACE, LIT_FURNACE)
"""Furniture is never dug through."""


def yields(block: int, item: int) -> bool:
    """Whether a block yields its drop with an item."""
    tier = int(LEAST_TIER[block])
    return tier == 0 or (int(TOOL[item]) == int(BEST_TOOL[block]) and int(TIER[item]) >= tier)


@lru_cache(8192)
def dig_ticks(block: int, item: int) -> float:
    """Returns the ticks to dig a block with an item; infinite if it cannot be dug."""
    hardness = float(HARDNESS[block])
    if hardness <= 0.0:
        return 1.0 if hardness == 0.0 else float("inf")
    tool = int(TOOL[item])
    helps = tool == int(BEST_TOOL[block]) or (tool == SWORD and block in LEAVES)
    speed = float(SPEED[item]) if tool != NO_TOOL and helps else 1.0
    return ceil(hardness * (30.0 if yields(block, item) else 100.0) / speed)


def best_tool(items: Sequence[int], selected: int, block: int) -> int:
    """Returns the hotbar slot to dig a block with: one that yields the drop, then the fastest."""

    def cost(slot: int) -> tuple[bool, float, bool]:
        item = items[slot]
        return not yields(block, item), dig_ticks(block, item), slot != selected

    return min(range(HOTBAR), key=cost)


@lru_cache(512)
def tolls(items: tuple[int, ...]) -> NDArray[np.int32]:
    """Returns the search's cost of digging each block, with these items."""
    table = np.full(MAX_BLOCKS, -1, np.int32)
    for block in range(len(table)):
        ticks = min(dig_ticks(block, item) for item in items)
        if HARDNESS[block] >= 0 and ticks < 400 and block not in _KEEP:
            table[block] = STEP + int(ticks * _PRICE * STEP / _TICKS_PER_STEP)
    return table


def _leaves_only() -> NDArray[np.int32]:
    table, usual = np.full(MAX_BLOCKS, -1, np.int32), tolls((0,))
    table[list(LEAVES)] = usual[list(LEAVES)]
    return table


LEAVES_ONLY: Any = _leaves_only()
"""The search's costs as long as nothing but leaves may be dug away."""


@lru_cache(4096)
def kill_ticks(item: int, health: float) -> float:
    """Returns the ticks to kill with an item, by blows at full strength."""
    blows = ceil(health / float(DAMAGE[item]) - 1e-6)
    return (blows - 1) * max(ceil(float(BLOW_TICKS[item])), SAFE_TICKS) + (item == 0) * 0.5


def best_weapon(items: Sequence[int], selected: int, health: float) -> int:
    """Returns the hotbar slot to fight with."""
    return min(range(HOTBAR), key=lambda slot: (kill_ticks(items[slot], health), slot != selected))
