"""The classes of what the eye can see, and what is in between.

A policy that reads classes learns faster the fewer there are, so blocks with the same use share a
class; sheep keep their coats, which distinguish one scene from another. Arrows in flight have no
class: they are too small and exist too briefly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridges.blockworld.compiled import World, inner
from bridges.blockworld.rules import blocks as b
from bridges.blockworld.rules.species import COATS, SHEEP, TALL
from bridges.blockworld.rules.world import HEIGHT, SIZE

CLASSES: tuple[str, ...] = (
    "nothing",  # sky, the edge of the world, too far away, or not visible
    "ground",
    "stone",
    "log",
    "leaves",
    "plant",
    "cactus",
    "water",
    "lava",
    "coal_ore",
    "iron_ore",
    "precious_ore",
    "building",
    "table",
    "furnace",
    "chest",
    "bed",
    "torch",
    "drop",
    *(f"sheep_{coat}" for coat in COATS),
    "cow",
    "pig",
    "chicken",
    "zombie",
    "skeleton",
    "spider",
)
"""The classes: the meaning of an ``id``. Their order is fixed: recorded data refers to it."""

DROP_CLASS = CLASSES.index("drop")
FIRST_SHEEP = CLASSES.index("sheep_white")
_BEFORE_COW = CLASSES.index("cow") - (SHEEP + 1)

_MEMBERS: dict[str, tuple[int, ...]] = {
    "ground": (
        *(b.DIRT, b.GRASS_BLOCK, b.SAND, b.GRAVEL, b.SNOW_BLOCK, b.SANDSTONE),
        *(b.TERRACOTTA, b.ICE, b.CLAY),
    ),
    "stone": (b.BEDROCK, b.STONE, b.COBBLESTONE, b.MOSSY_COBBLESTONE, b.OBSIDIAN),
    "log": b.LOGS,
    "leaves": b.LEAVES,
    "plant": (b.TALL_GRASS, b.FLOWER, b.DEAD_BUSH, b.MUSHROOM, b.PUMPKIN),
    "cactus": (b.CACTUS,),
    "water": (b.WATER,),
    "lava": (b.LAVA,),
    "coal_ore": (b.COAL_ORE,),
    "iron_ore": (b.IRON_ORE,),
    "precious_ore": (b.GOLD_ORE, b.DIAMOND_ORE),
    "building": (b.OAK_PLANKS, b.GLASS, b.WOOL, b.BOOKSHELF, b.HAY_BALE),
    "table": (b.CRAFTING_TABLE,),
    "furnace": (b.FURNACE, b.LIT_FURNACE),
    "chest": (b.CHEST,),
    "bed": (b.BED,),
    "torch": (b.TORCH,),
}
CLASS_OF = np.zeros(b.MAX_BLOCKS, np.uint8)
"""Class of each block; ``nothing`` for air and edge."""
for _name, _blocks in _MEMBERS.items():
    CLASS_OF[list(_blocks)] = CLASSES.index(_name)
CLASS_OF.flags.writeable = False

SEEN = CLASS_OF > 0
"""True if a ray ends at each block."""
OPAQUE = np.array([form == b.CUBE for form in b.FORM])
"""True if each block hides what is behind it: plants, liquids and glass do not."""
OPAQUE[[b.GLASS, b.EDGE]] = False
OPAQUE.flags.writeable = SEEN.flags.writeable = False

SIGHT = 32.0
"""Range in blocks within which creatures are visible unless privileged."""
# Half of the field of view, as tangents: 100 degrees across, 70 up and down, a screen of 16:9.
ACROSS, UP_AND_DOWN = 1.191754, 0.700208

FAR = 1e9


@inner
def creature_class(w: World, n: int) -> int:
    """Returns the class of creature ``n``; a sheep's is that of its coat."""
    kind = int(w.c_kind[n])
    if kind == SHEEP:
        return FIRST_SHEEP + int(w.c_coat[n])
    return _BEFORE_COW + kind


@inner
def crossing(place: float, direction: float) -> tuple[float, float]:
    """Returns the distance along a ray to the next block border, and between borders."""
    if direction == 0.0:
        return FAR, FAR
    cell, each = np.floor(place), 1.0 / direction
    if direction > 0.0:
        return (cell + 1.0 - place) * each, each
    return (cell - place) * each, -each


@inner
def first_block(
    w: World,
    eye: tuple[float, float, float],
    ray: tuple[float, float, float],
    reach: float,
    stops: Any,
    through: int,
) -> tuple[int, float]:
    """Returns the first block along a ray and its distance; ``(AIR, reach)`` for none.

    The block in which the eye is does not count. The walk goes from column to column, and into one
    only where the ray passes below its top: heights fit into the cache, blocks do not.

    Args:
        w: the world, whose edge ends the ray.
        eye: where the ray begins; must be inside the edge.
        ray: its direction; distances are counted in its length.
        reach: maximum distance.
        stops: by block, whether it ends the ray.
        through: a block that does not stop it: the liquid in which the eye is.
    """
    blocks, heights, (dx, dy, dz) = w.blocks, w.heights, ray
    column, own = int(np.floor(eye[0])) * SIZE + int(np.floor(eye[2])), int(np.floor(eye[1]))
    next_x, each_x = crossing(eye[0], dx)
    next_z, each_z = crossing(eye[2], dz)
    step_x = SIZE if dx > 0.0 else -SIZE
    step_z = 1 if dz > 0.0 else -1
    entered, y, first = 0.0, eye[1], True
    while True:
        height = int(heights[column])
        if height == HEIGHT or (dy >= 0.0 and y >= HEIGHT - 1):
            break
        left = min(next_x, next_z, reach)
        end = eye[1] + dy * left
        if min(y, end) < height:
            cell, last = int(np.floor(y)), int(np.floor(end))
            step = 1 if last > cell else -1
            inside = cell
            while True:
                if 0 <= inside < height and not (first and inside == own):
                    block = int(blocks[column * HEIGHT + inside])
                    if stops[block] and block != through:
                        border = float(inside if step > 0 else inside + 1)
                        return block, entered if inside == cell else (border - eye[1]) / dy
                if inside == last:
                    break
                inside += step
        if left >= reach:
            break
        first = False
        entered, y = left, end
        if next_x <= next_z:
            column += step_x
            next_x += each_x
        else:
            column += step_z
            next_z += each_z
    return 0, reach


