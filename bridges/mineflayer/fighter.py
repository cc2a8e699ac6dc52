"""A scripted fighter: it turns to the nearest target and strikes.

``fight`` plays ``actions: compact`` with the seven actions of ``FIGHTS`` and the observation
``bearings``, as the policy ``callable``: ``policy.function=bridges.mineflayer.fighter:fight``. It
is a baseline for trained policies, and an expert for demonstrations in their action and observation
spaces. ``hunt`` does so by the keys and the mouse of ``actions: human``; it observes ``look`` too.
"""

from __future__ import annotations

import numpy as np

from bridges.mineflayer.spaces import (
    ACTION,
    BEARINGS,
    CAMERA,
    CAMERA_BINS,
    KEYS,
    KEYS_COLUMN,
    PARTS,
    camera_degrees,
)
from rollout.api import Columns
from rollout.errors import ConfigError

FIGHTS = (
    "turn_far_left",
    "turn_left_attack",
    "attack",
    "turn_right_attack",
    "turn_far_right",
    "forward_attack",
    "back_attack",
)
"""The actions of ``compact`` that it uses, as ``compact_actions`` has to list them."""

_AHEAD, _LEFT, _UP, _NEAR = (PARTS.index(name) for name in ("ahead", "left", "up", "near"))
_FAR_TURN, _TURN = np.radians(37.5), np.radians(7.5)  # above these, the larger turn is better
_TARGET = PARTS.index("target")
_DOWN = np.radians(20.0)  # where animals are within reach
_STRIKES, _WALKS = np.radians(30.0), np.radians(45.0)  # up to these turns
_CLIMBS = 0.1  # sine of an elevation above which it jumps
_STAYS = 1.5  # blocks; closer than this it does not walk on
_TURNS = np.radians([camera_degrees(n) for n in range(CAMERA_BINS)])
_CLOSE = 2.5  # blocks; closer than this it steps back, to use its longer reach


def fight(observations: Columns) -> Columns:
    """Returns the actions of some rows, from the entities near them.

    Raises:
        ConfigError: ``bearings`` is not observed.
    """
    if BEARINGS not in observations:
        raise ConfigError("the fighter needs the observation bearings; add it to observe")
    nearest = observations[BEARINGS][:, 0]
    turn = np.arctan2(nearest[:, _LEFT], nearest[:, _AHEAD])
    distance = 1.0 / np.maximum(nearest[:, _NEAR], 1e-3) - 1.0
    action = np.where(distance < _CLOSE, FIGHTS.index("back_attack"), FIGHTS.index("attack"))
    for left, right, least in (
        ("turn_left_attack", "turn_right_attack", _TURN),
        ("turn_far_left", "turn_far_right", _FAR_TURN),
    ):
        action[turn > least] = FIGHTS.index(left)
        action[turn < -least] = FIGHTS.index(right)
    return {ACTION: action.astype(np.int64)}


def hunt(observations: Columns) -> Columns:
    """Returns the keys and the camera of some rows: it turns to the nearest target, walks, strikes.

    Without a target in sight it turns to the right.

    Raises:
        ConfigError: ``bearings`` or ``look`` is not observed.
    """
    if BEARINGS not in observations or "look" not in observations:
        raise ConfigError("the hunter needs bearings and look; add them to observe")
    seen = observations[BEARINGS]
    rows = np.arange(len(seen))
    prey = seen[rows, np.argmax(seen[..., _TARGET], axis=1)]  # the first is the nearest
    there = prey[:, _TARGET] > 0
    right = np.where(there, -np.arctan2(prey[:, _LEFT], prey[:, _AHEAD]), np.pi)
    down = _DOWN + observations["look"][:, 1]  # pitch grows upwards
    distance = 1.0 / np.maximum(prey[:, _NEAR], 1e-3) - 1.0
    keys = np.zeros((len(seen), len(KEYS)), np.int8)
    walks = there & (np.abs(right) < _WALKS)
    keys[:, KEYS.index("attack")] = there & (np.abs(right) < _STRIKES)
    keys[:, KEYS.index("forward")] = walks & (distance > _STAYS)
    keys[:, KEYS.index("jump")] = walks & (distance > _CLOSE) & (prey[:, _UP] > _CLIMBS)
    turns = np.stack([down, right], axis=1)[..., None]
    return {KEYS_COLUMN: keys, CAMERA: np.argmin(np.abs(turns - _TURNS), axis=2).astype(np.int64)}
