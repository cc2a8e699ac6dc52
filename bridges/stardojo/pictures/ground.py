"""The ground of a map, walls included: a number of an opaque tile for each tile of a layout."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo.pictures.atlas import Atlas
from bridges.stardojo.pictures.paint import Pixels, paint, table
from bridges.stardojo.rules import maps
from bridges.stardojo.rules.maps import Plan
from bridges.stardojo.rules.world import Tile

VARIANTS = 4
WIDEST, HIGHEST = 15, 9
"""A wall of an outdoor map that is no larger, with a door in its lowest row, is a house."""
_NATURE = {
    maps.WATER: "water", maps.DIRT: "dirt", maps.GRASS: "grass", maps.SAND: "sand",
    maps.STONE: "stone", maps.FLOOR: "floor", maps.WOOD: "wood",
}  # fmt: skip
_FACES = 3  # tiles of a wall that are seen above a floor
_AROUND = ((0, -1), (1, 0), (0, 1), (-1, 0), (1, -1), (1, 1), (-1, 1), (-1, -1))


def houses(plan: Plan) -> list[tuple[str, tuple[int, int, int, int], Tile]]:
    """Returns the houses of an outdoor map: where the door leads, rectangle, door."""
    found = []
    for door, to in plan.doors.items() if plan.outdoors else ():
        for x, y, w, h in plan.walls:
            below = y + h - door[1]
            if x <= door[0] < x + w and below in (0, 1) and w <= WIDEST and 2 < h <= HIGHEST:
                found.append((to.to, (x, y, w, h), door))
                break
    return found


@lru_cache(256)
def layer(atlas: Atlas, plan: Plan, theme: str) -> NDArray[np.int32]:
    """Returns the tiles of a map, ``(height, width)``."""
    kinds = _kinds(plan)
    rng = np.random.default_rng([plan.width, plan.height, 0x9A])
    variants = rng.integers(0, VARIANTS, kinds.shape)
    ranks = np.vectorize(lambda kind: _row(kind, theme)[1], otypes=[int])(kinds)
    found = np.zeros(kinds.shape, np.int32)
    for (y, x), kind in np.ndenumerate(kinds):
        over = []
        for dx, dy in _AROUND:
            at = min(max(y + dy, 0), plan.height - 1), min(max(x + dx, 0), plan.width - 1)
            over.append(str(kinds[at]) if 0 < ranks[y, x] < ranks[at] else "")
        for corner in range(4, 8):
            if over[corner - 4] or over[(corner - 3) % 4]:
                over[corner] = ""
        shaded = kind not in _DEEP and kinds[max(y - 1, 0), x] in _TALL
        key = (str(kind), theme, int(variants[y, x]), *over, shaded)
        found[y, x] = atlas.tile(key, lambda key=key: _tile(atlas.side, *key))  # type: ignore[misc]
    return found


_DEEP = ("void", "woods", "rock", "face", "skirting", "cliff")
_TALL = ("skirting", "rock", "cliff", "counter")


def _kinds(plan: Plan) -> NDArray[Any]:
    made = plan.made.T.copy()
    for _, (x, y, w, h), _ in houses(plan):
        below = made[min(y + h, plan.height - 1), x : x + w]
        made[y : y + h, x : x + w] = (
            below[below < maps.SPOT][:1] if (below < maps.SPOT).any() else 3
        )
    for y in range(plan.height - 2, -1, -1):
        special = made[y] >= maps.SPOT
        made[y, special] = made[y + 1, special]
    made[-1, made[-1] >= maps.SPOT] = maps.WALL
    cave = plan.name.startswith(("UndergroundMine", "Mine", "SkullCave", "FarmCave", "Sewer"))
    kinds = np.empty(made.shape, "U8")
    for code, name in _NATURE.items():
        kinds[made == code] = "cave" if cave and code in (maps.DIRT, maps.STONE) else name
    depth = np.full(plan.width, 99)  # rows of wall down to the next floor; many if there is none
    for y in range(plan.height - 1, -1, -1):
        wall = made[y] == maps.WALL
        depth = np.where(wall, depth + 1, 0)
        above = made[y - 1] == maps.WALL if y else np.ones(plan.width, bool)
        if cave:
            kinds[y, wall] = "rock"
        elif plan.outdoors:
            kinds[y, wall] = np.where(depth == 1, "cliff", "woods")[wall]
        else:
            kinds[y, wall] = "void"
            kinds[y, wall & (depth > 1) & (depth <= _FACES)] = "face"
            kinds[y, wall & (depth == 1)] = "skirting"
            kinds[y, wall & (depth == 1) & ~above] = "counter"
    return kinds


def _row(kind: str, theme: str) -> tuple[str, int, Any, str]:
    rows = table("shapes")["ground"]
    base, rank, marks, *always = rows.get(f"{kind}/{theme}") or rows[kind]
    return base, rank, marks, always[0] if always else ""


def _tile(side: int, kind: str, theme: str, variant: int, *around: Any) -> Pixels:
    """Paints a tile; ``around`` says which kinds overlap it from each side and corner."""
    base, _, marks, always = _row(kind, theme)
    rng = np.random.default_rng([variant, *kind.encode()])
    shapes = [f"R {base} -1 -1 18 18", always]
    for mark, count in marks:
        for _ in range(count):
            x, y = rng.uniform(1.5, 14.5, 2)
            shapes.append("; ".join(_moved(each, x, y) for each in mark.split(";")))
    for number, other in enumerate(around[:8]):
        if other:
            shapes.append(_fringe(_row(other, theme)[0], number, rng))
    image = paint("; ".join(shapes), (1, 1), side, outline=False)[..., :3]
    light = 0.97 / np.linspace(1.0, 0.9, side)  # without the shade of a sprite
    if around[8]:
        light[: side // 4] *= np.linspace(0.62, 1.0, side // 4)
    return np.minimum(np.round(image * light[:, None, None]), 255).astype(np.uint8)


def _moved(shape: str, x: float, y: float) -> str:
    kind, name, *numbers = shape.split()
    values = np.array(numbers, float)
    skip = 1 if kind in "lL" else 0
    if kind in "rRoOaA":
        values[:2] += (x, y)
    else:
        values[skip::2] += x
        values[skip + 1 :: 2] += y
    return f"{kind} {name} {' '.join(f'{v:.2f}' for v in values)}"


def _fringe(base: str, number: int, rng: np.random.Generator) -> str:
    """The edge of a neighbor that overlaps: a wavy strip at a side, or a spot in a corner."""
    dark = f"{base}-"
    if number >= 4:
        x, y = ((16, 0), (16, 16), (0, 16), (0, 0))[number - 4]
        return f"O {dark} {x} {y} 3.5 3.5; O {base} {x} {y} 2.7 2.7"
    along = np.linspace(-1, 17, 9)
    deep = 2.6 + rng.uniform(-0.8, 0.8, 9)
    deep[[0, 1, -2, -1]] = 2.6
    found = []
    for name, extra in ((dark, 0.8), (base, 0.0)):
        d = deep + extra
        xs, ys = ((along, d), (16 - d, along), (along, 16 - d), (d, along))[number]
        ends = (
            ((17, -1), (-1, -1)),
            ((17, 17), (17, -1)),
            ((17, 17), (-1, 17)),
            ((-1, 17), (-1, -1)),
        )
        points = [*zip(xs, ys, strict=True), *ends[number]]
        found.append(f"P {name} " + " ".join(f"{a:.2f} {b:.2f}" for a, b in points))
    return "; ".join(found)
