"""Minecraft through its open protocol: Mineflayer agents on a server that is part of the game.

The game runs in a Node process per instance; see ``bridges.mineflayer.bridge``. The class of the
bridge is imported when it is first used: MineStudio's interpreter has none of its libraries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridges.mineflayer.bridge import MineflayerBridge

__all__ = ["MineflayerBridge"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bridges.mineflayer.bridge import MineflayerBridge  # noqa: PLC0415 - see above

    return MineflayerBridge
