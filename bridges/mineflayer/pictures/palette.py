"""The appearance of blocks, items and the skins of creatures. No picture of the game is used.

Blocks and items are in the atlas ``data/tiles.png``, for all versions. Skins are painted when they
are first seen, as players, sheep and unknown kinds may have any colour. A block without a picture
has a colour derived from its name.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import LEVELS, SIDE, Atlas

Tile = NDArray[np.int32]
"""``(TEXELS,)``: a tile in all its sizes; see ``bridges.atlas``."""
Colour = tuple[int, int, int]

GREEN: Colour = (124, 180, 78)
"""Of grass in plains, relative to which other biomes' colours are given."""
BIOME_GREENS: tuple[tuple[str, Colour], ...] = (
    ("desert|badlands|savanna", (184, 178, 82)), ("jungle", (84, 190, 60)),
    ("swamp", (106, 112, 57)),
    ("snowy|frozen|ice", (128, 180, 151)), ("taiga", (130, 178, 128)),
    ("mountain|hills|beach|ocean|river", (138, 182, 112)),
    ("dark_forest", (80, 122, 50)), ("forest", (116, 184, 84)), ("plains", GREEN),
)  # fmt: skip


_ROW, _COLUMN = np.mgrid[0:SIDE, 0:SIDE]


@functools.cache
def _atlas() -> Atlas:
    return Atlas(Path(__file__).parents[1] / "data" / "tiles.png")


def number_of(name: str) -> int:
    """Returns a hash of a name, 0 to 65535."""
    return int.from_bytes(hashlib.blake2s(name.encode(), digest_size=2).digest(), "little")


def own_colour(name: str) -> Colour:
    """Returns the colour of a name without a rule: a muted colour derived from the name."""
    n = number_of(name)
    return (80 + n % 120, 80 + n // 7 % 120, 80 + n // 53 % 120)


def tint_of(biome: str) -> tuple[float, float, float]:
    """Returns the factors from the grass and leaf colours of plains to another biome's."""
    for pattern, green in BIOME_GREENS:
        if re.search(pattern, biome):
            return (green[0] / GREEN[0], green[1] / GREEN[1], green[2] / GREEN[2])
    return (1.0, 1.0, 1.0)


def hexed(digits: str) -> Colour:
    """Returns the colour of six hexadecimal digits."""
    return (int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16))


def shade(colour: Colour, factor: float) -> Colour:
    """Returns a darker (factor below 1) or lighter colour."""
    red, green, blue = (min(int(part * factor), 255) for part in colour)
    return red, green, blue


def _grain(seed: int) -> NDArray[np.float64]:
    """Returns ``(16, 16)`` numbers in [0, 1): a hash of the seed and the position."""
    at = np.arange(SIDE * SIDE, dtype=np.uint64) + np.uint64((seed * 2654435761) & 0xFFFFFFFF)
    for factor in (0x7FEB352D, 0x846CA68B):
        at = ((at ^ (at >> np.uint64(16))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return ((at ^ (at >> np.uint64(16))).astype(np.float64) / 2.0**32).reshape(SIDE, SIDE)


def _where(form: str, x: float, y: float, *more: float) -> NDArray[np.bool_]:
    """Returns the texels of a stroke."""
    if form == "line":
        run, fall = more[0] - x, more[1] - y
        along = ((_COLUMN - x) * run + (_ROW - y) * fall) / (run * run + fall * fall)
        along = np.clip(along, 0.0, 1.0)
        where = np.hypot(_COLUMN - x - along * run, _ROW - y - along * fall) <= more[2] / 2
    elif form == "disc":
        where = np.hypot(_COLUMN - x, _ROW - y) <= more[0]
    else:
        where = (x <= _COLUMN) & (more[0] >= _COLUMN) & (y <= _ROW) & (more[1] >= _ROW)
    return np.asarray(where, np.bool_)


def painted(colour: Colour, seed: int, rough: float, strokes: Iterable[str] = ()) -> Tile:
    """Returns an opaque tile of one colour with noise, and strokes on it.

    Args:
        colour: the mean.
        seed: of the noise.
        rough: the range of its brightness.
        strokes: a form, its numbers in texels and a colour: ``line X Y X Y WIDTH``, ``disc X Y
            RADIUS``, ``box X Y X Y`` with both corners; ``main``, ``light``, ``dark`` or six
            digits. See ``data/bodies.yaml``.
    """
    fine, coarse = _grain(seed), _grain(seed + 1)[::2, ::2].repeat(2, 0).repeat(2, 1)
    tile = np.array(colour) * (1 + rough * (fine + 0.6 * coarse - 0.8))[..., None]
    colours = {"main": colour, "light": shade(colour, 1.35), "dark": shade(colour, 0.62)}
    for stroke in strokes:
        form, *numbers, name = stroke.split()
        tile[_where(form, *map(float, numbers))] = colours.get(name) or hexed(name)
    sizes = [tile]
    while len(sizes[-1]) > 1:
        half = len(sizes[-1]) // 2
        four = sizes[-1].reshape(half, 2, half, 2, 3).transpose(0, 2, 1, 3, 4)
        sizes.append(four.reshape(half, half, 4, 3).sum(2) / 4)
    whole = np.concatenate([size.reshape(-1, 3) for size in sizes])
    red, green, blue = np.clip(np.rint(whole), 0, 255).astype(np.int32).T
    return np.asarray(1 << 24 | red << 16 | green << 8 | blue, np.int32)


def icon_of(name: str) -> Tile | None:
    """Returns the picture of an item; None for one that looks like its block."""
    number = _atlas().items.get(name)
    return None if number is None else _atlas().tiles[number]


def _turned(tile: Tile) -> Tile:
    """Returns a tile with its rows as columns."""
    sizes = np.split(tile, LEVELS[1:])
    return np.concatenate(
        [size.reshape(16 >> n, 16 >> n).T.ravel() for n, size in enumerate(sizes)]
    )


_FRONTS: dict[str, int] = {"east": 0, "west": 1, "up": 2, "down": 3, "south": 4, "north": 5}


def faces_of(name: str, props: Mapping[str, Any]) -> Sequence[Tile]:
    """Returns the tiles of a block's faces: +x, -x, +y, -y, +z, -z.

    Args:
        name: of the block.
        props: of its state, those that are visible: ``facing``, ``axis``, ``lit``, ``age``...
    """
    numbers = _atlas().faces(name, props)
    if numbers is None:
        tiles = [painted(own_colour(name), 100 + number_of(name) % 5000, 0.16)] * 3
    else:
        tiles = list(_atlas().tiles[numbers])
    side, top, bottom, *front = tiles
    faces = [side, side, top, bottom, side, side]
    axis = props.get("axis")
    if axis in {"x", "z"}:
        lying = _turned(side)
        ends = (0, 1) if axis == "x" else (4, 5)
        faces = [top if n in ends else (lying if axis == "x" else side) for n in range(6)]
    facing = _FRONTS.get(str(props.get("facing")))
    if front and facing is not None:
        faces[facing] = front[0]
    return faces
