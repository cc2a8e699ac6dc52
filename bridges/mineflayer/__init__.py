"""Minecraft through its open protocol: Mineflayer agents on a server that is part of the game.

The game runs in a Node process per instance; see ``bridges.mineflayer.bridge``.
"""

from bridges.mineflayer.bridge import MineflayerBridge

__all__ = ["MineflayerBridge"]
