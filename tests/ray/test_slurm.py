"""The script of Slurm with stand-ins for Slurm's own programs: two nodes that are this machine."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "configs" / "cluster" / "slurm.sh"

pytestmark = [pytest.mark.ray, pytest.mark.heavy, pytest.mark.slow, pytest.mark.long]

SRUN = """#!/bin/bash
# Runs a step here; its options are those that Slurm knows.
echo "srun ${*//$'\\n'/ }" >> "$SAID"
while [[ $1 == --* ]]; do
    case $1 in
        --nodes=1 | --ntasks=1 | --overlap | --cpu-bind=none) ;;
        --nodelist=one | --nodelist=two) ;;
        *) echo "srun: unrecognized option $1" >&2; exit 1 ;;
    esac
    shift
done
exec "$@"
"""
SCONTROL = """#!/bin/bash
echo "scontrol $*" >> "$SAID"
case "$1 $2" in
    "show hostnames") printf 'one\\ntwo\\n' ;;
    "requeue 4711") ;;
    *) exit 1 ;;
esac
"""


@pytest.fixture
def slurm(tmp_path):
    """The environment of a job of Slurm, and the file of what its programs were asked."""
    programs, said = tmp_path / "programs", tmp_path / "said"
    programs.mkdir()
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "GAMUT_"))}
    environment |= {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{environment['PATH']}",
        "SAID": str(said),
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "GAMUT_RAY_PORT": str(port),
        "GAMUT_SHARED": str(tmp_path),
    }
    yield environment, said
    marked = [
        p
        for p in psutil.process_iter(["environ"])
        if (p.info["environ"] or {}).get("SAID") == str(said)
    ]
    for process in marked:
        process.kill()


def job(slurm, *settings):
    output = Path(slurm[0]["GAMUT_SHARED"]) / "run"
    command = ["bash", SCRIPT, "collect", "--resume", "--set", "bridge=fake", "policy=random"]
    command += ["actors=2", "host.resources.gamut_game=0.5", f"output={output}", *settings]
    with (output.parent / "log").open("wb") as log:
        how = {"env": slurm[0], "cwd": ROOT, "stdout": log, "stderr": subprocess.STDOUT}
        return subprocess.Popen(command, **how), output


def left(slurm):
    """The processes of the job, which all have its environment."""
    mark = str(slurm[1])
    found = [
        p for p in psutil.process_iter(["environ"]) if (p.info["environ"] or {}).get("SAID") == mark
    ]
    return [" ".join(p.cmdline())[:80] for p in found if p.is_running()]


def test_a_job_plays_on_all_nodes_and_leaves_nothing(slurm):
    running, output = job(slurm, "episodes=20")
    log = output.parent / "log"
    assert running.wait(300) == 0, log.read_text()
    summary = json.loads((output / "summary.json").read_text())
    assert (summary["status"], summary["results"]["episodes"]) == ("done", 20)
    said = slurm[1].read_text().splitlines()
    heads = [line for line in said if "--head" in line]
    assert len(heads) == 1
    assert "--nodelist=one" in heads[0]
    assert sum("--address=" in line and "--nodelist=two" in line for line in said) == 1
    assert not any("requeue" in line for line in said)
    assert not list(output.parent.glob("gamut-slurm-*")), "the token stays nowhere"
    deadline = time.monotonic() + 30
    while left(slurm) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left(slurm) == []


def test_a_job_whose_time_is_over_saves_and_is_queued_again(slurm):
    running, output = job(slurm, "episodes=100000", "bridge.step_s=0.01")
    deadline = time.monotonic() + 200
    while not (output / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(2)
    running.send_signal(signal.SIGTERM)  # as --signal=B:TERM@180: the shell alone
    assert running.wait(120) == 143, (output.parent / "log").read_text()
    assert json.loads((output / "summary.json").read_text())["status"] == "interrupted"
    assert "scontrol requeue 4711" in slurm[1].read_text().splitlines()
