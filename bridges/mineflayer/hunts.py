"""States of hunts, as in MCU, Appendix D: what to hold and to wear, what is where around the agent.

The bridge has these factors with ``hunt=true``. The herd of the factor ``mob`` stands at a bearing
from where the agent looks at first, clockwise, within a sector and a band of distances; the other
animals stand anywhere around.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridges.mineflayer.loadouts import NONE, Item
from rollout.api import Factor

SECTOR = 30
"""Degrees of a sector of bearings."""

MAIN_HANDS = (
    NONE,
    *(f"{of}_sword" for of in ("wooden", "stone", "iron", "golden", "diamond")),
    *(f"{of}_axe" for of in ("wooden", "stone", "iron", "golden", "diamond")),
)
OFF_HANDS = (NONE, "shield", "torch", "bread")
ARMOURS = (NONE, "leather", "golden", "chainmail", "iron", "diamond")
OTHERS = (NONE, *(f"{n}_{kind}" for kind in ("cow", "pig", "chicken", "rabbit") for n in (1, 2, 3)))
BANDS = ("2-4", "4-6", "6-8", "8-10", "10-13", "13-16")
HERDS = range(9)
OTHERS_BAND = (3, 13)
"""Distances, in blocks, between which the other animals stand."""

_PIECES = {"helmet": "head", "chestplate": "torso", "leggings": "legs", "boots": "feet"}


def factors() -> tuple[Factor, ...]:
    """Returns the factors that a hunt has beside those of every state."""
    return (
        Factor("bearing", range(0, 360, SECTOR), unit="degrees", doc="middle of the herd's sector"),
        Factor("main_hand", MAIN_HANDS, doc="what the agent holds"),
        Factor("off_hand", OFF_HANDS, doc="what it has in the other hand"),
        Factor("armour", ARMOURS, doc="material of what it wears"),
        Factor("others", OTHERS, doc="other animals around it, which are no targets"),
    )


def items_of(state: Mapping[str, Any]) -> list[Item]:
    """Returns what the agent of a state holds and wears."""
    items = []
    if state["main_hand"] != NONE:
        items.append(Item(str(state["main_hand"]), 1))
    if state["off_hand"] != NONE:
        items.append(Item(str(state["off_hand"]), 1, "off-hand"))
    if state["armour"] != NONE:
        worn = _PIECES.items()
        items += [Item(f"{state['armour']}_{piece}", 1, slot) for piece, slot in worn]
    return items


def herds_of(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the animals of a state in the form that the game gets, the targets first."""
    kind, number = str(state["mob"]), int(state["mobs"])
    herds: list[dict[str, Any]] = []
    if kind != NONE and number:
        low, high = (int(end) for end in str(state["distance"]).split("-"))
        sector = {"bearing": int(state["bearing"]), "sector": SECTOR, "band": [low, high]}
        herds.append({"kind": kind, "count": number, "name": kind, **sector})
    if state["others"] != NONE:
        count, other = str(state["others"]).split("_")
        around = {"bearing": 0, "sector": 360, "band": list(OTHERS_BAND)}
        herds.append({"kind": other, "count": int(count), "wild": True, **around})
    return herds
