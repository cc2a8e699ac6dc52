"""The signals of an episode: numbers that evaluators and records read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel, whole
from bridges.blockworld.rules.blocks import (
    COAL_ORE,
    DIAMOND_ORE,
    DIRT,
    GOLD_ORE,
    GRASS_BLOCK,
    IRON_ORE,
    LOGS,
    MAX_BLOCKS,
    STONE,
)
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.items import RECIPES
from bridges.blockworld.rules.species import NAMES
from bridges.blockworld.rules.world import SIZE
from rollout.api import ColumnSpec

NO_HUT = 1000.0
"""Distance to the hut where there is none."""

PRODUCTS = tuple(dict.fromkeys(recipe.makes for recipe in RECIPES))
"""Every item that can be crafted, once, in the order of the recipes."""

_ORES = {"coal_ore": COAL_ORE, "iron_ore": IRON_ORE, "gold_ore": GOLD_ORE}
_MINED: Mapping[str, tuple[int, ...]] = {
    "log": LOGS,
    "stone": (STONE,),
    **{name: (block,) for name, block in _ORES.items()},
    "diamond_ore": (DIAMOND_ORE,),
    "dirt": (DIRT, GRASS_BLOCK),
}
_PICKED: Mapping[str, tuple[int, ...]] = {
    "log": LOGS,
    **{name: (ITEM[name],) for name in ("cobblestone", "iron_ore", "wool", "beef")},
}


def _counter(doc: str, unit: str = "") -> ColumnSpec:
    return ColumnSpec(unit=unit, doc=f"{doc} since the reset")


def _signals() -> dict[str, ColumnSpec]:
    made = {
        "reward": ColumnSpec(doc="always 0: the world itself wants nothing"),
        "health": ColumnSpec(unit="half hearts", doc="health, 20 at most"),
        "food": ColumnSpec(unit="half drumsticks", doc="how well fed, 20 at most"),
        "position/x": ColumnSpec(unit="blocks", doc="of the player's feet"),
        "position/y": ColumnSpec(unit="blocks", doc="of the player's feet, upwards"),
        "position/z": ColumnSpec(unit="blocks", doc="of the player's feet"),
        "altitude": ColumnSpec(unit="blocks", doc="height above where the player began"),
        "travelled": ColumnSpec(unit="blocks", doc="horizontal distance from where it began"),
    }
    made |= {f"kills/{name}": _counter(f"{name}s that the player killed") for name in NAMES}
    made |= {f"mined/{name}": _counter(f"blocks of {name} broken") for name in _MINED}
    made["placed"] = _counter("blocks placed")
    made["pillar"] = ColumnSpec(
        unit="blocks", doc="highest stack of its own blocks that the player has stood on"
    )
    made |= {f"made/{name}": _counter(f"{name} made") for name in PRODUCTS}
    made |= {f"picked/{name}": _counter(f"{name} picked up") for name in _PICKED}
    made |= {
        "eaten": _counter("meals"),
        "slept": _counter("nights slept through"),
        "hurt": _counter("health lost", "half hearts"),
        "dealt": _counter("health taken from creatures", "half hearts"),
        "hut_distance": ColumnSpec(
            unit="blocks",
            doc="horizontal distance to the hut, 0 inside it, 1000 where there is none",
        ),
        "in_hut": ColumnSpec(doc="1 under the roof of the hut, else 0"),
    }
    return made


SIGNALS: Mapping[str, ColumnSpec] = _signals()
"""Every signal by its name, in the order of the rows that ``report`` fills."""


def _pairs(groups: Mapping[str, tuple[int, ...]], first: int) -> Any:
    """Row and number of each counted item, ``(n, 2)``; rows begin at ``first``."""
    pairs = [(first + row, n) for row, numbers in enumerate(groups.values()) for n in numbers]
    return np.array(pairs, np.int64)


_ROW = {name: row for row, name in enumerate(SIGNALS)}
_FIRST_KILL = _ROW[f"kills/{NAMES[0]}"]
_SPECIES = len(NAMES)
_MINED_ROWS = _pairs(_MINED, _ROW["mined/log"])
_PLACED, _PILLAR = _ROW["placed"], _ROW["pillar"]
_MADE_ROWS = _pairs({name: (ITEM[name],) for name in PRODUCTS}, _ROW[f"made/{PRODUCTS[0]}"])
_PICKED_ROWS = _pairs(_PICKED, _ROW["picked/log"])
_EATEN, _SLEPT, _HURT, _DEALT = (_ROW[name] for name in ("eaten", "slept", "hurt", "dealt"))
_HUT_DISTANCE, _IN_HUT = _ROW["hut_distance"], _ROW["in_hut"]


@kernel
def report(worlds: Any, columns: Any, lo: int, hi: int) -> None:
    """Writes the signals of worlds ``lo`` to ``hi``.

    Args:
        worlds: the worlds, ``(W,)`` of type ``WORLD``.
        columns: output, ``(len(SIGNALS), W)`` float32; rows in the order of ``SIGNALS``.
        lo: first world.
        hi: end of the range of worlds.
    """
    for k in range(lo, hi):
        w = worlds[k]
        columns[0, k] = 0.0
        columns[1, k] = w.health
        columns[2, k] = w.food
        columns[3, k] = w.x
        columns[4, k] = w.y
        columns[5, k] = w.z
        columns[6, k] = w.y - w.home_y
        columns[7, k] = np.sqrt((w.x - w.home_x) ** 2 + (w.z - w.home_z) ** 2)
        for n in range(_SPECIES):
            columns[_FIRST_KILL + n, k] = w.kills[n + 1]
        columns[_MINED_ROWS[0, 0] : _PLACED, k] = 0.0
        for n in range(len(_MINED_ROWS)):
            columns[_MINED_ROWS[n, 0], k] += w.mined[_MINED_ROWS[n, 1]]
        placed = 0
        for n in range(MAX_BLOCKS):
            placed += whole(w.placed[n])
        columns[_PLACED, k] = placed
        columns[_PILLAR, k] = w.pillar
        for n in range(len(_MADE_ROWS)):
            columns[_MADE_ROWS[n, 0], k] = w.made[_MADE_ROWS[n, 1]]
        columns[_PICKED_ROWS[0, 0] : _EATEN, k] = 0.0
        for n in range(len(_PICKED_ROWS)):
            columns[_PICKED_ROWS[n, 0], k] += w.picked[_PICKED_ROWS[n, 1]]
        columns[_EATEN, k] = w.eaten
        columns[_SLEPT, k] = w.slept
        columns[_HURT, k] = w.hurt
        columns[_DEALT, k] = w.dealt
        columns[_HUT_DISTANCE, k], columns[_IN_HUT, k] = hut(w)


@inner
def hut(w: World) -> tuple[float, float]:
    """Returns the distance to the hut's footprint in blocks, and 1 if the player is inside."""
    if w.hut[0] < 0:
        return NO_HUT, 0.0
    dx = max(float(w.hut[0]) - w.x, w.x - (float(w.hut[2]) + 1.0), 0.0)
    dz = max(float(w.hut[1]) - w.z, w.z - (float(w.hut[3]) + 1.0), 0.0)
    if dx > 0.0 or dz > 0.0:
        return np.sqrt(dx * dx + dz * dz), 0.0
    under = float(w.heights[whole(w.x) * SIZE + whole(w.z)]) > w.y + 1.0
    return 0.0, 1.0 if under else 0.0
