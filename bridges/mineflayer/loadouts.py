"""The items that an agent starts with, in MineLand's notation: ``1_iron_sword_and_1_shield``.

MineLand puts armour and shields into the inventory, where an agent that cannot click can never put
them on; here they are worn and held from the start.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridges.mineflayer.names import names
from rollout.errors import ConfigError, UnknownNameError

NONE = "none"
MOST = 36 * 64
"""Maximum number of items of one kind that can be given: a full inventory."""

_ARMOUR = ("helmet", "chestplate", "leggings", "boots")
_WORN = {"helmet": "head", "chestplate": "torso", "leggings": "legs", "boots": "feet"}
_SUIT = re.compile(r"1_(\w+?)_sword_and_shield_and_?([a-z]+)_and_helmet_and_leggings_and_"
                   r"chestplate_and_boots")  # fmt: skip
_EQUIPPED = re.compile(r"(1_\w+_sword_and_1_shield)_and_equipments")
_ENTRY = re.compile(r"([1-9]\d*)_([a-z]\w*)")

SWORDS = ("wooden", "iron", "diamond")
SUITS = ("diamond", "iron", "leather")


@dataclass(frozen=True)
class Item:
    """Items that are given at the start.

    Attributes:
        name: of the item.
        count: how many.
        slot: where they are worn or held (``head torso legs feet off-hand``) as far as there is
            room; None for the first free slots, the hotbar first.
    """

    name: str
    count: int
    slot: str | None = None

    def as_data(self) -> dict[str, str | int | None]:
        """Returns it in the form that the game gets."""
        return {"name": self.name, "count": self.count, "slot": self.slot}


def sword(material: str) -> str:
    """Returns MineLand's load-out with a sword and a shield."""
    return f"1_{material}_sword_and_1_shield"


def suit(material: str, armour: str) -> str:
    """Returns MineLand's load-out with a sword, a shield and four pieces of armour."""
    pieces = "_and_helmet_and_leggings_and_chestplate_and_boots"
    return f"1_{material}_sword_and_shield_and{armour}{pieces}"


LOADOUTS = (
    NONE,
    *("1_wooden_pickaxe", "1_iron_pickaxe", "1_diamond_pickaxe", "1_iron_sword"),
    *("1_iron_sword_and_1_furnace", "1_iron_sword_and_1_iron_axe", "1_shears", "1_furnace"),
    *("6_glass", "2_oak_planks", "4_oak_planks", "64_oak_planks", "1_oak_log", "8_cobblestone"),
    *("3_white_wool_and_3_oak_planks", "1_wooden_axe_and_1_crafting_table"),
    *("16_oak_planks_and_1_crafting_table_and_8_stick", "2_iron_ingot", "16_iron_ingot"),
    *(sword(material) for material in SWORDS),
    *(suit(material, armour) for material in SWORDS for armour in SUITS),
    *(f"{sword(material)}_and_equipments" for material in ("iron", "diamond")),
    "2_bread",
)
"""The load-outs of MineLand's tasks: the values of the factor ``loadout``."""


def parse_loadout(text: str) -> tuple[Item, ...]:
    """Returns the items of a load-out; empty for ``none``.

    Raises:
        ConfigError: the text is not a load-out.
        UnknownNameError: there is no such item in the version.
    """
    if text in ("", NONE):
        return ()
    if match := _SUIT.fullmatch(text):
        return (*_given({f"{match[1]}_sword": 1, "shield": 1}), *_worn(match[2]))
    if match := _EQUIPPED.fullmatch(text):
        return (*parse_loadout(match[1]), *_worn("iron"))
    counts: dict[str, int] = {}
    for entry in text.split("_and_"):
        found = _ENTRY.fullmatch(entry)
        if not found:
            raise ConfigError(
                f"expected a load-out such as 1_iron_sword_and_1_shield, got {text!r}: {entry!r} "
                f"is no number and item"
            )
        counts[found[2]] = counts.get(found[2], 0) + int(found[1])
    return _given(counts)


def given(items: Mapping[str, int], agents: Sequence[str]) -> tuple[tuple[Item, ...], ...]:
    """Returns what each agent is given.

    Args:
        items: counts by item, ``{"bread": 2}``, or by agent and item, ``{"Ann.apple": 1}``.
        agents: names of the agents.

    Raises:
        ConfigError: a count is not possible.
        UnknownNameError: there is no such item in the version, or no such agent.
    """
    counts: dict[str, dict[str, int]] = {agent: {} for agent in agents}
    for key, count in items.items():
        agent, _, name = key.rpartition(".")
        if agent and agent not in counts:
            raise UnknownNameError("agent to give items to", agent, agents)
        for each in [agent] if agent else agents:
            counts[each][name] = counts[each].get(name, 0) + count
    return tuple(_given(counts[agent]) for agent in agents)


def _given(counts: Mapping[str, int]) -> tuple[Item, ...]:
    items = []
    for name, count in counts.items():
        if name not in names().items:
            raise UnknownNameError("item of Minecraft 1.16.5", name, names().items)
        if not 1 <= count <= MOST:
            raise ConfigError(f"{name}: expected 1 to {MOST} of it, got {count}")
        items.append(Item(name, count, _slot(name)))
    return tuple(items)


def _slot(name: str) -> str | None:
    return "off-hand" if name == "shield" else _WORN.get(name.rpartition("_")[2])


def _worn(material: str) -> tuple[Item, ...]:
    return _given({f"{material}_{piece}": 1 for piece in _ARMOUR})
