"""An evaluation whose keys follow from a training run."""

import pytest
import yaml

from rollout.config import make_config
from rollout.errors import ConfigError
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import EvaluationPlan

TRAINED = {
    "bridge": {"name": "fake", "side": 8},
    "task": "",
    "state_set": {"split": "train", "size": 8, "seed": 3, "validation": 5, "test": 4},
}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "trained"
    (folder / "checkpoints" / "00000004").mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(TRAINED))
    return folder


def made(run, **keys):
    return make_config(EvaluateConfig, {"player": str(run), **keys})


def test_game_player_and_sets_are_those_of_the_run(run):
    config = made(run)
    assert config.bridge.name == "fake"
    assert config.bridge.options["side"] == 8
    assert config.players["trained"].options["path"] == str(run)
    assert config.output == run / "evaluation"
    assert {name: (s.split, s.size) for name, s in config.sets.items()} == {
        "train": ("train", 8),
        "validation": ("validation", 5),
    }
    assert {s.seed for s in config.sets.values()} == {3}


def test_a_checkpoint_names_its_run(run):
    checkpoint = run / "checkpoints" / "00000004"
    config = made(checkpoint)
    assert config.players["trained"].options["path"] == str(checkpoint)
    assert config.output == run / "evaluation"


def test_what_is_given_wins(run):
    config = made(
        run,
        bridge={"step_s": 0.5},
        players={"chance": "random"},
        sets={"test": {"split": "test", "size": 2}},
        output=str(run / "other"),
    )
    assert config.bridge.options["side"] == 8
    assert config.bridge.options["step_s"] == 0.5
    assert list(config.players) == ["chance"]
    assert list(config.sets) == ["test"]
    assert config.output == run / "other"


def test_without_validation_states_there_is_one_set(run):
    states = {**TRAINED["state_set"], "validation": 0}
    (run / "config.yaml").write_text(yaml.safe_dump({**TRAINED, "state_set": states}))
    assert list(made(run).sets) == ["train"]


def test_the_resolved_file_says_the_same_without_the_run(run, tmp_path):
    from rollout.config import load_config, write_config

    config = made(run)
    write_config(config, tmp_path / "config.yaml")
    (run / "config.yaml").unlink()
    assert load_config(EvaluateConfig, tmp_path / "config.yaml") == config


def test_a_folder_without_a_training_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="player: expected the run directory of a training"):
        made(tmp_path)


def test_its_plan_can_be_made_with_another_player(run):
    plan = EvaluationPlan.make(made(run, players={"chance": "random"}))
    assert plan.legs.episodes == 13


def test_the_seeds_of_a_training_are_players_of_one_group(run):
    for seed in (10, 2):
        folder = run / "runs" / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
    config = made(run)
    assert list(config.players) == ["seed-2", "seed-10"]
    assert config.players["seed-10"].options["path"] == str(run / "runs" / "seed-10")
    assert config.groups == {"trained": ["seed-2", "seed-10"]}
    assert config.output == run / "evaluation"
    one = made(run / "runs" / "seed-2", players={"chance": "random"})
    assert one.groups == {}
    assert made(run, players={"chance": "random"}).groups == {}
