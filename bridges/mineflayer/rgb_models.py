"""Bodies made of boxes: creatures, players, items on the ground. All shapes are our own.

A part is a box relative to the feet of its body, which faces +z with +x on its right; parts of the
head turn with the head.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bridges.mineflayer.palette import DYES, colour_of, number_of, own_colour
from bridges.mineflayer.rgb_frame import PART
from bridges.mineflayer.rgb_looks import Looks
from bridges.mineflayer.rgb_tiles import Colour

Part = tuple[float, float, float, float, float, float, Colour, bool]
"""Middle x, y, z; half sizes x, y, z; colour; whether it turns with the head."""

YOUNG, SNEAKING = 2, 4
_EYE: Colour = (18, 18, 20)
_SKIN: Colour = (198, 150, 118)

# Body, head, legs.
_COATS: dict[str, tuple[Colour, Colour, Colour]] = {
    "zombie": ((38, 128, 128), (92, 138, 80), (62, 60, 130)),
    "husk": ((128, 108, 74), (150, 130, 92), (96, 84, 60)),
    "drowned": ((72, 130, 120), (92, 160, 140), (50, 84, 92)),
    "zombie_villager": ((96, 70, 50), (92, 138, 80), (80, 60, 44)),
    "skeleton": ((196, 196, 192), (208, 208, 204), (186, 186, 182)),
    "stray": ((140, 156, 160), (196, 206, 208), (120, 136, 140)),
    "wither_skeleton": ((44, 44, 44), (54, 54, 54), (40, 40, 40)),
    "enderman": ((22, 20, 26), (24, 22, 30), (20, 18, 24)),
    "creeper": ((92, 178, 84), (104, 190, 96), (74, 146, 68)),
    "spider": ((54, 44, 40), (66, 52, 46), (44, 36, 32)),
    "cave_spider": ((26, 66, 74), (32, 80, 88), (20, 50, 58)),
    "villager": ((118, 82, 56), (188, 138, 108), (96, 66, 46)),
    "witch": ((62, 44, 82), (180, 140, 110), (50, 34, 66)),
    "pillager": ((76, 80, 84), (140, 148, 148), (60, 60, 66)),
    "vindicator": ((62, 70, 72), (140, 148, 148), (40, 44, 46)),
    "iron_golem": ((204, 196, 188), (210, 200, 190), (186, 178, 170)),
    "snow_golem": ((240, 246, 248), (222, 130, 34), (240, 246, 248)),
    "cow": ((76, 56, 44), (82, 60, 48), (66, 50, 40)),
    "mooshroom": ((164, 30, 30), (160, 34, 32), (150, 28, 28)),
    "pig": ((238, 164, 160), (242, 172, 168), (228, 152, 148)),
    "sheep": ((232, 232, 228), (202, 168, 148), (208, 180, 160)),
    "chicken": ((240, 240, 238), (244, 244, 242), (222, 180, 60)),
    "horse": ((140, 96, 60), (132, 90, 56), (112, 78, 50)),
    "donkey": ((132, 120, 106), (124, 112, 100), (108, 98, 88)),
    "mule": ((92, 62, 46), (86, 58, 44), (76, 50, 38)),
    "llama": ((206, 186, 150), (200, 180, 146), (186, 166, 132)),
    "wolf": ((206, 200, 196), (214, 208, 204), (190, 184, 180)),
    "fox": ((222, 122, 46), (226, 130, 54), (62, 44, 36)),
    "rabbit": ((160, 130, 100), (166, 136, 106), (146, 118, 90)),
    "polar_bear": ((236, 238, 236), (240, 242, 240), (226, 228, 226)),
    "cat": ((190, 150, 96), (196, 156, 102), (176, 138, 88)),
    "ocelot": ((222, 176, 84), (226, 182, 90), (206, 160, 72)),
    "slime": ((108, 190, 92), (108, 190, 92), (108, 190, 92)),
    "magma_cube": ((70, 20, 10), (70, 20, 10), (70, 20, 10)),
    "parrot": ((206, 30, 26), (206, 30, 26), (90, 90, 90)),
    "squid": ((52, 76, 98), (58, 84, 106), (46, 68, 88)),
    "bee": ((236, 192, 66), (230, 180, 60), (50, 40, 30)),
    "zombified_piglin": ((224, 150, 140), (220, 150, 140), (128, 104, 60)),
    "piglin": ((150, 100, 60), (232, 170, 140), (110, 76, 50)),
    "ghast": ((244, 244, 244), (244, 244, 244), (230, 230, 230)),
    "blaze": ((244, 188, 44), (248, 200, 60), (206, 130, 24)),
}  # fmt: skip
_FOUR_LEGS = re.compile(
    r"cow|pig$|sheep|horse|donkey|mule|llama|wolf|fox|rabbit|bear|cat$|ocelot|mooshroom|goat|panda|hoglin|zoglin|strider|ravager|turtle"
)
_TWO_LEGS = re.compile(
    r"player|zombie|husk|drowned|skeleton|stray|enderman|villager|witch|pillager|vindicator|evoker|illusioner|golem|piglin|trader|armor_stand|vex|giant|blaze|wither"
)
_THINGS = re.compile(
    r"item|boat|minecart|arrow|trident|potion|pearl|snowball|egg|fireball|tnt|falling|orb|bottle"
    r"|crystal|painting|frame|knot|bobber|firework|llama_spit|bullet|lightning|cloud|fangs|marker"
)


def _dark(colour: Colour, by: float = 0.8) -> Colour:
    return (int(colour[0] * by), int(colour[1] * by), int(colour[2] * by))


def _eyes(x: float, y: float, z: float, size: float, colour: Colour = _EYE) -> list[Part]:
    return [(side * x, y, z, size, size, 0.02, colour, True) for side in (-1.0, 1.0)]


def upright(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    """Returns a body on two legs."""
    skull = min(0.25, tall * 0.14)
    hips, neck = tall * 0.4, tall - 2 * skull
    chest = wide * 0.4
    parts: list[Part] = [
        (side * chest * 0.5, hips / 2, 0, chest * 0.44, hips / 2, chest * 0.44, legs, False)
        for side in (-1.0, 1.0)
    ]
    parts.append((0, (hips + neck) / 2, 0, chest, (neck - hips) / 2, chest * 0.52, body, False))
    arm = (neck - hips) / 2
    parts += [
        (
            side * chest * 1.46,
            neck - arm,
            0,
            chest * 0.42,
            arm,
            chest * 0.42,
            _dark(body, 0.9),
            False,
        )
        for side in (-1.0, 1.0)
    ]
    parts.append((0, neck + skull, 0, skull, skull, skull, head, True))
    return parts + _eyes(skull * 0.5, neck + skull * 1.05, skull, skull * 0.22)


def on_fours(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    """Returns a body on four legs."""
    long, hips, back = wide * 0.72, tall * 0.42, tall * 0.86
    side_x, thin = wide * 0.3, wide * 0.11
    parts: list[Part] = [
        (x * side_x, hips / 2, z * long * 0.72, thin, hips / 2, thin, legs, False)
        for x in (-1.0, 1.0)
        for z in (-1.0, 1.0)
    ]
    parts.append((0, (hips + back) / 2, 0, wide * 0.4, (back - hips) / 2, long, body, False))
    skull = wide * 0.27
    front = long + skull * 0.5
    parts.append((0, tall - skull, front, skull, skull, skull, head, True))
    parts.append(
        (
            0,
            tall - skull * 1.4,
            front + skull,
            skull * 0.5,
            skull * 0.35,
            skull * 0.2,
            _dark(head, 0.86),
            True,
        )
    )
    return parts + _eyes(skull * 0.66, tall - skull * 0.7, front + skull, skull * 0.18)


def _creeper(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    parts: list[Part] = [
        (x * 0.13, 0.19, z * 0.26, 0.12, 0.19, 0.12, legs, False)
        for x in (-1.0, 1.0)
        for z in (-1.0, 1.0)
    ]
    parts += [
        (0, 0.76, 0, 0.25, 0.38, 0.13, body, False),
        (0, 1.39, 0, 0.25, 0.25, 0.25, head, True),
    ]
    return [*parts, *_eyes(0.12, 1.45, 0.25, 0.06), (0, 1.26, 0.25, 0.06, 0.09, 0.02, _EYE, True)]


def _spider(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    size = wide / 1.4
    parts: list[Part] = [
        (x * 0.55 * size, 0.3 * size, z * 0.14 * size,
         0.34 * size, 0.06 * size, 0.05 * size, legs, False)
        for x in (-1.0, 1.0) for z in (-3.0, -1.0, 1.0, 3.0)
    ]  # fmt: skip
    parts += [(0, 0.5 * size, -0.55 * size, 0.32 * size, 0.25 * size, 0.38 * size, body, False)]
    parts += [(0, 0.48 * size, 0.2 * size, 0.24 * size, 0.24 * size, 0.26 * size, head, True)]
    return parts + _eyes(0.1 * size, 0.56 * size, 0.46 * size, 0.05 * size, (190, 20, 20))


def _chicken(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    parts: list[Part] = [(x * 0.08, 0.12, 0, 0.03, 0.12, 0.03, legs, False) for x in (-1.0, 1.0)]
    parts += [
        (0, 0.38, 0, 0.19, 0.16, 0.24, body, False),
        (0, 0.62, 0.24, 0.11, 0.16, 0.09, head, True),
    ]
    parts += [
        (0, 0.6, 0.36, 0.08, 0.05, 0.06, (222, 150, 40), True),
        (0, 0.52, 0.34, 0.04, 0.05, 0.03, (200, 30, 26), True),
    ]
    return parts + _eyes(0.09, 0.68, 0.32, 0.03)


def _lump(wide: float, tall: float, body: Colour, head: Colour, legs: Colour) -> list[Part]:
    half = wide * 0.5
    return [
        (0, tall / 2, 0, half, tall / 2, half, body, False),
        *_eyes(half * 0.5, tall * 0.62, half, half * 0.16),
    ]


def _thing(name: str, wide: float, tall: float, colour: Colour) -> list[Part]:
    half = max(wide * 0.5, 0.08)
    if name == "item":
        return [(0, 0.3, 0, 0.14, 0.14, 0.14, colour, False)]
    if re.search("arrow|trident", name):
        return [
            (0, 0.1, 0, 0.03, 0.03, 0.35, (140, 104, 62), False),
            (0, 0.1, 0.36, 0.05, 0.05, 0.06, (220, 220, 220), False),
        ]
    if "boat" in name:
        return [
            (0, 0.1, 0, 0.6, 0.1, 0.7, colour, False),
            *[(x * 0.6, 0.35, 0, 0.07, 0.2, 0.7, colour, False) for x in (-1.0, 1.0)],
        ]
    return [(0, max(tall, 0.1) / 2, 0, half, max(tall, 0.1) / 2, half, colour, False)]


_SPECIAL: dict[str, Callable[[float, float, Colour, Colour, Colour], list[Part]]] = {

    "creeper": _creeper, "spider": _spider, "cave_spider": _spider, "chicken": _chicken,
    "parrot": _chicken,
}  # fmt: skip


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
    if re.search(_THINGS, name) and name not in _COATS:
        return tuple(_thing(name, wide, tall, colour_of(item) if item else colour_of(name)))
    body, head, legs = _COATS.get(
        name, (own_colour(name), _dark(own_colour(name), 1.1), _dark(own_colour(name)))
    )
    if name == "player":
        shirts = list(DYES.values())
        body, head, legs = shirts[variant % 16], _SKIN, _dark(shirts[variant // 16 % 16], 0.7)
    if name == "sheep":
        body = head if variant & 16 else list(DYES.values())[variant & 15]
    if name in _SPECIAL:
        return tuple(_SPECIAL[name](wide, tall, body, head, legs))
    if re.search(_FOUR_LEGS, name):
        return tuple(on_fours(wide, tall, body, head, legs))
    make = upright if re.search(_TWO_LEGS, name) else _lump
    return tuple(make(wide, tall, body, head, legs))


@functools.lru_cache(maxsize=1024)
def _template(
    name: str, wide: float, tall: float, variant: int, item: str, flags: int
) -> NDArray[np.float64]:
    """Returns a model as rows of centre, half sizes, colour, and whether it belongs to the head."""
    rows = []
    for *box, colour, is_head in model_of(name, wide, tall, variant, item):
        lower = 0.15 if flags & SNEAKING and float(box[1]) > tall * 0.4 else 0.0
        sizes = [float(each) * (0.5 if flags & YOUNG else 1.0) for each in box]
        rows.append((sizes[0], sizes[1] - lower, *sizes[2:], *colour, float(is_head)))
    return np.array(rows)


def parts_of(looks: Looks, bodies: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns the parts of all bodies of a scene, ``(P, PART)``.

    Args:
        looks: the kinds and items there are.
        bodies: ``(N, 8)``: kind, x, y, z from the eye, yaw, head's yaw, variant, flags.
    """
    models = []
    for kind, *_, variant, flags in bodies.astype(np.int64).tolist():
        known = looks.entities[kind] if 0 <= kind < len(looks.entities) else None
        name, wide, tall = known or ("unknown", 0.6, 0.6)
        is_item = name == "item" and 0 <= variant < len(looks.items)
        item = (looks.items[variant] or "") if is_item else ""
        models.append(_template(name, wide or 0.25, tall or 0.25, variant, item, flags))
    if not models:
        return np.zeros((0, PART))
    boxes = np.concatenate(models)
    of = bodies.astype(np.float64)[
        np.repeat(np.arange(len(bodies)), [len(each) for each in models])
    ]
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
