"""``gamut sweep`` on Ray: whatever dies, what is done is kept and the rest is done again."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from rollout.cli import main
from rollout.data.tables import read_table
from rollout.sweep.config import SweepConfig
from rollout.sweep.pool import _last_output, _Running, _stalled
from rollout.sweep.sweep import sweep
from tests.processes import killed_at_end

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.ray]

SCRIPT = """
import sys
from functools import partial

from rollout.cli import main
from rollout.sweep.sweep import sweep
from rollout.sweep.config import SweepConfig
from sweep_trainer import TRAINER

if __name__ == "__main__":
    sys.exit(main(partial(sweep, trainer=TRAINER), SweepConfig, "Sweeps.", sys.argv[1:]))
"""

CONFIG = {
    "train": {
        "bridge": {"name": "fake"},
        "task": "task.yaml",
        "env_steps": 1000,
        "width": 8,
        "state_set": {"test": 30, "validation": 0},
        "fragment": {"steps": 8},
        "algorithm": {"name": "ppo", "bptt": 8},
    },
    "sizes": [2, 6],
    "seeds": [0, 1],
    "evaluate": {"test_states": 10, "metric": "progress"},
    "parallel": 2,
    "wandb": {"mode": "disabled"},
}
RUNS = {f"random-n{n}-s{s}" for n in (2, 6) for s in (0, 1)}


@pytest.fixture
def folder(tmp_path):
    """A folder with a sweep whose trainer learns nothing."""
    source = (ROOT / "tests" / "unit" / "sweep" / "sweep_trainer.py").read_text()
    (tmp_path / "sweep_trainer.py").write_text(source)
    (tmp_path / "sweep_agents.py").write_text("from sweep_trainer import by_place\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "faults").mkdir()
    task = {"evaluator": {"name": "signal_goal", "signal": "reached"}, "limits": {"steps": 20}}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    config = {**CONFIG, "output": str(tmp_path / "run")}
    config["train"] = {**CONFIG["train"], "task": str(tmp_path / "task.yaml")}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def begin(folder, *arguments, script=None):
    path = os.pathsep.join(map(str, (folder, ROOT)))
    return subprocess.Popen(
        [
            *(sys.executable, str(script or folder / "script.py")),
            *("--config", str(folder / "config.yaml"), *arguments),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "SWEEP_FAULTS": str(folder / "faults")},
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder, *arguments, status=0, script=None, timeout=600):
    with killed_at_end(begin(folder, *arguments, script=script)) as process:
        _, said = process.communicate(timeout=timeout)
    assert process.returncode == status, said
    return said


def trained(folder):
    file = folder / "faults" / "trained"
    return file.read_text().split() if file.exists() else []


def table_of(folder):
    return read_table(folder / "run" / "results.parquet")


def wait_for(condition, seconds=600.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def begun(folder):
    return [path.parent.name for path in folder.glob("run/runs/*/metrics.jsonl")]


def same(table, other):
    assert table.keys() == other.keys()
    for name, column in table.items():
        np.testing.assert_array_equal(column, other[name], err_msg=name)


@pytest.mark.long
def test_killed_at_any_moment_it_continues(folder):
    """Killed twice, told to stop once, and then to the end: the table of a sweep run here."""
    (folder / "faults" / "wait").write_text("30")  # 1.5 s a run
    with killed_at_end(begin(folder, "--resume")) as process:
        wait_for(lambda: len(trained(folder)) >= 1)
        wait_for(lambda: len(list(folder.glob("run/runs/*/result.json"))) >= 1)
        process.kill()
        process.communicate(timeout=600)  # until none of its children is left either
    kept = {p: p.stat().st_mtime_ns for p in folder.glob("run/runs/*/result.json")}
    with killed_at_end(begin(folder, "--resume")) as process:
        wait_for(lambda: len(begun(folder)) >= 3)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=600)
    assert process.returncode == 143, said
    assert "--resume" in said
    assert json.loads((folder / "run" / "summary.json").read_text())["status"] == "interrupted"
    assert (folder / "run" / "report.md").exists()
    (folder / "faults" / "wait").unlink()
    finish(folder, "--resume")
    assert {p: p.stat().st_mtime_ns for p in kept} == kept, "what was done was done again"
    assert sorted(trained(folder)) == sorted(RUNS), "a run was trained to its end twice"
    resumed = table_of(folder)
    finish(folder, "--set", "parallel=0", f"output={folder / 'here' / 'run'}")
    same(resumed, table_of(folder / "here"))


def test_what_no_machine_has_is_refused_before_any_run(folder, local_ray, capsys):
    changes = ["train.learners.count=1", "train.learners.resources={gamut_learner: 1}"]
    changes += ["train.policy.name=actor_critic", "train.policy.columns=[position]"]
    argv = ["--config", str(folder / "config.yaml"), "--set", *changes]
    assert main(sweep, SweepConfig, "Sweeps.", argv) == 2
    said = capsys.readouterr().err
    assert "each learner needs 1 gamut_learner, and no machine of the cluster has any" in said
    assert not (folder / "run").exists()


@pytest.mark.long
def test_runs_that_die_or_hang_are_tried_again_and_the_others_continue(folder):
    faults = folder / "faults"
    (faults / "random-n6-s0.die").write_text("1")
    (faults / "random-n6-s0.fail").write_text("1")
    (faults / "random-n6-s1.die").write_text("9")
    (faults / "random-n2-s0.hang").write_text("1")
    (faults / "random-n2-s1.wrong").write_text("1")
    said = finish(folder, "--set", "retries=2", "stall_s=8", status=3)
    assert "random-n2-s0 failed, it is tried again: no output for 8 s" in said
    assert "2 of 4 runs are missing" in said
    missing = json.loads((folder / "run" / "summary.json").read_text())["results"]["missing"]
    assert missing.keys() == {"random-n6-s1", "random-n2-s1"}
    assert "WorkerCrashedError" in missing["random-n6-s1"]
    assert missing["random-n2-s1"] == "ConfigError: it does not fit"
    assert (faults / "random-n6-s1.die").read_text() == "6", "two retries"
    assert sorted(trained(folder)) == ["random-n2-s0", "random-n6-s0"]
    assert "2 of 4 runs are missing" in (folder / "run" / "report.md").read_text()


def test_signs_of_life(tmp_path):
    """By what changes, not by when: the clock that files are dated by may jump."""
    job = type("Job", (), {"folder": tmp_path / "run"})
    assert _last_output(job) == 0
    running = {"a": _Running(job, 0.0, 0.0, 100.0)}
    assert _stalled(running, 40, 200.0) == [], "it waits for its turn"
    log = tmp_path / "run.log"
    log.touch()
    assert _stalled(running, 40, 300.0) == []
    assert _stalled(running, None, 900.0) == []
    assert _stalled(running, 60, 345.0) == []
    assert _stalled(running, 40, 345.0) == ["a"]
    os.utime(log, (10, 10))
    assert _stalled(running, 40, 345.0) == [], "it wrote, an hour ago as it seems"
    (tmp_path / "run" / "evaluation-1").mkdir(parents=True)
    (tmp_path / "run" / "evaluation-1" / "episodes.jsonl").write_text("{}\n")
    assert _stalled(running, 40, 390.0) == []
    assert _stalled(running, 40, 431.0) == ["a"]


@pytest.mark.long
@pytest.mark.slow
def test_ppo_in_a_sweep(folder):
    """The real trainer: who cannot see the target learns where a single one is, and no more."""
    changes = [
        *("train.env_steps=20000", "train.policy.name=actor_critic", "train.width=32"),
        *("train.policy.columns=[position]", "train.policy.hidden=[32]", "train.bridge.side=4"),
        *("train.fragment.steps=16", "train.algorithm.bptt=16", "train.algorithm.lr=3e-3"),
        *(
            "train.algorithm.batch=512",
            "train.algorithm.minibatch=128",
            "sizes=[1,200]",
            "seeds=[0]",
        ),
        *("evaluate.test_states=30", "evaluate.episodes_per_state=5", "baselines={chance: random}"),
    ]
    finish(folder, "--set", *changes, script=ROOT / "scripts" / "sweep.py", timeout=600)
    points = json.loads((folder / "run" / "summary.json").read_text())["points"]
    few, many = (point["gap"]["point"] for point in points)
    assert few > 0.25 > abs(many), points
    table = table_of(folder)
    assert len(table["score"]) == 2 * 5 * 30 + 5 * (512 * 1 + 3 * 200)
    report = (folder / "run" / "report.md").read_text()
    assert "runs/random-n200-s0/checkpoints/" in report
    assert "baseline chance, held-out states, sampled" in report
