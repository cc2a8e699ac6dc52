"""MineLand's task files, from a user's own copy: small ones of our own in its format."""

import sys

import cv2
import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.blueprints import BLUEPRINTS
from bridges.mineflayer.mineland import making
from bridges.mineflayer.scripts import SCRIPTS
from bridges.mineflayer.task_counts import report
from bridges.mineflayer.task_files import load_files
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import bridge_and_task, load_task

HARVEST = """
harvest_1_stick:
  goal: harvest 1 stick
  guidance: null
  initial_inventory: {}
  number_of_target: 1
  target: stick
  type: harvest
harvest_1white_wool:
  {goal: harvest 1white wool, guidance: null, initial_inventory: {}, number_of_target: 1,
   target: white_wool, type: harvest}
harvest_1_milk:
  {goal: harvest 1 milk, guidance: null, initial_inventory: {}, number_of_target: 1,
   target: milk, type: harvest}
"""
CREATIVE = """
creative_dig_a_pond:
  {goal: dig a pond, guidance: Use the hoe., initial_inventory: {iron_hoe: 1}, type: creative}
find_a_mansion: {goal: find a mansion, guidance: null, initial_inventory: {}, type: creative}
plant_a_row_of_trees:
  {goal: plant a row of trees, guidance: null, initial_inventory: {}, type: creative}
survival_kit_in_a_chest:
  {goal: put a kit into a chest, guidance: null, initial_inventory: {}, type: creative}
"""
CONSTRUCTION = """
construction_task_1:
construction_task_7:
  goal: Build a hut.
  initial_inventory: {Spruce Planks: 64, Tinted Glass: 64}
"""
STAGE = """
stage_performance_2_agent_market:
  agent_names: [Carl, Dora]
  agent_number: 2
  critical_point:
  - [Carl, chat, apples for sale]
  - [Dora, get, apple]
  initial_inventory: {Carl: {apple: 3}, Dora: {}}
  personalities: {Carl: Openness, Dora: Neuroticism}
  script: Carl sells an apple to Dora.
  system_instructions: [/execute as Carl run summon pig]
  type: stage_performance
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in (
        ("harvest", HARVEST),
        ("creative", CREATIVE),
        ("construction", CONSTRUCTION),
        ("stage_performance", STAGE),
    ):
        (tmp_path / f"{name}_tasks.yaml").write_text(text)
    pictures = tmp_path / "construction_tasks_pictures"
    pictures.mkdir()
    picture = np.zeros((20, 30, 3), np.uint8)
    picture[..., 2] = 200  # red, as OpenCV has it
    assert cv2.imwrite(str(pictures / "construction_task_1_blueprint.png"), picture)
    return tmp_path


def play(folder, name, **options):
    return bridge_and_task(BridgeConfig(name="mineflayer", task_files=str(folder), **options), name)


def test_creative_tasks_have_the_goals_of_the_files(folder):
    _, bridge, task = play(folder, "creative_dig_a_pond")
    assert task.goal == "dig a pond\nUse the hoe."
    assert bridge.give == {"iron_hoe": 1}
    assert task.metadata["source"] == "MineLand"
    assert task.evaluator.goal == "dig a pond"
    # MineDojo's have no prefix, or by chance that of another family.
    for name, goal in (
        ("plant_a_row_of_trees", "plant a row of trees"),
        ("survival_kit_in_a_chest", "put a kit into a chest"),
    ):
        assert play(folder, name)[2].goal == goal


def test_plays_are_those_of_the_files(folder):
    _, bridge, task = play(folder, "stage_performance_2_agent_market")
    assert bridge.agent_names() == ("Carl", "Dora")
    assert bridge.give == {"Carl.apple": 3}
    assert bridge.commands == ("/execute as Carl run summon pig",)
    assert task.evaluator.wanted() == (
        ("Carl", "chat", "apples for sale"),
        ("Dora", "get", "apple"),
    )
    assert task.evaluator.build(2).agents == 2
    assert task.goal.startswith("Carl sells an apple to Dora.")
    assert "Carl (Openness), Dora (Neuroticism)" in task.goal
    assert task.metadata["source"] == "MineLand"


def test_blueprints_of_the_files_are_shown_to_the_agent(folder):
    _, bridge, task = play(folder, "construction_task_1", agents=2)
    assert bridge.spec.observation_space["blueprint"].shape == (20, 30, 3)
    assert bridge.blueprint_picture().tolist() == [[[200, 0, 0]] * 30] * 20
    assert task.metadata["reference"].endswith("construction_task_1_blueprint.png")
    _, bridge, task = play(folder, "construction_task_7")
    assert task.goal == "Build a hut."
    assert bridge.give == {"spruce_planks": 64}
    assert task.metadata["left_out"] == ["tinted_glass"]
    assert "blueprint" not in bridge.spec.observation_space.spaces


def test_ids_with_data_of_mineland_ask_for_a_copy():
    spec = MineflayerBridge().spec
    for name in ("construction_task_3", "stage_performance_1_agent_cook"):
        with pytest.raises(ConfigError, match=r"bridge\.task_files") as caught:
            load_task(spec, "mineflayer", name)
        assert len(str(caught.value)) < 300


class World:
    """Stands in for a world that no test of files needs."""

    def __init__(self, agents_count, **options):
        self.most_agents, self.options = agents_count, options["options"]


def test_scripts_find_the_files_of_an_installed_mineland(folder, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(making, "MineLand", World)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(ConfigError, match=r"make\(task_files=\.\.\.\)"):
        making.make("construction_task_1", 1)
    place = tmp_path_factory.mktemp("site")
    (place / "mineland" / "tasks").mkdir(parents=True)
    (place / "mineland" / "__init__.py").write_text("raise AssertionError('imported')")
    (place / "mineland" / "tasks" / "description_files").symlink_to(folder)
    monkeypatch.syspath_prepend(str(place))
    world = making.make(
        "construction_task_1", 1, enable_mineclip=False, mineclip_ckpt_path=None, headless=True
    )
    assert world.get_blueprint_np().shape == (3, 20, 30)
    assert making.make("construction_task_7", 1).options["give"] == {"spruce_planks": 64}
    with pytest.raises(ConfigError, match="enable_mineclip"):
        making.make("construction_task_1", 1, enable_mineclip=True)


def test_a_copy_without_an_id_says_so(folder):
    spec = MineflayerBridge(task_files=str(folder)).spec
    for name in ("construction_task_99", "stage_performance_x", "creative_fly"):
        with pytest.raises(UnknownNameError) as caught:
            load_task(spec, "mineflayer", name)
        assert len(str(caught.value)) < 300


def test_our_own_have_names_of_their_own():
    spec = MineflayerBridge().spec
    for each in BLUEPRINTS:
        task = load_task(spec, "mineflayer", f"build_{each.short}")
        assert task.metadata["family"] == "construction"
        assert "MineLand" not in task.metadata.get("source", "")
    for name, script in SCRIPTS.items():
        _, _, task = bridge_and_task(BridgeConfig(name="mineflayer"), f"play_{name}")
        assert task.metadata["source"] == "Gamut"
        for _, verb, what in script.acts:
            assert f"{verb} {what}" in task.goal


def test_a_goal_that_is_only_in_the_id_is_not_mineland_s():
    task = load_task(MineflayerBridge().spec, "mineflayer", "creative_dig_a_pond")
    assert (task.goal, task.metadata["source"]) == ("dig a pond", "Gamut")


def test_what_is_to_be_built_is_in_the_goal():
    goal = load_task(MineflayerBridge().spec, "mineflayer", "build_well").goal
    assert goal == (
        "Build a well. Its layers from the ground up, rows from north to south: "
        "CCC/C.C/CCC; .../L.L/...; .../L.L/...; .../PPP/.... "
        "C is cobblestone, L oak_log, P oak_planks, . nothing."
    )


def test_names_list_the_ids_of_a_copy(folder):
    maker = MineflayerBridge(task_files=str(folder)).spec.task_maker
    listed = set(maker.names())
    assert {"creative_dig_a_pond", "plant_a_row_of_trees", "construction_task_7"} < listed
    assert {"harvest_1_stick", "build_well", "play_cook"} < listed
    assert len(listed) == len(list(maker.names()))


def test_a_report_counts_the_ids_that_load(folder):
    rows = {row.family: row for row in report(str(folder))}
    assert (rows["harvest"].ids, rows["harvest"].load) == (3, 2)
    assert list(rows["harvest"].impossible) == ["harvest_1_milk"]
    assert (rows["creative"].ids, rows["creative"].load) == (4, 4)
    assert rows["creative"].lacks == {"mansions and treasure chests": 1}
    assert (rows["construction"].ids, rows["construction"].load) == (2, 2)
    assert (rows["stage_performance"].ids, rows["stage_performance"].load) == (1, 1)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("creative", "- a list", "expected a mapping of tasks"),
        ("creative", "x: [1", "not valid YAML"),
        ("creative", "x: 3", "x: expected a mapping"),
        ("creative", "x: {goal: 5}", "x: goal"),
        ("creative", "x: {goal: y, initial_inventory: {stick: many}}", "x: initial_inventory"),
        (
            "stage_performance",
            "x: {script: a, agent_names: [b], critical_point: [[b, fly, c]]}",
            "fly",
        ),
        (
            "stage_performance",
            "x: {script: a, agent_names: [b], critical_point: [[c, get, d]]}",
            "'c'",
        ),
        ("stage_performance", "x: {script: a, agent_names: [], critical_point: []}", "agent_names"),
    ],
)
def test_a_file_that_is_none_is_reported(folder, file, text, message):
    path = folder / f"{file}_tasks.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_files(str(folder))
    assert str(path) in str(caught.value)


def test_a_folder_without_files_is_reported(tmp_path):
    with pytest.raises(ConfigError, match=r"no file such as .*creative_tasks\.yaml"):
        MineflayerBridge(task_files=str(tmp_path))
    with pytest.raises(InputError, match="nowhere"):
        MineflayerBridge(task_files=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="blueprint_file"):
        MineflayerBridge(blueprint_file=str(tmp_path / "none.png"))
