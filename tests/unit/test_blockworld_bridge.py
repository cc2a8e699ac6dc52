"""Blockworld as a bridge: options, tasks, snapshots, and what it says to wrong input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from bridges.blockworld import BlockworldBridge
from bridges.blockworld.actions import COMPACT, layout_of
from bridges.blockworld.options import OBSERVATIONS, TASKS
from bridges.blockworld.rules.world import CONTROLS, WORLD
from rollout.api import Splits, Start, sample
from rollout.cli import main
from rollout.collect import collect
from rollout.commands.dataset import main as dataset_command
from rollout.config import CollectConfig, build_plugin
from rollout.errors import ConfigError, InputError, OutOfTurnError, SpaceError, UnknownNameError
from rollout.tasks import load_task, task_names

pytestmark = pytest.mark.heavy

SPEC = BlockworldBridge().spec
NAMES = task_names(SPEC)
TWELVE = (
    *("hunt_sheep", "mine_log", "mine_stone", "mine_iron_ore", "combat_zombie"),
    *("combat_skeleton", "climb_mountain", "find_hut", "build_pillar", "craft_crafting_table"),
    *("smelt_beef", "sleep_in_bed"),
)


def launched(width=1, **options):
    return BlockworldBridge(**options).launch(Path(), (), width=width, timeout_s=600)


def start(task="hunt_sheep", number=0, seed=1):
    space = load_task(SPEC, "blockworld", task).state_space
    return Start(Splits(space).take("all", number + 1)[number], seed)


@pytest.mark.parametrize("name", TWELVE)
def test_each_task_has_a_simple_and_a_hard_form(name):
    hard, simple = (load_task(SPEC, "blockworld", n) for n in (name, f"{name}_simple"))
    assert (hard.difficulty, simple.difficulty) == ("hard", "simple")
    for task in (hard, simple):
        assert task.goal
        assert task.limits.steps
    assert simple.state_space.size < hard.state_space.size
    for factor in simple.state_space:
        allowed = hard.state_space.factor(factor.name)
        assert allowed.size >= factor.size


@pytest.mark.heavy
def test_every_task_loads():
    assert {p.stem for p in TASKS.glob("*.yaml")} == set(NAMES)
    for name in NAMES:
        assert load_task(SPEC, "blockworld", name).name == name


def test_hunting_sheep_has_the_factors_and_the_states_of_the_paper():
    task = load_task(SPEC, "blockworld", "hunt_sheep")
    assert task.state_space.size >= 2 * 10**8
    several = {factor.name for factor in task.state_space if factor.size > 1}
    assert several >= {
        *("main_hand", "armour", "off_hand", "others", "biome", "number", "distance"),
        *("bearing", "time", "weather", "terrain"),
    }
    assert task.limits.steps == 600
    assert task.evaluator.reward == 5


BAD = {
    "bridge.rgb_width=0": "rgb_width must be a whole number from 1 to 4096, got 0",
    "bridge.rgb_height=-3": "rgb_height must be a whole number from 1 to 4096, got -3",
    "bridge.grid_size=0": "grid_size must be a whole number from 3 to 63, got 0",
    "bridge.ray_rows=0": "ray_rows must be a whole number from 1",
    "bridge.ticks_per_step=0": "ticks_per_step must be a whole number from 1",
    "bridge.observe=[rbg]": "unknown observation 'rbg'. Nearest: rgb",
    "bridge.observe=[]": "observe must name at least one of: rgb",
    "bridge.observe=[rgb, rgb]": "different names",
    "bridge.actions=humane": "Nearest: human",
    "bridge.recipes=[crafting_tabel]": "unknown recipe 'crafting_tabel'. Nearest: crafting_table",
    "bridge.start_pitch=91": "start_pitch must be a number from -90.0 to 90.0, got 91",
    "bridge.compact_actions=[forward]": "actions=human; set actions=compact",
    "bridge.oracle=hunt_sheeps": "unknown skill 'hunt_sheeps'. Nearest: hunt_sheep",
    "policy.name=oracle": "set bridge.oracle",
    "task=hunt_sheeps": "Nearest: hunt_sheep",
    "state_set.states=[136617326228275200]": "state index 136617326228275200 is out of range",
    "state_set.hold_out={biome: [jungle]}": "has no value 'jungle'. Valid: desert, forest",
    "width=5000": "1 to 4096",
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_is_one_clear_line_and_status_2(setting, tmp_path, capsys):
    config = tmp_path / "config.yaml"
    data = {"output": str(tmp_path / "run"), "bridge": "blockworld", "policy": "random"}
    config.write_text(yaml.safe_dump({**data, "episodes": 1, "actors": 0}))
    status = main(collect, CollectConfig, "Plays.", ["--config", str(config), "--set", setting])
    said = capsys.readouterr().err
    assert status == 2, said
    assert BAD[setting] in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run" / "dataset" / "data").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("state_space: {biome: [jungle]}", "has no value 'jungle'. Valid: desert, forest"),
        ("state_space: {biom: plains}", "Nearest: biome"),
        ("state_space: {terrain: {range: [0, 70000]}}", "integers from 0 to 65535"),
        ("evaluator: {name: signal_goal, signal: made/crafting_tabel}", "made/crafting_table"),
        ("evaluator: {name: signal_goal, signal: eaten, target_factor: many}", "unknown factor"),
    ],
)
def test_a_wrong_task_file_is_reported(tmp_path, text, says):
    path = tmp_path / "task.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        load_task(SPEC, "blockworld", str(path))


def test_the_options_are_checked_in_python_too():
    with pytest.raises(UnknownNameError, match="Valid: compass, entities"):
        BlockworldBridge(observe=("everything",))
    with pytest.raises(ConfigError, match="list of different names"):
        BlockworldBridge(observe="rgb")
    with pytest.raises(UnknownNameError, match="action layout"):
        BlockworldBridge(actions="joystick")


def test_some_of_the_compact_actions():
    names = ("turn_right", "forward_attack")
    bridge = BlockworldBridge(actions="compact", compact_actions=names)
    assert bridge.spec.action_space["action"].n == 2
    assert bridge.spec.action_labels["action"] == names
    with pytest.raises(UnknownNameError, match="Nearest: forward"):
        BlockworldBridge(actions="compact", compact_actions=("forwards",))
    with pytest.raises(ConfigError, match="different names"):
        BlockworldBridge(actions="compact", compact_actions=("forward", "forward"))
    with pytest.raises(ConfigError, match="oracle needs all actions"):
        BlockworldBridge(actions="compact", compact_actions=names, oracle="hunt_sheep")
    layout, whole = layout_of("compact", names), layout_of("compact")
    worlds, some, all_ = np.zeros(2, WORLD), np.zeros(2, CONTROLS), np.zeros(2, CONTROLS)
    layout.decode({"action": np.array([0, 1])}, worlds, some)
    numbers = [COMPACT.index(name) for name in names]
    whole.decode({"action": np.array(numbers)}, worlds, all_)
    assert some.tobytes() == all_.tobytes()
    back = layout.encode(all_["keys"], all_["pitch"], all_["yaw"], worlds)
    assert back["action"].tolist() == [0, 1]
    assert layout.describe({"action": np.int64(1)}) == "forward_attack"
    with pytest.raises(SpaceError, match="expected 0 to 1"):
        layout.decode({"action": np.array([0, 2])}, worlds, some)
    with pytest.raises(ConfigError, match="leaves out look_up"):
        layout.encode(np.zeros(1, np.uint32), np.array([-15.0]), np.zeros(1), worlds)


def test_importing_the_bridge_compiles_and_imports_nothing_heavy():
    code = "import sys, bridges.blockworld; print('numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


heavy = pytest.mark.heavy


@heavy
@pytest.mark.parametrize("size", [(64, 64), (128, 72), (640, 360), (1, 1)])
def test_pictures_have_the_size_that_was_asked_for(size):
    instance = launched(rgb_width=size[0], rgb_height=size[1])
    frame = instance.reset([0], [start()], timeout_s=60)
    assert frame.observations["rgb"].shape == (1, size[1], size[0], 3)
    assert frame.observations["rgb"].any()


@heavy
def test_every_observation_is_in_its_space():
    bridge = BlockworldBridge(observe=OBSERVATIONS, actions="compact", oracle="hunt_sheep")
    instance = bridge.launch(Path(), (), width=8, timeout_s=600)
    rng = np.random.default_rng(0)
    frame = instance.reset(range(8), [start(number=n) for n in range(8)], timeout_s=60)
    for _ in range(200):
        for key, space in bridge.spec.observation_space.spaces.items():
            for row in frame.observations[key]:
                assert space.contains(row), (key, row)
        frame = instance.step(sample(bridge.spec.action_space, 8, rng), timeout_s=60)


@heavy
def test_a_snapshot_goes_back_exactly_and_to_another_slot():
    instance = launched(2, observe=("rgb", "vitals"))
    rng = np.random.default_rng(0)
    instance.reset([0, 1], [start(), start(number=1)], timeout_s=60)
    space = BlockworldBridge().spec.action_space
    for _ in range(50):
        instance.step(sample(space, 2, rng), timeout_s=60)
    saved = instance.snapshot(0)
    later = [sample(space, 2, rng) for _ in range(100)]
    for actions in later:
        frame = instance.step(actions, timeout_s=60)
    expected = {k: v[0].copy() for k, v in frame.observations.items()}
    end = instance.snapshot(0)
    instance.restore(1, saved)
    for actions in later:
        twin = {key: column[::-1].copy() for key, column in actions.items()}
        frame = instance.step(twin, timeout_s=60)
    assert instance.snapshot(1) == end
    for key, value in expected.items():
        assert np.array_equal(frame.observations[key][1], value)


@heavy
def test_what_is_no_snapshot_is_refused():
    instance = launched(2)
    with pytest.raises(OutOfTurnError, match="slot 0 was never reset"):
        instance.snapshot(0)
    instance.reset([0], [start()], timeout_s=60)
    saved = instance.snapshot(0)
    for wrong in (b"", saved[:-1], b"x" * len(saved)):
        with pytest.raises(InputError, match="expected a snapshot"):
            instance.restore(0, wrong)


@heavy
def test_death_is_game_over_and_the_world_stands_still():
    instance = launched(2, observe=("vitals",))
    open_field = start("build_pillar_simple")
    instance.reset([0, 1], [open_field, open_field], timeout_s=60)
    instance._worlds["health"][0] = 0.5
    instance._worlds["y"][0] += 8
    still = {"keys": np.zeros((2, 20), np.int8), "camera": np.full((2, 2), 5)}
    for _ in range(60):
        frame = instance.step(still, timeout_s=60)
    assert frame.game_over.tolist() == [True, False]
    dead = instance.snapshot(0)
    assert frame.tick[0] < frame.tick[1] == 60
    instance.step(still, timeout_s=60)
    assert instance.snapshot(0) == dead
    instance.reset([0], [start()], timeout_s=60)
    assert not instance.step(still, timeout_s=60).game_over.any()


@heavy
def test_a_step_may_hold_its_keys_for_several_ticks():
    forward = {"action": np.array([1])}
    slow, fast = (
        launched(observe=("compass",), actions="compact", ticks_per_step=ticks) for ticks in (1, 5)
    )
    for instance in (slow, fast):
        instance.reset([0], [start("build_pillar_simple")], timeout_s=60)
    for _ in range(10):
        slow.step(forward, timeout_s=60)
    for _ in range(2):
        frame = fast.step(forward, timeout_s=60)
    assert frame.tick[0] == 10
    for name in ("x", "y", "z", "yaw"):
        assert slow._worlds[name][0] == fast._worlds[name][0]


@heavy
def test_recipes_can_be_taken_away():
    start_ = start("craft_crafting_table_simple")
    made = {}
    for recipes in ((), ("stick",)):
        instance = launched(observe=("vitals",), oracle="craft_crafting_table", recipes=recipes)
        frame = instance.reset([0], [start_], timeout_s=60)
        for _ in range(100):
            action = {k: frame.observations[f"privileged_oracle/{k}"] for k in ("keys", "camera")}
            frame = instance.step(action, timeout_s=60)
        made[recipes] = int(frame.signals["made/crafting_table"][0])
    assert made[()] >= 1
    assert made[("stick",)] == 0


@heavy
@pytest.mark.process
def test_a_run_records_the_expert(tmp_path):
    config = Path(__file__).parents[2] / "configs" / "collect_hunt_sheep.yaml"
    changes = [f"output={tmp_path / 'run'}", "episodes=4", "state_set.size=4", "actors=0"]
    command = [sys.executable, "scripts/collect.py", "--config", str(config), "--set", *changes]
    environment = {**os.environ, "GAMUT_CALL_INNER": ""}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "oracle" in json.dumps(summary)
    video = tmp_path / "hunt.mp4"
    assert dataset_command(["play", str(tmp_path / "run" / "dataset"), "--out", str(video)]) == 0
    assert video.stat().st_size > 10_000


def test_it_is_installed_under_its_name():
    assert build_plugin("bridges", "blockworld", {"observe": ["vitals"]}) == BlockworldBridge(
        observe=("vitals",)
    )


@heavy
def test_where_one_looks_at_the_start(tmp_path):
    task = load_task(SPEC, "blockworld", "hunt_sheep")
    start = Start(Splits(task.state_space).take("train", 1)[0], 0)
    for pitch in (0.0, 15.0):
        bridge = BlockworldBridge(observe=("compass",), start_pitch=pitch)
        instance = bridge.launch(tmp_path, (), width=1, timeout_s=300)
        instance.reset([0], [start], timeout_s=9)
        assert instance._worlds["pitch"][0] == pitch
        instance.close()
