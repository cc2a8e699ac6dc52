"""``scripts/train.py`` as a user runs it: how it is stopped, how it goes on, how it ends short."""

import json
import re
import signal
import subprocess

import numpy as np
import pytest
import yaml

from rollout.cli import Session, main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.data import Dataset
from rollout.signals import Stop
from rollout.train.checkpoint import find_checkpoint, write_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.episodes import read_episodes
from rollout.train.train import train
from tests.ray.training import (
    ROOT,
    SMALL,
    about,
    command,
    config_of_file,
    merged,
    plan_of,
    run,
    same_weights,
    summary,
    wait_for,
    whole_episodes,
    write_config,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]

UPDATES = 30


def call(folder, *arguments):
    """Runs the script in this process, which spares it seconds of imports."""
    argv = ["--config", str(folder / "config.yaml"), *arguments]
    return main(train, TrainConfig, "Trains.", argv)


def newest(folder):
    places = sorted((folder / "run" / "checkpoints").glob("0*"))
    return int(places[-1].name) if places else 0


def settings_of(reference):
    """Everything that an update depends on changes over the run: rate, coefficient, states."""
    return merged(
        whole_episodes(),
        {
            "bridge": {"step_s": 0.01},
            "env_steps": 64 * UPDATES,
            "checkpoint": {"every": 4, "keep": 3},
            "algorithm": {
                "reference": str(reference),
                "reference_coef": 1.0,
                "reference_decay": 0.9,
            },
        },
    )


@pytest.fixture
def reference(tmp_path):
    plan = plan_of(SMALL, seed=7)
    return write_checkpoint(
        tmp_path / "reference",
        {"update": 1, "env_steps": 0, "policy": {"name": "actor_critic", "options": {}}},
        weights=plan.network().state_dict(),
        optimizer={},
        spec=plan_of(whole_episodes()).bridge.spec,
        reads=plan.reads,
    )


def episodes_of(folder):
    """What was written down of each episode, but for the time it took."""
    lines = read_episodes(folder / "run" / "episodes.jsonl")
    assert len(lines) == summary(folder)["results"]["episodes"]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.mark.slow
@pytest.mark.usefixtures("joined_ray")
def test_killed_and_resumed_it_is_the_uninterrupted_run_bit_for_bit(tmp_path, reference):
    """kill -9 anywhere, then SIGTERM, then to the end; then once more, which does nothing."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        write_config(folder, settings_of(reference))
    assert call(whole) == 0

    seen = 0
    for signum, status in ((signal.SIGKILL, -9), (signal.SIGTERM, 143)):
        done = command(broken, "--resume")
        said = tmp_path / "said"  # no pipe: what Ray leaves behind for a while would hold it open
        with said.open("w") as file:
            process = subprocess.Popen(done, cwd=ROOT, stderr=file)
        assert wait_for(lambda: newest(broken) > seen + 3, 600)  # noqa: B023 - called at once
        process.send_signal(signum)
        status_there = process.wait(timeout=600)
        assert status_there == status, said.read_text()
        seen = newest(broken)
    assert seen < UPDATES, "it was done before it was stopped, so this shows nothing"
    assert summary(broken)["status"] == "interrupted"
    assert about(broken)["update"] == summary(broken)["results"]["updates"], "not saved"

    assert call(broken, "--resume") == 0
    one, other = find_checkpoint(whole / "run"), find_checkpoint(broken / "run")
    assert same_weights(one.weights(), other.weights())
    for key in ("update", "env_steps", "episodes", "visits", "policy", "state_set", "lost"):
        assert one.about[key] == other.about[key], key
    assert one.about["positions"]["0"]["cursor"] == other.about["positions"]["0"]["cursor"]
    assert summary(whole)["results"]["visits"] == summary(broken)["results"]["visits"]
    assert episodes_of(whole) == episodes_of(broken)
    states = one.optimizer()["state"], other.optimizer()["state"]
    assert same_weights(
        *({f"{k}/{n}": t for k, v in s.items() for n, t in v.items()} for s in states)
    )

    files = {p: p.stat().st_mtime_ns for p in (broken / "run" / "checkpoints").rglob("*")}
    before = summary(broken)
    assert call(broken, "--resume") == 0
    assert files == {p: p.stat().st_mtime_ns for p in (broken / "run" / "checkpoints").rglob("*")}
    after = summary(broken)
    assert (after["status"], after["results"]) == (before["status"], before["results"])

    # The newest checkpoint is damaged: an older one is used on request, and the result is the same.
    damaged = other.path / "optimizer.pt"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert call(broken, "--resume") == 2
    assert call(broken, "--resume", "--set", "checkpoint.fallback=true") == 0
    assert same_weights(one.weights(), find_checkpoint(broken / "run").weights())
    assert episodes_of(whole) == episodes_of(broken)
    assert (other.path.with_name(f"{other.path.name}.damaged") / "optimizer.pt").exists()


@pytest.mark.long
def test_a_run_with_a_runner_is_the_same_after_a_resume(tmp_path):
    """At the default staleness: a fragment is in flight when the checkpoint is written."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        write_config(folder, whole_episodes(), runners=1, env_steps=64 * 6)
    config = config_of_file(broken / "config.yaml")
    assert call(whole) == 0
    train(config, Session(False, Stop()), on_update=[lambda record: record.update == 3])
    assert about(broken)["update"] == 3
    assert call(broken, "--resume") == 0
    one, other = find_checkpoint(whole / "run"), find_checkpoint(broken / "run")
    assert one.update == other.update == 6
    assert same_weights(one.weights(), other.weights())
    assert episodes_of(whole) == episodes_of(broken)


