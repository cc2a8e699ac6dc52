"""What learners see and do: ``bearings``, the actions of ``compact``, and a fighter by both."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.fighter import FIGHTS, fight
from bridges.mineflayer.node import GAME
from bridges.mineflayer.spaces import (
    ACTION,
    BEARINGS,
    COMPACT,
    NEUTRAL,
    PARTS,
    SEEN,
    bearings,
    neutral,
)
from bridges.mineflayer.spaces import bearings_space as space
from rollout.errors import ConfigError

ZOMBIE = 102
ROWS = GAME / "actions" / "compact.json"


def entities(*offsets, target=1, health=20):
    """One row of the observation, with things at these offsets."""
    row = np.zeros((1, 16, 9), np.float32)
    for place, offset in enumerate(offsets):
        row[0, place, :3] = ZOMBIE, target, health
        row[0, place, 3:6] = offset
    return row


def look(yaw=0.0):
    return np.array([[yaw, 0.0]], np.float32)


def told(*offsets, yaw=0.0, **more):
    row = bearings(entities(*offsets, **more), look(yaw))[0, 0]
    return dict(zip(PARTS, row.tolist(), strict=True))


@pytest.mark.parametrize(
    ("offset", "yaw", "ahead", "left"),
    [
        ((0, 0, -3), 0.0, 1, 0),  # yaw 0 looks north, along -z
        ((-3, 0, 0), 0.0, 0, 1),  # west is to the left of it
        ((3, 0, 0), 0.0, 0, -1),
        ((0, 0, 3), 0.0, -1, 0),
        ((-3, 0, 0), np.pi / 2, 1, 0),  # yaw grows to the west
        ((0, 0, -3), np.pi / 2, 0, -1),
        ((0, 0, -3), 2 * np.pi, 1, 0),
    ],
)
def test_directions_are_ones_own(offset, yaw, ahead, left):
    row = told(offset, yaw=yaw)
    assert row["ahead"] == pytest.approx(ahead, abs=1e-6)
    assert row["left"] == pytest.approx(left, abs=1e-6)
    assert row["near"] == pytest.approx(0.25)
    assert row["up"] == 0


def test_height_health_and_target():
    row = told((3, 4, 0), health=5, target=0)
    assert row["up"] == pytest.approx(0.8)
    assert row["near"] == pytest.approx(1 / 6)
    assert row["health"] == 0.25
    assert row["target"] == 0
    assert told((1, 0, 0), health=200)["health"] == 1


def test_what_stands_in_one_is_finite_and_nothing_is_zeros():
    row = bearings(entities((0, 0, 0)), look())[0]
    assert row.shape == (SEEN, len(PARTS))
    assert np.isfinite(row).all()
    assert space().contains(row)
    assert not row[1:].any()


def test_only_the_nearest_are_reported_in_their_order():
    row = bearings(entities(*((0, 0, -n) for n in range(1, 9))), look())[0]
    assert row[:, PARTS.index("near")].tolist() == pytest.approx([1 / (1 + n) for n in range(1, 5)])


@pytest.mark.parametrize(
    ("offset", "action"),
    [
        ((0, 0, -4), "attack"),
        ((0, 0, -1), "back_attack"),
        ((-1, 0, -4), "turn_left_attack"),
        ((1, 0, -4), "turn_right_attack"),
        ((-4, 0, 0), "turn_far_left"),
        ((1, 0, 4), "turn_far_right"),
    ],
)
def test_the_fighter_turns_to_it_and_strikes(offset, action):
    chosen = fight({BEARINGS: bearings(entities(offset), look())})
    assert FIGHTS[chosen[ACTION][0]] == action


def test_the_fighter_says_what_it_needs():
    assert set(FIGHTS) <= set(COMPACT)
    with pytest.raises(ConfigError, match="bearings"):
        fight({"look": look()})


def test_bearings_are_observed_where_they_are_named():
    assert BEARINGS not in MineflayerBridge().spec.observation_space.spaces
    assert BEARINGS not in MineflayerBridge().observed()
    spec = MineflayerBridge(observe=(BEARINGS, "life")).spec
    assert spec.observation_space[BEARINGS] == space()


def test_compact_has_all_its_actions_or_some_of_them_in_order():
    every = MineflayerBridge(actions="compact").spec
    assert every.action_space[ACTION] == spaces.Discrete(len(COMPACT))
    assert every.action_labels[ACTION] == COMPACT
    bridge = MineflayerBridge(actions="compact", compact_actions=["attack", "noop"])
    assert bridge.spec.action_space[ACTION] == spaces.Discrete(2)
    assert bridge.spec.action_labels[ACTION] == ("attack", "noop")
    assert bridge.config(1)["compact_actions"] == ["attack", "noop"]
    with pytest.raises(ConfigError, match="different names"):
        MineflayerBridge(actions="compact", compact_actions=["noop", "noop"])


def test_the_neutral_action_of_compact_is_that_of_the_array():
    rows = json.loads(ROWS.read_text())
    assert tuple(rows[COMPACT[neutral("compact", 1)[ACTION][0]]]) == NEUTRAL
    assert neutral("compact", 2, ["attack", "noop"])[ACTION].tolist() == [1, 1]
    with pytest.raises(ConfigError, match="has no noop"):
        neutral("compact", 1, ["attack"])
