"""States of hunts: their factors, what they give and place, and the scripted hunter."""

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.factors import start_message, state_space
from bridges.mineflayer.fighter import hunt
from bridges.mineflayer.spaces import BEARINGS, CAMERA, KEYS, KEYS_COLUMN, camera_degrees
from rollout.api import Start
from rollout.config import BridgeConfig
from rollout.errors import ConfigError
from rollout.tasks import bridge_and_task


def values_of(task, index):
    _, bridge, loaded = bridge_and_task(BridgeConfig(name="mineflayer"), task)
    return bridge.spec.state_space, dict(loaded.state_space.state(index).values)


def test_the_space_of_the_whole_task_is_as_large_as_in_the_paper():
    _, _, task = bridge_and_task(BridgeConfig(name="mineflayer"), "hunt_sheep")
    assert task.state_space.size == 14_826_240
    assert [f.name for f in task.state_space.factors if f.size > 1] == [
        *("world", "biome", "mobs", "distance"),
        *("bearing", "main_hand", "off_hand", "armour", "others"),
    ]


def test_a_state_says_what_is_worn_and_where_the_herd_stands():
    space, values = values_of("hunt_sheep", 0)
    chosen = {"mobs": 3, "distance": "6-8", "bearing": 90, "others": "2_cow"}
    worn = {"main_hand": "iron_axe", "off_hand": "shield", "armour": "golden"}
    state = space.state(space.index({**values, **chosen, **worn}))
    message = start_message(space, Start(state, 1))
    assert message["targets"] == [
        {"kind": "sheep", "count": 3, "name": "sheep", "bearing": 90, "sector": 30, "band": [6, 8]},
        {"kind": "cow", "count": 2, "wild": True, "bearing": 0, "sector": 360, "band": [3, 13]},
    ]
    assert [(item["name"], item["slot"]) for item in message["items"]] == [
        *(("iron_axe", None), ("shield", "off-hand"), ("golden_helmet", "head")),
        *(("golden_chestplate", "torso"), ("golden_leggings", "legs"), ("golden_boots", "feet")),
    ]


def test_other_tasks_have_the_states_that_they_had():
    assert MineflayerBridge().spec.state_space == state_space()
    assert "bearing" not in [f.name for f in state_space().factors]
    with pytest.raises(ConfigError, match="hunt needs mode=embedded"):
        MineflayerBridge(mode="remote", hunt=True)


def test_the_hunter_turns_to_the_nearest_target_walks_and_strikes():
    def row(*prey, pitch=0.0):
        seen = np.zeros((1, 4, 6), np.float32)
        seen[0, : len(prey)] = prey
        return {BEARINGS: seen, "look": np.array([[0.0, pitch]])}

    cow, ahead = (0, 0.5, 0, 1, 0, 0.5), (1, 0.4, 1, 0, 0, 0.2)  # to the left; 4 blocks ahead
    acts = hunt(row(cow, ahead, pitch=-np.radians(20)))
    held = [key for key, on in zip(KEYS, acts[KEYS_COLUMN][0], strict=True) if on]
    assert held == ["attack", "forward"]
    assert acts[CAMERA].tolist() == [[5, 5]]
    left = hunt(row((1, 0.4, 0, 1, 0, 0.2)))
    assert left[CAMERA].tolist() == [[10, 0]]
    assert not left[KEYS_COLUMN].any()
    assert hunt(row(cow))[CAMERA].tolist() == [[10, 10]], "it looks around"
    with pytest.raises(ConfigError, match="needs bearings and look"):
        hunt({})


def test_bins_of_the_camera_are_those_of_the_game():
    sizes = [round(camera_degrees(number), 2) for number in range(5, 11)]
    assert sizes == [0.0, 0.62, 1.61, 3.22, 5.81, 10.0]
    assert camera_degrees(0) == -camera_degrees(10)
