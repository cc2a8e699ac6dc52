"""Paints sprites from texts that list shapes; ``data/pictures/shapes.yaml`` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.errors import ConfigError
from rollout.yaml12 import load_yaml

Color: TypeAlias = tuple[int, int, int]
Pixels: TypeAlias = NDArray[np.uint8]

DATA = Path(__file__).parents[1] / "data" / "pictures"
UNITS = 16
"""Units of shapes in a tile's width."""
_FINE = 3  # painted so many times larger, then averaged
_SHIFT = 4  # bits of OpenCV's fractions of a pixel
_EDGE = 0.5  # width of the darker edge of a shape, in units
_OUTLINE = (46, 32, 42)


@cache
def table(name: str) -> dict[str, Any]:
    """Returns a table of ``data/pictures/NAME.yaml``."""
    found: dict[str, Any] = load_yaml(DATA / f"{name}.yaml", ours=True)
    return found


@cache
def color(word: str) -> Color:
    """Returns the color of a name of the palette or of ``#rrggbb``; each + is lighter, - darker."""
    plain = word.rstrip("+-")
    found = table("shapes")["palette"].get(plain, plain)
    if not found.startswith("#") or len(found) != 7:
        raise ConfigError(f"shapes.yaml: expected a color of the palette or #rrggbb, got {word!r}")
    rgb = tuple(int(found[at : at + 2], 16) for at in (1, 3, 5))
    for sign in word[len(plain) :]:
        rgb = tuple(round(c + (255 - c) * 0.25) if sign == "+" else round(c * 0.78) for c in rgb)
    return rgb[0], rgb[1], rgb[2]


def paint(
    shapes: str,
    size: tuple[float, float],
    side: int,
    colors: Sequence[str] = (),
    *,
    scale: float = 1.0,
    flip: bool = False,
    outline: bool = True,
) -> Pixels:
    """Returns a sprite, ``(height, width, 4)``: RGB that is multiplied by its opacity, then that.

    Args:
        shapes: separated by semicolons: a letter, a color, numbers in units. ``o`` is an ellipse
            (x, y, radii), ``a`` a part of one (with two angles), ``r`` a rectangle (x, y, width,
            height), ``p`` a polygon, ``l`` a line (width, points). Capital letters have no darker
            edge.
        size: width and height in tiles.
        side: pixels of a tile.
        colors: what ``$1``, ``$2`` and so on stand for.
        scale: of the shapes, about the middle of the lower edge.
        flip: whether left and right are exchanged.
        outline: whether the whole has a dark outline.
    """
    width, height = (max(1, round(each * side)) for each in size)
    image = np.zeros((height * _FINE, width * _FINE, 4), np.uint8)
    unit = _FINE * side / UNITS
    for text in filter(None, map(str.strip, shapes.split(";"))):
        kind, name, *numbers = text.split()
        if name.startswith("$"):
            name = colors[int(name[1]) - 1] + name[2:]
        values = np.array(numbers, float)
        _shape(image, kind, color(name), values * unit, unit, values[4:6])
    if scale != 1.0:
        whole = image.shape[1], image.shape[0]
        moved = np.array(
            [[scale, 0, whole[0] / 2 * (1 - scale)], [0, scale, whole[1] * (1 - scale)]]
        )
        image = np.asarray(cv2.warpAffine(image, moved, whole, flags=cv2.INTER_AREA), np.uint8)
    if outline:
        image = _outlined(image, max(1, round(unit * 0.55)))
    image[..., :3] = image[..., :3] * np.linspace(1.0, 0.9, len(image))[:, None, None]
    image[..., :3][image[..., 3] == 0] = 0
    small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(small[:, ::-1] if flip else small, np.uint8)


def _shape(
    image: Pixels, kind: str, rgb: Color, at: NDArray[Any], unit: float, angles: NDArray[Any]
) -> None:
    fill, edge = (*rgb, 255), (*(round(c * 0.66) for c in rgb), 255)
    thick = max(1, round(_EDGE * unit))
    fixed = np.round(at * (1 << _SHIFT)).astype(int)
    rest = cv2.LINE_8, _SHIFT
    match kind.lower():
        case "o" | "a":
            middle, radii = fixed[:2].tolist(), fixed[2:4].tolist()
            start, end = angles.tolist() if kind in "aA" else (0, 360)
            cv2.ellipse(image, middle, radii, 0, start, end, fill, -1, *rest)
            if kind.islower():
                cv2.ellipse(image, middle, radii, 0, start, end, edge, thick, *rest)
        case "r":
            x, y, wide, high = at[:4].tolist()
            corners = np.array([[x, y], [x + wide, y], [x + wide, y + high], [x, y + high]])
            _polygon(image, corners, fill, edge if kind.islower() else None, thick)
        case "p":
            _polygon(image, at.reshape(-1, 2), fill, edge if kind.islower() else None, thick)
        case "l":
            points = np.round(at[1:].reshape(-1, 1, 2)).astype(np.int32)
            cv2.polylines(image, [points], False, fill, max(1, round(at[0])), cv2.LINE_8)
        case _:
            raise ConfigError(f"shapes: expected o, a, r, p or l, got {kind!r}")


def _polygon(image: Pixels, points: NDArray[Any], fill: Any, edge: Any, thick: int) -> None:
    fixed = [np.round(points * (1 << _SHIFT)).astype(np.int32).reshape(-1, 1, 2)]
    cv2.fillPoly(image, fixed, fill, cv2.LINE_8, _SHIFT)
    if edge is not None:
        cv2.polylines(image, fixed, True, edge, thick, cv2.LINE_8, _SHIFT)


def _outlined(image: Pixels, radius: int) -> Pixels:
    brush = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1,) * 2)
    wide = cv2.dilate(image[..., 3], brush)
    below = (image[..., 3] == 0) & (wide > 0)
    image[below] = (*_OUTLINE, 255)
    return image


def named(name: str) -> tuple[tuple[float, float], str]:
    """Returns size and shapes of a sprite of ``shapes.yaml``."""
    found: Mapping[str, Any] = table("shapes")["sprites"]
    if name not in found:
        raise ConfigError(f"shapes.yaml has no sprite {name!r}")
    wide, high, shapes = found[name]
    return (wide, high), shapes
