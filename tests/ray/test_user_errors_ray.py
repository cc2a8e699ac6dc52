"""An error in the user's own code reaches run.log from actors and from what they start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.test_user_errors import install_lamp

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        (["bridge.name=lamp", "bridge.at=step", "bridge.process=subprocess"], 3),
        pytest.param(
            *(["bridge.name=fake", "policy.name=lamp", "inference.actors=1"], 1),
            marks=pytest.mark.long,
        ),
    ],
    ids=["game in an actor's subprocess", "policy in an inference actor"],
)
def test_the_place_and_the_traceback_come_from_other_processes(tmp_path, settings, status):
    site, place = install_lamp(tmp_path)
    both = [f"output={tmp_path / 'run'}", "episodes=2", "host.restarts=0", "host.retries=0"]
    if status == 3:
        both += ["policy.name=random", "host.actor_restarts=0"]
    run = subprocess.run(
        [sys.executable, str(ROOT / "scripts/collect.py"), "--set", *both, *settings],
        env={**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == status, run.stderr
    assert place in run.stderr
    log = (tmp_path / "run" / "run.log").read_text()
    assert log.count("    return LAMPS[name]  # THE PLACE") == 1
