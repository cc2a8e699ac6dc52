"""Bodies made of boxes: creatures, players, items on the ground. All shapes are our own.

A part is a box relative to the feet of its body, which faces +z with +x on its right; parts of the
head turn with the head. ``data/bodies.yaml`` describes the kinds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridges.atlas import TEXELS
from bridges.mineflayer.pictures.frame import PART
from bridges.mineflayer.pictures.looks import Looks
from bridges.mineflayer.pictures.palette import (
    Colour,
    Tile,
    faces_of,
    hexed,
    icon_of,
    number_of,
    own_colour,
    painted,
    shade,
)
from rollout.yaml12 import load_yaml

YOUNG, SNEAKING = 2, 4
_BODIES = Path(__file__).parents[1] / "data" / "bodies.yaml"
_DYES: tuple[Colour, ...] = (
    (232, 236, 236), (240, 118, 20), (188, 68, 178), (58, 174, 216), (248, 198, 40), (112, 184, 26),
    (236, 140, 170), (62, 68, 72), (142, 142, 134), (22, 138, 144), (122, 42, 172), (54, 58, 156),
    (114, 72, 40), (84, 110, 28), (160, 40, 34), (22, 22, 26),
)  # fmt: skip
"""Colours in the game's order, from white to black."""
_TNT: Colour = (200, 60, 40)
_EMPTY: Tile = np.zeros(TEXELS, np.int32)


class Part(NamedTuple):
    """A box of a body, in blocks."""

    x: float
    y: float
    z: float
    half_x: float
    half_y: float
    half_z: float
    side: Tile
    front: Tile
    top: Tile
    is_head: bool = False


class Coat(NamedTuple):
    """The appearance of a kind; see ``data/bodies.yaml``."""

    body: Colour
    head: Colour
    legs: Colour
    kind: Mapping[str, Any]


_THINGS = re.compile(
    r"item|boat|minecart|arrow|trident|potion|pearl|snowball|egg|fireball|tnt|falling|orb|bottle"
    r"|crystal|painting|frame|knot|bobber|firework|llama_spit|bullet|lightning|cloud|fangs|marker"
)


@functools.cache
def _bodies() -> Mapping[str, Any]:
    return load_yaml(_BODIES, ours=True)  # type: ignore[no-any-return] # a table


@functools.lru_cache(maxsize=4096)
def _tile(colour: Colour, hide: str = "") -> Tile:
    return painted(colour, sum(colour), 0.1, _bodies()["hides"][hide] if hide else ())


@functools.lru_cache(maxsize=1024)
def _face(colour: Colour, face: str) -> Tile:
    return painted(colour, sum(colour), 0.1, _bodies()["faces"][face])


def _box(
    place: tuple[float, float, float],
    half: tuple[float, float, float],
    colour: Colour,
    hide: str = "",
) -> Part:
    tile = _tile(colour, hide)
    return Part(*place, *half, tile, tile, tile)


def _head(coat: Coat, place: tuple[float, float, float], k: float) -> list[Part]:
    """Returns a head of half size ``k`` with all that is on it."""
    x, y, z = place
    hide, face = _tile(coat.head), _face(coat.head, coat.kind.get("face", "plain"))
    parts = [Part(x, y, z, k, k, k, hide, face, hide, True)]
    for thing in coat.kind.get("head", ()):
        for row in _bodies()["head"][thing]:
            *numbers, name = row.removeprefix("+- ").split()
            dx, dy, dz, wide, high, deep = (float(each) * k for each in numbers)
            tile = _tile(getattr(coat, name) if name in Coat._fields else hexed(name))
            places = (x + dx, x - dx) if row.startswith("+-") else (x + dx,)
            box = (y + dy, z + dz, wide, high, deep)
            parts += [Part(place, *box, tile, tile, tile, True) for place in places]
    return parts


