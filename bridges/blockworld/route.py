"""The way from the player to its subject: found on the existing ground, or cut into it."""

from __future__ import annotations

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.plan import ROUTE, Plan, level
from bridges.blockworld.world import SIZE

MOST_UP, MOST_DOWN = 1, 3
"""Blocks that a step of the way may go up and down."""


@inner
def _search(p: Plan, near: int) -> int:
    """Returns a column reachable on foot at most ``near`` columns from the target, or -1.

    Breadth first over dry ground; afterwards ``came`` leads back to the player.
    """
    ground, came, queue = p.ground, p.came, p.queue
    for column in range(SIZE * SIZE):
        came[column] = -1
    start = p.player_x * SIZE + p.player_z
    came[start] = start
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        column = int(queue[head])
        head += 1
        away_x, away_z = abs(column // SIZE - p.target_x), abs(column % SIZE - p.target_z)
        if away_x <= near and away_z <= near:
            return column
        here = int(ground[column])
        for way in range(4):
            beside = column + (SIZE if way == 0 else -SIZE if way == 1 else 1 if way == 2 else -1)
            there = int(ground[beside])
            if there == 0 or came[beside] >= 0:
                continue
            if there <= here + MOST_UP and there >= here - MOST_DOWN:
                came[beside] = column
                queue[tail] = beside
                tail += 1
    return -1


@inner
def _cut(w: World, p: Plan, height: int, radius: int) -> None:
    """Cuts a straight way to the target, whose ground is level at ``height`` within ``radius``.

    It follows the ground as far as steps of one block allow, and fills water.
    """
    x, z, here = int(p.player_x), int(p.player_z), int(p.feet)
    p.keep[x * SIZE + z] |= ROUTE
    while x != p.target_x or z != p.target_z:
        left_x, left_z = int(p.target_x) - x, int(p.target_z) - z
        if abs(left_x) >= abs(left_z):
            x += 1 if left_x > 0 else -1
        else:
            z += 1 if left_z > 0 else -1
        left = max(abs(int(p.target_x) - x) - radius, 0) + max(abs(int(p.target_z) - z) - radius, 0)
        column = x * SIZE + z
        now = int(p.ground[column])
        now = min(max(now, here - 1), here + 1) if now > 0 else here
        here = min(max(now, height - left), height + left)
        level(w, p, column, here)
        p.keep[column] |= ROUTE
        for beside in (column - SIZE, column + SIZE, column - 1, column + 1):
            if p.ground[beside] > here + 1 and p.keep[beside] & ROUTE == 0:
                level(w, p, beside, here + 1)


@inner
def make_way(w: World, p: Plan, near: int, height: int, radius: int) -> None:
    """Reserves a way from the player to within ``near`` columns of the target.

    If none is found, one is cut that ends at ``height``, where the ground is level within
    ``radius`` of the target.
    """
    column = _search(p, near)
    if column < 0:
        _cut(w, p, height, radius)
        return
    while p.came[column] != column:
        p.keep[column] |= ROUTE
        column = int(p.came[column])
    p.keep[column] |= ROUTE
