"""VPT's actions: MineStudio's agent space, keys with bins of the camera, and one as the other.

In the agent space ``buttons`` numbers the combinations of the groups below, the first group most
significant, and at last the key ``inventory`` alone; ``camera`` is ``11 * pitch + yaw`` in bins.
The mapping is that of MineStudio's ``CameraHierarchicalMapping`` (MIT).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.mineflayer.spaces import CAMERA, CAMERA_BINS, FARTHEST, KEYS, KEYS_COLUMN
from bridges.mineflayer.spaces import action_space as mineflayer_space
from rollout.api import Columns

BUTTONS = "buttons"
LAYOUTS = ("agent", "human", "mouse")
"""Names of the action layouts: MineStudio's agent space; keys with bins; keys with degrees."""

_GROUPS = (
    tuple(f"hotbar.{n}" for n in range(1, 10)),
    *(("forward", "back"), ("left", "right"), ("sprint", "sneak")),
    *(("use",), ("drop",), ("attack",), ("jump",)),
)
_EXCLUSIVE = ("forward", "left")  # of whose groups both keys together count as none
_SIZES = (*(len(group) + 1 for group in _GROUPS), 2)  # the last: whether the camera moves
INVENTORY_ALONE = prod(_SIZES)
NO_TURN = CAMERA_BINS // 2
_MOST_DEGREES, _MU = 10.0, 10.0


def _degrees() -> NDArray[np.float64]:
    steps = np.linspace(-1.0, 1.0, CAMERA_BINS)
    return np.sign(steps) * _MOST_DEGREES * ((1.0 + _MU) ** np.abs(steps) - 1.0) / _MU


DEGREES = _degrees()
"""Turn of each bin, in degrees."""


def action_space(layout: str) -> spaces.Dict:
    """Returns the action space of one of ``LAYOUTS``."""
    if layout == "agent":
        return spaces.Dict(
            {
                BUTTONS: spaces.Discrete(INVENTORY_ALONE + 1),
                CAMERA: spaces.Discrete(CAMERA_BINS**2),
            }
        )
    return mineflayer_space(layout)


def to_agent(keys: NDArray[Any], camera: NDArray[Any]) -> Columns:
    """Returns actions of the layout ``human`` in the agent space.

    What it has no number for is lost: two keys of a group, and keys together with ``inventory``.

    Args:
        keys: ``(B, 20)``, 0 or 1, in the order of ``KEYS``.
        camera: ``(B, 2)``, bins of pitch and yaw.

    Returns:
        ``buttons`` and ``camera``, ``(B,)`` int64.
    """
    pressed = {key: np.asarray(keys)[:, KEYS.index(key)] > 0 for key in KEYS}
    camera = np.asarray(camera, np.int64)
    turns = (camera != NO_TURN).any(axis=1)
    buttons = np.zeros(len(camera), np.int64)
    for group, size in zip(_GROUPS, _SIZES, strict=False):
        choice = np.zeros(len(camera), np.int64)
        for number, key in enumerate(group, 1):
            choice[pressed[key]] = number
        if group[0] in _EXCLUSIVE:
            choice[pressed[group[0]] & pressed[group[1]]] = 0
        buttons = buttons * size + choice
    buttons = buttons * 2 + turns
    alone = pressed["inventory"]
    still = NO_TURN * CAMERA_BINS + NO_TURN
    return {
        BUTTONS: np.where(alone, INVENTORY_ALONE, buttons),
        CAMERA: np.where(alone, still, camera[:, 0] * CAMERA_BINS + camera[:, 1]),
    }


def to_keys(buttons: NDArray[Any], camera: NDArray[Any]) -> Columns:
    """Returns actions of the agent space in the layout ``human``.

    Args:
        buttons: ``(B,)``.
        camera: ``(B,)``; without effect where ``buttons`` says that the camera stays. With
            ``inventory`` it has one, although ``to_agent`` never says so.

    Returns:
        ``keys`` ``(B, 20)`` int8 and ``camera`` ``(B, 2)`` int64.
    """
    rest = np.asarray(buttons, np.int64).copy()
    camera = np.asarray(camera, np.int64)
    keys = np.zeros((len(rest), len(KEYS)), np.int8)
    alone = rest == INVENTORY_ALONE
    keys[alone, KEYS.index("inventory")] = 1
    rest[alone] = 0
    rest, turns = np.divmod(rest, 2)
    for group in reversed(_GROUPS):
        rest, choice = np.divmod(rest, len(group) + 1)
        for number, key in enumerate(group, 1):
            keys[choice == number, KEYS.index(key)] = 1
    bins = np.stack(np.divmod(camera, CAMERA_BINS), axis=1)
    bins[(turns == 0) & ~alone] = NO_TURN
    return {KEYS_COLUMN: keys, CAMERA: bins}


def env_action(layout: str, actions: Columns) -> dict[str, Any]:
    """Returns the action of the only slot as ``MinecraftSim`` takes it, for its env space.

    Args:
        layout: one of ``LAYOUTS``.
        actions: the columns, one row; left as they are.
    """
    if layout == "agent":
        actions = to_keys(actions[BUTTONS], actions[CAMERA])
    keys, camera = actions[KEYS_COLUMN][0], actions[CAMERA][0]
    degrees = camera if layout == "mouse" else DEGREES[np.asarray(camera, np.int64)]
    turn = np.clip(np.asarray(degrees, np.float32), -FARTHEST, FARTHEST)
    return {key: int(value) for key, value in zip(KEYS, keys, strict=True)} | {CAMERA: turn}
