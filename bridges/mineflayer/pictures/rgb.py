"""The first-person picture of an agent, drawn on the CPU from the scenes that the game sends.

``Scene`` keeps the blocks around one bot and their light up to date; ``render`` draws it. Colours,
textures and bodies are our own. The vertical field of view is 70 degrees, the range about 35
blocks; the picture is the exact perspective of a camera at the bot's eye; over it lies the display
if the game sends one (``display``). Not drawn: particles, falling rain (the sky and the light are
those of rain).

Cells of light contain ``sky << 4 | lamps``, 0 to 15 each. Light loses one level per block, plus
what a block absorbs (https://minecraft.wiki/w/Light). The light is the unique fixed point of that
rule, so recomputing a part gives the same result as recomputing the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.pictures.compiled import RINGS, SIGHT, bare, inner, kernel, one_at_a_time
from bridges.mineflayer.pictures.display import Over
from bridges.mineflayer.pictures.frame import CLOUDS, draw
from bridges.mineflayer.pictures.kernel import BODY
from bridges.mineflayer.pictures.looks import WATER, WET_CROSS, Book, Looks
from bridges.mineflayer.pictures.models import cloud_map, parts_of

# light --------------------------------------------------------------------------------------------

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
    """True if a cell has light that a neighbour lacks."""
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


# pictures -----------------------------------------------------------------------------------------

__all__ = ["FIELD_OF_VIEW", "Looks", "Scene", "render", "warm"]

FIELD_OF_VIEW = 70.0
"""Vertical field of view in degrees."""
_DAY = 24000
_CLOUDS = cloud_map(CLOUDS)
_CLOUD_HEIGHT = 128.0
# Minecraft's curve from light levels to brightness, with its option Brightness in the middle: with
# less, caves lit by torches are too dark to be read.
_CURVE = (np.arange(16) / 15.0) / (4.0 - 3.0 * np.arange(16) / 15.0)
_CURVE = 0.5 * (_CURVE + 1.0 - (1.0 - _CURVE) ** 4)
_NETHER_HAZE = np.array((58.0, 14.0, 10.0))
_NETHER_LIGHT = 0.25
_LAMPS = _CURVE[None, :, None] * np.array((1.0, 0.9, 0.68))


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


class Scene:
    """The surroundings of one bot: blocks, bodies, the time of day.

    Args:
        looks: the meaning of the numbers in scenes; one ``Looks`` serves any number of scenes.
    """

    def __init__(self, looks: Looks) -> None:
        self.looks = looks
        self.grid: Grid | None = None
        self.origin = np.zeros(3, np.int64)
        self.eye = np.zeros(3)
        self.yaw = self.pitch = 0.0
        self.time, self.rain, self.thunder = 0, 0.0, 0.0
        self.bodies = np.zeros((0, 8), np.float32)
        self._queue = np.zeros(0, np.int32)
        self.room = np.zeros(0)
        self._tops = np.zeros((1, 1), np.int32)
        self.sights = np.zeros(1, SIGHT)
        self._placed: tuple[Any, Any] = (None, None)
        self.display: Mapping[str, Any] | None = None
        self.over: Over | None = None

    def apply(self, update: Mapping[str, Any]) -> None:
        """Applies the output of ``SceneFeed.update`` of the game.

        The first update, and the first after a restart of the game, contains a box of blocks.
        Raises ValueError if none has come yet.
        """
        self.eye = np.array(update["eye"], np.float64)
        self.yaw, self.pitch = float(update["yaw"]), float(update["pitch"])
        self.time = int(update["time"])
        self.rain, self.thunder = float(update["rain"]), float(update["thunder"])
        self.bodies = np.frombuffer(update["bodies"], "<f4").reshape(-1, 8)
        self.display = update.get("display")
        if update["box"] is not None:
            self._fill(update["box"])
        changes = np.frombuffer(update["changes"], "<i4").reshape(-1, 5)
        if self.grid is None:
            raise ValueError("a scene begins with a box of blocks, and none has come yet")
        if len(changes) > 0:
            self._change(self.grid, changes)

    def place(self, grid: Grid, book: Book) -> None:
        """Notes the addresses of a grid and a book, which the scene keeps alive, in the record."""
        if self._placed[0] is grid and self._placed[1] is book:
            return
        self._placed = (grid, book)
        arrays: dict[str, NDArray[Any]] = {
            "forms": grid.forms, "cells": grid.cells, "light": grid.light, "biomes": grid.biomes,
            **book._asdict(), "tints": self.looks.tints, "clouds": _CLOUDS,
        }  # fmt: skip
        for name, array in arrays.items():
            self.sights[name] = _address(array)

    def ceilings(self, eye: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns above which height all is air, in blocks above an eye, ``(2, 2, 4)``.

        That is towards lower and higher x, lower and higher z, up to each of ``RINGS`` and beyond.
        The cell above the highest block counts, in which a ray leaves water.
        """
        x, z = int(eye[0]), int(eye[2])
        found = np.empty((2, 2, len(RINGS) + 1))
        for n, far in enumerate((*RINGS, max(self._tops.shape))):
            for i, along in enumerate((slice(max(x - far, 0), x + 1), slice(x, x + far + 1))):
                for j, aside in enumerate((slice(max(z - far, 0), z + 1), slice(z, z + far + 1))):
                    found[i, j, n] = self._tops[along, aside].max()
        found += 1.0 - eye[1]
        return found

    def _fill(self, box: Mapping[str, Any]) -> None:
        wide, tall, deep = (int(n) for n in box["size"])
        self.origin = np.array(box["origin"], np.int64)
        blocks = np.frombuffer(box["blocks"], "<u2").reshape(wide, deep, tall)
        self.looks.paint(blocks)
        shape = (wide + 2, deep + 2, tall + 2)
        if self.grid is None or (self.grid.wide, self.grid.deep, self.grid.tall) != shape:
            self.grid = _empty_grid(shape)
            self._queue = np.zeros(1 << math.ceil(math.log2(2 * math.prod(shape))), np.int32)
        grid = self.grid
        cells = grid.cells.reshape(shape)
        cells[:] = len(self.looks)
        cells[1:-1, 1:-1, 1:-1] = blocks
        np.take(self.looks.forms, grid.cells, out=grid.forms)
        there = blocks[..., ::-1] != 0
        self._tops = np.zeros(shape[:2], np.int32)
        self._tops[1:-1, 1:-1] = np.where(there.any(2), tall + 1 - there.argmax(2), 0)
        heights = np.frombuffer(box["heights"], "<i2").reshape(wide, deep)
        inside = grid.heights.reshape(shape[:2])[1:-1, 1:-1]
        inside[:] = heights.astype(np.int32) + 1 - self.origin[1] + 1
        grid.biomes.reshape(shape[:2])[1:-1, 1:-1] = np.frombuffer(box["biomes"], np.uint8).reshape(
            wide, deep
        )
        grid.light[:] = 0
        relight(grid, self.looks.book, 1, wide + 1, 1, deep + 1, 1, tall + 1, self._queue)

    def _change(self, grid: Grid, changes: NDArray[np.int32]) -> None:
        """Sets single blocks and recomputes the light that they can have changed."""
        self.looks.paint(changes[:, 3])
        place = changes[:, :3] - self.origin + 1
        inside = ((place > 0) & (place < (grid.wide - 1, grid.tall - 1, grid.deep - 1))).all(1)
        place, changes = place[inside], changes[inside]
        if len(place) == 0:
            return
        columns = place[:, 0] * grid.deep + place[:, 2]
        at = columns * grid.tall + place[:, 1]
        grid.cells[at] = changes[:, 3]
        grid.forms[at] = self.looks.forms[changes[:, 3]]
        np.maximum.at(self._tops, (place[:, 0], place[:, 2]), place[:, 1] + 1)
        heights = changes[:, 4] + 2 - int(self.origin[1])
        before = grid.heights[columns]
        grid.heights[columns] = heights
        # The sky's light changes along the whole range by which the height of a column changed.
        low = np.minimum(np.minimum(before, heights), place[:, 1]).min() - REACH
        high = np.maximum(np.maximum(before, heights), place[:, 1]).max() + REACH
        x0, x1 = place[:, 0].min() - REACH, place[:, 0].max() + REACH
        z0, z1 = place[:, 2].min() - REACH, place[:, 2].max() + REACH
        relight(
            grid, self.looks.book,
            int(max(x0, 1)), int(min(x1, grid.wide - 2)) + 1,
            int(max(z0, 1)), int(min(z1, grid.deep - 2)) + 1,
            int(max(low, 1)), int(min(high, grid.tall - 2)) + 1,
            self._queue,
        )  # fmt: skip


