"""Pictures of a valley, in a style of our own."""

from bridges.stardojo.pictures.scene import draw

__all__ = ["draw"]
