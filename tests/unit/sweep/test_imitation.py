"""Arms of a sweep that learn from demonstrations: what is shown, kept, continued and refused."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml

from rollout.cli import main
from rollout.config import make_config, resolved
from rollout.data import Dataset
from rollout.data.tables import read_table
from rollout.errors import ConfigError
from rollout.evaluate.legs import TRAIN
from rollout.sweep.config import SweepConfig
from rollout.sweep.plan import SweepPlan
from rollout.sweep.run import TRAINER
from rollout.sweep.sweep import sweep
from rollout.train.offline import learn_offline

pytestmark = pytest.mark.heavy

SHOWN = {
    "policy": {"name": "callable", "function": f"{__name__}:expert"},
    "episodes": 12,
}
STOPS = "IMITATION_STOPS"  # a file: the policy stops the process once


def expert(observations):
    """A move for each quarter of the map."""
    file = os.environ.get(STOPS)
    if file is not None and Path(file).exists():
        Path(file).unlink()
        os.kill(os.getpid(), signal.SIGTERM)
    position = observations["position"]
    return (1 + (position[:, 0] > 0.5) + 2 * (position[:, 1] > 0.5)).astype(np.int64)


@pytest.fixture
def config(tmp_path):
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 12}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    return {
        "output": str(tmp_path / "run"),
        "train": {
            "bridge": {"name": "fake"},
            "task": str(tmp_path / "task.yaml"),
            "width": 4,
            "state_set": {"test": 30, "validation": 0},
            "policy": {"name": "actor_critic", "columns": ["position"], "hidden": [8]},
            "algorithm": {"name": "bc", "epochs": 2, "minibatch": 64},
            "demonstrations": SHOWN,
        },
        "sizes": [2, 6],
        "seeds": [0, 1],
        "evaluate": {"test_states": 4, "train_states": 4, "metric": "progress"},
        "parallel": 0,
        "wandb": {"mode": "disabled"},
    }


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls the command with a configuration."""
    monkeypatch.setattr("rollout.sweep.figure.draw", lambda points, stem, **_: (stem, stem))

    def run(config, *arguments):
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump(config, sort_keys=False))
        status = main(sweep, SweepConfig, "Sweeps.", ["--config", str(file), *arguments])
        return status, capsys.readouterr().err

    return run


def runs_of(config):
    return SweepPlan.make(make_config(SweepConfig, config), TRAINER.check).runs


def result(run):
    return json.loads((run.folder / "result.json").read_text())


def test_every_run_learns_from_its_own_training_states(config, call, tmp_path):
    config["arms"] = {"bc": {}, "iql": {"set": {"algorithm": {"name": "iql", "epochs": 2}}}}
    status, said = call(config)
    assert status == 0, said
    runs = runs_of(config)
    assert len(runs) == 2 * 2 * 2
    for run in runs:
        with Dataset(tmp_path / "run" / "demonstrations" / run.name) as dataset:
            refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        states = [state.index for state in run.states]
        # The same number for every N, and one more for the loss.
        assert [ref.state for ref in refs] == [states[k % run.n] for k in range(12 + 1)]
        training = result(run)["training"]
        assert training["episodes"] == 12
        assert training["env_steps"] == sum(ref.length for ref in refs[:12])
        assert training["held_out_episodes"] == 1
        assert training["visits"] == {
            "states": run.n,
            **dict.fromkeys(("min", "median", "max"), 12 / run.n),
            "never": 0.0,
        }
    table = read_table(tmp_path / "run" / "results.parquet")
    assert set(zip(table["arm"].tolist(), table["n"].tolist(), strict=True)) == {
        (arm, n) for arm in ("bc", "iql") for n in (2, 6)
    }
    assert TRAIN in table["set"]
    report = (tmp_path / "run" / "report.md").read_text()
    assert "12 episodes of callable on its training states" in report
    before = [(run.folder / "result.json").stat().st_mtime_ns for run in runs]
    status, said = call(config, "--resume")
    assert status == 0, said
    assert [(run.folder / "result.json").stat().st_mtime_ns for run in runs] == before


