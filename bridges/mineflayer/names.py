"""Names of version 1.16.5, from a table, and the versions that a bridge can play.

``data/names.json`` was made in ``game/`` out of minecraft-data 3.117.0, with Node::

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
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rollout.errors import ConfigError

_FILE = Path(__file__).parent / "data" / "names.json"

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


# versions -----------------------------------------------------------------------------------------

_REMOTE = re.compile(r"1\.([1-9]\d*)(?:\.([1-9]\d*))?", re.ASCII)
_LAST_PATCH = dict(enumerate((9, 4, 2, 2, 2, 2, 4, 2, 5, 1, 2, 4, 6, 11), start=8))
"""The last release of each minor version that Mineflayer supports, 1.8.9 to 1.21.11."""
_OLDEST, _NEWEST = min(_LAST_PATCH), max(_LAST_PATCH)


def check_version(mode: str, version: str) -> None:
    """Checks the version of a bridge.

    Args:
        mode: ``embedded`` or ``remote``.
        version: e.g. ``1.16.5``.

    Raises:
        ConfigError: that mode does not have it.
    """
    if mode == "embedded":
        if version != VERSION:
            raise ConfigError(
                f"version: embedded worlds are of {VERSION}, got {version!r}; leave the "
                f"key out, or join a server with mode=remote"
            )
        return
    match = _REMOTE.fullmatch(version)
    minor, patch = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if patch > _LAST_PATCH.get(minor, -1):
        near = f"1.{minor} to 1.{minor}.{_LAST_PATCH[minor]}" if minor in _LAST_PATCH else ""
        raise ConfigError(
            f"version: expected {near or f'one of 1.{_OLDEST} to 1.{_NEWEST}'}, e.g. "
            f"{VERSION}, got {version!r}"
        )
