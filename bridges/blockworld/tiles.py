"""Tiles of texels: noise, sizes, packing. Used by ``textures`` and ``icons``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.float64]
"""``(16, 16, 4)``: red, green, blue from 0 to 255, and 1 where not transparent."""

TEXELS = 16
LEVEL_AT = np.array([0, 256, 320, 336, 340], np.int64)
"""Offset of each size within a tile."""
TILE = 341
"""Number of texels of a tile in all its sizes."""


def grain(seed: int, size: int = TEXELS) -> NDArray[np.float64]:
    """Returns ``(size, size)`` numbers in [0, 1), a hash of the seed and the position."""
    at = np.arange(size * size, dtype=np.uint64) + np.uint64((seed * 0x9E3779B9) & 0xFFFFFFFF)
    at = (at ^ (at >> np.uint64(16))) * np.uint64(0x45D9F3B) & np.uint64(0xFFFFFFFF)
    at = (at ^ (at >> np.uint64(16))) * np.uint64(0x45D9F3B) & np.uint64(0xFFFFFFFF)
    return ((at ^ (at >> np.uint64(16))).astype(np.float64) / 2.0**32).reshape(size, size)


def plain(colour: tuple[int, int, int], seed: int, spread: float = 0.2) -> Picture:
    """Returns a tile of one colour with noise; ``spread`` is the range of its brightness."""
    made = np.ones((TEXELS, TEXELS, 4))
    rough = (
        1.0
        + spread * (grain(seed) - 0.5)
        + spread * 0.5 * (grain(seed + 1)[::-1, ::2].repeat(2, 1) - 0.5)
    )
    made[..., :3] = np.array(colour) * rough[..., None]
    return made


def shrunk(tile: Picture) -> Picture:
    """Returns a tile at half its size; a texel is opaque if two of four are."""
    size = tile.shape[0] // 2
    four = tile.reshape(size, 2, size, 2, 4).transpose(0, 2, 1, 3, 4).reshape(size, size, 4, 4)
    there = four[..., 3:].sum(2)
    colour = (four[..., :3] * four[..., 3:]).sum(2) / np.maximum(there, 1)
    return np.concatenate([colour, (there >= 1.5).astype(np.float64)], -1)


def packed(tile: Picture) -> NDArray[np.int32]:
    """Returns the texels of a picture ``(n, n, 4)`` as integers, row by row."""
    whole = np.clip(np.round(tile[..., :3]), 0, 255).astype(np.int32)
    there = (tile[..., 3] > 0.5).astype(np.int32)
    return ((there << 24) | (whole[..., 0] << 16) | (whole[..., 1] << 8) | whole[..., 2]).ravel()


class Atlas:
    """Collects tiles, and returns the number of each."""

    def __init__(self) -> None:
        self.tiles: list[NDArray[np.int32]] = []

    def add(self, tile: Picture) -> int:
        """Adds a tile in all its sizes; returns its number."""
        sizes = [tile]
        while sizes[-1].shape[0] > 1:
            sizes.append(shrunk(sizes[-1]))
        self.tiles.append(np.concatenate([packed(size) for size in sizes]))
        return len(self.tiles) - 1