def _upright(wide: float, tall: float, coat: Coat) -> list[Part]:
    skull = min(0.25, tall * 0.14)
    hips, neck = tall * 0.4 * coat.kind.get("hips", 1.0), tall - 2 * skull
    chest, limbs, hide = wide * 0.4, coat.kind.get("limbs", 1.0), coat.kind.get("hide", "")
    thin, arm = chest * 0.43 * limbs, min((neck - hips) * (1.5 if limbs < 0.6 else 1.0), neck) / 2
    parts = [
        _box((0, (hips + neck) / 2, 0), (chest, (neck - hips) / 2, chest * 0.52), coat.body, hide)
    ]
    for side in (-1.0, 1.0):
        parts.append(_box((side * chest * 0.5, hips / 2, 0), (thin, hips / 2, thin), coat.legs))
        place = (side * (chest + thin), neck - arm, 0.0)
        parts.append(_box(place, (thin, arm, thin), shade(coat.body, 0.86)))
    return parts + _head(coat, (0, neck + skull, 0), skull)


def _fours(wide: float, tall: float, coat: Coat) -> list[Part]:
    long, hips, back = wide * 0.72, tall * 0.42, tall * 0.86
    thin, hide, skull = wide * 0.11, coat.kind.get("hide", ""), wide * 0.27
    if "high" in coat.kind:
        long, hips, back, skull = wide * 0.6, tall * 0.42, tall * 0.74, wide * 0.15
    parts = [
        _box((x * wide * 0.3, hips / 2, z * long * 0.72), (thin, hips / 2, thin), coat.legs)
        for x in (-1.0, 1.0)
        for z in (-1.0, 1.0)
    ]
    parts.append(
        _box((0, (hips + back) / 2, 0), (wide * 0.4, (back - hips) / 2, long), coat.body, hide)
    )
    if coat.kind.get("tail"):
        parts.append(_box((0, back, -long - 0.12), (thin * 0.7, thin * 0.7, 0.18), coat.body))
    front = long + skull * 0.5
    return parts + _head(coat, (0, tall * coat.kind.get("high", 1.0) - skull, front), skull)


def _creeper(wide: float, tall: float, coat: Coat) -> list[Part]:
    hide = coat.kind.get("hide", "")
    parts = [
        _box((x * 0.13, 0.19, z * 0.26), (0.12, 0.19, 0.12), coat.legs)
        for x in (-1.0, 1.0)
        for z in (-1.0, 1.0)
    ]
    parts.append(_box((0, 0.76, 0), (0.25, 0.38, 0.13), coat.body, hide))
    return parts + _head(coat, (0, tall - 0.25, 0), 0.25)


def _spider(wide: float, tall: float, coat: Coat) -> list[Part]:
    k = wide / 1.4
    parts = [
        _box((x * 0.55 * k, 0.3 * k, z * 0.14 * k), (0.34 * k, 0.06 * k, 0.05 * k), coat.legs)
        for x in (-1.0, 1.0)
        for z in (-3.0, -1.0, 1.0, 3.0)
    ]
    parts.append(_box((0, 0.5 * k, -0.55 * k), (0.32 * k, 0.25 * k, 0.38 * k), coat.body))
    return parts + _head(coat, (0, 0.48 * k, 0.2 * k), 0.25 * k)


def _bird(wide: float, tall: float, coat: Coat) -> list[Part]:
    parts = [_box((x * 0.08, 0.12, 0), (0.03, 0.12, 0.03), coat.legs) for x in (-1.0, 1.0)]
    parts += [
        _box((x * 0.2, 0.4, 0), (0.03, 0.13, 0.2), shade(coat.body, 0.88)) for x in (-1.0, 1.0)
    ]
    parts.append(_box((0, 0.38, 0), (0.18, 0.16, 0.24), coat.body))
    return parts + _head(coat, (0, tall - 0.12, 0.2), 0.12)


def _stacked(wide: float, tall: float, coat: Coat) -> list[Part]:
    """Two cubes and a head, each smaller than the one below."""
    low, middle, head = tall * 0.2, tall * 0.16, tall * 0.14
    return [
        _box((0, low, 0), (low, low, low), coat.legs),
        _box((0, 2 * low + middle, 0), (middle, middle, middle), coat.body),
        *_head(coat, (0, 2 * (low + middle) + head, 0), head),
    ]


