"""``scripts/collect.py`` as a user runs it: what it leaves, how it is stopped, how it goes on."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from rollout.commands.dataset import main as dataset_command
from rollout.data import Dataset
from tests.commands import called
from tests.processes import killed_at_end

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "collect.py"

pytestmark = [pytest.mark.ray]


def command(folder: Path, *arguments: str) -> list[str]:
    config = folder / "config.yaml"
    if not config.exists():
        config.write_text(
            yaml.safe_dump(
                {
                    "output": str(folder / "run"),
                    "bridge": {"name": "fake", "max_steps": 40},
                    "policy": "random",
                    "episodes": 24,
                    "actors": 0,
                    "fragment": {"steps": 16},
                }
            )
        )
    return [sys.executable, str(SCRIPT), "--config", str(config), *arguments]


def run(folder: Path, *arguments: str) -> SimpleNamespace:
    """Runs the command in this process."""
    status, said = called("collect", *command(folder, *arguments)[2:])
    return SimpleNamespace(returncode=status, stderr=said)


def finished(folder: Path) -> int:
    if not (folder / "run" / "dataset" / "dataset.json").exists():
        return 0
    with Dataset(folder / "run" / "dataset") as dataset:
        return len(dataset.finished().episodes)


def episodes_of(folder: Path) -> dict:
    """Everything that decides an episode, by its number."""
    out = {}
    with Dataset(folder / "run" / "dataset") as dataset:
        for ref in dataset.episodes():
            assert ref.episode not in out, f"episode {ref.episode} is there twice"
            episode = dataset.read(ref)
            out[ref.episode] = (ref.state, ref.seed, len(episode.columns["reward"]))
    return out


def test_a_run_on_ray_and_what_it_leaves(tmp_path):
    told = command(tmp_path, "--set", "actors=2", "wandb.mode=offline")
    done = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "run"
    names = {p.name for p in folder.iterdir()}
    assert {"config.yaml", "summary.json", "metrics.jsonl", "dataset", "run.log"} <= names
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["status"] == "done"
    assert summary["results"]["episodes"] == 24
    assert summary["protocol"]["seed"] == 0
    assert summary["protocol"]["state_set"]["digest"]
    assert summary["versions"]["ray"]
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["episodes"] == 24
    resolved = yaml.safe_load((folder / "config.yaml").read_text())
    assert resolved["bridge"]["side"] == 8  # defaults are written out
    with Dataset(folder / "dataset") as dataset:
        assert dataset.counts.steps == summary["results"]["env_steps"]
    assert list((folder / "wandb").glob("offline-run-*"))


def test_killed_and_resumed_it_holds_what_an_uninterrupted_run_holds(tmp_path):
    """kill -9 of the driver, then SIGTERM, then to the end: nothing lost, nothing twice."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    assert run(tmp_path / "whole", "--set", "bridge.step_s=0.002").returncode == 0
    whole = episodes_of(tmp_path / "whole")
    assert sorted(whole) == list(range(24))

    seen = 0
    for signum, status in ((signal.SIGKILL, -9), (signal.SIGTERM, 143)):
        broken = command(tmp_path / "broken", "--resume", "--set", "bridge.step_s=0.002")
        started = subprocess.Popen(broken, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        with killed_at_end(started) as process:
            deadline = time.monotonic() + 600
            while finished(tmp_path / "broken") < seen + 4 and time.monotonic() < deadline:
                time.sleep(0.02)
            process.send_signal(signum)
            _, errors = process.communicate(timeout=600)
        assert process.returncode == status, errors
        now = finished(tmp_path / "broken")
        assert now >= seen + 4, "finished episodes were lost"
        seen = now
    assert seen < 24, "it was done before it was stopped, so this shows nothing"
    last = run(tmp_path / "broken", "--resume", "--set", "bridge.step_s=0.002")
    assert last.returncode == 0, last.stderr
    broken = episodes_of(tmp_path / "broken")
    assert {e: v[:2] for e, v in broken.items()} == {e: v[:2] for e, v in whole.items()}
    summary = json.loads((tmp_path / "broken" / "run" / "summary.json").read_text())
    assert summary["results"]["episodes"] == 24
    assert summary["resume_count"] == 2


@pytest.mark.long
def test_env_steps_bound_a_run_and_may_be_raised(tmp_path):
    first = run(tmp_path, "--set", "episodes=null", "env_steps=200")
    assert first.returncode == 0, first.stderr
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        before = dataset.counts.steps
    assert 200 <= before < 200 + 16
    again = run(tmp_path, "--resume", "--set", "episodes=null", "env_steps=500")
    assert again.returncode == 0, again.stderr
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        assert 500 <= dataset.counts.steps < 500 + 16


def test_recording_holds_the_true_images(tmp_path):
    """What is read back is what the bare game shows for the recorded actions."""
    from rollout.api import Start
    from rollout.testing.fakes import FakeBridge

    assert run(tmp_path, "--set", "episodes=2", "recording.codec=png").returncode == 0
    bridge = FakeBridge(max_steps=40)
    game = bridge.launch(tmp_path, [], width=1, timeout_s=5)
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        for ref in dataset.episodes():
            episode = dataset.read(ref)
            start = Start(bridge.spec.state_space.state(ref.state), ref.seed)
            frame = game.reset([0], [start], timeout_s=5)
            for t in range(ref.length):
                image = episode.columns["observation/image"][t]
                assert np.array_equal(image, frame.observations["image"][0])
                action = {"move": episode.columns["action/move"][t : t + 1]}
                frame = game.step(action, timeout_s=5)


def test_recorded_actions_are_replayed_exactly(tmp_path):
    """Record at random, export the actions, play them by script: the same rewards, step by step."""
    assert run(tmp_path, "--set", "episodes=6", "seed=5").returncode == 0
    dataset, out = tmp_path / "run" / "dataset", "s.npz"
    assert dataset_command(["actions", str(dataset), "--out", str(tmp_path / out)]) == 0
    policy = f"policy={{name: scripted, actions: {tmp_path / out}}}"
    again = run(tmp_path, "--set", "episodes=6", "seed=5", policy, f"output={tmp_path / 'again'}")
    assert again.returncode == 0, again.stderr
    rewards = []
    for folder in ("run", "again"):
        with Dataset(tmp_path / folder / "dataset") as data:
            refs = sorted(data.episodes(), key=lambda r: r.episode)
            rewards.append([data.read(r, ["reward"]).columns["reward"].tolist() for r in refs])
    assert len(rewards[0]) == 6
    assert rewards[0] == rewards[1]
    other = run(tmp_path, "--set", "episodes=6", "seed=6", policy, f"output={tmp_path / 'other'}")
    assert other.returncode == 2, other.stderr  # no script for these starts


def test_a_run_whose_games_keep_dying_ends_early_and_saves(tmp_path):
    done = run(
        tmp_path,
        "--set",
        "bridge.crash_on_step=30",
        "host.restarts=2",
        "host.failure_rate=0",  # one failure in thirty steps is below the default
        "host.retries=50",
    )
    assert done.returncode == 3, done.stderr
    assert "ended short" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "ended short"
    assert summary["session"]["lost_by_phase"] == {"step": 3}


def test_an_output_that_holds_something_else_is_refused(tmp_path):
    assert run(tmp_path, "--set", "episodes=1").returncode == 0
    again = run(tmp_path, "--set", "episodes=1")
    assert again.returncode == 2
    assert "--resume" in again.stderr
    other = run(tmp_path, "--resume", "--set", "episodes=1", "bridge.slip=0.5")
    assert other.returncode == 2
    assert "bridge.slip" in other.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    foreign = run(tmp_path, "--set", f"output={tmp_path / 'full'}")
    assert foreign.returncode == 2
    assert "thesis.tex" in foreign.stderr


def test_the_environment_can_place_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_RUNS_DIR", str(tmp_path / "runs"))
    done = run(tmp_path, "--set", "output=here", "episodes=1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "here" / "summary.json").exists()