def _empty_grid(shape: tuple[int, int, int]) -> Grid:
    cells, columns = math.prod(shape), shape[0] * shape[1]
    return Grid(
        forms=np.zeros(cells, np.uint8),
        cells=np.zeros(cells, np.uint16),
        light=np.zeros(cells, np.uint8),
        heights=np.zeros(columns, np.int32),
        biomes=np.zeros(columns, np.uint8),
        wide=shape[0],
        deep=shape[1],
        tall=shape[2],
    )


def _mix(
    one: NDArray[np.float64], other: tuple[float, float, float], share: float
) -> NDArray[np.float64]:
    return one + (np.array(other) - one) * share


def _hour(scene: Scene, s: Any, wet: bool, open_sky: float, in_nether: bool) -> NDArray[np.float64]:
    """Sets the colours of the time of day; returns each light level's brightness, ``(256, 3)``.

    ``open_sky`` is 1 where the sky's light reaches the eye, less in caves, where the haze is dark.
    The Nether has no day: its haze is red, and nothing in it is wholly dark.
    """
    sun = math.cos((scene.time - _DAY / 4) * 2 * math.pi / _DAY)
    day = min(max(sun * 1.9 + 0.55, 0.0), 1.0)
    dusk = max(0.0, 1.0 - abs(sun + 0.04) * 3.2)
    storm = min(scene.rain * 0.75 + scene.thunder * 0.2, 1.0)
    grey = 24.0 + 120.0 * day
    fog = _mix(np.array((10.0, 13.0, 26.0)), (188, 212, 250), day)
    fog = _mix(_mix(fog, (232, 150, 98), dusk * 0.55), (grey, grey * 1.03, grey * 1.1), storm)
    top = _mix(np.array((3.0, 4.0, 12.0)), (112, 162, 250), day)
    top = _mix(_mix(top, (88, 92, 160), dusk * 0.5), (grey * 0.8, grey * 0.83, grey * 0.9), storm)
    deep = np.array((18.0, 46.0, 128.0)) * (0.25 + 0.75 * day)
    colours = {
        "fog": fog * open_sky,
        "top": top * open_sky,
        "glare": _mix(fog, (255, 190, 110), 0.75) * open_sky,
        "deep_water": deep,
    }
    if in_nether:
        colours["fog"] = colours["top"] = colours["glare"] = _NETHER_HAZE
    if wet:
        colours["fog"] = colours["top"] = deep
    for name, colour in colours.items():
        for part, value in zip("rgb", colour, strict=True):
            s[f"{name}_{part}"] = value
    s["day"], s["clear"], s["drowned"] = day, 1.0 - scene.rain, float(wet or in_nether)
    sky = _mix(np.array((0.19, 0.22, 0.36)), (1.0, 1.0, 1.0), day) * (1.0 - 0.35 * storm)
    shine = np.maximum(_CURVE[:, None, None] * sky, _LAMPS)
    least = _NETHER_LIGHT if in_nether else 0.045
    return np.ascontiguousarray(np.maximum(shine, least).reshape(256, 3), np.float64)


