"""The state space: the named factors of an episode's start, and the order to build it.

Everything visible at the start is determined by the state; the seed of the episode determines only
random events afterwards (where creatures wander, what they drop). Each part of a scene is drawn
from a hash of the factors that concern it, so that, for example, another number of cows does not
move a hill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.rules.items import ARMOUR_TIERS, TIERS, TOOLS
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.species import COATS
from bridges.blockworld.rules.species import NAMES as SPECIES
from bridges.blockworld.rules.species import NUMBER as SPECIES_NUMBER
from rollout.api import Factor, Start, StateSpace
from rollout.errors import StateError

BIOMES = ("plains", "forest", "desert", "taiga", "snowy", "savanna", "swamp", "mountains")
PLAINS, FOREST, DESERT, TAIGA, SNOWY, SAVANNA, SWAMP, MOUNTAINS = range(8)

TIMES = {"morning": 1_000, "noon": 6_000, "evening": 13_000, "night": 18_000}
WEATHERS = ("clear", "rain", "thunder")

SUBJECTS = (
    "none",
    *SPECIES,
    "tree",
    "stone",
    "iron_ore",
    "mountain",
    "hut",
    "bed",
    "bed_in_hut",
    "crafting_table",
    "furnace",
)
"""The subject of a scene: it stands at the chosen distance and bearing. A species' number is its
place in this list."""
# fmt: off
(
    NO_SUBJECT, _, _, _, _, _, _, _, TREE, STONE, IRON_ORE, MOUNTAIN, HUT, BED, BED_IN_HUT,
    CRAFTING_TABLE, FURNACE,
) = range(len(SUBJECTS))
# fmt: on

DISTANCES = {
    "2-4": (2.0, 4.0),
    "4-6": (4.0, 6.0),
    "6-8": (6.0, 8.0),
    "8-10": (8.0, 10.0),
    "10-13": (10.0, 13.0),
    "13-16": (13.0, 16.0),
    "16-20": (16.0, 20.0),
    "20-26": (20.0, 26.0),
}
BEARINGS = range(0, 360, 30)

OTHERS = ("none", *(f"{n}_{name}" for name in SPECIES for n in (1, 2, 3)))

KITS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "none": (),
    "logs": (("oak_log", 8),),
    "mixed_logs": (("birch_log", 3), ("spruce_log", 3), ("acacia_log", 3)),
    "planks": (("oak_planks", 16),),
    "cobblestone": (("cobblestone", 32),),
    "dirt": (("dirt", 32),),
    "raw_beef_and_coal": (("beef", 4), ("coal", 8)),
    "raw_beef_and_planks": (("beef", 4), ("oak_planks", 16)),
    "raw_beef_coal_and_furnace": (("furnace", 1), ("beef", 4), ("coal", 8)),
    "bed": (("bed", 1),),
}
"""What the player carries in addition to what it holds and wears."""

CLUTTER = ("none", "some", "many")
"""Items that are of no use for the task: none, 3 to 6 or 12 to 20 stacks, in random slots."""

HANDS = ("none", *(f"{tier}_{tool}" for tool in TOOLS for tier in TIERS))
WORN = ("none", *ARMOUR_TIERS)
OFF_HANDS = ("none", "shield", "torch", "bread")

ORDER = np.dtype(
    [
        ("slot", "i4"),
        ("terrain", "u4"),
        ("time", "i4"),
        ("biome", "u1"),
        ("weather", "u1"),
        ("subject", "u1"),
        ("number", "u1"),
        ("nearest", "f4"),  # blocks
        ("farthest", "f4"),
        ("bearing", "f4"),  # degrees, clockwise from where the player looks
        ("coat", "u1"),
        ("others_kind", "u1"),
        ("others_count", "u1"),
        ("main_hand", "u1"),  # item
        ("armour", "u1"),  # 0 none, else 1 + tier
        ("off_hand", "u1"),  # item
        ("kit", "u1"),
        ("clutter", "u1"),
        ("random", "u8"),  # the seed of the episode
    ],
    align=True,
)
"""The order to generate one world: one state and one seed, as numbers."""


def state_space() -> StateSpace:
    """Returns the space of all states an episode can start from."""
    return StateSpace(
        (
            Factor("terrain", range(65_536), doc="shape of the ground and what grows on it"),
            Factor("biome", BIOMES, doc="climate: ground, plants, how hilly"),
            Factor("time", tuple(TIMES), doc="time of day"),
            Factor("weather", WEATHERS, doc="weather at the start"),
            Factor("subject", SUBJECTS, doc="what stands at the distance and bearing"),
            Factor("number", range(1, 6), doc="how many of the subject, where it is a creature"),
            Factor("distance", tuple(DISTANCES), unit="blocks", doc="from the player, a band"),
            Factor("bearing", BEARINGS, unit="degrees", doc="clockwise from where it looks"),
            Factor("coat", COATS, doc="colour of the sheep that are the subject"),
            Factor("others", OTHERS, doc="other creatures around, how many of which"),
            Factor("main_hand", HANDS, doc="tool or weapon in the hand"),
            Factor("armour", WORN, doc="a full suit of armour"),
            Factor("off_hand", OFF_HANDS, doc="item in the other hand"),
            Factor("kit", tuple(KITS), doc="what the player carries for the task"),
            Factor("clutter", CLUTTER, doc="how many useless things it carries"),
        )
    )


_DIGITS: Mapping[str, Mapping[Any, int]] = {
    "biome": {v: i for i, v in enumerate(BIOMES)},
    "weather": {v: i for i, v in enumerate(WEATHERS)},
    "subject": {v: i for i, v in enumerate(SUBJECTS)},
    "coat": {v: i for i, v in enumerate(COATS)},
    "armour": {v: i for i, v in enumerate(WORN)},
    "kit": {v: i for i, v in enumerate(KITS)},
    "clutter": {v: i for i, v in enumerate(CLUTTER)},
}


def orders(slots: Sequence[int], starts: Sequence[Start]) -> NDArray[np.void]:
    """Returns one order per start, ``(n,)`` of type ``ORDER``.

    Raises:
        StateError: a state lacks a factor, or has a value that the factor does not have.
    """
    made = np.zeros(len(starts), ORDER)
    for row, (slot, start) in enumerate(zip(slots, starts, strict=True)):
        try:
            _fill(made[row], start)
        except KeyError as error:
            space, values = state_space(), start.state.values
            for factor in space:  # says which value is wrong, and lists the valid ones
                if factor.name in values:
                    factor.digit(values[factor.name])
            raise StateError(
                f"the state lacks the factor {error.args[0]!r}; blockworld needs "
                f"{[f.name for f in space]}"
            ) from error
        made[row]["slot"] = slot
    return made


def _fill(order: Any, start: Start) -> None:
    values = start.state.values
    for name, digits in _DIGITS.items():
        order[name] = digits[values[name]]
    terrain, number, bearing = values["terrain"], values["number"], values["bearing"]
    if terrain not in range(65_536) or number not in range(1, 6) or bearing not in BEARINGS:
        raise KeyError(terrain)
    order["terrain"], order["number"], order["bearing"] = terrain, number, bearing
    order["time"] = TIMES[str(values["time"])]
    order["nearest"], order["farthest"] = DISTANCES[str(values["distance"])]
    others = str(values["others"])
    if others != "none":
        count, _, kind = others.partition("_")
        order["others_count"], order["others_kind"] = int(count), SPECIES_NUMBER[kind]
    for name in ("main_hand", "off_hand"):
        held = str(values[name])
        order[name] = 0 if held == "none" else ITEM[held]
    order["random"] = start.seed & (2**64 - 1)
