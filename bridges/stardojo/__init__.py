"""StarDojo: Stardew Valley's tasks, in a valley of our own or in the real game."""

from bridges.stardojo.bridge import StardojoBridge

__all__ = ["StardojoBridge"]
