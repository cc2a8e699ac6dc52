"""The search for a way: A* over the cells in which one can stand, compiled.

A node is the cell of the feet, by its index in ``blocks``. Steps lead to the eight neighbouring
columns: level, one block up (a jump), up to three down, through water, and, at a cost for each kind
of block, through blocks that can be dug away. Costs are in tenths of a step.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bridges.blockworld.compiled import World, inner, kernel
from bridges.blockworld.oracle.sights import block_point
from bridges.blockworld.rules.blocks import CACTUS, LAVA, SOLID, WATER
from bridges.blockworld.rules.world import BLOCKS, HEIGHT, SIZE

STEP, DIAGONAL, RISE, FALL, SWIM, HARM = 10, 14, 8, 2, 20, 60
"""Costs: of a step, a diagonal step, a block up or down, a cell of water, a cell near danger."""
MOST_DOWN = 3
"""Maximum blocks of a step down: a deeper fall causes damage."""
MOST_CELLS = 4000
"""Cells that the search visits before it stops."""
PATH = 24
"""Cells of a way that are returned, the first ones."""

BOX, BLOCK, OPEN = range(3)
"""Kinds of goals: a cell within reach of a box, one from which a block is visible, one under the
open sky where nothing grows."""
GOAL = np.dtype(
    [
        ("kind", "i8"),
        ("x0", "f8"),  # the box, in blocks; of a block its middle
        ("x1", "f8"),
        ("z0", "f8"),
        ("z1", "f8"),
        ("y0", "f8"),  # lowest and highest feet
        ("y1", "f8"),
        ("reach", "f8"),  # horizontally, from the middle of a cell; of a block from the eyes
        ("at", "i8"),  # of a block: where it lies
    ],
    align=True,
)

_QUEUE = 1 << 15
_NODE_BITS = 17
WORK = np.dtype(
    [
        ("number", "i8"),  # of the search; marks visited cells
        ("size", "i8"),
        ("seen", "i4", (BLOCKS,)),
        ("done", "i4", (BLOCKS,)),
        ("cost", "i4", (BLOCKS,)),
        ("came", "i4", (BLOCKS,)),
        ("queue", "i8", (_QUEUE,)),  # estimate and node in one number, a binary heap
    ],
    align=True,
)
"""Work space of one search at a time."""
Work: TypeAlias = Any

_EAST, _SOUTH = SIZE * HEIGHT, HEIGHT
_SIDES = np.array([_EAST, -_EAST, _SOUTH, -_SOUTH])
_EYES = 1.62


@inner
def _push(work: Work, entry: int) -> None:
    n = work.size
    if n >= _QUEUE:
        return
    work.size = n + 1
    while n > 0:
        parent = (n - 1) >> 1
        if work.queue[parent] <= entry:
            break
        work.queue[n] = work.queue[parent]
        n = parent
    work.queue[n] = entry


@inner
def _pop(work: Work) -> int:
    first = work.queue[0]
    work.size -= 1
    last, size, n = work.queue[work.size], work.size, 0
    while True:
        child = 2 * n + 1
        if child >= size:
            break
        if child + 1 < size and work.queue[child + 1] < work.queue[child]:
            child += 1
        if work.queue[child] >= last:
            break
        work.queue[n] = work.queue[child]
        n = child
    work.queue[n] = last
    return first  # type: ignore[no-any-return]


@inner
def _toll(w: World, tolls: Any, at: int) -> int:
    """Returns the cost of a cell that is not empty; negative if one cannot be there."""
    block = int(w.blocks[at])
    if block == LAVA:
        return -1
    return int(tolls[block]) if SOLID[block] else 0


@inner
def carries(w: World, at: int) -> bool:
    """True if one can stand on a block without damage."""
    block = int(w.blocks[at])
    return SOLID[block] != 0 and block != CACTUS


@inner
def _arrive(w: World, tolls: Any, at: int, beside: int) -> tuple[int, int]:
    """Returns the cell that a step leads to, and the cost; -1 for none.

    Args:
        w: the world.
        tolls: by block, the cost of digging it away; negative for never.
        at: cell where the step begins.
        beside: cell of the same height in the column of its end.
    """
    y = at % HEIGHT
    best, least = -1, 1 << 30
    feet, head = _toll(w, tolls, beside), _toll(w, tolls, beside + 1)
    if feet >= 0 and head >= 0:
        if w.blocks[beside] == WATER:
            best, least = beside, feet + head + SWIM
        elif carries(w, beside - 1):
            best, least = beside, feet + head
        else:
            for down in range(1, min(MOST_DOWN, y - 2) + 1):
                cell = beside - down
                if SOLID[w.blocks[cell]] or w.blocks[cell] == LAVA:
                    break
                if w.blocks[cell] == WATER or carries(w, cell - 1):
                    best, least = cell, feet + head + FALL * down
                    break
    if y + 3 < HEIGHT and carries(w, beside):
        over = _toll(w, tolls, at + 2)
        feet, head = _toll(w, tolls, beside + 1), _toll(w, tolls, beside + 2)
        if over >= 0 and feet >= 0 and head >= 0 and over + feet + head + RISE < least:
            best, least = beside + 1, over + feet + head + RISE
    return best, least


@inner
def near_harm(w: World, at: int) -> bool:
    """True if a cactus or lava is beside a cell, or lava below it."""
    for side in range(4):
        beside = at + _SIDES[side]
        for cell in range(beside - 1, beside + 2):
            if w.blocks[cell] == LAVA or (w.blocks[cell] == CACTUS and cell >= beside):
                return True
    return w.blocks[at - 1] == LAVA  # type: ignore[no-any-return]


@inner
def start_cell(w: World) -> int:
    """Returns the cell in which the player stands, or into which it falls or swims up."""
    x, z = w.x, w.z
    y = min(max(int(np.floor(w.y + 0.01)), 1), HEIGHT - 4)
    best, away = (int(x) * SIZE + int(z)) * HEIGHT + y, 1e9
    if w.on_ground and not carries(w, best - 1):
        for corner in range(4):
            i = int(x + (0.29 if corner & 1 else -0.29))
            k = int(z + (0.29 if corner & 2 else -0.29))
            cell = (i * SIZE + k) * HEIGHT + y
            far = abs(i + 0.5 - x) + abs(k + 0.5 - z)
            if carries(w, cell - 1) and not SOLID[w.blocks[cell]] and far < away:
                best, away = cell, far
    while best % HEIGHT > 1 and not SOLID[w.blocks[best - 1]] and w.blocks[best] != WATER:
        best -= 1
    while w.blocks[best] == WATER and w.blocks[best + 1] == WATER:
        best += 1
    return best


@inner
def _estimate(goals: Any, at: int) -> int:
    """Returns a lower bound of the cost from a cell to the nearest goal."""
    column, y = at // HEIGHT, at % HEIGHT
    x, z = column // SIZE + 0.5, column % SIZE + 0.5
    least = 1 << 20
    for n in range(len(goals)):
        goal = goals[n]
        if goal.kind == OPEN:
            return 0
        dx = max(goal.x0 - x, x - goal.x1, 0.0)
        dz = max(goal.z0 - z, z - goal.z1, 0.0)
        flat = max(np.sqrt(dx * dx + dz * dz) - goal.reach, 0.0)
        up = 0.0
        if goal.kind == BOX:
            up = max(goal.y0 - y, 0.0)
        cost = int(max(flat, up) * STEP + up * RISE)
        least = min(least, cost)
    return least


@inner
def _reached(w: World, goals: Any, at: int) -> bool:
    column, y = at // HEIGHT, at % HEIGHT
    x, z = column // SIZE + 0.5, column % SIZE + 0.5
    for n in range(len(goals)):
        goal = goals[n]
        if goal.kind == OPEN:
            if w.blocks[at] == 0 and int(w.heights[column]) == y and carries(w, at - 1):
                return True
            continue
        if y < goal.y0 or y > goal.y1:
            continue
        dx = max(goal.x0 - x, x - goal.x1, 0.0)
        dz = max(goal.z0 - z, z - goal.z1, 0.0)
        if dx * dx + dz * dz > goal.reach * goal.reach:
            continue
        if goal.kind == BOX:
            return True
        if at == goal.at or at + 1 == goal.at:
            continue
        _, _, _, distance = block_point(w, x, y + _EYES, z, goal.at, goal.reach)
        if distance >= 0.0:
            return True
    return False


@inner
def _consider(w: World, work: Work, goals: Any, come: int, at: int, cost: int) -> None:
    """Adds a cell to the queue if there was no cheaper way to it."""
    if near_harm(w, at):
        cost += HARM
    if work.seen[at] == work.number and work.cost[at] <= cost:
        return
    work.seen[at] = work.number
    work.cost[at], work.came[at] = cost, come
    _push(work, ((cost + _estimate(goals, at)) << _NODE_BITS) | at)


@inner
def _expand(w: World, work: Work, goals: Any, tolls: Any, at: int) -> None:
    cost, level = int(work.cost[at]), 0
    for side in range(4):
        beside = at + _SIDES[side]
        cell, toll = _arrive(w, tolls, at, beside)
        if cell >= 0:
            _consider(w, work, goals, at, cell, cost + STEP + toll)
            if cell == beside and toll == 0:
                level |= 1 << side
    for east in range(2):
        for south in range(2, 4):
            if level >> east & 1 and level >> south & 1:
                beside = at + _SIDES[east] + _SIDES[south]
                cell, toll = _arrive(w, tolls, at, beside)
                if cell == beside and toll == 0:
                    _consider(w, work, goals, at, cell, cost + DIAGONAL)
    below = at - 1
    if below % HEIGHT > 1 and SOLID[w.blocks[below]] and carries(w, below - 1):
        toll = _toll(w, tolls, below)
        if toll >= 0:
            _consider(w, work, goals, at, below, cost + STEP + toll)


@inner
def search(w: World, work: Work, goals: Any, tolls: Any) -> tuple[int, bool]:
    """Returns the goal that is cheapest to reach, and True; else the cell nearest to one.

    Afterwards ``came`` leads back to the start, whose entry is itself.
    """
    work.number += 1
    work.size = 0
    start = start_cell(w)
    work.seen[start] = work.number
    work.cost[start], work.came[start] = 0, start
    nearest, least = start, _estimate(goals, start)
    _push(work, (least << _NODE_BITS) | start)
    looked = 0
    while work.size > 0 and looked < MOST_CELLS:
        at = int(_pop(work) & ((1 << _NODE_BITS) - 1))
        if work.done[at] == work.number:
            continue
        work.done[at] = work.number
        looked += 1
        if _reached(w, goals, at):
            return at, True
        left = _estimate(goals, at)
        if left < least:
            nearest, least = at, left
        _expand(w, work, goals, tolls, at)
    return nearest, False


@kernel
def find_way(worlds: Any, k: int, goals: Any, tolls: Any, works: Any, path: Any) -> int:
    """Writes the first cells of the cheapest way from the player to the nearest goal.

    Args:
        worlds: the worlds, of type ``WORLD``.
        k: which of them.
        goals: the goals, of type ``GOAL``; without goals nothing is found.
        tolls: by block, int32, the cost of digging it away; negative for never.
        works: work space, one record of type ``WORK``.
        path: output, int32; the cell of the player comes first.

    Returns:
        The number of cells of the whole way; negative if it only leads as near as possible; 0
        without goals.
    """
    if len(goals) == 0:
        return 0
    work = works[0]
    end, found = search(worlds[k], work, goals, tolls)
    count, at = 1, end
    while work.came[at] != at:
        at = int(work.came[at])
        count += 1
    at = end
    for n in range(count - 1, -1, -1):
        if n < len(path):
            path[n] = at
        at = int(work.came[at])
    return count if found else -count


@inner
def _free(w: World, at: int) -> bool:
    """True if one can walk over a cell without a search."""
    feet, head = int(w.blocks[at]), int(w.blocks[at + 1])
    if SOLID[feet] or SOLID[head] or feet in (WATER, LAVA) or head == LAVA:
        return False
    return carries(w, at - 1)


@kernel
def straight(worlds: Any, k: int, x: float, z: float, y: int) -> bool:
    """True if one can walk straight to a point over level ground, whose cells begin at ``y``."""
    w = worlds[k]
    dx, dz = x - w.x, z - w.z
    steps = int(max(abs(dx), abs(dz)) * 4.0) + 1
    if y < 1 or y + 2 >= HEIGHT:
        return False
    before = -1
    for n in range(1, steps + 1):
        i, j = w.x + dx * n / steps, w.z + dz * n / steps
        for corner in range(4):
            p = int(i + (0.34 if corner & 1 else -0.34))
            q = int(j + (0.34 if corner & 2 else -0.34))
            if p < 1 or q < 1 or p >= SIZE - 1 or q >= SIZE - 1:
                return False
            at = (p * SIZE + q) * HEIGHT + y
            if at == before:
                continue
            before = at
            if not _free(w, at) or near_harm(w, at):
                return False
    return True
