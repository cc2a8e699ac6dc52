"""The view of MiniGrid's agent, computed in a fraction of the time.

MiniGrid cuts it out of the grid, rotates it and hides what is behind walls by a call for each cell,
which is most of the time of a step.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from minigrid.core.grid import Grid
from minigrid.core.world_object import Wall
from minigrid.minigrid_env import MiniGridEnv
from numpy.typing import NDArray


def quicken(env: Any) -> None:
    """Makes a game of MiniGrid compute its view here, unless it has a way of its own."""
    game = env.unwrapped
    if type(game).gen_obs_grid is MiniGridEnv.gen_obs_grid:
        game.gen_obs_grid = functools.partial(_view, game)


def _view(game: Any, agent_view_size: int | None = None) -> tuple[Any, NDArray[np.bool_]]:
    """Returns what ``MiniGridEnv.gen_obs_grid`` returns: the view, and which cells are seen."""
    size = agent_view_size or game.agent_view_size
    left, top, _, _ = game.get_view_exts(agent_view_size)
    cells = _turned(_cut(game.grid, left, top, size), size, game.agent_dir + 1)
    at = size // 2, size - 1
    seen = np.ones((size, size), np.bool_) if game.see_through_walls else _seen(cells, size, at)
    cells[at[1] * size + at[0]] = game.carrying
    view = Grid(size, size)
    view.grid = cells
    return view, seen


def _cut(grid: Any, left: int, top: int, size: int) -> list[Any]:
    """Returns the cells of a square row by row; those outside of the grid are walls."""
    wall, cells = Wall(), list[Any]()
    first, end = max(left, 0), max(min(left + size, grid.width), 0)
    for y in range(top, top + size):
        if not 0 <= y < grid.height or first >= end:
            cells += [wall] * size
            continue
        row = grid.grid[y * grid.width + first : y * grid.width + end]
        cells += [wall] * (first - left) + row + [wall] * (left + size - end)
    return cells


def _turned(cells: list[Any], size: int, quarters: int) -> list[Any]:
    """Returns the cells of a square turned to the left by some quarters, 1 to 4."""
    if quarters == 1:
        return [cell for x in reversed(range(size)) for cell in cells[x::size]]
    if quarters == 2:
        return cells[::-1]
    if quarters == 3:
        return [cell for x in range(size) for cell in cells[x::size][::-1]]
    return cells


def _seen(cells: list[Any], size: int, at: tuple[int, int]) -> NDArray[np.bool_]:
    """Returns which cells are seen from one of them, ``(x, y)``; removes the others.

    The rule of ``Grid.process_vis``: row by row away from the agent, a seen cell that is not opaque
    shows its neighbours.
    """
    seen = [False] * (size * size)
    seen[at[1] * size + at[0]] = True
    clear = [cell is None or cell.see_behind() for cell in cells]
    for y in reversed(range(size)):
        row, above = y * size, (y - 1) * size
        for xs, step in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
            for x in xs:
                if seen[row + x] and clear[row + x]:
                    seen[row + x + step] = True
                    if y > 0:
                        seen[above + x + step] = seen[above + x] = True
    for place, shows in enumerate(seen):
        if not shows:
            cells[place] = None
    return np.array(seen).reshape(size, size).T.copy()
