"""The appearance of creatures: boxes, and 8 x 8 texels for the faces of each.

A box is given in sixteenths of a block from the middle of the creature's feet, before rotation:
``x`` to its right, ``y`` up, ``z`` ahead. Its front has a picture of its own; all other faces share
one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridges.blockworld.species import COATS
from bridges.blockworld.tiles import grain

_Colour = tuple[int, int, int]
_PIXELS = 8


def _hide(colour: _Colour, seed: int, spread: float = 0.16) -> NDArray[np.float64]:
    rough = 1.0 + spread * (grain(seed, _PIXELS) - 0.5)
    return np.array(colour) * rough[..., None]


def _marked(
    tile: NDArray[np.float64], marks: str, colours: dict[str, _Colour]
) -> NDArray[np.float64]:
    """Returns a picture with marks: eight rows of eight letters, a dot for no change."""
    tile = tile.copy()
    for row, line in enumerate(marks.split()):
        for column, letter in enumerate(line):
            if letter != ".":
                tile[row, column] = colours[letter]
    return tile


_EYES = {"w": (240, 240, 240), "k": (18, 16, 20), "r": (196, 30, 34), "p": (226, 132, 140)}
_SHEEP_FACE = "........ ........ .wk..kw. .wk..kw. ........ ..pppp.. ..pppp.. ........"
_COW_FACE = "..wwww.. ..wwww.. kw.ww.wk kw.ww.wk ...ww... .wwwwww. .wkwwkw. .wwwwww."
_PIG_FACE = "........ ........ kw....wk kw....wk ........ ........ ........ ........"
_ZOMBIE_FACE = "........ ........ ........ .kk..kk. .kk..kk. ...nn... ..nnnn.. ........"
_SKULL = "........ ........ ........ .kk..kk. .kk..kk. ...kk... kkkkkkkk ........"
_SPIDER_FACE = "........ .r....r. ..rrrr.. .rr..rr. .rr..rr. ........ ..w..w.. ..w..w.."
_CHICKEN_FACE = "........ ........ k......k k......k ........ ........ ........ ........"
_RIBS = "kkkkkkkk ........ kkk..kkk ........ kkk..kkk ........ kkk..kkk ...kk..."
_PATCHES = "ww...... ww...ww. .....www ..w...ww .www.... .www.... ......w. ww...ww."


def _skins() -> dict[str, NDArray[np.float64]]:
    zombie, bone, dark = (96, 140, 82), (202, 202, 196), (52, 44, 40)
    pale, cow, pig = (222, 192, 164), (78, 58, 44), (238, 160, 158)
    green = dict(_EYES, n=(62, 98, 54), k=(22, 26, 20))
    return {
        "wool": _hide((240, 240, 240), 201, 0.22),
        "sheep": _hide(pale, 202),
        "sheep face": _marked(_hide(pale, 202), _SHEEP_FACE, _EYES),
        "cow": _marked(_hide(cow, 203), _PATCHES, {"w": (226, 224, 220)}),
        "cow face": _marked(_hide(cow, 203), _COW_FACE, dict(_EYES, w=(214, 210, 204))),
        "cow leg": _hide((66, 50, 40), 204),
        "horn": _hide((200, 196, 184), 205),
        "pig": _hide(pig, 206, 0.1),
        "pig face": _marked(_hide(pig, 206, 0.1), _PIG_FACE, _EYES),
        "snout": _marked(
            _hide((226, 132, 134), 207, 0.06),
            "........ ........ ........ .kk..kk. .kk..kk. ........ ........ ........",
            {"k": (134, 66, 70)},
        ),
        "feather": _hide((246, 246, 246), 208, 0.1),
        "chicken face": _marked(_hide((246, 246, 246), 208, 0.1), _CHICKEN_FACE, _EYES),
        "beak": _hide((226, 168, 54), 209, 0.08),
        "wattle": _hide((206, 30, 30), 210, 0.08),
        "zombie": _hide(zombie, 211),
        "zombie face": _marked(_hide(zombie, 211), _ZOMBIE_FACE, green),
        "shirt": _hide((38, 134, 138), 212),
        "trousers": _hide((64, 58, 140), 213),
        "bone": _hide(bone, 214, 0.1),
        "skull": _marked(_hide(bone, 214, 0.1), _SKULL, {"k": (44, 44, 44)}),
        "ribs": _marked(_hide((70, 70, 68), 215, 0.1), _RIBS, {"k": bone}),
        "bow": _hide((116, 82, 44), 216),
        "spider": _hide(dark, 217, 0.3),
        "spider face": _marked(_hide(dark, 217, 0.3), _SPIDER_FACE, dict(_EYES, r=(216, 20, 24))),
        "arrow": _hide((110, 92, 74), 218),
        "flight": _hide((228, 228, 228), 219),
    }


_SKINS = _skins()
_SKIN = {name: number for number, name in enumerate(_SKINS)}
SKINS = np.concatenate(
    [np.clip(s, 0, 255).astype(np.int32).reshape(64, 3) for s in _SKINS.values()]
)
SKINS = (SKINS[:, 0] << 16) | (SKINS[:, 1] << 8) | SKINS[:, 2]
"""Texels ``red << 16 | green << 8 | blue``, by ``skin * 64 + row * 8 + column``."""

COAT_COLOURS = (
    np.array(
        [
            (250, 252, 252),
            (158, 158, 152),
            (84, 88, 92),
            (40, 40, 46),
            (126, 82, 48),
            (240, 148, 176),
            (252, 214, 62),
            (92, 184, 226),
        ],
        np.float64,
    )
    / 240.0
)
"""Reflectance of the wool of each coat, in the order of ``COATS``."""
assert len(COAT_COLOURS) == len(COATS)

_Box = tuple[float, float, float, float, float, float, str, str, int, int]
"""Least x, y, z and greatest x, y, z; skin, skin of the front; the swing when the creature walks;
whether its colour is the coat's."""