@inner
def free_way(
    w: World, eye: tuple[float, float, float], x: float, y: float, z: float, last: bool
) -> bool:
    """True if nothing opaque is between the eye and the point ``(x, y, z)`` from it.

    ``last`` says whether the point's own column counts: not for points of a block there. Equivalent
    to ``first_block``, but by column, which is faster if only that is needed.
    """
    heights = w.heights
    column = int(np.floor(eye[0])) * SIZE + int(np.floor(eye[2]))
    goal = int(np.floor(eye[0] + x)) * SIZE + int(np.floor(eye[2] + z))
    next_x, each_x = crossing(eye[0], x)
    next_z, each_z = crossing(eye[2], z)
    step_x = SIZE if x > 0.0 else -SIZE
    step_z = 1 if z > 0.0 else -1
    entered = eye[1]
    while True:
        at_goal = column == goal
        if at_goal and not last:
            return True
        left = 1.0 if at_goal else min(next_x, next_z, 1.0)
        leaves = eye[1] + y * left
        low, height = min(entered, leaves), int(heights[column])
        if low < height and _opaque_between(w, column, low, max(entered, leaves), height):
            return False
        # A rounding error may miss the goal at a corner: the walk ends at the point anyway.
        if left >= 1.0:
            return True
        entered = leaves
        if next_x <= next_z:
            column += step_x
            next_x += each_x
        else:
            column += step_z
            next_z += each_z


@inner
def _opaque_between(w: World, column: int, low: float, high: float, height: int) -> bool:
    """True if a column has an opaque block between two heights; its own height is given."""
    top = min(int(np.floor(high)), height - 1)
    for cell in range(max(int(np.floor(low)), 0), top + 1):
        if OPAQUE[w.blocks[column * HEIGHT + cell]]:
            return True
    return False


@inner
def box_distance(
    x: float, y: float, z: float, half: float, half_tall: float, per: tuple[float, float, float]
) -> float:
    """Returns the distance along a ray to a box, ``FAR`` if it misses; 0 from inside.

    ``x``, ``y`` and ``z`` are the box's middle relative to the start of the ray, ``half`` and
    ``half_tall`` half its width and height, ``per`` one over the ray's direction (finite).
    """
    low, high = (x - half) * per[0], (x + half) * per[0]
    near, far = max(0.0, min(low, high)), max(low, high)
    low, high = (y - half_tall) * per[1], (y + half_tall) * per[1]
    near, far = max(near, min(low, high)), min(far, max(low, high))
    low, high = (z - half) * per[2], (z + half) * per[2]
    near, far = max(near, min(low, high)), min(far, max(low, high))
    return near if near <= far else FAR


@inner
def per(direction: float) -> float:
    """Returns one over a component of a direction, large but finite for zero."""
    return 1.0 / direction if abs(direction) > 1e-9 else 1e9


@inner
def liquid_at(w: World, x: float, y: float, z: float) -> int:
    """Returns the liquid that a point is in, air if none."""
    at = int(np.floor(y))
    if at < 0 or at >= HEIGHT:
        return 0
    block = int(w.blocks[(int(np.floor(x)) * SIZE + int(np.floor(z))) * HEIGHT + at])
    return block if b.FORM[block] == b.LIQUID else 0


@inner
def within_edge(x: float, z: float) -> bool:
    """True if a point is inside the world's edge: a ray may begin there."""
    return 1.0 <= x < SIZE - 1.0 and 1.0 <= z < SIZE - 1.0


@inner
def in_view(right: float, up: float, ahead: float, down_sine: float, down_cosine: float) -> bool:
    """True if a point is in the field of view, from its offset to the eye.

    ``right`` and ``ahead`` are level, along the yaw; the pitch is given by its sine and cosine.
    """
    depth = ahead * down_cosine - up * down_sine
    rise = ahead * down_sine + up * down_cosine
    return depth > 0.0 and abs(right) <= depth * ACROSS and abs(rise) <= depth * UP_AND_DOWN


@inner
def in_sight(w: World, eye: tuple[float, float, float], n: int, view: Any) -> bool:
    """True if the player sees creature ``n``: its head, its middle or its feet.

    ``view`` are the sines and cosines of yaw and pitch, see ``looks``.
    """
    yaw_sine, yaw_cosine, pitch_sine, pitch_cosine = view
    tall = float(TALL[int(w.c_kind[n])])
    x, z = float(w.c_x[n]) - eye[0], float(w.c_z[n]) - eye[2]
    ahead, right = -x * yaw_sine + z * yaw_cosine, -x * yaw_cosine - z * yaw_sine
    for part in range(3):
        up = float(w.c_y[n]) + tall * (0.9 - 0.4 * part) - eye[1]
        shows = in_view(right, up, ahead, pitch_sine, pitch_cosine)
        if shows and free_way(w, eye, x, up, z, True):
            return True
    return False
