"""Picture columns: which observations can be shown to a person or a model, and their pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api.types import Array

_SMALLEST = 8  # pixels of a side; a smaller array is a table of numbers
_DEEPEST = 16  # frames in a stack


def is_picture(leaf: spaces.Space[Any]) -> bool:
    """Returns whether the values of a column are pictures, or stacks of them.

    A picture is ``(H, W)`` or ``(H, W, channels)`` of at least 8 x 8 pixels and at most 4 channels,
    a stack ``(S, H, W)`` or ``(S, H, W, channels)`` of at most 16 frames. Its values are bytes, or
    numbers of any type with the bounds 0 to 255, or floats with the bounds 0 to 1.
    """
    if not isinstance(leaf, spaces.Box) or not (_is_image(leaf.shape) or _is_stack(leaf.shape)):
        return False
    if leaf.dtype == np.uint8:
        return True
    white = (255.0, 1.0) if np.issubdtype(leaf.dtype, np.floating) else (255.0,)
    return bool((leaf.low == 0).all()) and any(bool((leaf.high == w).all()) for w in white)


def pixels(leaf: spaces.Space[Any], value: Array) -> NDArray[np.uint8]:
    """Returns the picture in a value of a picture column; of a stack, the newest frame.

    Args:
        leaf: the space of the column, for which ``is_picture`` holds.
        value: a value of the column.

    Returns:
        ``(H, W)`` or ``(H, W, channels)`` uint8, 0 to 255; a view if the value has bytes.
    """
    assert isinstance(leaf, spaces.Box)
    frame = value if _is_image(leaf.shape) else value[-1]
    if frame.dtype == np.uint8:
        return frame
    scale = 255.0 if float(leaf.high.max()) <= 1.0 else 1.0
    scaled = np.rint(frame.astype(np.float64) * scale)
    return np.asarray(np.clip(scaled, 0.0, 255.0), np.uint8)


def _is_image(shape: tuple[int, ...]) -> bool:
    flat = len(shape) == 2 or (len(shape) == 3 and shape[2] <= 4)
    return flat and min(shape[:2]) >= _SMALLEST


def _is_stack(shape: tuple[int, ...]) -> bool:
    deep = (len(shape) == 3 and shape[2] > 4) or (len(shape) == 4 and shape[3] <= 4)
    return deep and shape[0] <= _DEEPEST and min(shape[1:3]) >= _SMALLEST
