"""The creatures: their numbers and properties.

``data/species.yaml`` has them. Health, size, damage and drops follow Minecraft 1.16, speeds are
rounded from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridges.blockworld.rules.blocks import DATA
from bridges.blockworld.rules.items import NUMBER as ITEM
from rollout.yaml12 import load_yaml

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
    drops: Sequence[tuple[str, int, int]] = ()


SPECIES = (
    Species("none", 0, 0, 0, 0, 0),
    *(Species(name, **row) for name, row in load_yaml(DATA / "species.yaml", ours=True).items()),
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
