"""Nearby entities relative to the agent: the observation ``bearings``.

``entities`` gives positions along the axes of the world, in numbers of any size, which suits
generated programs. A small network would first have to learn that the kind of an entity is a
category, and how an offset and a yaw make "to my left"; here both is computed.
"""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api.types import Floats

BEARINGS = "bearings"
"""Name of the observation."""

SEEN = 4
"""Number of entities, the nearest first; rows of zeros where there are fewer."""

PARTS = ("target", "health", "ahead", "left", "up", "near")
"""The features of each, all within -1 to 1: whether it is a target; its health, 20 is 1; the cosine
and the sine of the turn to it (1, 0 straight ahead; 0, 1 to the left); the sine of the elevation
from one's own feet to its feet; and 1 / (1 + its distance in blocks)."""

_FULL = 20.0
_TARGET, _HEALTH, _OFFSET = 1, 2, slice(3, 6)


def space() -> spaces.Box:
    """Returns the space of a row: (entities, parts), float32."""
    return spaces.Box(-1.0, 1.0, (SEEN, len(PARTS)), np.float32)


def bearings(entities: Floats, look: Floats) -> NDArray[np.float32]:
    """Returns the nearby entities of some rows, ``(B, SEEN, len(PARTS))``.

    Args:
        entities: the observation of that name, ``(B, n, 9)``.
        look: the observation of that name, ``(B, 2)``: yaw grows to the left.
    """
    seen = entities[:, :SEEN]
    offset = seen[..., _OFFSET].astype(np.float64)
    yaw = look[:, :1].astype(np.float64)
    # Straight ahead is (-sin yaw, -cos yaw); a left turn by an angle increases yaw by that angle.
    ahead = -np.sin(yaw) * offset[..., 0] - np.cos(yaw) * offset[..., 2]
    left = -np.cos(yaw) * offset[..., 0] + np.sin(yaw) * offset[..., 2]
    level = np.maximum(np.hypot(ahead, left), 1e-6)
    distance = np.linalg.norm(offset, axis=-1)
    out = np.empty((*seen.shape[:2], len(PARTS)), np.float32)
    out[..., 0] = seen[..., _TARGET]
    out[..., 1] = np.clip(seen[..., _HEALTH] / _FULL, 0.0, 1.0)
    out[..., 2] = ahead / level
    out[..., 3] = left / level
    out[..., 4] = offset[..., 1] / np.maximum(distance, 1e-6)
    out[..., 5] = 1.0 / (1.0 + distance)
    out[seen[..., 0] == 0] = 0.0
    return np.clip(out, -1.0, 1.0, out=out)