def _legs(x: float, z: float, size: float, high: float, skin: str) -> list[_Box]:
    """Returns four legs, which swing in two pairs."""
    h = size / 2
    return [
        (a * x - h, 0, b * z - h, a * x + h, high, b * z + h, skin, skin, a * b, 0)
        for a in (-1, 1)
        for b in (-1, 1)
    ]


def _two(x: float, box: tuple[float, float, float], skin: str, swing: int) -> list[_Box]:
    """Returns a pair of limbs beside the middle: height from and to, and width."""
    low, high, size = box
    h = size / 2
    return [(a * x - h, low, -h, a * x + h, high, h, skin, skin, a * swing, 0) for a in (-1, 1)]


def _spider() -> list[_Box]:
    made: list[_Box] = [
        (-4, 4, 3, 4, 12, 11, "spider", "spider face", 0, 0),
        (-3, 5, -3, 3, 11, 3, "spider", "spider", 0, 0),
        (-5, 4, -14, 5, 13, -3, "spider", "spider", 0, 0),
    ]
    for n, z in enumerate((-5.0, -1.5, 2.0, 5.5)):
        swing = 1 if n % 2 else -1
        made.append((-11, 8, z, 11, 9.5, z + 1.5, "spider", "spider", 0, 0))
        made += [
            (x - 0.8, 0, z, x + 0.8, 9, z + 1.5, "spider", "spider", swing, 0) for x in (-11, 11)
        ]
    return made