def _tentacles(wide: float, tall: float, coat: Coat) -> list[Part]:
    half, arms = wide * 0.5, tall * 0.3
    face = _face(coat.body, coat.kind.get("face", "plain"))
    hide = _tile(coat.body)
    trunk = Part(0, (tall + arms) / 2, 0, half, (tall - arms) / 2, half, hide, face, hide)
    places = [(x * half * 0.7, arms / 2, z * half * 0.7) for x in (-1, 0, 1) for z in (-1, 0, 1)]
    return [
        trunk,
        *(_box(each, (half * 0.14, arms / 2, half * 0.14), coat.legs) for each in places),
    ]


def _worm(wide: float, tall: float, coat: Coat) -> list[Part]:
    half, high, hide = max(wide, 0.3) * 0.5, max(tall, 0.25) * 0.5, coat.kind.get("hide", "")
    tail = _box((0, high * 0.7, -half * 1.5), (half * 0.35, high * 0.6, half * 0.7), coat.legs)
    return [
        _box((0, high, 0), (half * 0.6, high, half), coat.body, hide),
        tail,
        *_head(coat, (0, high * 0.9, half * 1.3), high * 0.8),
    ]


def _lump(wide: float, tall: float, coat: Coat) -> list[Part]:
    half, hide = wide * 0.5, _tile(coat.body, coat.kind.get("hide", ""))
    face = _face(coat.head, coat.kind.get("face", "plain"))
    body = Part(0, tall / 2, 0, half, tall / 2, half, hide, face, hide)
    return [body, *_head(coat, (0, tall / 2, 0), half)[1:]]


def _only_head(wide: float, tall: float, coat: Coat) -> list[Part]:
    return _head(coat, (0, tall - 0.25, 0), 0.25)


_PLANS: dict[str, Callable[[float, float, Coat], list[Part]]] = {
    "upright": _upright, "fours": _fours, "creeper": _creeper, "spider": _spider, "bird": _bird,
    "stacked": _stacked, "tentacles": _tentacles, "worm": _worm, "lump": _lump, "head": _only_head,
}  # fmt: skip


def _item(name: str) -> list[Part]:
    """Returns an item on the ground: its icon, upright, or a small block."""
    icon = icon_of(name)
    if icon is not None:
        return [Part(0, 0.3, 0, 0.24, 0.24, 0.02, _EMPTY, icon, _EMPTY)]
    side, _, top, *_, front = faces_of(name, {"facing": "north"})
    return [Part(0, 0.25, 0, 0.15, 0.15, 0.15, side, front, top)]


def _thing(name: str, wide: float, tall: float) -> list[Part]:
    if re.search("arrow|trident", name):
        shaft = _box((0, 0.1, 0), (0.03, 0.03, 0.35), (140, 104, 62))
        return [shaft, _box((0, 0.1, 0.36), (0.05, 0.05, 0.06), (220, 220, 220))]
    if re.search("boat|minecart", name):
        colour = (164, 132, 80) if name == "boat" else (138, 138, 144)
        parts = [_box((0, 0.1, 0), (0.6, 0.1, 0.7), shade(colour, 0.8))]
        parts += [_box((x * 0.6, 0.35, 0), (0.07, 0.2, 0.7), colour) for x in (-1.0, 1.0)]
        return parts + [_box((0, 0.35, z * 0.65), (0.55, 0.2, 0.07), colour) for z in (-1.0, 1.0)]
    icon = icon_of(name)
    if icon is not None:
        return [Part(0, 0.15, 0, 0.2, 0.2, 0.02, _EMPTY, icon, _EMPTY)]
    half, high = max(wide * 0.5, 0.08), max(tall, 0.1) / 2
    if name == "tnt":
        side, _, top, *_ = faces_of(name, {})
        return [Part(0, high, 0, half, high, half, side, side, top)]
    return [_box((0, high, 0), (half, high, half), _TNT if "tnt" in name else own_colour(name))]


def is_flat(name: str, item: str) -> bool:
    """True if a body is one drawing, which always faces the eye."""
    return icon_of(item if name == "item" else name) is not None and _is_thing(name)


