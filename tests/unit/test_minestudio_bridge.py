"""The bridge to MineStudio, as far as it needs no MineStudio: actions, tasks, what it refuses."""

import sys
from pathlib import Path

import numpy as np
import pytest

from bridges.mineflayer.commands import parse_command
from bridges.mineflayer.spaces import KEYS
from bridges.minestudio.actions import (
    DEGREES,
    INVENTORY_ALONE,
    NO_TURN,
    env_action,
    to_agent,
    to_keys,
)
from bridges.minestudio.bridge import MinestudioBridge
from bridges.minestudio.columns import WORLDS
from bridges.minestudio.hunt_sheep import equipment, places, start_commands
from rollout.config import BridgeConfig, StateSetConfig, load_config
from rollout.errors import ConfigError, GameStartError
from rollout.host.interpreter import check_interpreter
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan

OURS = Path(sys.executable)
TABLE_9 = Path(__file__).parents[2] / "configs" / "train_mcu_table9.yaml"
TASK = """
custom_init_commands:
- /give @s minecraft:stone_sword
- /summon minecraft:sheep ~2 ~ ~
defaults:
- base
- _self_
text: Hunt a sheep.
reference_video: hunt
"""


def pressed(keys):
    return [key for key, value in zip(KEYS, keys, strict=True) if value]


@pytest.mark.parametrize(
    ("buttons", "keys"),
    [
        (0, []),
        (322, ["forward", "jump", "sprint"]),
        (864 * 9, ["hotbar.9"]),
        (576 + 192 + 64 + 16 + 8 + 4, ["attack", "back", "right", "sneak", "use", "drop"]),
        (INVENTORY_ALONE, ["inventory"]),
    ],
)
def test_buttons_are_combinations_of_keys(buttons, keys):
    found = to_keys(np.array([buttons]), np.array([120]))
    assert pressed(found["keys"][0]) == keys
    turn = 10 if buttons == INVENTORY_ALONE else NO_TURN  # the bit of the camera is not set
    assert found["camera"].tolist() == [[turn, turn]]


def test_every_agent_action_comes_back():
    buttons = np.arange(INVENTORY_ALONE + 1)
    camera = np.where((buttons % 2 == 1), 61, 60)
    there = to_keys(buttons, camera)
    back = to_agent(there["keys"], there["camera"])
    assert np.array_equal(back["buttons"], buttons)
    assert np.array_equal(back["camera"], camera)


def test_keys_without_a_number_of_their_own_are_resolved_as_in_vpt():
    keys = np.zeros((4, len(KEYS)), np.int8)
    for row, names in enumerate((("forward", "back"), ("hotbar.1", "hotbar.2"),
                                 ("sprint", "sneak"), ("inventory", "attack"))):  # fmt: skip
        keys[row, [KEYS.index(name) for name in names]] = 1
    camera = np.full((4, 2), NO_TURN)
    camera[:, 0] = 10
    found = to_agent(keys, camera)
    assert found["buttons"].tolist() == [1, 2 * 864 + 1, 65, INVENTORY_ALONE]
    assert found["camera"].tolist() == [115, 115, 115, 60]


def test_an_action_is_that_of_the_simulator_in_any_layout():
    np.testing.assert_allclose(DEGREES[[0, 3, 5, 9]], [-10, -1.6095, 0, 5.8095], atol=1e-4)
    agent = env_action("agent", {"buttons": np.array([4 + 1]), "camera": np.array([55])})
    keys = np.zeros((1, len(KEYS)), np.int8)
    keys[0, 0] = 1
    human = env_action("human", {"keys": keys, "camera": np.array([[5, 0]])})
    mouse = env_action("mouse", {"keys": keys, "camera": np.array([[0.0, -10.0]], np.float32)})
    for action in (agent, human, mouse):
        assert action["attack"] == 1
        assert sum(action[key] for key in KEYS) == 1
        np.testing.assert_allclose(action["camera"], [0, -10])


