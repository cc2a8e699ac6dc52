"""Minecraft through its open protocol: Mineflayer agents in worlds of a server of our own.

The game runs in a Node process per instance; see ``bridges.mineflayer.bridge``.
"""

from bridges.mineflayer.bridge import MineflayerBridge

__all__ = ["MineflayerBridge"]
