"""The layouts of all maps, read from ``data/layouts/maps.yaml``: what never changes of a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo.rules.world import Tile
from rollout.errors import UnknownNameError
from rollout.yaml12 import load_yaml

LAYOUTS = Path(__file__).parents[1] / "data" / "layouts"
WALL, WATER, DIRT, GRASS, SAND, STONE, FLOOR, WOOD, SPOT, DOOR = range(10)
"""What a tile of a layout is made of."""
_GROUNDS = {"dirt": DIRT, "grass": GRASS, "sand": SAND, "stone": STONE, "floor": FLOOR}
_GROUNDS["wood"] = WOOD
_PATCHES = {"lawn": GRASS, "soil": DIRT, "paving": STONE}
PROPERTIES = {
    WATER: "Water: True; ",
    DIRT: "Type: Dirt; Diggable: True; ",
    GRASS: "Type: Grass; ",
    SAND: "Type: Dirt; Diggable: True; ",
    STONE: "Type: Stone; ",
    FLOOR: "Type: Stone; ",
    WOOD: "Type: Wood; ",
}
"""``tile_properties`` of ``observe_v2``."""
FIRST_CAVERN = 121
"""Floors from here on are those of the Skull Cavern."""


@dataclass(frozen=True)
class Warp:
    """The destination of a tile, and its hours."""

    to: str
    tile: Tile
    opens: int = 0
    closes: int = 2600


@dataclass(frozen=True, eq=False)
class Plan:
    """A layout; ``made`` is ``(width, height)`` of what each tile is made of.

    Attributes:
        arrival: the tile of who arrives without a tile.
        troughs: tiles that hold hay.
        walls: rectangles that are walls: left, top, width, height.
    """

    name: str
    made: NDArray[np.uint8]
    outdoors: bool = False
    exits: Mapping[Tile, Warp] = field(default_factory=dict)
    doors: Mapping[Tile, Warp] = field(default_factory=dict)
    spots: Mapping[Tile, tuple[str, ...]] = field(default_factory=dict)
    bins: frozenset[Tile] = frozenset()
    furniture: Sequence[tuple[str, int, int, int, int]] = ()
    things: Sequence[tuple[str, int, int, str]] = ()
    troughs: tuple[Tile, ...] = ()
    trees: int = 0
    patches: int = 0
    arrival: Tile = (1, 1)
    open: Sequence[bytes] = ()
    walls: Sequence[tuple[int, int, int, int]] = ()

    @property
    def width(self) -> int:
        """Tiles from left to right."""
        return int(self.made.shape[0])

    @property
    def height(self) -> int:
        """Tiles from top to bottom."""
        return int(self.made.shape[1])

    def inside(self, tile: Tile) -> bool:
        """Returns True if a tile is on the map."""
        return 0 <= tile[0] < self.width and 0 <= tile[1] < self.height

    def walkable(self, tile: Tile) -> bool:
        """Returns True if the layout has ground to stand on there."""
        if 0 <= tile[0] < len(self.open) and 0 <= tile[1] < len(self.open[0]):
            return bool(self.open[tile[0]][tile[1]])
        return tile in self.exits

    def properties(self, tile: Tile) -> str:
        """The tile's ``tile_properties``."""
        return PROPERTIES.get(int(self.made[tile]), "")


