"""Contents of a picture: the player's marks, labelled objects, texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from bridges.starbench.pictures.layout import Box
from bridges.starbench.pictures.sprites import Picture

LABELS = ("ally_slot", "enemy", "boss", "summon", "btn_basic", "btn_skill", "ult_ready")
"""Classes of what is labelled on a picture."""
HALF = {"enemy": 92, "boss": 124, "summon": 72}
"""Half the width of the picture of an enemy, in pixels of the map."""


@dataclass(frozen=True, slots=True)
class Marks:
    """The selection of the player.

    Attributes:
        enemy: target 4 to 8, or None.
        ally: target 0 to 3, or None.
        move: 0 for the basic attack, 1 for the skill, what ``space`` confirms.
        events: clicks and keys received so far.
    """

    enemy: int | None = None
    ally: int | None = None
    move: int = 0
    events: int = 0


class Label(NamedTuple):
    """An object that was drawn, or found by a detector: its class and box in pixels."""

    name: str
    x: float
    y: float
    w: float
    h: float
    score: float = 1.0

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of its box."""
        return self.x + self.w / 2, self.y + self.h / 2


class Written(NamedTuple):
    """A text on the picture: the name in the map, its numbers, where, and what."""

    name: str
    i: int
    j: int
    box: Box
    text: str


@dataclass
class Drawn:
    """A picture with what is on it.

    Attributes:
        picture: (height, width, 3), RGB.
        labels: objects.
        written: texts.
    """

    picture: Picture
    labels: list[Label] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)


def number(value: float) -> str:
    """Returns a number as the screen shows it: whole, at least 1 if there is any."""
    return str(math.ceil(value - 1e-9))


def percent(value: float, whole: float) -> str:
    """Returns a share as the screen shows it, with one decimal."""
    return f"{100 * max(0.0, value) / max(whole, 1e-9):.1f}%"