_BOXES: tuple[list[_Box], ...] = (
    [],
    [  # sheep
        (-5, 8.5, -8, 5, 19, 8, "wool", "wool", 0, 1),
        (-3, 14, 7, 3, 20, 13.5, "sheep", "sheep face", 0, 0),
        (-3.6, 17.5, 6, 3.6, 21, 12, "wool", "wool", 0, 1),
        *_legs(3, 5, 3.6, 9, "sheep"),
    ],
    [  # cow
        (-6, 10, -9, 6, 20, 9, "cow", "cow", 0, 0),
        (-4, 13, 8, 4, 21, 14, "cow", "cow face", 0, 0),
        (-5.2, 19.5, 9.5, -4, 22.5, 11, "horn", "horn", 0, 0),
        (4, 19.5, 9.5, 5.2, 22.5, 11, "horn", "horn", 0, 0),
        *_legs(4, 6, 4, 10, "cow leg"),
    ],
    [  # pig
        (-5, 5, -8, 5, 13, 7, "pig", "pig", 0, 0),
        (-4, 6, 6, 4, 14, 13, "pig", "pig face", 0, 0),
        (-2, 7, 13, 2, 10, 14.2, "pig", "snout", 0, 0),
        *_legs(3, 5, 4, 5, "pig"),
    ],
    [  # chicken
        (-3, 3, -4, 3, 8, 4, "feather", "feather", 0, 0),
        (-2, 7, 2.5, 2, 11.5, 5.5, "feather", "chicken face", 0, 0),
        (-1.5, 8.3, 5.5, 1.5, 9.8, 7.5, "beak", "beak", 0, 0),
        (-0.8, 6.8, 5.2, 0.8, 8.3, 6.4, "wattle", "wattle", 0, 0),
        (-3.8, 4, -3, -3, 7.6, 3, "feather", "feather", 0, 0),
        (3, 4, -3, 3.8, 7.6, 3, "feather", "feather", 0, 0),
        *_two(1.6, (0, 3, 1.0), "beak", 1),
    ],
    [  # zombie
        (-4, 11.5, -2, 4, 23.5, 2, "shirt", "shirt", 0, 0),
        (-4, 23.5, -4, 4, 31.2, 4, "zombie", "zombie face", 0, 0),
        (-8, 19.5, -2, -4, 23.5, 10, "zombie", "zombie", 0, 0),
        (4, 19.5, -2, 8, 23.5, 10, "zombie", "zombie", 0, 0),
        *_two(2.05, (0, 11.5, 4), "trousers", 1),
    ],
    [  # skeleton
        (-4, 12, -1.5, 4, 24, 1.5, "ribs", "ribs", 0, 0),
        (-4, 24, -4, 4, 31.8, 4, "bone", "skull", 0, 0),
        (-6, 20, -1, -4, 22, 9, "bone", "bone", 0, 0),
        (4, 20, -1, 6, 22, 9, "bone", "bone", 0, 0),
        (4.4, 14, 9, 5.6, 28, 10.2, "bow", "bow", 0, 0),
        *_two(2, (0, 12, 2), "bone", 1),
    ],
    _spider(),
    [  # arrow
        (-0.6, -0.6, -8, 0.6, 0.6, 6, "arrow", "bone", 0, 0),
        (-1.4, -1.4, -8, 1.4, 1.4, -5, "flight", "flight", 0, 0),
    ],
)
ARROW = len(_BOXES) - 1
"""Number of the arrow, after those of the species."""

BOX_FIRST = np.cumsum([0, *(len(boxes) for boxes in _BOXES)]).astype(np.int64)
"""First box of each species; the next one's is where they end."""
BOX_SIZES = np.array([b[:6] for boxes in _BOXES for b in boxes], np.float64) / 16.0
"""``(boxes, 6)``: least x, y, z and greatest x, y, z of each box, in blocks."""
BOX_LOOKS = np.array(
    [(_SKIN[b[6]], _SKIN[b[7]], b[8], b[9]) for boxes in _BOXES for b in boxes], np.int64
)
"""``(boxes, 4)``: skin, skin of the front, swing, whether it has the coat's colour."""
BOX_REACH = np.array(
    [
        np.abs(np.array([b[:6] for b in boxes] or [(0.0,) * 6])[:, [0, 2, 3, 5]]).max()
        for boxes in _BOXES
    ]
) * (1.5 / 16.0)
"""How far from its middle a creature reaches, in blocks."""
