"""The available observations: the contents of each, and how it is filled.

All except the privileged ones are limited to what the player could know by looking: what is in its
field of view and not hidden, its state, what it carries, where it looks. None contains the time or
the position; ``vitals`` contains the brightness of the sky.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.blockworld.pictures import grids
from bridges.blockworld.pictures.grids import ENTITY_COLUMNS, MOST_HEIGHT, entities, fan, grid
from bridges.blockworld.pictures.semantic import CLASSES, SIGHT
from bridges.blockworld.rules import status
from bridges.blockworld.rules.items import ITEMS
from bridges.blockworld.rules.world import HEIGHT, HOTBAR, SIZE
from bridges.blockworld.sense_options import SenseOptions
from rollout.api import Array, Columns

Spaces = dict[str, spaces.Space[Any]]


@dataclass(frozen=True)
class Observation:
    """One available observation.

    Attributes:
        name: its name in options.
        doc: its contents, with units.
        privileged: whether it contains what the player could not know.
        space: the columns it adds, by key, for some options.
        fill: writes them: ``fill(worlds, buffers, options, lo, hi)``, where ``buffers`` has an
            array ``(n, ...)`` for each key of ``space``. Several threads may fill different
            worlds of the same buffers at once. The first call compiles.
        names: names of the places of a column, by key; for captions and documents.
    """

    name: str
    doc: str
    privileged: bool
    space: Callable[[SenseOptions], Spaces]
    fill: Callable[[Array, Columns, SenseOptions, int, int], None]
    names: Mapping[str, tuple[str, ...]]


def _bytes(most: int, *shape: int) -> spaces.Box:
    return spaces.Box(0, most, shape, np.uint8)


def _floats(low: Any, high: Any, *shape: int) -> spaces.Box:
    least, most = (np.broadcast_to(np.asarray(v, np.float32), shape).copy() for v in (low, high))
    return spaces.Box(least, most, shape, np.float32)


_LAST_CLASS = len(CLASSES) - 1
_FARTHEST = float(np.hypot(SIZE, SIZE))


def _rgb_space(options: SenseOptions) -> Spaces:
    return {"rgb": _bytes(255, options.rgb_height, options.rgb_width, 3)}


@functools.cache
def _painter() -> Callable[..., None]:
    from bridges.blockworld.pictures.rgb import draw  # noqa: PLC0415 - only where pictures are wanted

    return draw


def _fill_rgb(worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int) -> None:
    _painter()(worlds, buffers["rgb"], options.rgb_fov, int(options.hud), lo, hi)


def _rays_space(options: SenseOptions) -> Spaces:
    shape = (options.ray_rows, options.ray_columns)
    return {"rays/id": _bytes(_LAST_CLASS, *shape), "rays/near": _floats(0.0, 1.0, *shape)}


_fan = functools.lru_cache(maxsize=16)(fan)


def _fill_rays(worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int) -> None:
    shape = (options.ray_rows, options.ray_columns)
    directions = _fan(*shape, float(options.ray_fov), float(options.ray_rise))
    ids, near = buffers["rays/id"], buffers["rays/near"]
    grids.rays(worlds, ids, near, directions, float(options.ray_reach), lo, hi)


def _grid(name: str, *, privileged: bool) -> Observation:
    seen = "around the player, behind and hidden too" if privileged else "ahead, as far as seen"
    place = "middle" if privileged else "middle of the last"
    ids, heights = f"{name}/id", f"{name}/height"

    def space(options: SenseOptions) -> Spaces:
        shape = (options.grid_size, options.grid_size)
        return {
            ids: _bytes(_LAST_CLASS, *shape),
            heights: spaces.Box(-MOST_HEIGHT, MOST_HEIGHT, shape, np.int8),
        }

    def fill(worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int) -> None:
        size = options.grid_size
        row = size // 2 if privileged else size - 1
        grid(worlds, buffers[ids], buffers[heights], row, privileged, lo, hi)

    return Observation(
        name,
        f"the ground {seen}, cells of one block, ahead is row 0, the player in the {place} row; "
        f"id: class of what a cell shows, height: of its top above the feet, in blocks",
        privileged,
        space,
        fill,
        {ids: CLASSES},
    )


def _entities(name: str, *, privileged: bool) -> Observation:
    def space(options: SenseOptions) -> Spaces:
        if privileged:
            far, tall, away = _FARTHEST, 2.0 * HEIGHT, 2.0 * _FARTHEST
        else:
            far = tall = away = SIGHT
        low = (0.0, -far, -far, -tall, 0.0, 0.0)
        high = (_LAST_CLASS, far, far, tall, away, 1.0)
        return {name: _floats(low, high, options.entity_slots, len(ENTITY_COLUMNS))}

    def fill(worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int) -> None:
        entities(worlds, buffers[name], privileged, lo, hi)

    which = "all creatures" if privileged else "the creatures it sees"
    return Observation(
        name,
        f"{which}, nearest first: {', '.join(ENTITY_COLUMNS)}; blocks from the player's feet",
        privileged,
        space,
        fill,
        {name: ENTITY_COLUMNS},
    )


def _simple(
    name: str, doc: str, box: spaces.Box, kernel: Any, places: tuple[str, ...]
) -> Observation:
    def space(options: SenseOptions) -> Spaces:
        return {name: box}

    def fill(worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int) -> None:
        kernel(worlds, buffers[name], lo, hi)

    return Observation(name, doc, name.startswith("privileged"), space, fill, {name: places})


_INVENTORY = ("inventory/item", "inventory/count", "inventory/selected", "inventory/screen")
_LAST_ITEM = len(ITEMS) - 1


def _inventory_space(options: SenseOptions) -> Spaces:
    stacks = (_LAST_ITEM, 64.0)
    high = (3.0, 9.0, 7.0, *stacks, *stacks, *stacks, *stacks, 1.0, 1.0)
    columns: tuple[spaces.Space[Any], ...] = (
        _bytes(_LAST_ITEM, status.POCKETS),
        _bytes(64, status.POCKETS),
        spaces.Discrete(HOTBAR),
        _floats(0.0, high, len(status.SCREEN)),
    )
    return dict(zip(_INVENTORY, columns, strict=True))


def _fill_inventory(
    worlds: Array, buffers: Columns, options: SenseOptions, lo: int, hi: int
) -> None:
    items, counts, selected, screen = (buffers[key] for key in _INVENTORY)
    status.inventory(worlds, items, counts, selected, screen, lo, hi)


_PLACES_LOW = (0.0, -1.0, 0.0, *(-1.0, -1.0, 0.0) * 2, 0.0)
_PLACES_HIGH = (1.0, 2.0, 1.0, *(1.0, 1.0, _FARTHEST) * 2, 1.0)

OBSERVATIONS: Mapping[str, Observation] = {
    observation.name: observation
    for observation in (
        Observation(
            "rgb", "the picture the player sees", False, _rgb_space, _fill_rgb, {"rgb": ()}
        ),
        Observation(
            "semantic_rays",
            "what a fan of rays from the eye meets first; id: class, near: 1 at the eye, 0 at the "
            "reach and for nothing",
            False,
            _rays_space,
            _fill_rays,
            {"rays/id": CLASSES},
        ),
        _grid("semantic_grid", privileged=False),
        _entities("entities", privileged=False),
        _simple(
            "vitals",
            "how the player is: shares, and 0 or 1",
            _floats(0.0, 1.0, len(status.VITALS)),
            status.vitals,
            status.VITALS,
        ),
        Observation(
            "inventory",
            "what the player carries: 36 slots, hotbar first, helmet to boots, off hand; the slot "
            "in hand; the open screen",
            False,
            _inventory_space,
            _fill_inventory,
            {"inventory/item": tuple(i.name for i in ITEMS), "inventory/screen": status.SCREEN},
        ),
        _simple(
            "compass",
            "where the player looks; yaw 0 is along +z",
            _floats(-1.0, 1.0, len(status.COMPASS)),
            status.compass,
            status.COMPASS,
        ),
        _grid("privileged_grid", privileged=True),
        _entities("privileged_entities", privileged=True),
        _simple(
            "privileged_compass",
            "where the player is, its home and the hut; blocks, and shares of the world's size",
            _floats(_PLACES_LOW, _PLACES_HIGH, len(status.PLACES)),
            status.places,
            status.PLACES,
        ),
    )
}
"""Every observation by its name."""