def diggable(plan: Plan, tile: Tile) -> bool:
    """Returns True if a hoe can till the tile."""
    return plan.inside(tile) and plan.made[tile] in (DIRT, SAND)


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all layouts of the file."""
    return tuple(_file())


def find(text: str) -> str:
    """Returns the map that a text names: exactly, then without case and spaces, then by a part.

    Raises:
        UnknownNameError: there is none; an empty text names none.
    """
    plain, known = _plain(text), names()
    if text in known:
        return text
    if not plain:  # every name begins with it
        raise UnknownNameError("map", text, known)
    for test in (plain.__eq__, lambda each: each.startswith(plain), lambda each: plain in each):
        if found := next((each for each in known if test(_plain(each))), None):
            return found
    raise UnknownNameError("map", text, known)


def _plain(text: str) -> str:
    return text.casefold().replace(" ", "")


@cache
def plan(name: str) -> Plan:
    """Returns a layout by name; ``UndergroundMine7`` is made by ``cave`` with shape 7.

    Raises:
        UnknownNameError: there is no such map.
    """
    if name.startswith("UndergroundMine"):
        return cave(0, int(name.removeprefix("UndergroundMine")))
    if name not in _file():
        raise UnknownNameError("map", name, names())
    return _built(name, _file()[name])


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = load_yaml(LAYOUTS / "maps.yaml", ours=True)
    return found


def _pair(text: str) -> Tile:
    x, y = text.split()
    return int(x), int(y)


def _built(name: str, row: Mapping[str, Any]) -> Plan:
    width, height = row["size"]
    made = np.full((width, height), _GROUNDS[row["ground"]], np.uint8)
    if not row.get("outdoors"):
        made[[0, -1], :] = WALL
        made[:, -1] = WALL
    for patch, kind in (*_PATCHES.items(), ("walls", WALL), ("water", WATER)):
        for x, y, w, h in row.get(patch, ()):
            made[x : x + w, y : y + h] = kind
    exits = {}
    for x, y, to, there_x, there_y, tiles, *down in row.get("exits", ()):
        for n in range(tiles):
            tile = (x, y + n) if down else (x + n, y)
            exits[tile] = Warp(to, (there_x, there_y))
            way = min(max(tile[0], 0), width - 1), min(max(tile[1], 0), height - 1)
            made[way] = _GROUNDS[row["ground"]]
    doors = {
        _pair(at): Warp(to, (x, y), opens, closes)
        for at, (to, x, y, opens, closes) in row.get("doors", {}).items()
    }
    spots = {_pair(at): tuple(text.split(" ", 1)) for at, text in row.get("spots", {}).items()}
    x, y, many = row.get("troughs", (0, 0, 0))
    troughs = tuple((x + n, y) for n in range(many))
    spots |= dict.fromkeys(troughs, ("trough",))
    bins = frozenset((x, y) for x, y in row.get("bins", ()))
    for tiles, kind in ((spots, SPOT), (bins, SPOT), (doors, DOOR)):
        for tile in tiles:
            made[tile] = kind
    return finish(
        Plan(
            name,
            made,
            bool(row.get("outdoors")),
            exits,
            doors,
            spots,
            bins,
            tuple(map(tuple, row.get("furniture", ()))),
            tuple(map(tuple, row.get("things", ()))),
            troughs,
            row.get("trees", 0),
            row.get("patches", 0),
            walls=tuple(map(tuple, row.get("walls", ()))),
        )
    )


def finish(plan: Plan) -> Plan:
    """Returns the layout with ``open`` and ``arrival`` filled in."""
    walk = (plan.made != WALL) & (plan.made != WATER) & (plan.made < SPOT)
    object.__setattr__(plan, "open", tuple(column.tobytes() for column in walk))
    if plan.exits:
        object.__setattr__(plan, "arrival", _beside(plan, next(iter(plan.exits))))
    return plan


def _beside(plan: Plan, way: Tile) -> Tile:
    inner = np.argwhere(np.array([list(column) for column in plan.open], bool))
    order = np.abs(inner - np.array(way)).sum(1)
    for x, y in inner[np.argsort(order, kind="stable")]:
        if (int(x), int(y)) not in plan.exits:
            return int(x), int(y)
    return 1, 1


@lru_cache(512)
def cave(seed: int, level: int) -> Plan:
    """Returns the layout of a floor of the mines: chambers that are joined, with a way up.

    The way up has the spot ``exit``; every fifth floor has an ``elevator``.
    """
    rng = np.random.default_rng([seed, level, 0x57A2])
    width, height = int(rng.integers(26, 40)), int(rng.integers(24, 36))
    made = np.full((width, height), WALL, np.uint8)
    x, y = width // 2, 6
    way = (x, y - 2)
    for number in range(int(rng.integers(6, 10))):
        w, h = int(rng.integers(4, 8)), int(rng.integers(3, 7))
        left, top = max(2, x - w // 2), max(5, y - h // 2) if number else 5
        made[left : min(width - 2, left + w), top : min(height - 2, top + h)] = DIRT
        goal_x, goal_y = int(rng.integers(4, width - 4)), int(rng.integers(6, height - 4))
        made[min(x, goal_x) : max(x, goal_x) + 2, y : y + 2] = DIRT
        made[goal_x : goal_x + 2, min(y, goal_y) : max(y, goal_y) + 2] = DIRT
        x, y = goal_x, goal_y
    made[way[0], 4:7] = STONE
    made[way] = SPOT
    spots: dict[Tile, tuple[str, ...]] = {way: ("exit",)}
    if level % 5 == 0 and level < FIRST_CAVERN:
        made[way[0] - 1, 4:7] = STONE
        lift = (way[0] - 1, 4)
        made[lift] = SPOT
        spots[lift] = ("elevator",)
    name = f"UndergroundMine{level}"
    made_plan = finish(Plan(name, made, spots=spots))
    object.__setattr__(made_plan, "arrival", (way[0], way[1] + 1))
    return made_plan