def _is_thing(name: str) -> bool:
    return re.search(_THINGS, name) is not None and name not in _bodies()["kinds"]


@functools.lru_cache(maxsize=1024)
def model_of(name: str, wide: float, tall: float, variant: int, item: str) -> tuple[Part, ...]:
    """Returns the parts of a body.

    Args:
        name: its kind.
        wide: width in blocks, as in the game.
        tall: height in blocks.
        variant: distinguishes it from others of its kind; see ``scene.js``.
        item: name of the item, if it is an item on the ground.
    """
    if _is_thing(name):
        return tuple(_item(item) if item else _thing(name, wide, tall))
    kind = _bodies()["kinds"].get(name)
    if kind is None:
        own = own_colour(name)
        return tuple(_lump(wide, tall, Coat(own, shade(own, 1.1), shade(own, 0.8), {})))
    body, head, legs = map(hexed, kind["coat"].split())
    if name == "player":
        body, legs = _DYES[variant % 16], shade(_DYES[variant // 16 % 16], 0.7)
    if name == "sheep":
        body = head if variant & 16 else _DYES[variant & 15]
    return tuple(_PLANS[kind["plan"]](wide, tall, Coat(body, head, legs, kind)))


def _template(
    looks: Looks, name: str, wide: float, tall: float, variant: int, item: str, flags: int
) -> NDArray[np.float64]:
    """Returns a model as rows of centre, half sizes, tiles, and whether it belongs to the head."""
    rows = []
    size = 0.5 if flags & YOUNG else 1.0
    for part in model_of(name, wide, tall, variant, item):
        lower = 0.15 if flags & SNEAKING and part.y > tall * 0.4 else 0.0
        sizes = [each * size for each in part[:6]]
        tiles = [looks.number_of(tile) for tile in part[6:9]]
        rows.append((sizes[0], sizes[1] - lower, *sizes[2:], *tiles, float(part.is_head)))
    return np.array(rows)


def parts_of(looks: Looks, bodies: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns the parts of all bodies of a scene, ``(P, PART)``; paints their tiles.

    Args:
        looks: the kinds and items there are.
        bodies: ``(N, 8)``: kind, x, y, z from the eye, yaw, head's yaw, variant, flags.
    """
    of = bodies.astype(np.float64)
    models = []
    for row, (kind, *_, variant, flags) in enumerate(bodies.astype(np.int64).tolist()):
        known = looks.entities[kind] if 0 <= kind < len(looks.entities) else None
        name, wide, tall = known or ("unknown", 0.6, 0.6)
        is_item = name == "item" and 0 <= variant < len(looks.items)
        item = (looks.items[variant] or "") if is_item else ""
        key = (name, wide or 0.25, tall or 0.25, variant, item, flags)
        if key not in looks.templates:
            looks.templates[key] = _template(looks, *key)
        models.append(looks.templates[key])
        if is_flat(name, item):
            of[row, 4:6] = np.arctan2(of[row, 1], of[row, 3])
    if not models:
        return np.zeros((0, PART))
    boxes = np.concatenate(models)
    of = of[np.repeat(np.arange(len(bodies)), [len(each) for each in models])]
    yaw = np.where(boxes[:, 9] > 0, of[:, 5], of[:, 4])
    return np.column_stack([of[:, 1:4], np.sin(yaw), np.cos(yaw), boxes[:, :9]])


def cloud_map(size: int) -> NDArray[np.uint8]:
    """Returns where clouds are, ``(size, size)``, periodic at its edges."""
    rough = np.array(
        [[number_of(f"cloud {x} {y}") / 65536 for y in range(size // 4)] for x in range(size // 4)]
    )
    fine = np.array(
        [[number_of(f"wisp {x} {y}") / 65536 for y in range(size)] for x in range(size)]
    )
    wide = rough.repeat(4, 0).repeat(4, 1)
    soft = sum(np.roll(wide, (dx, dy), (0, 1)) for dx in range(4) for dy in range(4)) / 16
    return ((soft + 0.25 * (fine - 0.5)) > 0.58).astype(np.uint8)
