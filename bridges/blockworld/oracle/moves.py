"""The moves that skills are made of: walking, digging, using a block, clicking on a screen."""

from __future__ import annotations

from math import hypot
from typing import Any

import numpy as np

from bridges.blockworld.oracle.paths import BLOCK, BOX, GOAL, OPEN, find_way, straight
from bridges.blockworld.oracle.sights import crosshair, nearest_blocks, visible_point
from bridges.blockworld.oracle.view import LEAVES_ONLY, STAY, Move, View, best_tool, middle, tolls
from bridges.blockworld.rules.blocks import FORM, LEAVES, PLANT, SOLID
from bridges.blockworld.rules.screen import DEGREES_PER_CELL
from bridges.blockworld.rules.world import (
    ATTACK,
    BACK,
    FORWARD,
    HEIGHT,
    HOTBAR,
    INVENTORY,
    JUMP,
    LEFT,
    NO_SCREEN,
    RIGHT,
    SIZE,
    SNEAK,
    SPRINT,
    USE,
)

ARM = 4.3
"""Reach in blocks for digging and using; a little less than the hand's."""
_LEVEL = 25.0
"""Maximum degrees of a look up or down while walking."""
_HELD = 0.02
"""Blocks per tick: a walking player that is slower is blocked."""
_TAKE_OFF = 4.0
"""Ticks before a step, at the current speed, at which to jump."""
_SETTLED = 8.0
"""Tolerance of a look in degrees."""
_NEAR_ENOUGH = 2.2
"""Distance in blocks from the eyes within which the expert does not approach further."""
_CLICK = 0.3
"""Tolerance of the cursor in cells from the middle of a cell."""


def goals(count: int) -> Any:
    """Returns an array for some goals."""
    return np.zeros(count, GOAL)


def around(
    x: float, y: float, z: float, reach: float, *, below: float = 2.2, above: float = 1.5
) -> tuple[Any, ...]:
    """Returns the goal to come near a point: feet from ``below`` it to ``above`` it."""
    return (BOX, x, x, z, z, y - below, y + above, reach, 0)


def beside(x0: float, z0: float, x1: float, z1: float, reach: float) -> tuple[Any, ...]:
    """Returns the goal to come near a rectangle, at any height."""
    return (BOX, x0, x1, z0, z1, 0.0, float(HEIGHT), reach, 0)


def higher(y: float) -> tuple[Any, ...]:
    """Returns the goal to stand at ``y`` or higher, anywhere."""
    return (BOX, 0.0, float(SIZE), 0.0, float(SIZE), y, float(HEIGHT), 0.0, 0)


def before_block(at: int, *, below: float = 3.0, above: float = 2.0) -> tuple[Any, ...]:
    """Returns the goal to stand where a block is within reach."""
    x, y, z = middle(at)
    return (BLOCK, x, x, z, z, y - below - 0.5, y + above, ARM - 0.3, at)


OPEN_GROUND = (OPEN, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0)
"""The goal to stand on bare ground under the open sky."""


def any_of(*each: tuple[Any, ...]) -> Any:
    """Returns goals in the form that the search takes."""
    return np.array(list(each), GOAL)


def find_blocks(v: View, wanted: Any, *, sky: bool = False) -> list[int]:
    """Returns the indices of the nearest blocks that are set in a table of uint8 by block.

    With ``sky`` those that are open to the sky, unless there are none.
    """
    found = v.desk.found
    count = nearest_blocks(v.worlds, v.row, wanted, sky, found)
    if sky and count == 0:
        count = nearest_blocks(v.worlds, v.row, wanted, False, found)
    return found[:count].tolist()  # type: ignore[no-any-return]


def way(v: View, where: Any) -> tuple[list[int], bool]:
    """Returns the first cells of the way to the cheapest of some goals, and whether it is complete.

    Leaves are dug away wherever that is faster; other blocks only if there is no other way.
    """
    path = v.desk.path
    count = find_way(v.worlds, v.row, where, LEAVES_ONLY, v.desk.work, path)
    if count < 0:
        table = tolls(tuple(v.items[:HOTBAR]))
        count = find_way(v.worlds, v.row, where, table, v.desk.work, path)
    return path[: min(abs(count), len(path))].tolist(), count > 0


def walk(v: View, where: Any) -> Move | None:
    """Returns the move towards the cheapest of some goals; None in a cell that fulfils one.

    If there is no way, it goes as near as possible.
    """
    cells, found = way(v, where)
    if len(cells) > 1:
        return follow(v, cells)
    return None if found else STAY


def follow(v: View, cells: list[int]) -> Move:
    """Returns the move along a way, whose first cell is the player's own."""
    here, ahead = cells[0], cells[1]
    y = here % HEIGHT
    rise = ahead % HEIGHT - y
    for at in _in_the_way(here, ahead, rise):
        if SOLID[v.blocks[at]]:
            return dig(v, at)
    target = ahead
    if rise == 0:
        for cell in cells[2:]:
            x, _, z = middle(cell)
            if cell % HEIGHT != y or not straight(v.worlds, v.row, x, z, y):
                break
            target = cell
    x, _, z = middle(target)
    jump = rise > 0 and _gap(v, ahead) < 0.4 + _TAKE_OFF * hypot(v.w["vx"], v.w["vz"])
    return steer(v, x, z, jump=jump, run=len(cells) > 3)


