"""A skill's input, a view of one record, and its output, one move; and which item to use.

An expert may know everything, so a view hides nothing; it only converts the fields that every skill
reads to plain Python numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import atan2, ceil, degrees, hypot
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.compiled import World
from bridges.blockworld.oracle.paths import PATH, STEP, WORK
from bridges.blockworld.rules.blocks import (
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
from bridges.blockworld.rules.combat import SAFE_TICKS
from bridges.blockworld.rules.items import BLOW_TICKS, DAMAGE, SPEED, TIER, TOOL
from bridges.blockworld.rules.world import EYES, EYES_SNEAKING, HEIGHT, HOTBAR, HOTBAR_1, SIZE


class Move(NamedTuple):
    """The controls of one step: keys to hold, degrees to turn down and to the right.

    The turn is the whole remaining angle; a layout turns as far as it can.
    """

    keys: int = 0
    pitch: float = 0.0
    yaw: float = 0.0


STAY = Move()
"""Waits."""
HOPELESS = Move()
"""Does nothing, as there is no target for the skill; distinguished from ``STAY`` by identity."""


@dataclass
class Desk:
    """Workspace of the searches; its contents have no meaning between two calls."""

    work: Any = field(default_factory=lambda: np.zeros(1, WORK))
    path: Any = field(default_factory=lambda: np.zeros(PATH, np.int32))
    found: Any = field(default_factory=lambda: np.zeros(12, np.int32))


class View:
    """One world in its current state.

    Attributes:
        worlds: all worlds, for compiled functions; the view is of number ``row``.
        w: its record.
        x: of the feet, like ``y`` and ``z``, in blocks.
        eye: height of the eyes, absolute.
        yaw: degrees, like ``pitch``.
        before: keys that were held in the tick before.
        items: contents of the 36 slots.
    """

    def __init__(self, worlds: Any, row: int, desk: Desk) -> None:
        w: World = worlds[row]
        self.worlds, self.row, self.w, self.desk = worlds, row, w, desk
        self.x, self.y, self.z = float(w["x"]), float(w["y"]), float(w["z"])
        self.eye = self.y + (EYES_SNEAKING if w["sneaking"] else EYES)
        self.yaw, self.pitch = float(w["yaw"]), float(w["pitch"])
        self.before = int(w["keys_before"])
        self.selected = int(w["selected"])
        self.screen = int(w["screen"])
        self.on_ground = bool(w["on_ground"])
        self.in_water = bool(w["in_water"])
        self.items: list[int] = w["item"].tolist()

    @property
    def blocks(self) -> Any:
        """Every block of the world."""
        return self.w["blocks"]

    def turn_to(self, x: float, y: float, z: float) -> tuple[float, float]:
        """Returns the degrees of pitch and yaw that remain to look at a point."""
        dx, dy, dz = x - self.x, y - self.eye, z - self.z
        yaw = (degrees(atan2(-dx, dz)) - self.yaw + 180.0) % 360.0 - 180.0
        return -degrees(atan2(dy, hypot(dx, dz))) - self.pitch, yaw

    def hand(self, item: int) -> int:
        """Returns the key that selects the first hotbar slot with an item; 0 if none is needed."""
        if item in self.items[:HOTBAR]:
            return self.slot_key(self.items.index(item))
        return 0

    def slot_key(self, slot: int) -> int:
        """Returns the key that selects a slot of the hotbar; 0 if it is selected."""
        return 0 if slot == self.selected else HOTBAR_1 << slot

    def press(self, key: int) -> int:
        """Returns a key to press again; 0 while it has to be released first."""
        return 0 if self.before & key else key


def middle(at: int) -> tuple[float, float, float]:
    """Returns the middle of a block."""
    column = at // HEIGHT
    return column // SIZE + 0.5, at % HEIGHT + 0.5, column % SIZE + 0.5


# tools --------------------------------------------------------------------------------------------

_TICKS_PER_STEP = 4.6
"""Ticks to walk one block."""
_PRICE = 2.0
"""Digging costs this many times as much as walking for the same time."""
_KEEP = (BED, CHEST, CRAFTING_TABLE, FURNACE, LIT_FURNACE)
"""Furniture is never dug through."""


def yields(block: int, item: int) -> bool:
    """True if a block yields its drop with an item."""
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
