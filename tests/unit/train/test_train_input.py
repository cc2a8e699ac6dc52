"""What ``scripts/train.py`` says to wrong input: one line, both sides named, nothing launched."""

import json
import re

import pytest
import yaml

from rollout.cli import main
from rollout.config import StateSetConfig
from rollout.testing.fakes import FakeBridge
from rollout.train.checkpoint import write_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.train import train

pytestmark = pytest.mark.heavy

BASE = {
    "bridge": {"name": "fake"},
    "policy": {"name": "actor_critic", "hidden": [16], "columns": ["position"]},
    "width": 4,
    "fragment": {"steps": 8},
    "env_steps": 64,
    "learners": {"threads": 1},
    "algorithm": {"name": "ppo", "batch": 32, "minibatch": 32, "bptt": 8},
}


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    """Calls the script; a launch of anything would start Ray, and fails the test."""

    def no_ray(*args, **kwargs):
        pytest.fail("Ray was started")

    monkeypatch.setattr("rollout.job.ray_session", no_ray)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"output": str(tmp_path / "run"), **BASE}))

    def run(*arguments):
        status = main(train, TrainConfig, "Trains.", ["--config", str(config), *arguments])
        return status, capsys.readouterr().err

    return run


def saved(folder, **changes):
    """Writes a checkpoint of the base settings, with some of them changed."""
    config = TrainConfig.model_validate({"output": "/nowhere", **BASE, **changes})
    plan = TrainPlan.make(config)
    options = {k: v for k, v in config.policy.options.items() if k in {"hidden", "columns"}}
    return write_checkpoint(
        folder,
        {"update": 1, "env_steps": 0, "policy": {"name": "actor_critic", "options": options}},
        weights=plan.network().state_dict(),
        optimizer={},
        spec=plan.bridge.spec,
        reads=plan.reads,
    )


def state_of(part):
    return StateSetConfig(split=part, size=1).take(FakeBridge().spec.state_space)[0].index


BAD = {
    "algorithm.bach=3": ("batch",),
    "algorithm.reference_coeff=1": ("reference_coef",),
    "algorithm.name=pop": ("unknown algorithm 'pop'", "ppo"),
    "ppo.lr=1": ("ppo: was renamed", "algorithm"),
    "learners.counts=1": ("count",),
    "bridge.name=faek": ("unknown bridge 'faek'", "fake"),
    "policy.name=actor_kritic": ("actor_kritic", "actor_critic"),
    "policy.name=random": ("random", "no network"),
    "policy.hiden=[3]": ("hidden",),
    "policy.columns=[postion]": ("postion", "position"),
    "state_set.split=test": ("split", "train", "test"),
    f"state_set.states=[{state_of('test')}]": ("test", str(state_of("test"))),
    f"state_set.states=[{state_of('validation')}]": ("validation",),
    "algorithm.minibatch=64": ("algorithm: minibatch=64", "batch=32"),
    "algorithm.bptt=3": ("fragment.steps=8", "algorithm.bptt=3"),
    "width=5000": ("width=5000", "4096"),
    "env_steps=0": ("env_steps",),
    "validation.every=0": ("validation.every",),
    "validation.evry=1": ("validation.evry", "every"),
    "validation.patience=2": ("validation", "patience", "set every"),
    "validation={every: 32, metric: reward}": ("validation.metric", "return"),
    "validation={every: 32, actions: greedy}": ("validation.actions", "deterministic"),
    "validation={every: 32, states: 100000000}": ("validation.states", "'validation' part has"),
    "callbacks=[no_colon]": ("callbacks", "module:function", "no_colon"),
    "callbacks=[no_such_module:f]": ("callbacks", "no_such_module", "PYTHONPATH"),
    "callbacks=[math:sqr]": ("callbacks", "sqr", "Nearest: sqrt"),
    "callbacks=[bisect:insort]": ("callbacks", "called with 1 argument", "(a, x,"),
    "initialize_from=/no/such/place": ("/no/such/place", "checkpoint.json"),
    "algorithm.reference=/no/such/place": ("/no/such/place", "checkpoint.json"),
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_is_one_clear_line_and_launches_nothing(call, tmp_path, setting):
    arguments = ["policy={name: random}"] if setting == "policy.name=random" else [setting]
    status, said = call("--set", *arguments)
    assert status == 2, said
    for part in BAD[setting]:
        assert part in said
    assert len(said.strip().splitlines()) == 1, said
    assert not (tmp_path / "run").exists()


KEYS = ("initialize_from", "algorithm.reference")


@pytest.mark.parametrize("key", KEYS)
def test_a_checkpoint_for_other_spaces_is_refused(call, tmp_path, key):
    """That of a game which shows other columns; both sides are named."""
    path = saved(tmp_path / "other")
    about = json.loads((path / "checkpoint.json").read_text())
    del about["sha256"]["checkpoint.json"]
    about["observation_space"]["place"] = about["observation_space"].pop("position")
    (path / "checkpoint.json").write_text(json.dumps(about))
    status, said = call("--set", f"{key}={path}")
    assert status == 2, said
    assert re.search("'place'.*fake.*image, position", said), said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("key", KEYS)
def test_a_checkpoint_of_another_architecture_is_refused(call, tmp_path, key):
    other = {"name": "actor_critic", "hidden": [24], "columns": ["position"]}
    path = saved(tmp_path / "other", policy=other)
    status, said = call("--set", f"{key}={path}")
    assert status == 2, said
    assert key in said
    assert "24" in said, "theirs is not named"
    assert "16" in said, "ours is not named"
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("key", KEYS)
def test_a_damaged_checkpoint_is_refused(call, tmp_path, key):
    path = saved(tmp_path / "other")
    with (path / "weights.pt").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff\x00\xff")
    status, said = call("--set", f"{key}={path}")
    assert status == 2, said
    assert "damaged" in said
    assert not (tmp_path / "run").exists()


def test_a_run_of_other_settings_is_not_resumed(call, tmp_path):
    """Its directory says what it was made with; the key that differs is named."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "something").write_text("not a run")
    status, said = call("--resume")
    assert status == 2, said
    assert str(run) in said
