"""What embedded worlds lack: by item, by the words of a goal, and in the words of errors."""

import json
import logging
import subprocess

import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.names import names
from bridges.mineflayer.node import GAME, packages_problem
from bridges.mineflayer.task_documents import lacking_for_goal, lacking_for_item, obtainable
from bridges.mineflayer.task_ids import generate, parse
from rollout.errors import ConfigError
from rollout.tasks import load_task


@pytest.mark.parametrize(
    ("item", "mechanic"),
    [
        ("elytra", "outer islands of the End"),
        ("beacon", "the Wither"),
        ("podzol", "mushroom fields and giant taigas"),
        ("dark_oak_log", "dark forests"),
        ("honeycomb", "bees"),
        ("bedrock", "what only creative mode has"),
    ],
)
def test_a_task_that_cannot_be_done_says_what_is_missing(item, mechanic):
    with pytest.raises(ConfigError, match=f"{item} needs {mechanic}, which") as caught:
        load_task(MineflayerBridge().spec, "mineflayer", f"harvest_1_{item}")
    assert len(str(caught.value)) < 300


def test_what_is_given_or_played_elsewhere_is_not_refused():
    load_task(MineflayerBridge().spec, "mineflayer", "harvest_1_elytra_with_1_elytra")
    load_task(MineflayerBridge(mode="remote").spec, "mineflayer", "harvest_1_elytra")


def test_every_item_is_to_be_had_or_has_a_reason():
    without = [each for each in names().items if lacking_for_item(each) == "a way to come by it"]
    assert without == []
    assert obtainable() <= set(names().items)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`")
def test_the_list_of_items_is_what_the_world_s_rules_give():
    (node, *_), env = game_command()
    command = [node, str(GAME / "obtainable.js")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=600)
    assert json.loads(done.stdout) == sorted(obtainable())


def test_mineland_s_items_can_be_had():
    for family in ("harvest", "techtree"):
        for task_id in generate(family):
            assert lacking_for_item(parse(task_id).target) is None, task_id


def test_goals_name_what_is_missing():
    assert lacking_for_goal("Defeat the wither and launch fireworks") == [
        "the Wither",
        "fireworks",
    ]
    assert lacking_for_goal("launch a firework") == ["fireworks"]
    for goal in ("build a house", "tend to the garden", "fence in a field", "mend the bridge"):
        assert lacking_for_goal(goal) == []


def test_words_with_another_meaning_name_nothing():
    for goal in (
        "Build a lighthouse with a beacon on top",
        "Build a lighthouse whose beacon shines over the sea",
        "Build a tower and light the lighthouse beacon",
        "Build a mansion of stone",
    ):
        assert lacking_for_goal(goal) == [], goal
    for goal in ("Craft a beacon", "Make the beacon", "Activate a beacon", "Obtain a nether star"):
        assert lacking_for_goal(goal) == ["the Wither"], goal


def test_a_goal_that_asks_for_it_is_loaded_with_a_warning(tmp_path, caplog):
    text = "have_fireworks: {goal: Launch five fireworks., initial_inventory: {}, type: creative}"
    (tmp_path / "creative_tasks.yaml").write_text(text)
    spec = MineflayerBridge(task_files=str(tmp_path)).spec
    with caplog.at_level(logging.WARNING):
        task = load_task(spec, "mineflayer", "have_fireworks")
        load_task(spec, "mineflayer", "have_fireworks")
    assert task.metadata["lacks"] == ["fireworks"]
    (record,) = caplog.records
    assert "have_fireworks: its goal seems to need fireworks" in record.getMessage()
