"""Names of items, blocks and mobs of Minecraft 1.16.5, available without starting the game.

``names.json`` was made in ``game/`` out of minecraft-data 3.117.0, with Node::

    const d = require('minecraft-data')('1.16.5'), name = (each) => each.name;
    const lives = (e) => /mobs/.test(e.category) || e.type === 'UNKNOWN' || e.name === 'fox';
    const mobs = d.entitiesArray.filter(lives).map(name).filter((n) => n !== 'evoker_fangs');
    const items = d.itemsArray.map(name).filter((n) => n !== 'air');
    console.log({ items, blocks: d.blocksArray.map(name), mobs: mobs.sort() });

and in the same way the entities, the effects (in the words of commands), the enchantments with
their highest levels, and for each kind of properties (``axis=x|y|z``) the blocks that have it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FILE = Path(__file__).with_name("names.json")

VERSION = "1.16.5"
"""The version of embedded worlds, and of the names here."""

NEWER = {"raw_iron": "1.17", "raw_gold": "1.17", "raw_copper": "1.17", "copper_ingot": "1.17"}
"""Items of MineLand's tasks from later versions, with the version."""


@dataclass(frozen=True)
class Names:
    """The names of one version, in the order of minecraft-data; mobs by name.

    Attributes:
        items: what a slot can contain; item ``k`` of this list has the number ``k + 1`` there.
        blocks: all kinds of blocks.
        mobs: the living entities.
        entities: all entities.
        effects: the status effects.
        enchantments: the highest level of each enchantment.
        states: properties of blocks with their values, by block; only blocks that have any.
    """

    items: tuple[str, ...]
    blocks: tuple[str, ...]
    mobs: tuple[str, ...]
    entities: tuple[str, ...]
    effects: tuple[str, ...]
    enchantments: Mapping[str, int]
    states: Mapping[str, Mapping[str, tuple[str, ...]]]

    def properties(self, block: str) -> Mapping[str, tuple[str, ...]]:
        """Returns the properties of a block with their values."""
        return self.states.get(block, {})


@lru_cache
def names() -> Names:
    """Returns the names of ``VERSION``."""
    data = json.loads(_FILE.read_text())
    lists = {key: tuple(data[key]) for key in ("items", "blocks", "mobs", "entities", "effects")}
    states = {
        block: {
            key: tuple(values.split("|"))
            for key, _, values in (each.partition("=") for each in kind.split(" "))
        }
        for kind, blocks in data["states"].items()
        for block in blocks
    }
    return Names(**lists, enchantments=data["enchantments"], states=states)
