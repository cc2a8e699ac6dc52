"""A scripted fighter: it turns to the nearest target and strikes.

It plays ``actions: compact`` with the seven actions of ``FIGHTS`` and the observation ``bearings``,
as the policy ``callable``: ``policy.target=bridges.mineflayer.fighter:fight``. It is a baseline for
trained policies, and an expert for demonstrations in their action and observation spaces.
"""

from __future__ import annotations

import numpy as np

from bridges.mineflayer.spaces import ACTION, BEARINGS, PARTS
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

_AHEAD, _LEFT, _NEAR = (PARTS.index(name) for name in ("ahead", "left", "near"))
_FAR_TURN, _TURN = np.radians(37.5), np.radians(7.5)  # above these, the larger turn is better
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
