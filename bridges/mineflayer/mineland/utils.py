"""Pictures as MineLand's scripts handle them, and its measure of how alike two are."""

from __future__ import annotations

import base64

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.errors import InputError


def base64_to_image(text: str, width: int, height: int) -> NDArray[np.uint8]:
    """Returns a picture in base64 as ``(3, height, width)``: red, green, blue.

    Args:
        text: the file; empty for a black picture.
        width: pixels; another picture is made this wide.
        height: likewise.

    Raises:
        InputError: the text is no picture.
    """
    if not text:
        return np.zeros((3, height, width), np.uint8)
    file = np.frombuffer(base64.b64decode(text), np.uint8)
    found = cv2.imdecode(file, cv2.IMREAD_COLOR)
    if found is None:
        raise InputError(f"expected a picture in base64, got {text[:40]!r}")
    picture = found[..., ::-1]
    if picture.shape[:2] != (height, width):
        picture = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(picture.transpose(2, 0, 1)).astype(np.uint8)


def likeness(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Returns the share of key points (ORB) of two pictures that match, 0 to 1.

    Rublee et al. (2011); matched both ways by Hamming distance, as MineLand's code does.

    Args:
        one: a picture, ``(height, width, 3)``.
        other: likewise.
    """
    orb = cv2.ORB_create()  # type: ignore[attr-defined] # its stubs lack it
    (points, first), (others, second) = (orb.detectAndCompute(each, None) for each in (one, other))
    if first is None or second is None:
        return 0.0
    matches = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(first, second)
    return len(matches) / max(len(points), len(others))
