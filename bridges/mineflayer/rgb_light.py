"""The light in a box of blocks: sky light from above and from the sides, and lamp light.

Cells contain ``sky << 4 | lamps``, 0 to 15 each. Light loses one level per block, plus what a block
absorbs (https://minecraft.wiki/w/Light). The light is the unique fixed point of that rule, so
recomputing a part gives the same result as recomputing the whole.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.rgb_compiled import bare, inner, kernel

REACH = 15
"""The range of light in blocks."""


class Grid(NamedTuple):
    """A box of blocks with a border of one cell, flattened: ``(x * deep + z) * tall + y``."""

    forms: NDArray[np.uint8]
    cells: NDArray[np.uint16]
    light: NDArray[np.uint8]
    heights: NDArray[np.int32]
    """``(wide * deep,)``: the first cell above what stops the sky light, relative to the box."""
    biomes: NDArray[np.uint8]
    wide: int
    deep: int
    tall: int


@inner
def bare_grid(grid: Any) -> Any:
    """Returns a grid whose arrays are not reference-counted; see ``bare``."""
    return Grid(
        bare(grid.forms), bare(grid.cells), bare(grid.light), bare(grid.heights), bare(grid.biomes),
        grid.wide, grid.deep, grid.tall,
    )  # fmt: skip


@inner
def _sky(grid: Any, at: Any) -> Any:
    return np.int64(grid.light[at]) >> 4


@inner
def _lamp(grid: Any, at: Any) -> Any:
    return np.int64(grid.light[at]) & 15


@inner
def _offer(grid: Any, opacity: Any, at: Any, sky: Any, lamp: Any) -> bool:
    """Spreads light to a cell; returns whether it became brighter."""
    taken: Any = np.int64(opacity[grid.cells[at]])
    before = np.int64(grid.light[at])
    sky, lamp = max(sky - taken, before >> 4), max(lamp - taken, before & 15)
    after = sky << 4 | lamp
    if after != before:
        grid.light[at] = after
        return True
    return False


@inner
def _start(grid: Any, emission: Any, x0: int, x1: int, z0: int, z1: int, y0: int, y1: int) -> None:
    """Resets the cells of a region to the light that they emit."""
    for x in range(x0, x1):
        for z in range(z0, z1):
            column = x * grid.deep + z
            open_from = grid.heights[column]
            for y in range(y0, y1):
                at = column * grid.tall + y
                sky = 15 if y >= open_from else 0
                grid.light[at] = sky << 4 | np.int64(emission[grid.cells[at]])


@inner
def _is_source(grid: Any, opacity: Any, at: int) -> bool:
    """Whether a cell has light that a neighbour lacks."""
    light = np.int64(grid.light[at])
    if light == 0:
        return False
    sky, lamp = light >> 4, light & 15
    row = grid.deep * grid.tall
    for step in (-row, row, -grid.tall, grid.tall, -1, 1):
        to = np.int64(grid.light[at + step])
        if (to >> 4 < sky - 1 or to & 15 < lamp - 1) and opacity[grid.cells[at + step]] < 15:
            return True
    return False


@inner
def _spread(grid: Any, opacity: Any, queue: Any, tail: int) -> None:
    """Spreads light from the cells in the queue until nothing becomes brighter."""
    mask = len(queue) - 1
    head = 0
    row = grid.deep * grid.tall
    while head < tail:
        at = np.int64(queue[head & mask])
        head += 1
        sky, lamp = _sky(grid, at), _lamp(grid, at)
        for step in (-1, 1, -grid.tall, grid.tall, -row, row):
            # No light enters the border: it absorbs all light.
            if _offer(grid, opacity, at + step, sky, lamp):
                queue[tail & mask] = at + step
                tail += 1


@kernel
def relight(
    counted: Any, book: Any, x0: int, x1: int, z0: int, z1: int, y0: int, y1: int, room: Any
) -> None:
    """Recomputes the light of a region of cells; the light around it must be correct.

    Args:
        counted: the box of blocks.
        book: of the appearances.
        x0: first cell, in cells of the box with its border; x1 is exclusive. All are within the
            border.
        x1: see x0.
        z0: see x0.
        z1: see x0.
        y0: see x0.
        y1: see x0.
        room: ``(2^k,)`` int32, workspace: longer than the number of cells of the box.
    """
    grid, opacity, queue = bare_grid(counted), bare(book.opacity), bare(room)
    _start(grid, bare(book.emission), x0, x1, z0, z1, y0, y1)
    tail = 0
    for x in range(max(x0 - 1, 1), min(x1 + 1, grid.wide - 1)):
        for z in range(max(z0 - 1, 1), min(z1 + 1, grid.deep - 1)):
            for y in range(max(y0 - 1, 1), min(y1 + 1, grid.tall - 1)):
                at = (x * grid.deep + z) * grid.tall + y
                if _is_source(grid, opacity, at):
                    queue[tail] = at
                    tail += 1
    _spread(grid, opacity, queue, tail)
    # Referenced last: bare arrays do not keep their memory alive.
    room[0] = len(counted.light) + len(book.opacity)