def _is_wet(scene: Scene, grid: Grid, at: int, eye: NDArray[np.float64]) -> bool:
    if grid.forms[at] not in {WATER, WET_CROSS}:
        return False
    top = float(scene.looks.book.tops[grid.cells[at]])
    return bool(grid.forms[at + 1] in {WATER, WET_CROSS} or eye[1] % 1.0 < top)


def _aim(scene: Scene, s: Any, eye: NDArray[np.float64], wet: bool) -> None:
    """Sets the camera, the fog, the sun and the clouds."""
    sine, cosine = math.sin(scene.yaw), math.cos(scene.yaw)
    up, level = math.sin(scene.pitch), math.cos(scene.pitch)
    s["eye_x"], s["eye_y"], s["eye_z"] = eye
    s["ahead_x"], s["ahead_y"], s["ahead_z"] = -sine * level, up, -cosine * level
    s["right_x"], s["right_z"] = cosine, -sine
    s["up_x"], s["up_y"], s["up_z"] = sine * up, level, cosine * up
    s["focal"] = s["rows"] / 2 / math.tan(math.radians(FIELD_OF_VIEW) / 2)
    # The eye is never closer than this to the sides of the box; see scene.js.
    limit = 16.0 if wet else min(s["wide"], s["deep"]) / 2 - 1 - 4 - 0.5
    s["fog_from"] = 0.0 if wet else limit * (0.7 - 0.35 * scene.rain)
    s["fog_step"] = 1.0 / (limit - s["fog_from"])
    turn = (scene.time - _DAY / 4) * 2 * math.pi / _DAY
    s["sun_x"], s["sun_y"] = -math.sin(turn), math.cos(turn)
    s["cloud_y"] = _CLOUD_HEIGHT - scene.eye[1]
    s["cloud_x"], s["cloud_z"] = scene.eye[0] % (12 * CLOUDS), scene.eye[2] % (12 * CLOUDS)
    s["far"] = 1.0 / s["fog_step"] + s["fog_from"]
    s["grain"], s["per_tall"] = 16.0 / s["focal"], 1.0 / s["tall"]


