"""Shapes of built blocks: pyramids, houses, rings of walls, straight walls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bridges.mineflayer.minenpc.trace import Cell

_OPENING = 2  # cells of a doorway


def _square(corner: Cell, side: int) -> set[Cell]:
    x, y, z = corner
    return {(x + i, y, z + k) for i, k in product(range(side), repeat=2)}


def pyramid(built: set[Cell], side: int) -> bool:
    """Returns whether layers of side, side - 1, ... 1 stand on one another, each inside, alone."""

    def stands(corner: Cell, side: int) -> bool:
        if not _square(corner, side) <= built:
            return False
        x, y, z = corner
        if side == 1:
            return True
        layer = {(i, y + 1, k) for i, _, k in _square(corner, side)} & built
        above = product((x, x + 1), (z, z + 1))
        return any(
            layer == _square((i, y + 1, k), side - 1) and stands((i, y + 1, k), side - 1)
            for i, k in above
        )

    return any(stands(corner, side) for corner in built)


def _ring(corner: Cell, side: int) -> set[Cell]:
    x, y, z = corner
    return _square(corner, side) - _square((x + 1, y, z + 1), side - 2)


def _corners(built: set[Cell], side: int) -> Iterator[Cell]:
    """Corners at which a ring may begin: one of its four corners is built."""
    seen = set()
    for x, y, z in built:
        for i, k in product((0, side - 1), repeat=2):
            if (corner := (x - i, y, z - k)) not in seen:
                seen.add(corner)
                yield corner


def _rows_of(corner: Cell, side: int, height: int) -> set[Cell]:
    x, y, z = corner
    return {each for dy in range(height) for each in _ring((x, y + dy, z), side)}


def _inside(corner: Cell, side: int, height: int) -> set[Cell]:
    x, y, z = corner
    return {each for dy in range(height) for each in _square((x + 1, y + dy, z + 1), side - 2)}


def walls(built: set[Cell], side: int, height: int) -> float:
    """Returns the share of the cells of a square ring of walls that are built, the largest one.

    A ring of which at least half of the inside is built is no ring of walls.
    """
    shares = [0.0]
    for corner in _corners(built, side):
        ring, inside = _rows_of(corner, side, height), _inside(corner, side, height)
        if 2 * len(inside & built) < len(inside):
            shares.append(len(ring & built) / len(ring))
    return max(shares)


def house(built: set[Cell], side: int, height: int) -> bool:
    """Returns whether a square house stands: walls with one doorway, a whole roof, air inside."""
    for corner in _corners(built, side):
        x, y, z = corner
        missing = _rows_of(corner, side, height) - built
        columns = {(i - x, k - z) for i, _, k in missing}
        doorway = len(columns) == 1 and all(dy - y < _OPENING for _, dy, _ in missing)
        if (
            doorway
            and not columns & set(product((0, side - 1), repeat=2))
            and _square((x, y + height, z), side) <= built
            and not _inside(corner, side, height) & built
        ):
            return True
    return False


def rows(built: set[Cell], length: int, height: int) -> Iterator[set[Cell]]:
    """Yields the straight walls of that length and height, one block thick."""
    for x, y, z in built:
        for dx, dz in ((1, 0), (0, 1)):
            wall = {
                (x + dx * i, y + dy, z + dz * i) for i, dy in product(range(length), range(height))
            }
            if wall <= built:
                yield wall
