"""Trainings of language models refuse bad input before anything is launched."""

from types import SimpleNamespace

import gamut
import pytest
import yaml
from gymnasium import spaces

from rollout.cli import main
from rollout.train.language.algorithms import Sft
from rollout.train.language.config import FineTuneConfig, PlayGroupsConfig
from rollout.train.language.groups import play_groups
from rollout.train.language.run import read_examples
from rollout.train.language.sft import fine_tune

pytest.importorskip("minigrid", reason="the extra minigrid is not installed")

VLM = {"name": "vlm", "prompt": "brief", "local": {"model": "./nothing"}}
PLAY = {
    "bridge": {"name": "gymnasium"},
    "task": "babyai_goto",
    "policy": VLM,
    "algorithm": {"name": "grpo"},
    "updates": 1,
}
TUNE = {"dataset": "./nothing", "policy": VLM, "algorithm": {"name": "sft"}}


def refused(tmp_path, capsys, function, model, config):
    output = tmp_path / "run"
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"output": str(output), **config}))
    status = main(function, model, "Trains.", ["--config", str(tmp_path / "config.yaml")])
    assert status == 2
    assert not output.exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"policy": {**VLM, "local": {}, "endpoint": {"url": "http://x"}, "model": "x"}}, "local"),
        ({"policy": {**VLM, "model": "x"}}, "leave one of them out"),
        ({"policy": {**VLM, "form": "json"}}, "set form=tags"),
        ({"policy": "random"}, "expected vlm"),
        ({"policy": VLM}, "expected a folder"),
        ({"algorithm": {"name": "grpo", "group": 3}}, "groups"),
        ({"algorithm": {"name": "grpo", "size": 1}}, "size"),
        ({"state_set": {"split": "test"}}, "expected train"),
    ],
)
def test_playing(tmp_path, capsys, change, says):
    said = refused(tmp_path, capsys, play_groups, PlayGroupsConfig, {**PLAY, **change})
    assert says in said


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "nothing"),
        ({"policy": {**VLM, "local": {"model": "new"}}}, "new_model"),
        ({"new_model": {}}, "new_model"),
    ],
)
def test_fine_tuning(tmp_path, capsys, change, says):
    assert says in refused(tmp_path, capsys, fine_tune, FineTuneConfig, {**TUNE, **change})


def test_a_dataset_of_a_task_file_is_learned_from_with_that_file(tmp_path, capsys):
    task, other = tmp_path / "mine.yaml", tmp_path / "other.yaml"
    for file in (task, other):
        file.write_text("goal: Go.\nbridge: fake\n")
    bridge = {"name": "fake", "max_steps": 2}
    played = {"bridge": bridge, "task": str(task), "episodes": 2, "policy": "random", "actors": 0}
    gamut.collect(played, output=str(tmp_path / "played"))
    tune = {**TUNE, "dataset": str(tmp_path / "played")}
    asked = [{}, {"task": str(other)}, {"task": str(task)}]
    said = [
        refused(tmp_path, capsys, fine_tune, FineTuneConfig, {**tune, **each}) for each in asked
    ]
    assert "set task to the path of its file" in said[0]
    assert "is 'other'" in said[1]
    assert "would show nothing" in said[2]  # the task was found


class Recorded:
    """A dataset of an episode of one step, as its reader gives it."""

    columns = ("observation/x", "action/y", "details")
    manifest = SimpleNamespace(
        observation_space=spaces.Dict({"x": spaces.Discrete(2)}),
        action_space=spaces.Dict({"y": spaces.Discrete(2)}),
    )

    def read(self, ref, columns):
        told = {"request": "Go.", "privileged": {"origin": [0, 0, 0]}}
        return SimpleNamespace(columns={"observation/x": [0], "action/y": [1], "details": [told]})


def test_examples_have_nothing_that_policies_do_not_get():
    shown = []

    class Builder:
        def from_actions(self, observations, details, actions):
            shown.extend(details)
            return ()

    read_examples(Recorded(), None, Builder())
    assert shown == [{"request": "Go."}]


def test_the_learning_rate_rises_and_then_falls():
    c = Sft(lr=2.0, epochs=4, warmup=0.25)
    epochs = (0.0, 0.5, 1.0, 2.0, 4.0)
    assert [c.learning_rate(e) for e in epochs] == pytest.approx([0.0, 0.875, 1.5, 1.0, 0.0])
    assert Sft(lr=2.0, epochs=4, warmup=0.0).learning_rate(0.0) == 2.0
