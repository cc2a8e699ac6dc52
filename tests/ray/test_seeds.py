"""``gamut train`` with several seeds: killed in the middle, resumed as one, and what a seed is."""

import json
import os
import re
import signal
import subprocess

import psutil
import pytest

from rollout.evaluate.config import EvaluateConfig
from rollout.observe.run_status import read_status
from rollout.sweep.learning import curves_of, named_runs
from rollout.train.checkpoint import CheckpointError, find_checkpoint
from tests.ray.training import (
    ROOT,
    SMALL,
    command,
    merged,
    run,
    same_weights,
    wait_for,
    write_config,
)

pytestmark = [pytest.mark.ray]

UPDATES = 6
SLOW = """
import threading


def on_update(record):
    "Seed 2 takes long; the file lets it go on."
    if "seed-2" in str(record.path) and not (record.path.parents[2] / "go").exists():
        threading.Event().wait(2.0)
    if (record.path.parents[2] / "wrong").exists():
        raise ValueError("as it was told")
"""


def settings(**more):
    own = {"env_steps": 64 * UPDATES, "checkpoint": {"every": 1}, "seeds": 3}
    return merged(SMALL, {**own, "callbacks": ["slow_seed:on_update"], **more})


def start(folder, *arguments):
    """Starts ``gamut train``; it prints to a file, which what outlives it may hold open."""
    (folder / "slow_seed.py").write_text(SLOW)
    path = os.pathsep.join((str(folder), str(ROOT)))
    said = (folder / "said").open("w")
    with said:
        return subprocess.Popen(
            command(folder, *arguments),
            cwd=folder,
            stderr=said,
            env={**os.environ, "PYTHONPATH": path},
        )


def finish(folder, *arguments):
    process = start(folder, *arguments)
    return process.wait(timeout=600), (folder / "said").read_text()


def sessions(folder, seed):
    about = json.loads((folder / f"run/runs/seed-{seed}/run.json").read_text())
    return about["sessions"]


def done(folder, seed):
    file = folder / f"run/runs/seed-{seed}/summary.json"
    return file.exists() and json.loads(file.read_text())["status"] == "done"


@pytest.mark.long
def test_killed_in_the_middle_it_continues_and_repeats_nothing(tmp_path):
    write_config(tmp_path, settings())
    process = start(tmp_path)
    slow = tmp_path / "run/runs/seed-2/checkpoints"
    assert wait_for(
        lambda: done(tmp_path, 0) and done(tmp_path, 1) and list(slow.glob("0*/checkpoint.json"))
    ), (tmp_path / "said").read_text()
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
    child = sessions(tmp_path, 2)[-1]["pid"]
    assert wait_for(lambda: not psutil.pid_exists(child), 120), "it outlived the driver"
    assert not done(tmp_path, 2), "it was done before it was killed, so this shows nothing"

    (tmp_path / "go").touch()
    status, said = finish(tmp_path, "--resume")
    assert status == 0, said
    assert "2 seeds are done already, 1 are left" in said
    assert [len(sessions(tmp_path, seed)) for seed in range(3)] == [1, 1, 2]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["status"], summary["resume_count"]) == ("done", 1)
    assert summary["results"]["missing"] == {}
    assert summary["results"]["env_steps"] == 3 * 64 * UPDATES
    results = summary["results"]["seeds"]
    assert {name: each["seed"] for name, each in results.items()} == {
        f"seed-{seed}": seed for seed in range(3)
    }
    assert {each["updates"] for each in results.values()} == {UPDATES}
    assert summary["results"]["last"]["return"]["seeds"] == 3
    for name in ("curves.png", "curves.svg"):
        assert (tmp_path / "run" / name).stat().st_size > 1000

    # A seed that was not killed is what a training of its own computes, bit for bit.
    alone = tmp_path / "alone"
    write_config(alone, settings(seed=1, seeds=None, callbacks=[]))
    assert run(alone, "--set", "measure=null").returncode == 0
    runs = {seed: find_checkpoint(tmp_path / f"run/runs/seed-{seed}") for seed in (0, 1)}
    weights = find_checkpoint(alone / "run").weights()
    assert same_weights(runs[1].weights(), weights)
    assert not same_weights(runs[0].weights(), weights)

    _can_be_used(tmp_path / "run")
    _can_grow(tmp_path)


def _can_be_used(folder):
    """What other commands make of the run directory."""
    status = read_status(folder)
    assert (status.state, status.kind, status.done) == ("done", "train", 1.0)
    assert [(t.name, t.state) for t in status.trials] == [(f"seed-{i}", "done") for i in range(3)]
    curves = {curve.figure: curve for curve in curves_of(named_runs([folder]))}
    assert len(curves["return"].seeds) == 3
    with pytest.raises(CheckpointError, match=r"has 3 seeds: name one, .*runs/seed-0"):
        find_checkpoint(folder)
    config = EvaluateConfig.model_validate({"player": str(folder), "sets": {"train": {"size": 2}}})
    assert config.groups == {"trained": ["seed-0", "seed-1", "seed-2"]}
    for name, player in config.players.items():
        assert find_checkpoint(player.options["path"]).path.is_relative_to(folder / "runs" / name)


def _can_grow(folder):
    """More seeds and more steps continue it; fewer or none are refused, with how to go on."""
    for wrong in ("seeds=2", "seeds=null"):
        status, said = finish(folder, "--resume", "--set", wrong)
        assert status == 2
        assert re.search(r"begun with another configuration .*set 'seeds=\[0, 1, 2\]'", said), said
    status, said = finish(folder, "--resume", "--set", "seeds=4")
    assert status == 0, said
    assert "3 seeds are done already, 1 are left" in said
    assert [len(sessions(folder, seed)) for seed in range(4)] == [1, 1, 2, 1]
    status, said = finish(folder, "--resume", "--set", "seeds=4", f"env_steps={64 * 8}")
    assert status == 0, said
    results = json.loads((folder / "run" / "summary.json").read_text())["results"]
    assert {each["updates"] for each in results["seeds"].values()} == {8}


def test_a_seed_that_fails_is_tried_again_and_then_named(tmp_path):
    write_config(tmp_path, settings(seeds=[4]))
    (tmp_path / "wrong").touch()
    status, said = finish(tmp_path)
    assert status == 3
    assert "1 of 1 seeds are not done (seed-4: " in said
    assert "as it was told" in said
    assert said.count("it is tried again") == 2
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "ended short"
    assert "as it was told" in summary["results"]["missing"]["seed-4"]


@pytest.mark.long
def test_what_only_a_seed_finds_wrong_is_invalid_input(tmp_path):
    """A dataset that is not there is found by the training itself."""
    data = {"algorithm": {"name": "bc"}, "dataset": str(tmp_path / "none"), "seeds": 2}
    write_config(tmp_path, data)
    status, said = finish(tmp_path)
    assert status == 2, said
    assert re.search(r"error: seed-[01]: .*none", said), said
