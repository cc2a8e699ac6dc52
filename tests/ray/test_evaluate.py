"""``scripts/evaluate.py`` on Ray: however many actors play, and whatever dies, one table."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from rollout.data.tables import read_table
from tests.processes import killed_at_end

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "evaluate.py"
EPISODES = 2 * 2 * (5 + 4) * 2

pytestmark = [pytest.mark.ray]

AGENTS = """
import numpy as np

def where(image, colour):
    mask = (image == np.array(colour, np.uint8)).all(-1)
    return np.array([np.argwhere(m).mean(0) if m.any() else (0, 0) for m in mask])

def goal(observations):
    image = observations["image"]
    away = where(image, (250, 220, 0)) - where(image, (255, 255, 255))
    down, right = away.T
    vertical = np.where(down > 0, 2, 1)
    return np.where(np.abs(down) > np.abs(right), vertical, np.where(right > 0, 4, 3))

def by_place(observations, details, explore):
    x, y = (observations["position"] * 7).round().astype(int).T
    return np.where((x + y + explore) % 3 == 0, goal(observations), (3 * x + 5 * y) % 5)
"""


def command(folder: Path, *arguments: str) -> list[str]:
    config = folder / "config.yaml"
    if not config.exists():
        folder.mkdir(parents=True, exist_ok=True)
        task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 25}}
        (folder.parent / "task.yaml").write_text(yaml.safe_dump(task))
        (folder.parent / "evaluated_agents.py").write_text(AGENTS)
        config.write_text(
            yaml.safe_dump(
                {
                    "output": str(folder / "run"),
                    "bridge": {"name": "fake", "step_s": 0.003},
                    "task": str(folder.parent / "task.yaml"),
                    "players": {
                        "goal": {"name": "callable", "function": "evaluated_agents:goal"},
                        "place": {"name": "callable", "function": "evaluated_agents:by_place"},
                    },
                    "sets": {"train": {"size": 5}, "test": {"split": "test", "size": 4}},
                    "episodes_per_state": 2,
                    "actions": ["sampled", "deterministic"],
                    "metric": "progress",
                    "actors": 0,
                    "width": 2,
                    "fragment": {"steps": 8},
                }
            )
        )
    return [sys.executable, str(SCRIPT), "--config", str(config), *arguments]


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder.parent)}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        command(folder, *arguments),
        cwd=ROOT,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def begin(folder: Path, *arguments: str) -> subprocess.Popen:
    return subprocess.Popen(
        command(folder, *arguments),
        cwd=ROOT,
        env=environment(folder),
        stderr=subprocess.PIPE,
        text=True,
    )


def table_of(folder: Path) -> bytes:
    return (folder / "run" / "episodes.parquet").read_bytes()


def ended(folder: Path) -> int:
    path = folder / "run" / "episodes.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(condition, seconds=600.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def hosts_of(process: subprocess.Popen) -> list[psutil.Process]:
    """The actors that play for a driver."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if "OneThreadHost" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an evaluation that was played here, without Ray."""
    folder = tmp_path_factory.mktemp("whole") / "0"
    done = run(folder)
    assert done.returncode == 0, done.stderr
    table = read_table(folder / "run" / "episodes.parquet")
    assert len(table["score"]) == EPISODES
    assert len(set(table["length"])) > 3, "every episode is like the others: this shows nothing"
    return table_of(folder), table


# Where task and agents lie is part of what the table remembers, so they lie in one place for all.
@pytest.fixture
def folder(whole, tmp_path_factory, request):
    return tmp_path_factory.getbasetemp() / "whole0" / request.node.name


@pytest.mark.long
def test_actors_give_the_same_bytes(folder, whole):
    done = run(folder, "--set", "actors=2")
    assert done.returncode == 0, done.stderr
    assert table_of(folder) == whole[0]


@pytest.mark.long
def test_killed_twice_and_resumed_it_is_the_same_table(folder, whole):
    """kill -9 of the driver, then SIGTERM, then to the end with other actors."""
    seen = 0
    for signum, status, actors in ((signal.SIGKILL, -9, 0), (signal.SIGTERM, 143, 2)):
        with killed_at_end(begin(folder, "--resume", "--set", f"actors={actors}")) as process:
            wait_for(lambda seen=seen: ended(folder) >= seen + 5)
            process.send_signal(signum)
            _, errors = process.communicate(timeout=600)
        assert process.returncode == status, errors
        seen = ended(folder)
    assert seen < EPISODES, "it was done before it was stopped, so this shows nothing"
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert summary["results"]["missing"] == EPISODES - summary["results"]["episodes"] > 0
    done = run(folder, "--resume", "--set", "actors=1")
    assert done.returncode == 0, done.stderr
    assert table_of(folder) == whole[0]
    assert ended(folder) == EPISODES, "an episode was played twice"


@pytest.mark.long
def test_a_killed_actor_costs_attempts_and_nothing_else(folder, whole):
    settings = ("actors=2", "bridge.step_s=0.02", "wandb.mode=offline")
    with killed_at_end(begin(folder, "--set", *settings)) as process:
        wait_for(lambda: ended(folder) >= 3 and len(hosts_of(process)) == 2)
        hosts_of(process)[0].kill()
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    table = read_table(folder / "run" / "episodes.parquet")
    for name in whole[1].keys() - {"attempts"}:
        np.testing.assert_array_equal(table[name], whole[1][name], err_msg=name)
    lost = int((table["attempts"] - 1).sum())
    assert lost > 0
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["results"]["attempts_lost"] == lost
    assert summary["results"]["lost_by_phase"] == {"actor": lost}
    assert summary["session"]["hosts_replaced"] == 1
    assert list((folder / "run" / "wandb").glob("offline-run-*"))


def test_games_that_keep_dying_end_it_early_and_save(folder):
    budget = ("host.restarts=1", "host.failure_rate=0")  # one in forty is below the default
    done = run(folder, "--set", "bridge.crash_on_step=40", *budget)
    assert done.returncode == 3, done.stderr
    assert "ended short" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert summary["status"] == "ended short"
    assert 0 < summary["results"]["episodes"] < EPISODES
    assert "Not complete" in (folder / "run" / "report.md").read_text()
