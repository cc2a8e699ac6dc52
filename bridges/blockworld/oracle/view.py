"""What a skill reads, a view of one record, and what it returns, one move.

An expert may know everything, so a view hides nothing; it only converts the fields that every skill
reads to plain Python numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import atan2, degrees, hypot
from typing import Any, NamedTuple

import numpy as np

from bridges.blockworld.compiled import World
from bridges.blockworld.oracle.paths import PATH, WORK
from bridges.blockworld.world import EYES, EYES_SNEAKING, HEIGHT, HOTBAR, HOTBAR_1, SIZE


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
