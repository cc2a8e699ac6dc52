"""Blockworld: the embedded game, a stand-in for Minecraft that needs no download.

First person, keyboard and mouse, twenty ticks a second, compiled: an instance steps up to 4096
worlds in one call. See ``docs/blockworld.md``.
"""

from bridges.blockworld.bridge import BlockworldBridge

__all__ = ["BlockworldBridge"]
