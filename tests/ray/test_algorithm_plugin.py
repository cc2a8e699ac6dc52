"""An algorithm of another package: installed beside Gamut, trained by the script, and it learns."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rollout.api import Start
from rollout.testing.fakes import FakeBridge
from rollout.train.playing import CheckpointPolicy
from tests.ray.toy_cloning import teacher
from tests.ray.training import ROOT, SMALL, command, merged, summary, write_config

pytestmark = [pytest.mark.ray]


def install(folder):
    """Puts the package on a path of its own, as an installer would."""
    about = folder / "toy_cloning-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy_cloning\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[gamut.algorithms]\ncloning = toy_cloning:Cloning\n")
    shutil.copy(Path(__file__).with_name("toy_cloning.py"), folder)
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


@pytest.mark.long
def test_behaviour_cloning_of_another_package_learns(tmp_path):
    settings = {key: value for key, value in SMALL.items() if key != "algorithm"}
    own = {  # short episodes, so that it visits the whole map
        "bridge": {"max_steps": 4},
        "algorithm": {"name": "cloning", "batch": 512},
        "env_steps": 512 * 12,
        "runners": 1,
        "width": 16,
    }
    write_config(tmp_path, merged(settings, own))
    run = subprocess.run(
        command(tmp_path),
        env=install(tmp_path / "site"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert summary(tmp_path)["protocol"]["algorithm"] == "cloning"
    assert summary(tmp_path)["protocol"]["algorithm_options"]["epochs"] == 8
    lines = [json.loads(x) for x in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    accuracy = [line["train/accuracy"] for line in lines if "train/accuracy" in line]
    assert accuracy[0] < 0.6
    assert accuracy[-1] > 0.95
    # Its figures are correct: the checkpoint acts as the expert does.
    bridge = FakeBridge()
    policy = CheckpointPolicy(str(tmp_path / "run")).build(bridge.spec, None, seed=0)
    position = np.random.default_rng(0).integers(0, 8, (500, 2)).astype(np.float32) / 7
    starts = [Start(bridge.spec.state_space.state(0), i, i) for i in range(len(position))]
    decision = policy.act(
        {"position": position}, policy.initial_memory(starts), details=None, explore=False
    )
    assert (decision.actions["move"] == teacher(position)).mean() > 0.95