def render(
    scene: Scene, height: int, width: int, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Returns ``(height, width, 3)`` uint8: red, green, blue, the top row first.

    Args:
        scene: at least one update must have been applied, else ValueError.
        height: pixels.
        width: pixels.
        out: filled and returned instead of a new array; contiguous and of that shape, else
            ValueError.
    """
    grid = scene.grid
    if grid is None:
        raise ValueError("nothing can be drawn before the first update of the scene")
    picture = np.empty((height, width, 3), np.uint8) if out is None else out
    if picture.shape != (height, width, 3) or not picture.flags.c_contiguous:
        raise ValueError(f"out must be ({height}, {width}, 3) in one piece, not {picture.shape}")
    if scene.room.size != height * width * BODY:
        scene.room = np.empty(height * width * BODY)
        scene.sights["bodies"] = _address(scene.room)
    sizes = (grid.wide, grid.tall, grid.deep)
    eye = np.clip(scene.eye - scene.origin + 1, 1.0, np.array(sizes) - 1.001)
    x, y, z = map(int, eye.tolist())
    at = (x * grid.deep + z) * grid.tall + y
    wet = _is_wet(scene, grid, at, eye)
    s = scene.sights[0]
    s["rows"], s["columns"] = height, width
    s["wide"], s["tall"], s["deep"] = sizes
    light = int(grid.light[at])
    in_nether = bool(scene.looks.in_nether[grid.biomes[at // grid.tall]])
    shine = _hour(scene, s, wet, min((light >> 4) / 8.0, 1.0), in_nether)
    _aim(scene, s, eye, wet)
    parts, ceilings = parts_of(scene.looks, scene.bodies), scene.ceilings(eye)
    s["n_parts"] = len(parts)
    scene.place(grid, scene.looks.book)
    for name, array in (
        ("shine", shine), ("parts", parts), ("ceilings", ceilings), ("picture", picture),
    ):  # fmt: skip
        s[name] = _address(array)
    draw(scene.sights, float(wet))
    if scene.display is not None:
        scene.over = scene.over or Over(scene.looks)
        scene.over.draw(scene.display, picture, shine[light])
    return picture


def warm() -> None:
    """Loads the compiled code, or compiles it: half a minute, once per machine and version.

    Concurrent processes wait for the first. Without this call, the first picture waits.
    """
    table = {"appearances": [["air", [], {}, 0, 1]], "entities": [], "items": [], "biomes": []}
    scene = Scene(Looks(table))
    box = {
        "origin": [0, 0, 0],
        "size": [16, 16, 16],
        "blocks": bytes(8192),
        "heights": bytes(512),
        "biomes": bytes(256),
    }
    display = {
        "bar": bytes(160),
        "selected": 0,
        "life": [20.0, 20.0, 0.0, 20.0, 0, 0.0],
        "swing": 1.0,
        "eating": 0,
        "raised": False,
        "window": None,
    }
    hour = {"yaw": 0.0, "pitch": 0.0, "time": 6000, "rain": 0.0, "thunder": 0.0}
    with one_at_a_time():
        update = {"eye": [8.0] * 3, **hour, "box": box, "changes": b"", "bodies": b""}
        scene.apply({**update, "display": display})
        render(scene, 2, 2)
