"""Observations as text and pictures for language models."""

from __future__ import annotations

import hashlib
from typing import Any

import cv2
import numpy as np
from gymnasium import spaces

from rollout.api import PRIVILEGED, Array, BridgeSpec, Columns, Details, is_picture, pixels

_SMALL = 64  # numbers of a column that are shown
TEXT, MISSION = "text", "mission"


def is_shown_picture(leaf: spaces.Space[Any]) -> bool:
    """Returns whether a column is a picture that a model could recognize: at least 16 x 16."""
    shape = leaf.shape or ()
    return is_picture(leaf) and len(shape) == 3 and min(shape[:2]) >= 16 and shape[2] in (1, 3)


def observation_values(
    spec: BridgeSpec, observations: Columns, row: int, details: Details
) -> dict[str, Any]:
    """Returns the variables of templates that describe an observation: text and observation."""
    texts, small = [str(details[TEXT])] if details.get(TEXT) else [], {}
    leaves = spec.observation_space.spaces
    several = sum(isinstance(leaf, spaces.Text) for leaf in leaves.values()) > 1
    for key, leaf in leaves.items():
        if key.startswith(PRIVILEGED):
            continue
        value = observations[key][row]
        if isinstance(leaf, spaces.Text):
            small[key] = str(value)
            if key != TEXT or not details.get(TEXT):
                texts.append(f"{key}: {value}" if several and key != TEXT else str(value))
        elif np.size(value) <= _SMALL:
            small[key] = np.asarray(value).tolist()
    return {"text": "\n".join(texts), "observation": small}


def picture_file(
    leaf: spaces.Space[Any], value: Array, *, scale: int = 1, codec: str = "png"
) -> bytes:
    """Returns the file of a value of a picture column, RGB or grey.

    Args:
        leaf: the space of the column.
        value: the picture.
        scale: how many times each pixel is repeated in both directions.
        codec: png (lossless) or jpeg.
    """
    image = np.ascontiguousarray(pixels(leaf, value))
    if image.ndim == 3 and image.shape[2] == 3:
        image = cv2.cvtColor(image, cv2.COLOR_RGB2BGR)
    if scale > 1:
        image = np.repeat(np.repeat(image, scale, axis=0), scale, axis=1)
    return bytes(cv2.imencode(".png" if codec == "png" else ".jpg", image)[1])


def picture_digest(image: bytes) -> str:
    """Returns the digest by which messages refer to the file of a picture."""
    return hashlib.sha256(image).hexdigest()[:32]