@pytest.fixture
def cloned(config):
    """A configuration whose runs play on from a clone."""
    train = config["train"]
    train |= {"env_steps": 64, "algorithm": {"name": "ppo", "batch": 32, "minibatch": 16}}
    train |= {"fragment": {"steps": 8}, "measure": None}
    train["demonstrations"] = {**SHOWN, "clone": {"name": "bc", "epochs": 2, "minibatch": 64}}
    return config


def test_a_run_plays_on_from_a_clone_of_its_own_states(cloned, call, tmp_path):
    cloned["sizes"] = [2, 20]  # more states than demonstrations: the first ones are shown
    status, said = call(cloned)
    assert status == 0, said
    for run in runs_of(cloned):
        with Dataset(tmp_path / "run" / "demonstrations" / run.name) as dataset:
            refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        states = [state.index for state in run.states]
        assert [ref.state for ref in refs] == [states[k % run.n] for k in range(12 + 1)]
        begun = resolved_of(run.folder)
        clone = str(tmp_path / "run" / "clones" / run.name)
        assert begun["initialize_from"] == begun["algorithm"]["reference"] == clone
        assert result(run)["training"]["env_steps"] == 64
        assert result(run)["set"]["digest"] == run.states.digest
    report = (tmp_path / "run" / "report.md").read_text()
    assert "64 steps, from a clone (bc) of 12 episodes of callable on its training states" in report
    before = [(run.folder / "result.json").stat().st_mtime_ns for run in runs_of(cloned)]
    assert call(cloned, "--resume")[0] == 0
    assert [(run.folder / "result.json").stat().st_mtime_ns for run in runs_of(cloned)] == before


def resolved_of(folder):
    return yaml.safe_load((folder / "config.yaml").read_text())


def test_another_reference_is_kept_and_two_starts_are_refused(cloned):
    cloned["train"]["algorithm"]["reference"] = "runs/other"
    training = runs_of_shared(cloned).training("clone")
    assert (training.initialize_from, training.algorithm.options["reference"]) == (
        "clone",
        "runs/other",
    )
    cloned["train"]["initialize_from"] = "runs/other"
    with pytest.raises(ConfigError, match=r"initialize_from: .* set one of the two"):
        make_config(SweepConfig, cloned)
    cloned["train"] |= {"initialize_from": None, "algorithm": {"name": "bc"}, "env_steps": 0}
    with pytest.raises(ConfigError, match="learns from the demonstrations itself"):
        make_config(SweepConfig, cloned)


def runs_of_shared(config):
    """The configuration of the first run, not checked."""
    return SweepPlan.make(make_config(SweepConfig, config), lambda _: None).runs[0].config


def test_stopped_while_it_records_it_continues(config, call, tmp_path, monkeypatch):
    config |= {"sizes": [6], "seeds": [0]}
    assert call(config)[0] == 0
    whole = runs_of(config)[0]
    config |= {"output": str(tmp_path / "stopped")}
    (tmp_path / "stop").touch()
    monkeypatch.setenv(STOPS, str(tmp_path / "stop"))
    status, _ = call(config)
    assert status == 128 + signal.SIGTERM
    run = runs_of(config)[0]
    assert (tmp_path / "stopped" / "demonstrations" / run.name / "run.json").exists()
    assert not (run.folder / "summary.json").exists()
    status, said = call(config, "--resume")
    assert status == 0, said
    tables = [read_table(each.folder / "evaluation.parquet") for each in (whole, run)]
    for name in ("state", "score", "episode_seed"):
        np.testing.assert_array_equal(tables[0][name], tables[1][name])


def test_stopped_after_it_recorded_it_records_nothing_again(config, call, tmp_path, monkeypatch):
    config |= {"sizes": [6], "seeds": [0], "retries": 1}
    failures = [OSError("no space is left")]

    def learn(*arguments):
        if failures:
            raise failures.pop()
        return learn_offline(*arguments)

    monkeypatch.setattr("rollout.train.offline.learn_offline", learn)
    status, said = call(config)
    assert status == 0, said
    assert not failures
    (folder,) = (tmp_path / "run" / "demonstrations").iterdir()
    with Dataset(folder) as dataset:
        assert [(ref.episode, ref.attempt) for ref in dataset.episodes()] == [
            (episode, 0) for episode in range(12 + 1)
        ]


