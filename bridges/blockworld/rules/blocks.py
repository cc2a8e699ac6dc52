"""The blocks of the world: their numbers and properties.

Numbers, hardness, tools and drops follow Minecraft 1.16 for blocks that exist there. Hardness is in
the unit of Minecraft's rule: with the right tool a block takes ``1.5 * hardness / speed`` seconds,
with a wrong one that yields nothing ``5 * hardness / speed``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

# How a block is drawn.
INVISIBLE, CUBE, PLANT, LIQUID = range(4)

UNBREAKABLE = -1.0


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
        """Name of the item it yields; empty for none."""
        return self.name if self.drop is None else self.drop


def _plant(name: str, drop: str) -> Block:
    return Block(name, 0.0, drop=drop, solid=False, form=PLANT)


BLOCKS: tuple[Block, ...] = (
    Block("air", UNBREAKABLE, drop="", solid=False, form=INVISIBLE),
    Block("edge", UNBREAKABLE, drop="", form=INVISIBLE),
    Block("bedrock", UNBREAKABLE, drop=""),
    Block("stone", 1.5, PICKAXE, 1, "cobblestone"),
    Block("dirt", 0.5, SHOVEL),
    Block("grass_block", 0.6, SHOVEL, drop="dirt"),
    Block("sand", 0.5, SHOVEL),
    Block("gravel", 0.6, SHOVEL),
    Block("snow_block", 0.2, SHOVEL),
    Block("sandstone", 0.8, PICKAXE, 1),
    Block("terracotta", 1.25, PICKAXE, 1),
    Block("cobblestone", 2.0, PICKAXE, 1),
    Block("oak_planks", 2.0, AXE),
    Block("oak_log", 2.0, AXE),
    Block("birch_log", 2.0, AXE),
    Block("spruce_log", 2.0, AXE),
    Block("acacia_log", 2.0, AXE),
    Block("oak_leaves", 0.2, drop=""),
    Block("birch_leaves", 0.2, drop=""),
    Block("spruce_leaves", 0.2, drop=""),
    Block("acacia_leaves", 0.2, drop=""),
    Block("cactus", 0.4),
    Block("water", UNBREAKABLE, drop="", solid=False, form=LIQUID),
    Block("lava", UNBREAKABLE, drop="", solid=False, form=LIQUID),
    Block("ice", 0.5, PICKAXE, drop=""),
    Block("coal_ore", 3.0, PICKAXE, 1, "coal"),
    Block("iron_ore", 3.0, PICKAXE, 2),
    Block("gold_ore", 3.0, PICKAXE, 3),
    Block("diamond_ore", 3.0, PICKAXE, 3, "diamond"),
    Block("crafting_table", 2.5, AXE),
    Block("furnace", 3.5, PICKAXE, 1),
    Block("lit_furnace", 3.5, PICKAXE, 1, "furnace", light=13),
    Block("chest", 2.5, AXE),
    Block("bed", 0.2),
    Block("torch", 0.0, solid=False, form=PLANT, light=14),
    Block("glass", 0.3, drop=""),
    Block("wool", 0.8),
    _plant("tall_grass", ""),
    _plant("flower", "flower"),
    _plant("dead_bush", "stick"),
    _plant("mushroom", "mushroom"),
    Block("clay", 0.6, SHOVEL),
    Block("mossy_cobblestone", 2.0, PICKAXE, 1),
    Block("pumpkin", 1.0, AXE),
    Block("obsidian", 50.0, PICKAXE, 4),
    Block("bookshelf", 1.5, AXE),
    Block("hay_bale", 0.5),
)

MAX_BLOCKS = 64
"""Size of the tables: an item whose number is below it is the block of that number."""


def _table(dtype: type[np.generic], values: list[float]) -> NDArray[Any]:
    table = np.zeros(MAX_BLOCKS, dtype)
    table[: len(values)] = values
    table.flags.writeable = False
    return table


# Tables for compiled code, by number of the block.
HARDNESS = _table(np.float32, [b.hardness for b in BLOCKS])
BEST_TOOL = _table(np.uint8, [b.tool for b in BLOCKS])
LEAST_TIER = _table(np.uint8, [b.tier for b in BLOCKS])
SOLID = _table(np.uint8, [b.solid for b in BLOCKS])
FORM = _table(np.uint8, [b.form for b in BLOCKS])
LIGHT = _table(np.uint8, [b.light for b in BLOCKS])
LOGS = (OAK_LOG, BIRCH_LOG, SPRUCE_LOG, ACACIA_LOG)
LEAVES = (OAK_LEAVES, BIRCH_LEAVES, SPRUCE_LEAVES, ACACIA_LEAVES)

NUMBER = {block.name: number for number, block in enumerate(BLOCKS)}
"""Number of each block by its name."""