def test_a_task_file_becomes_a_task(tmp_path):
    (tmp_path / "hunt_a_sheep.yaml").write_text(TASK)
    config = BridgeConfig.model_validate({"name": "minestudio", "task_files": str(tmp_path)})
    _, bridge, task = bridge_and_task(config, "hunt_a_sheep")
    assert task.goal == "Hunt a sheep."
    assert task.limits.steps == 600
    assert bridge.commands == (
        "/give @s minecraft:stone_sword",
        "/summon minecraft:sheep ~2 ~ ~",
    )


def test_states_of_hunt_sheep_are_the_starts_of_appendix_d():
    config = BridgeConfig.model_validate({"name": "minestudio"})
    _, bridge, task = bridge_and_task(config, "hunt_sheep")
    space = task.state_space
    assert space.size == (
        len(equipment()) * 5 * 441 * 440 * 439 * 438 * 437 * 2 * 588 * 587 * WORLDS
    )
    rng = np.random.default_rng(0)
    for number in rng.integers(0, 2**62, 200):
        state = space.state(int(number) * 7919 % space.size).values
        commands = start_commands(state)
        assert len(commands) == 1 + state["sheep"] + state["other"]
        sheep = [line for line in commands if "summon minecraft:sheep" in line]
        assert len(set(sheep)) == state["sheep"]  # places are drawn without replacement
        for line in commands:
            parse_command(line)
    assert bridge.rewards[0]["objects"] == ["sheep"]


def test_a_prefix_of_the_lists_is_a_prefix_set():
    _, _, task = bridge_and_task(BridgeConfig.model_validate({"name": "minestudio"}), "hunt_sheep")
    lengths = {"equipment": 100, "sheep": 5, "other": 2, "world": 1}
    lengths |= {f"sheep_{k + 1}": 10 - k for k in range(5)}
    lengths |= {f"other_{k + 1}": 10 - k for k in range(2)}
    states = StateSetConfig(subset="prefix", size=50, prefix=lengths).take(task.state_space)
    known = {f"~{x} ~ ~{z}" for x, z in places()[:10]}
    for number in range(50):
        commands = start_commands(states[number].values)
        assert "weapon.mainhand" in commands[0]
        sheep = [line for line in commands if "minecraft:sheep" in line]
        assert all(line.removeprefix("/summon minecraft:sheep ") in known for line in sheep)


def test_the_settings_of_table_9_fit_the_bridge():
    given = {"bridge": {"name": "minestudio"}, "width": 1, "instances": 10}
    plan = TrainPlan.make(load_config(TrainConfig, TABLE_9, given.items()))
    assert plan.task.name == "hunt_sheep"
    assert plan.task.limits.steps == 600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("comands: []", "unknown key 'comands'.*commands"),
        ("custom_init_commands: /give @s bow", "expected a list of commands"),
        ("time_limit: soon", "time_limit: expected a number of steps, got 'soon'"),
        ("- a", "expected keys such as"),
    ],
)
def test_a_task_file_that_is_none_is_refused_by_name(text, said, tmp_path):
    (tmp_path / "a.yaml").write_text(text)
    config = BridgeConfig.model_validate({"name": "minestudio", "task_files": str(tmp_path)})
    with pytest.raises(ConfigError, match=rf"a\.yaml: .*{said}|{said}"):
        bridge_and_task(config, "a")


def test_what_is_missing_is_told_before_launch(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path))
    python = tmp_path / "environments" / "minestudio" / "bin" / "python"
    with pytest.raises(ConfigError, match="make it with `gamut env make minestudio`"):
        check_interpreter(python, MinestudioBridge())
    with pytest.raises(GameStartError, match="gamut env make minestudio"):
        MinestudioBridge().launch(tmp_path, [], width=1, timeout_s=1.0)


@pytest.mark.process
def test_a_missing_wheel_program_or_file_is_told_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("MINESTUDIO_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError) as told:
        check_interpreter(OURS, MinestudioBridge(engine="java"))
    for said in ("module minestudio", "program java", "program xvfb-run", "mcprec-6.13.jar"):
        assert said in str(told.value)
