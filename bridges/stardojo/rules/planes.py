"""Windows of tiles around the farmer as planes of small numbers, for networks and pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridges.stardojo.rules import places, soil
from bridges.stardojo.rules.world import Ground, Place, Tile, World

PLANES = ("made", "thing", "terrain", "crop", "being", "way")
"""Planes of a window: numbers of ``maps``, ``THINGS``, ``TERRAINS``, growth, and so on below."""
THINGS = (
    *("", "weeds", "twig", "stone", "node", "forage", "machine", "chest", "ladder", "laid"),
    *("incubator", "hopper", "hay", "fence", "placed", "drop", "treasure", "furniture", "other"),
)
TERRAINS = ("", "dirt", "watered", "grass", "tree", "fruit_tree", "floor", "stump", "sapling")
RIPE, DEAD = 8, 9
"""Values of the plane of crops beside 0 (none) and phase + 1."""
BEINGS = ("", "farmer", "resident", "animal", "pet", "monster")
WAYS_OUT = ("", "exit", "door", "spot", "building", "gate")
_THING = {name: number for number, name in enumerate(THINGS)}


def window(world: World, size: int, out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Returns the tiles around the farmer as planes ``(6, 2 * size + 1, 2 * size + 1)``, [y, x].

    The planes are those of ``PLANES``; outside of the map all are 0 (walls).
    """
    side = 2 * size + 1
    planes = np.zeros((len(PLANES), side, side), np.uint8) if out is None else out
    planes[:] = 0
    place, layout = world.here, places.plan(world.here)
    left, top = world.farmer.tile[0] - size, world.farmer.tile[1] - size
    x0, y0 = max(0, left), max(0, top)
    x1, y1 = min(layout.width, left + side), min(layout.height, top + side)
    planes[0, y0 - top : y1 - top, x0 - left : x1 - left] = layout.made[x0:x1, y0:y1].T
    _stationary(place, planes, left, top, side)
    if place.key == "Farm":
        for made in world.buildings:
            _fill(planes[5], (made.tile[0] - left, made.tile[1] - top), made.size, 4)
            for at, number in ((places.door(made), 2), (places.gate(made), 5)):
                if at is not None:
                    _fill(planes[5], (at[0] - left, at[1] - top), (1, 1), number)
    for tiles, number in ((layout.spots, 3), (layout.doors, 2), (layout.exits, 1)):
        for x, y in tiles:
            if 0 <= x - left < side and 0 <= y - top < side:
                planes[5, y - top, x - left] = number
    for (x, y), number in _beings(world, place):
        if 0 <= x - left < side and 0 <= y - top < side:
            planes[4, y - top, x - left] = number
    return planes


def _fill(plane: NDArray[np.uint8], at: Tile, size: Tile, number: int) -> None:
    """Sets a rectangle, as far as it is in the window."""
    x, y = at
    if -size[0] < x < len(plane) and -size[1] < y < len(plane):
        plane[max(0, y) : y + size[1], max(0, x) : x + size[0]] = number


def _stationary(place: Place, planes: NDArray[np.uint8], left: int, top: int, side: int) -> None:
    things, ground, drops = place.things, place.ground, place.drops
    for dx in range(side):
        for dy in range(side):
            tile = (left + dx, top + dy)
            if thing := things.get(tile):
                planes[1, dy, dx] = _THING.get(thing.kind, _THING["other"])
            elif tile in drops:
                planes[1, dy, dx] = _THING["drop"]
            if grown := ground.get(tile):
                planes[2, dy, dx] = _terrain(grown)
                if grown.crop is not None:
                    planes[3, dy, dx] = _stage(grown)
    for piece in place.furniture:
        _fill(
            planes[1], (piece.tile[0] - left, piece.tile[1] - top), piece.size, _THING["furniture"]
        )


def _terrain(ground: Ground) -> int:
    if ground.kind == "dirt":
        return 2 if ground.watered else 1
    if ground.kind == "tree":
        return 7 if ground.stump else 4 if ground.stage >= soil.GROWN else 8
    return TERRAINS.index(ground.kind)


def _stage(ground: Ground) -> int:
    crop = ground.crop
    if crop is None:
        return 0
    return DEAD if crop.dead else RIPE if soil.ripe(ground) else min(crop.phase + 1, RIPE - 1)


def _beings(world: World, place: Place) -> list[tuple[Tile, int]]:
    key = place.key
    found = [(each.tile, 2) for each in world.residents.values() if each.place == key]
    found += [(each.tile, 3) for each in world.animals if each.place == key]
    found += [(each.tile, 4) for each in world.pets if each.place == key]
    found += [(each.tile, 5) for each in place.monsters]
    return [*found, (world.farmer.tile, 1)]