def _in_the_way(here: int, ahead: int, rise: int) -> tuple[int, ...]:
    """Cells that have to be free for a step, in the order in which to dig them."""
    if here // HEIGHT == ahead // HEIGHT:
        return (ahead,) if rise < 0 else ()
    if rise > 0:
        return here + 2, ahead + 1, ahead
    return ahead - rise + 1, ahead - rise


def _gap(v: View, cell: int) -> float:
    """Distance from the player's body to a column."""
    x, _, z = middle(cell)
    return max(abs(x - v.x), abs(z - v.z)) - 0.8


def steer(v: View, x: float, z: float, *, jump: bool = False, run: bool = True) -> Move:
    """Returns the move straight towards a point."""
    _, yaw = v.turn_to(x, v.eye, z)
    away = hypot(x - v.x, z - v.z)
    if away < 0.05:
        yaw = 0.0
    keys = legs(yaw)
    if keys & FORWARD and run and away > 1.2:
        keys |= SPRINT
    if jump or v.in_water or stuck(v):
        keys |= JUMP
    level = -v.pitch if abs(v.pitch) > _LEVEL else 0.0
    return Move(keys, level, yaw)


def legs(yaw: float) -> int:
    """Returns the keys for walking in a direction so many degrees to the right of the look."""
    side = RIGHT if yaw > 0.0 else LEFT
    octant = int((abs(yaw) + 22.5) // 45.0)
    return (FORWARD, FORWARD | side, side, BACK | side, BACK)[octant]


def stuck(v: View) -> bool:
    """True if something on the ground blocks the player in its direction."""
    if not v.before & FORWARD or not v.on_ground:
        return False
    return hypot(float(v.w["vx"]), float(v.w["vz"])) < _HELD


def centre(v: View) -> Move:
    """Returns the move to the middle of the player's own cell."""
    x, z = int(v.x) + 0.5, int(v.z) + 0.5
    if hypot(x - v.x, z - v.z) < 0.15:
        return STAY
    return steer(v, x, z, run=False)


def dig(v: View, at: int) -> Move:
    """Returns the move that digs a block in reach, or what is in front of it."""
    keys = v.slot_key(best_tool(v.items, v.selected, int(v.blocks[at])))
    x, y, z, away = visible_point(v.worlds, v.row, at, ARM)
    if away < 0.0:
        x, y, z = middle(at)
    pitch, yaw = v.turn_to(x, y, z)
    creature, aimed = crosshair(v.worlds, v.row)
    if creature >= 0 and aimed == at:
        return Move(keys | v.press(ATTACK), pitch, yaw)
    if aimed == at:
        return Move(keys | ATTACK)
    return Move(keys | _brush(v, aimed) | _nearer(pitch, yaw, away), pitch, yaw)


def _nearer(pitch: float, yaw: float, away: float) -> int:
    """The key that walks towards a point almost looked at: it looks larger from nearby.

    A layout with coarse turns may not be able to aim at it more closely by turning.
    """
    settled = abs(pitch) < _SETTLED and abs(yaw) < _SETTLED
    return FORWARD if settled and away > _NEAR_ENOUGH else 0


def _brush(v: View, aimed: int) -> int:
    """The key that removes the plants and leaves that the player looks at, if any."""
    if aimed >= 0 and (FORM[v.blocks[aimed]] == PLANT or v.blocks[aimed] in LEAVES):
        return ATTACK
    return 0


def in_sight(v: View, at: int) -> bool:
    """True if a block is within reach from the player's position."""
    return bool(visible_point(v.worlds, v.row, at, ARM)[3] >= 0.0)


def use(v: View, at: int) -> Move:
    """Returns the move that uses a block in reach."""
    x, y, z, away = visible_point(v.worlds, v.row, at, ARM)
    if away < 0.0:
        x, y, z = middle(at)
    pitch, yaw = v.turn_to(x, y, z)
    _, aimed = crosshair(v.worlds, v.row)
    if aimed == at:
        return Move(v.press(USE))
    settled = abs(pitch) < _SETTLED and abs(yaw) < _SETTLED
    return Move((_brush(v, aimed) if settled else 0) | _nearer(pitch, yaw, away), pitch, yaw)


def work_at(v: View, blocks: list[int], *, below: float = 3.0, above: float = 2.0) -> int | Move:
    """Returns the first of some blocks that is in reach, or the move towards one of them."""
    for at in blocks if v.on_ground or v.in_water else ():
        if in_sight(v, at) and -above <= at % HEIGHT + 0.5 - v.y <= below + 1.0:
            return at
    step = walk(v, any_of(*(before_block(at, below=below, above=above) for at in blocks)))
    return centre(v) if step is None else step


# screens ----------------------------------------------------------------------------------------


def close(v: View) -> Move:
    """Returns the move that closes a screen."""
    return Move(v.press(INVENTORY)) if v.screen != NO_SCREEN else STAY


def click(v: View, column: int, row: int, key: int = ATTACK, *, shift: bool = False) -> Move:
    """Returns the move that clicks on a cell of the screen, or moves the cursor there."""
    dx = column + 0.5 - float(v.w["cursor_x"])
    dy = row + 0.5 - float(v.w["cursor_y"])
    if abs(dx) > _CLICK or abs(dy) > _CLICK:
        return Move(0, dy * DEGREES_PER_CELL, dx * DEGREES_PER_CELL)
    return Move(v.press(key) | (SNEAK if shift else 0))


def cell_of(slot: int) -> tuple[int, int]:
    """Returns column and row of an inventory slot on a screen."""
    if slot < HOTBAR:
        return slot, 6
    return (slot - HOTBAR) % HOTBAR, 3 + (slot - HOTBAR) // HOTBAR
