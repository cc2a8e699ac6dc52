"""The blocks of the world: their numbers and properties.

``data/blocks.yaml`` has them. Numbers, hardness, tools and drops follow Minecraft 1.16 for blocks
that exist there. Hardness is in the unit of Minecraft's rule: with the right tool a block takes
``1.5 * hardness / speed`` seconds, with a wrong one that yields nothing ``5 * hardness / speed``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.yaml12 import load_yaml

DATA = Path(__file__).parents[1] / "data"
"""Folder of tables and pictures."""

# fmt: off
(
    AIR, EDGE, BEDROCK, STONE, DIRT, GRASS_BLOCK, SAND, GRAVEL, SNOW_BLOCK, SANDSTONE, TERRACOTTA,
    COBBLESTONE, OAK_PLANKS, OAK_LOG, BIRCH_LOG, SPRUCE_LOG, ACACIA_LOG, OAK_LEAVES, BIRCH_LEAVES,
    SPRUCE_LEAVES, ACACIA_LEAVES, CACTUS, WATER, LAVA, ICE, COAL_ORE, IRON_ORE, GOLD_ORE,
    DIAMOND_ORE, CRAFTING_TABLE, FURNACE, LIT_FURNACE, CHEST, BED, TORCH, GLASS, WOOL, TALL_GRASS,
    FLOWER, DEAD_BUSH, MUSHROOM, CLAY, MOSSY_COBBLESTONE, PUMPKIN, OBSIDIAN, BOOKSHELF, HAY_BALE,
) = range(47)
# fmt: on

# The tool that breaks a block fastest.
NO_TOOL, PICKAXE, AXE, SHOVEL, SWORD = range(5)
TOOL_KINDS = ("", "pickaxe", "axe", "shovel", "sword")

# How a block is drawn.
INVISIBLE, CUBE, PLANT, LIQUID = range(4)


@dataclass(frozen=True)
class Block:
    """Properties of a kind of block.

    Attributes:
        name: as in Minecraft 1.16, without its prefix.
        hardness: see the module; negative if it cannot be broken.
        tool: the tool that breaks it fastest.
        tier: minimum tier of that tool for it to yield anything; 0 for the bare hand, 1 wood, 2
            stone, 3 iron.
        drop: name of the item it yields; empty for none. The default is itself.
        solid: whether bodies collide with it.
        form: how it is drawn; ``PLANT`` is two crossed planes.
        light: light level it emits, 0 to 15; lava glows but does not light others.
    """

    name: str
    hardness: float = 1.0
    tool: int = NO_TOOL
    tier: int = 0
    drop: str | None = None
    solid: bool = True
    form: int = CUBE
    light: int = 0

    @property
    def yields(self) -> str:
        """Returns the name of the item it yields; empty for none."""
        return self.name if self.drop is None else self.drop


_FORMS = ("invisible", "cube", "plant", "liquid")


def _block(name: str, row: Mapping[str, Any]) -> Block:
    tool, form = TOOL_KINDS.index(row.get("tool", "")), _FORMS.index(row.get("form", "cube"))
    return Block(name, **{**row, "tool": tool, "form": form})


BLOCKS = tuple(
    _block(name, row) for name, row in load_yaml(DATA / "blocks.yaml", ours=True).items()
)
assert len(BLOCKS) == HAY_BALE + 1

MAX_BLOCKS = 64
"""Size of the tables: an item whose number is below it is the block of that number."""


def table(dtype: type[np.generic], values: Sequence[float], size: int = MAX_BLOCKS) -> NDArray[Any]:
    """Returns a read-only array for compiled code: the values, then zeros."""
    made = np.zeros(size, dtype)
    made[: len(values)] = values
    made.flags.writeable = False
    return made


# Tables for compiled code, by number of the block.
HARDNESS = table(np.float32, [b.hardness for b in BLOCKS])
BEST_TOOL = table(np.uint8, [b.tool for b in BLOCKS])
LEAST_TIER = table(np.uint8, [b.tier for b in BLOCKS])
SOLID = table(np.uint8, [b.solid for b in BLOCKS])
FORM = table(np.uint8, [b.form for b in BLOCKS])
LIGHT = table(np.uint8, [b.light for b in BLOCKS])
LOGS = (OAK_LOG, BIRCH_LOG, SPRUCE_LOG, ACACIA_LOG)
LEAVES = (OAK_LEAVES, BIRCH_LEAVES, SPRUCE_LEAVES, ACACIA_LEAVES)

NUMBER = {block.name: number for number, block in enumerate(BLOCKS)}
"""Number of each block by its name."""
