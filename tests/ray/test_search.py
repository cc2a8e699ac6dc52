"""``scripts/tune.py``: trials of Ray Tune that go on by themselves."""

import json
import logging
import signal
import subprocess
import sys
import time

import pytest
import yaml

from rollout.cli import main
from rollout.observe.run_status import read_status
from rollout.train.search import search
from rollout.train.search_config import SearchConfig
from tests.ray.training import ROOT, SMALL, merged, wait_for

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]


def call(folder, *arguments):
    argv = ["--config", str(folder / "search.yaml"), *arguments]
    return main(search, SearchConfig, "Searches.", argv)


def summary(folder):
    return json.loads((folder / "run" / "summary.json").read_text())


def write(folder, **changes):
    settings = {
        "output": str(folder / "run"),
        "train": merged(SMALL, {"env_steps": 64 * 12, "checkpoint": {"every": 3}}),
        "space": {"algorithm.lr": [1e-3, 1e-4], "algorithm.gamma": {"uniform": [0.9, 0.99]}},
        "wandb": {"mode": "disabled"},
    }
    (folder / "search.yaml").write_text(yaml.safe_dump(merged(settings, changes)))


@pytest.mark.parametrize("rates", [[1e-3], pytest.param([1e-3, 1e-4], marks=pytest.mark.long)])
def test_a_search_tells_the_best_and_continues(tmp_path, rates, caplog, monkeypatch):
    """Twice as many samples with --resume: what is done is told again and not trained again."""
    monkeypatch.setattr(logging.getLogger("ray"), "propagate", True)  # so that caplog sees it
    write(tmp_path, space={"algorithm.lr": rates}, parallel=1)
    assert call(tmp_path) == 0
    first = summary(tmp_path)["results"]["trials"]
    assert len(first) == len(rates)
    assert {t["status"] for t in first} == {"done"}
    assert first[0]["score"] == max(t["score"] for t in first)
    assert {t["point"]["algorithm.lr"] for t in first} == set(rates)
    assert all(0.9 <= t["point"]["algorithm.gamma"] < 0.99 for t in first)
    trials = sorted((tmp_path / "run" / "trials").iterdir())
    written = {p: (p / "run.log").read_text().count("continues") for p in trials}

    assert call(tmp_path, "--resume", "--set", "samples=2") == 0
    second = summary(tmp_path)["results"]["trials"]
    assert len(second) == 2 * len(rates)
    assert second[0]["score"] == max(t["score"] for t in second)
    points = [t["point"] for t in second]
    assert all(t["point"] in points for t in first)
    assert {json.dumps(t["point"]): t["score"] for t in first}.items() <= {
        json.dumps(t["point"]): t["score"] for t in second
    }.items()
    assert {p: (p / "run.log").read_text().count("continues") for p in trials} == written
    later = read_status(tmp_path / "run", now=time.time() + 10**6)
    assert {t.state for t in later.trials} == {"done"}
    alarms = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not alarms, [record.getMessage() for record in alarms]


@pytest.mark.long
def test_a_metric_that_nobody_writes_is_named_with_the_nearest(tmp_path):
    write(tmp_path, metric="episode/retrun", retries=0, space={"algorithm.lr": [1e-3]})
    config = yaml.safe_load((tmp_path / "search.yaml").read_text())
    del config["space"]["algorithm.gamma"]
    (tmp_path / "search.yaml").write_text(yaml.safe_dump(config))
    assert call(tmp_path) == 3
    (trial,) = summary(tmp_path)["results"]["trials"]
    assert trial["status"] == "failed"
    assert "episode/return" in trial["error"]


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ({"runners": 6}, "needs 7 CPU at once, and the cluster has 4 CPU"),
        ({"learners": {"resources": {"gamut_learner": 1}, "count": 1}}, "needs 1 gamut_learner"),
    ],
)
def test_a_trial_that_has_no_room_is_refused(tmp_path, capsys, train, said):
    write(tmp_path, train=train)
    assert call(tmp_path) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_search_that_is_stopped_is_not_done(tmp_path, signum, status):
    write(tmp_path, train={"env_steps": 10**9}, space={"algorithm.lr": [1e-3]})
    script = [sys.executable, str(ROOT / "scripts" / "tune.py")]
    with subprocess.Popen(
        [*script, "--config", str(tmp_path / "search.yaml")], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            trials = tmp_path / "run" / "trials"
            assert wait_for(lambda: any(trials.glob("*/metrics.jsonl")))
            process.send_signal(signum)
            _, err = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == status
    assert err.splitlines()[-1] == f"stopped by {signum.name}; continue with --resume"
    assert summary(tmp_path)["status"] == "interrupted"
