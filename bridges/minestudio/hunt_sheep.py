"""The starts of MCU's Appendix D as a state space: what MineStudio's branch ``mcu_zxy`` samples.

At each reset the branch draws one item from a list, 1 to 5 places of sheep without replacement from
another, and 1 or 2 other animals from a third; smaller training sets have shorter prefixes of the
lists. The lists here are made from the game's data: the items that are no blocks, in either hand or
given; every place of a square around the agent; and animals at places.

A place that was drawn is left out of what the next is drawn from, so ``sheep_2`` numbers the places
without that of ``sheep_1``, and so on: uniform states are the branch's distribution, and the first
10, 9, 8, ... values of these factors are its prefix of 10 places.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import TypeVar

from bridges.mineflayer.names import names
from rollout.api import Factor
from rollout.api.state import Value

T = TypeVar("T")

MOST_SHEEP, MOST_OTHER = 5, 2
ANIMALS = ("chicken", "pig", "cow")
_HANDS = {
    "main": "/replaceitem entity @p weapon.mainhand minecraft:{} 1",
    "off": "/replaceitem entity @p weapon.offhand minecraft:{} 1",
    "give": "/give @p minecraft:{} 1",
}
_NOT = ("spawn_egg", "music_disc")
_FARTHEST, _OTHERS_FARTHEST = 10, 7  # blocks from the agent, along either axis


@lru_cache
def equipment() -> tuple[str, ...]:
    """Returns the entries of the first list, ``HAND/ITEM``: those of the main hand first."""
    known = names()
    blocks = set(known.blocks)
    items = [item for item in known.items if item not in blocks and not _is_left_out(item)]
    return tuple(f"{hand}/{item}" for hand, item in product(_HANDS, items))


def _is_left_out(item: str) -> bool:
    return any(part in item for part in _NOT)


@lru_cache
def places() -> tuple[tuple[int, int], ...]:
    """Returns the entries of the second list, x and z from the agent, column by column."""
    line = range(-_FARTHEST, _FARTHEST + 1)
    return tuple(product(sorted(line, key=lambda x: (abs(x), x)), line))


@lru_cache
def others() -> tuple[tuple[str, int, int], ...]:
    """Returns the entries of the third list: an animal, x and z."""
    line = range(-_OTHERS_FARTHEST, _OTHERS_FARTHEST)
    return tuple((kind, x, z) for kind, x, z in product(ANIMALS, line, line))


def factors() -> tuple[Factor, ...]:
    """Returns the factors of these starts."""
    sheep, other = len(places()), len(others())
    return (
        Factor("equipment", equipment(), doc="what the agent has in a hand, or somewhere"),
        Factor("sheep", range(1, MOST_SHEEP + 1), doc="number of sheep"),
        *(
            Factor(f"sheep_{k + 1}", range(sheep - k), doc="its place, among those left")
            for k in range(MOST_SHEEP)
        ),
        Factor("other", range(1, MOST_OTHER + 1), doc="number of other animals"),
        *(
            Factor(f"other_{k + 1}", range(other - k), doc="its kind and place, among those left")
            for k in range(MOST_OTHER)
        ),
    )


def start_commands(state: Mapping[str, Value]) -> list[str]:
    """Returns the commands that make the start of a state."""
    hand, _, item = str(state["equipment"]).partition("/")
    animals = [("sheep", x, z) for x, z in _drawn(state, "sheep", list(places()))]
    animals += _drawn(state, "other", list(others()))
    return [
        _HANDS[hand].format(item),
        *(f"/summon minecraft:{kind} ~{x} ~ ~{z}" for kind, x, z in animals),
    ]


def _drawn(state: Mapping[str, Value], name: str, left: list[T]) -> list[T]:
    return [left.pop(int(state[f"{name}_{k + 1}"])) for k in range(int(state[name]))]
