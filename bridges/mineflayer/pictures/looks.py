"""The table of appearances, prepared for the ray-caster.

``sceneTable`` of the game defines the numbers in scenes. Tiles are prepared when a number is first
seen: a world shows about a hundred of the four thousand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import TEXELS
from bridges.mineflayer.pictures.palette import Tile, faces_of, tint_of

AIR, CUBE, CUTOUT, BOXES, CROSS, WATER, WET_CROSS, OUT = range(8)
"""How a ray meets a cell; ``OUT`` is beyond the box of blocks."""

Boxes = list[list[float]]

_CUTOUT = re.compile(r"leaves$|glass$|spawner|barrier")
_WET = re.compile(r"kelp|seagrass|^sea_pickle|coral")
_NETHER = re.compile(r"nether|soul_sand_valley|crimson|warped|basalt")
_ATTACHED: dict[str, tuple[int, int]] = {
    "north": (0, 1),
    "south": (0, -1),
    "west": (1, 0),
    "east": (-1, 0),
}
"""Position of the wall, x and z, for each facing."""


class Book(NamedTuple):
    """The appearances as compiled code reads them; arrays are indexed by appearance."""

    tiles: NDArray[np.int32]
    """``(N, 6)``: number of a tile for each face."""
    box_at: NDArray[np.int32]
    """``(N + 1,)``: index of its first box."""
    boxes: NDArray[np.float64]
    """``(B, 6)``: lower and upper corner."""
    tops: NDArray[np.float64]
    """``(N,)``: height of the water in the cell."""
    emission: NDArray[np.uint8]
    opacity: NDArray[np.uint8]
    atlas: NDArray[np.int32]


def plate(
    facing: str, thick: float = 1 / 16, low: float = 0.0, high: float = 1.0, half: float = 0.5
) -> Boxes:
    """Returns the box of a block that hangs on the wall behind it."""
    x, z = _ATTACHED.get(facing, (0, 1))
    if x:
        return [
            [
                1 - thick if x > 0 else 0.0,
                low,
                0.5 - half,
                1.0 if x > 0 else thick,
                high,
                0.5 + half,
            ]
        ]
    return [
        [0.5 - half, low, 1 - thick if z > 0 else 0.0, 0.5 + half, high, 1.0 if z > 0 else thick]
    ]


def thin_boxes(name: str, props: Mapping[str, Any]) -> Boxes | None:  # noqa: PLR0911 - a list of rules
    """Returns the boxes of a block without collision; None for two crossed planes."""
    facing = str(props.get("facing", "north"))
    if name == "snow":
        return [[0, 0, 0, 1, int(props.get("layers", 1)) / 8, 1]]
    if "wall_torch" in name:
        x, z = _ATTACHED.get(facing, (0, 1))
        x0, z0 = 0.44 + 0.3 * x, 0.44 + 0.3 * z
        return [[x0, 0.2, z0, x0 + 0.13, 0.82, z0 + 0.13]]
    if "torch" in name:
        return [[0.44, 0, 0.44, 0.56, 0.63, 0.56]]
    if re.search("rail$|pressure_plate|redstone_wire|carpet|tripwire$|lily_pad", name):
        return [[0, 0, 0, 1, 1 / 16, 1]]
    if re.search("wall_sign|wall_banner|vine$|ladder", name):
        return plate(
            facing, 1 / 16, 0.25 if "sign" in name else 0.0, 0.8 if "sign" in name else 1.0
        )
    if re.search("button|lever|hook", name):
        face = props.get("face", "wall")
        if face == "floor":
            return [[0.34, 0, 0.34, 0.66, 0.15, 0.66]]
        return (
            [[0.34, 0.85, 0.34, 0.66, 1, 0.66]]
            if face == "ceiling"
            else plate(facing, 1 / 8, 0.37, 0.63, 0.18)
        )
    if re.search("sign$|banner$", name):
        return [[0.45, 0, 0.45, 0.55, 0.55, 0.55], [0, 0.55, 0.45, 1, 1, 0.55]]
    if re.search("portal|gateway", name):
        return [[0, 0, 0.4, 1, 1, 0.6]]
    return None


def form_of(name: str, boxes: Boxes, props: Mapping[str, Any]) -> tuple[int, Boxes]:  # noqa: PLR0911 - a list of rules
    """Returns how rays meet an appearance, and its boxes, if any."""
    if name in {"water", "flowing_water", "bubble_column"}:
        return WATER, []
    if name in {"lava", "flowing_lava"}:
        return CUBE, []
    if re.search(_CUTOUT, name) and "pane" not in name:
        return CUTOUT, []
    if boxes == [[0, 0, 0, 1, 1, 1]]:
        return CUBE, []
    if not boxes:
        thin = thin_boxes(name, props)
        if thin is not None:
            return BOXES, thin
        return (WET_CROSS if re.search(_WET, name) else CROSS), []
    # Collision boxes of fences and walls are higher than they look.
    return BOXES, [[*box[:3], box[3], min(box[4], 1.0), box[5]] for box in boxes if box[1] < 1.0]


class Looks:
    """The appearances, creatures and biomes that scenes refer to.

    Args:
        table: ``sceneTable`` of the driver: ``appearances``, ``entities``, ``items``, ``biomes``.

    Attributes:
        rows: the appearances, as in the table.
        entities: name, width and height of each kind of creature, or None.
        items: the names of the items, or None.
        forms: ``(N + 1,)`` uint8, the last one ``OUT``.
        tints: ``(256, 3)`` by biome, factors for the colours of grass and leaves.
        in_nether: ``(256,)`` by biome, whether it is one of the Nether's.
        templates: models of bodies whose tiles are painted; see ``models``.
    """

    def __init__(self, table: Mapping[str, Any]) -> None:
        rows: Sequence[Sequence[Any]] = table["appearances"]
        self.rows = rows
        self.entities: Sequence[Sequence[Any] | None] = table["entities"]
        self.items: Sequence[str | None] = table["items"]
        count = len(rows)
        self.forms = np.full(count + 1, OUT, np.uint8)
        self._painted = np.zeros(count + 1, np.bool_)
        self._painted[0] = self._painted[count] = True
        all_boxes: Boxes = []
        box_at = np.zeros(count + 2, np.int32)
        tops = np.ones(count + 1)
        for n, (name, boxes, props, *_) in enumerate(rows):
            self.forms[n], mine = (AIR, []) if n == 0 else form_of(name, boxes, props)
            all_boxes += mine
            box_at[n + 1] = len(all_boxes)
            level = int(props.get("level", 0)) if self.forms[n] == WATER else 0
            tops[n] = 0.875 if level in {0, 8} else max(0.875 - 0.11 * (level % 8), 0.1)
        box_at[count + 1] = len(all_boxes)
        self.templates: dict[Any, NDArray[np.float64]] = {}
        self._numbers = {bytes(4 * TEXELS): 0}
        self.tints = np.ones((256, 3))
        self.in_nether = np.zeros(256, np.bool_)
        for n, biome in enumerate(table["biomes"][:256]):
            self.tints[n] = tint_of(biome) if biome else 1.0
            self.in_nether[n] = re.search(_NETHER, biome or "") is not None
        self.book = Book(
            tiles=np.zeros((count + 1, 6), np.int32),
            box_at=box_at,
            boxes=np.array(all_boxes or [[0.0] * 6]),
            tops=tops,
            emission=np.array([row[3] for row in rows] + [0], np.uint8),
            opacity=np.array([row[4] for row in rows] + [15], np.uint8),
            atlas=np.zeros(TEXELS, np.int32),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def paint(self, seen: NDArray[np.integer[Any]]) -> None:
        """Makes sure that appearances have their tiles; invalid numbers become air."""
        counts = np.bincount(seen.ravel(), minlength=len(self) + 1)[: len(self) + 1]
        missing = np.flatnonzero((counts > 0) & ~self._painted)
        if len(missing) == 0:
            return
        new: list[Tile] = []
        for n in missing.tolist():
            name, _, props, *_ = self.rows[n]
            for face, tile in enumerate(faces_of(name, props)):
                self.book.tiles[n, face] = self._number(tile, new)
            self._painted[n] = True
        self._add(new)

    def number_of(self, tile: Tile) -> int:
        """Returns the number of a tile in the atlas; adds it if it is not there."""
        new: list[Tile] = []
        number = self._number(tile, new)
        self._add(new)
        return number

    def _number(self, tile: Tile, new: list[Tile]) -> int:
        content = tile.tobytes()
        if content not in self._numbers:
            self._numbers[content] = len(self.book.atlas) // TEXELS + len(new)
            new.append(tile)
        return self._numbers[content]

    def _add(self, new: list[Tile]) -> None:
        if new:
            self.book = self.book._replace(atlas=np.concatenate([self.book.atlas, *new]))
