"""The creatures: their numbers and properties.

Health, size, damage and drops follow Minecraft 1.16, speeds are rounded from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridges.blockworld.rules.items import NUMBER as ITEM

SHEEP, COW, PIG, CHICKEN, ZOMBIE, SKELETON, SPIDER = range(1, 8)
NOBODY = 0

COATS = ("white", "light_gray", "gray", "black", "brown", "pink", "yellow", "light_blue")
"""Colours of sheep."""


@dataclass(frozen=True)
class Species:
    """Properties of a kind of creature.

    Attributes:
        name: as in Minecraft.
        health: in half hearts.
        width: of its body, in blocks.
        height: of its body, in blocks.
        walk: walking speed, in blocks per second.
        run: speed when it flees or chases.
        hostile: whether it attacks the player on sight.
        damage: damage of a blow or an arrow, in half hearts.
        drops: item, minimum and maximum count.
    """

    name: str
    health: float
    width: float
    height: float
    walk: float
    run: float
    hostile: bool = False
    damage: float = 0.0
    drops: tuple[tuple[str, int, int], ...] = ()


SPECIES: tuple[Species, ...] = (
    Species("none", 0, 0, 0, 0, 0),
    Species("sheep", 8, 0.9, 1.3, 1.2, 2.6, drops=(("wool", 1, 1), ("mutton", 1, 2))),
    Species("cow", 10, 0.9, 1.4, 1.1, 2.5, drops=(("beef", 1, 3), ("leather", 0, 2))),
    Species("pig", 10, 0.9, 0.9, 1.2, 2.6, drops=(("porkchop", 1, 3),)),
    Species("chicken", 4, 0.4, 0.7, 1.0, 2.4, drops=(("chicken", 1, 1), ("feather", 0, 2))),
    Species("zombie", 20, 0.6, 1.95, 1.2, 2.5, True, 3.0, (("rotten_flesh", 0, 2),)),
    Species("skeleton", 20, 0.6, 1.99, 1.3, 2.6, True, 3.0, (("bone", 0, 2), ("arrow", 0, 2))),
    Species("spider", 16, 1.4, 0.9, 1.4, 3.2, True, 2.0, (("string", 0, 2), ("spider_eye", 0, 1))),
)

NAMES = tuple(s.name for s in SPECIES[1:])
NUMBER = {name: number for number, name in enumerate(NAMES, 1)}
"""Number of each species by its name."""

# Tables for compiled code, by number of the species.
HEALTH = np.array([s.health for s in SPECIES], np.float32)
WIDTH = np.array([s.width for s in SPECIES], np.float32)
TALL = np.array([s.height for s in SPECIES], np.float32)
WALK = np.array([s.walk for s in SPECIES], np.float32)
RUN = np.array([s.run for s in SPECIES], np.float32)
HOSTILE = np.array([s.hostile for s in SPECIES], np.uint8)
DAMAGE = np.array([s.damage for s in SPECIES], np.float32)
DROPS = np.zeros((len(SPECIES), 2, 3), np.uint8)
"""Item, minimum and maximum count; two kinds per species, item 0 for none."""
for _row, _species in enumerate(SPECIES):
    for _place, (_name, _least, _most) in enumerate(_species.drops):
        DROPS[_row, _place] = ITEM[_name], _least, _most