def test_demonstrations_of_another_configuration_are_refused(config, call, tmp_path):
    config |= {"sizes": [6], "seeds": [0], "retries": 0}
    assert call(config)[0] == 0
    shutil.rmtree(tmp_path / "run" / "runs")
    (folder,) = (tmp_path / "run" / "demonstrations").iterdir()
    file = folder / "config.yaml"
    file.write_text(file.read_text().replace("explore: true", "explore: false"))
    status, said = call(config, "--resume")
    assert status == 3
    assert "explore" in said


def test_the_demonstrations_decide_a_run(config):
    before = {run.name: run.trains for run in runs_of(config)}
    config["train"]["demonstrations"] = {**SHOWN, "episodes": 13}
    assert not [run for run in runs_of(config) if run.trains == before[run.name]]


def test_arms_that_play_keep_their_digest(config):
    """Whether another arm learns from demonstrations does not matter."""
    playing = {**config["train"], "env_steps": 1000, "algorithm": {"name": "ppo"}}
    config["train"] = {k: v for k, v in playing.items() if k != "demonstrations"}
    alone = [run.trains for run in runs_of(config)]
    changes = {"algorithm": {"name": "bc"}, "demonstrations": SHOWN}
    config["arms"] = {"random": {}, "bc": {"set": changes}}
    both = runs_of(config)
    assert sorted(run.trains for run in both if run.arm == "random") == sorted(alone)
    # The budget of the others is not theirs.
    config["train"]["env_steps"] = 2000
    assert [run.trains for run in both if run.arm == "bc"] == [
        run.trains for run in runs_of(config) if run.arm == "bc"
    ]


def test_the_resolved_configuration_gives_the_same_sweep(config):
    first = make_config(SweepConfig, config)
    again = make_config(SweepConfig, resolved(first))
    assert resolved(again) == resolved(first)
    assert [run.trains for run in runs_of(resolved(first))] == [
        run.trains for run in runs_of(config)
    ]


WRONG = {
    "no demonstrations": (
        ["train.demonstrations=null"],
        ["algorithm bc learns from demonstrations", "demonstrations.episodes"],
    ),
    "demonstrations for one who plays": (
        ["train.algorithm={name: ppo}", "train.env_steps=100"],
        ["demonstrations", "ppo learns from what it plays"],
    ),
    "no budget of one who plays": (
        ["train.algorithm={name: ppo}", "train.demonstrations=null"],
        ["env_steps", "is missing"],
    ),
    "an algorithm for language models": (
        ["train.algorithm={name: sft}"],
        ["sft learns from answers"],
    ),
    "fewer episodes than states": (
        ["train.demonstrations.episodes=5"],
        ["N = 6 training states", "episodes=5"],
    ),
    "no episodes": (["train.demonstrations.episodes=0"], ["episodes", "greater than 0"]),
    "keys of those who play": (["train.runners=2"], ["runners", "leave them out"]),
    "learners of those who play": (["train.learners.count=1"], ["learners", "leave them out"]),
    "an unknown policy": (["train.demonstrations.policy=oracl"], ["oracl", "Nearest: oracle"]),
    "an expert that the game has not": (
        ["train.demonstrations.policy=oracle"],
        ["demonstrations", "privileged_oracle/move", "bridge.oracle"],
    ),
    "an unknown option of the game": (
        ["train.demonstrations.bridge={sidee: 4}"],
        ["demonstrations", "sidee", "side"],
    ),
    "other states": (
        ["train.demonstrations.bridge={side: 4}"],
        ["demonstrations.bridge", "changes the states"],
    ),
    "an algorithm without memory": (
        ["train.algorithm={name: iql}", "train.policy.memory=gru"],
        ["arm 'random'", "policy.memory=none"],
    ),
    "a checkpoint that does not exist": (
        ["train.demonstrations.policy={name: checkpoint, path: nowhere}"],
        ["nowhere"],
    ),
    "a policy without a network": (
        ["train.policy={name: random}"],
        ["random has no network"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused(name, config, call, tmp_path):
    sets, words = WRONG[name]
    status, said = call(config, "--set", *sets)
    assert status == 2, said
    assert not [word for word in words if word not in said], said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()