@pytest.mark.parametrize("runners", [0, pytest.param(1, marks=pytest.mark.long)])
def test_states_keep_their_scores_after_a_resume(tmp_path, runners):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        keys = {"curriculum": {"sampler": "score"}, "env_steps": 64 * 12}
        write_config(folder, whole_episodes(), runners=runners, **keys)
    config = config_of_file(broken / "config.yaml")
    assert call(whole) == 0
    train(config, Session(False, Stop()), on_update=[lambda record: record.update == 6])
    assert all(p["curriculum"]["scores"] for p in about(broken)["positions"].values())
    assert call(broken, "--resume") == 0
    one, other = find_checkpoint(whole / "run"), find_checkpoint(broken / "run")
    assert one.about["positions"] == other.about["positions"]
    assert same_weights(one.weights(), other.weights())
    assert episodes_of(whole) == episodes_of(broken)


@pytest.mark.long
def test_it_ends_early_when_no_runner_is_left_and_can_continue(tmp_path):
    """Every copy of the game crashes at its 40th step; each runner may be given one more."""
    settings = merged(
        whole_episodes(),
        {
            "bridge": {"crash_on_step": 40.0},
            "host": {"restarts": 1, "failure_rate": 0},
            "env_steps": 64 * 12,
        },
    )
    write_config(tmp_path, settings, runners=1)
    assert call(tmp_path) == 3
    first = summary(tmp_path)
    assert first["status"] == "ended short"
    assert first["results"]["updates"] >= 2
    assert first["results"]["lost"], "lost episodes are counted, also those of the end"
    assert about(tmp_path)["update"] == first["results"]["updates"]
    assert about(tmp_path)["lost"] == first["results"]["lost"]
    assert call(tmp_path, "--resume") in {0, 3}
    second = summary(tmp_path)
    assert second["results"]["updates"] > first["results"]["updates"]
    # The states come in turn, and each as often as the others: none was skipped at the resume.
    visits = second["results"]["visits"]
    assert visits["max"] - visits["min"] <= 1
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["env_steps"] for line in lines if "train/update" in line]
    assert steps == sorted(set(steps))


def test_games_that_never_come_up_end_it_without_a_checkpoint(tmp_path):
    settings = merged(SMALL, {"bridge": {"fail_on_start": 1.0}, "host": {"restarts": 1}})
    write_config(tmp_path, settings)
    assert call(tmp_path) == 3
    assert newest(tmp_path) == 0
    assert summary(tmp_path)["status"] == "ended short"


@pytest.mark.long  # RLlib says more in another version of Ray only
def test_a_normal_run_says_nothing_but_what_we_say(tmp_path):
    """No deprecations and advice of RLlib's among the lines of progress."""
    write_config(tmp_path, SMALL, env_steps=256, runners=1)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    # RLlib passes settings to its actors by reference. Ray warns that they could
    # not restart if the object were lost. The trainer holds it as long as it lives.
    lines = [line for line in lines if "has constructor arguments in the object store" not in line]
    assert all(re.match(r"\d\d:\d\d:\d\d INFO ", line) for line in lines), done.stderr
    assert done.stdout == ""


def test_a_game_with_continuous_actions_is_trained_and_recorded(tmp_path):
    """Pendulum: from the configuration to a dataset that the trained policy played."""
    settings = {
        "bridge": {"name": "gymnasium", "id": "Pendulum-v1"},
        "policy": {"name": "actor_critic", "hidden": [16], "continuous": "squashed"},
        "width": 4,
        "fragment": {"steps": 16},
        "env_steps": 256,
        "learners": {"threads": 1},
        "algorithm": {"batch": 128, "minibatch": 64, "bptt": 16},
    }
    write_config(tmp_path, settings)
    assert call(tmp_path) == 0
    policy = {"name": "checkpoint", "path": str(tmp_path / "run")}
    played = {"bridge": settings["bridge"], "policy": policy, "width": 1}
    played |= {"actors": 0, "env_steps": 300}
    collected = tmp_path / "collected"
    (tmp_path / "collect.yaml").write_text(yaml.safe_dump({"output": str(collected), **played}))
    assert main(collect, CollectConfig, "Plays.", ["--config", str(tmp_path / "collect.yaml")]) == 0
    with Dataset(collected / "dataset") as dataset:
        torque = np.concatenate(
            [e.columns["action"] for e in map(dataset.read, dataset.episodes())]
        )
    assert torque.dtype == np.float32
    assert torque.shape[1:] == (1,)
    assert (np.abs(torque) <= 2).all()
    assert len(np.unique(torque)) > 0.9 * len(torque)


@pytest.mark.long
def test_pendulum_learns_to_swing_up(tmp_path):
    """At random an episode returns about -1,200; balancing from most starts, more than -300."""
    config = yaml.safe_load((ROOT / "configs" / "train_pendulum.yaml").read_text())
    del config["output"]  # the test has its own
    write_config(tmp_path, config, env_steps=180_000)
    assert call(tmp_path) == 0
    lines = [json.loads(x) for x in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [x["episode/return"] for x in lines if "episode/return" in x][-1] > -300
