"""What a training listens on, compared with docs/security.md."""

import re
import signal
import socket
import stat
import subprocess
from collections import Counter
from pathlib import Path

import psutil
import pytest

from rollout.cluster.addresses import ADDRESS
from tests.ray.training import ROOT, SMALL, command, wait_for, write_config

pytestmark = [pytest.mark.ray, pytest.mark.long]

EVERYWHERE, LOOPBACK, OWN = "every interface", "127.0.0.1", "the machine's own address"
# What tells the processes apart that are in rows of the table of their own.
ROWS = {
    "/gcs_server": "head (GCS)",
    "autoscaler/_private/monitor.py": "monitor of the head, HTTP (`/metrics`)",
    "dashboard/dashboard.py": "dashboard without pages, HTTP (`/metrics`)",
    "/raylet": "raylet, object manager, on each machine",
    "ray::DashboardAgent": "agent of each machine",
    "ray::RuntimeEnvAgent": "runtime-environment agent",
    "ray::_WrappedExecutable": "learners in their own processes",
}
WORKER = "every worker, actor and driver"


def documented():
    """The rows of the table that a training has, and where the docs say that each listens."""
    text = (ROOT / "docs" / "security.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", text, re.MULTILINE)
    places = {name: set() for name in (*ROWS.values(), WORKER)}
    for name, where in rows:
        for row in [row for row in places if name.startswith(row)]:
            places[row] |= {place for place in (EVERYWHERE, LOOPBACK, OWN) if place in where}
    # A learner is an actor, too.
    places[ROWS["ray::_WrappedExecutable"]] |= places[WORKER]
    return places


def listening(root):
    """Returns where each process of a training listens, by row and process, and the folders."""
    found, folders = {}, set()
    for process in [root, *root.children(recursive=True)]:
        try:
            connections, line = process.net_connections(kind="all"), " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        row = next((row for part, row in ROWS.items() if part in line), WORKER)
        for each in connections:
            if each.family == socket.AF_UNIX and each.laddr.startswith("/"):
                folders.add(Path(each.laddr).parent)
            elif each.status == psutil.CONN_LISTEN:
                place = EVERYWHERE if each.laddr.ip in ("::", "0.0.0.0") else OWN
                place = LOOPBACK if each.laddr.ip == LOOPBACK else place
                found.setdefault((row, process.pid), Counter())[place] += 1
    return found, folders


def is_private(folder):
    """Whether no other user can pass one of the folders of a path."""
    modes = (stat.S_IMODE(each.stat().st_mode) for each in (folder, *folder.parents))
    return any(mode & 0o077 == 0 for mode in modes)


@pytest.mark.parametrize("learners", [1, 2])
def test_a_training_listens_where_the_docs_say(tmp_path, monkeypatch, learners):
    monkeypatch.delenv(ADDRESS, raising=False)
    write_config(tmp_path, SMALL, runners=1, learners={"threads": 1, "count": learners})
    with subprocess.Popen(command(tmp_path), cwd=ROOT) as training:
        root = psutil.Process(training.pid)
        metrics = tmp_path / "run" / "metrics.jsonl"
        try:
            assert wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0)
            found, folders = listening(root)
            assert folders
            assert not [folder for folder in folders if not is_private(folder)]
        finally:
            training.send_signal(signal.SIGTERM)
        assert training.wait(300) == 128 + signal.SIGTERM
    places = documented()
    # Not all have a port where another Ray has taken it.
    assert {"head (GCS)", WORKER, ROWS["ray::_WrappedExecutable"]} <= {row for row, _ in found}
    for (row, _), where in found.items():
        assert where.keys() <= places[row], row
        if row in (WORKER, ROWS["ray::_WrappedExecutable"]):
            # The one of Ray; a second one would be torch's, which requires no token.
            assert where[EVERYWHERE] == 1, row
    assert not [folder for folder in folders if folder.exists()]
