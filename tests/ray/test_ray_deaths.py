"""kill -9 of what a training needs: told at once, saved, continued; and a slow start of Ray."""

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.faults.cluster import kill_all, tree_of
from rollout.cluster.addresses import ADDRESS
from tests.ray.training import (
    ROOT,
    SMALL,
    about,
    command,
    merged,
    run,
    summary,
    wait_for,
    write_config,
)

pytestmark = [pytest.mark.ray, pytest.mark.long]

NAMED_S = 10.0  # promised in docs/clusters.md
ENDED_S = 60.0  # ten times what it takes
UPDATES = 20

# The process that is killed, the learners in processes of their own, and the line that names it.
VICTIMS = {
    "raylet": (0, r"Ray's raylet on this machine, process \d+, was killed by SIGKILL"),
    "gcs_server": (0, r"Ray's head \(GCS\) on this machine, process \d+, was killed by SIGKILL"),
    "ray::_WrappedExecutable": (1, r"learner 0 has died: "),
}


def relatives(mark: str) -> list[str]:
    """Command lines of all processes that a run has started."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_text().replace("\0", " ")[:100])
    return found


def train(folder: Path, *arguments: str) -> subprocess.Popen:
    with (folder / "said").open("ab") as said:
        env = {**os.environ, "DEATH_TEST": str(folder)}
        argv = command(folder, *arguments)
        return subprocess.Popen(argv, cwd=ROOT, stdout=said, stderr=said, env=env)


@pytest.mark.parametrize("victim", VICTIMS, ids=["raylet", "gcs", "learner"])
def test_what_dies_is_named_and_the_run_is_continued(tmp_path, victim):
    learners, line = VICTIMS[victim]
    more = {"bridge": {"step_s": 0.05}, "checkpoint": {"every": 2}, "env_steps": 64 * UPDATES}
    settings = merged(SMALL, {**more, "learners": {"count": learners}, "runners": 1})
    write_config(tmp_path, settings)
    said = tmp_path / "said"
    process = train(tmp_path)
    try:
        saved = tmp_path / "run" / "checkpoints"
        assert wait_for(
            lambda: list(saved.glob("0*/checkpoint.json")) or process.poll() is not None
        )
        assert process.poll() is None, said.read_text()
        found = [each for each in tree_of(process.pid) if each.name() == victim]
        assert kill_all(found) == 1, "there was nothing to kill"
        killed = time.monotonic()
        assert wait_for(lambda: re.search(line, said.read_text()), ENDED_S), said.read_text()
        named_s = time.monotonic() - killed
        assert process.wait(ENDED_S) == 3, said.read_text()
    finally:
        kill_all(tree_of(process.pid))
    assert named_s < NAMED_S
    last = said.read_text().splitlines()[-1]
    assert re.match(rf"ended short: {line}", last)
    assert last.endswith("; continue with --resume")
    assert wait_for(lambda: not relatives(f"DEATH_TEST={tmp_path}"), 30.0)

    first = summary(tmp_path)
    assert first["status"] == "ended short"
    done = first["results"]["updates"]
    saved = about(tmp_path)["update"]
    # The weights of a dead learner are gone; its last checkpoint is an earlier one.
    assert saved == done if not learners else 0 < saved <= done

    process = train(tmp_path, "--resume")
    assert process.wait(600) == 0, said.read_text()
    assert summary(tmp_path)["status"] == "done"
    assert about(tmp_path)["update"] == UPDATES


SLOW = """
import pathlib, time
line = pathlib.Path("/proc/self/cmdline").read_text()
if "dashboard/agent.py" in line or "runtime_env/agent/main.py" in line:
    time.sleep(20)
"""


def test_ray_starts_where_its_agents_take_longer_than_ray_allows(tmp_path, monkeypatch):
    """A raylet waits 15 s for the ports of its agents, and then ends itself."""
    monkeypatch.delenv(ADDRESS, raising=False)
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    write_config(tmp_path, SMALL, runners=1, env_steps=64)
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
