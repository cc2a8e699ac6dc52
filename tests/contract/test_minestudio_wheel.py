"""The engine under MineStudio's own code: the wheel as it is on PyPI, in its own Python."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from bridges.mineflayer.node import packages_problem
from bridges.mineflayer.spaces import KEYS
from bridges.minestudio.actions import INVENTORY_ALONE, to_agent, to_keys
from bridges.minestudio.bridge import MinestudioBridge
from bridges.minestudio.install import install
from rollout.api import environment_folder
from rollout.commands.env import make_environment
from rollout.errors import ConfigError
from rollout.testing import check_bridge
from rollout.testing.isolated import IsolatedBridge

SCRIPT = Path(__file__).with_name("minestudio_wheel.py")
CALLBACKS = {
    *("SummonMobs", "InitInventory", "Commands", "Voxels", "GateRewards", "Rewards"),
    *("MaskActions", "Record", "Task", "PrevAction", "SpeedTest", "JudgeReset"),
    *("FastReset", "HardReset"),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


SMALL = MinestudioBridge(rgb_height=36, rgb_width=64, render_height=36, render_width=64)


@pytest.fixture(scope="module")
def python():
    """The Python of an environment with MineStudio, made once; skips where it cannot be."""
    folder = environment_folder("minestudio")
    try:
        make_environment(SMALL.environment, folder)
    except ConfigError as error:
        pytest.skip(f"cannot install MineStudio: {error}")
    return folder / "bin" / "python"


def test_the_unchanged_wheel_plays_with_all_its_callbacks(python, tmp_path):
    found = install(tmp_path / "minestudio")
    path = f"{found['PATH_FIRST']}{os.pathsep}{os.environ['PATH']}"
    output = tmp_path / "output.txt"
    with output.open("w") as file:  # no pipe: MineStudio's daemon would keep it open
        done = subprocess.run(
            [python, SCRIPT, tmp_path],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False,
            timeout=1500,
            env={**os.environ, "MINESTUDIO_DIR": found["MINESTUDIO_DIR"], "PATH": path,
                 "TMPDIR": str(tmp_path)},
        )  # fmt: skip
    lines = output.read_text().splitlines()
    assert done.returncode == 0, "\n".join(lines[-60:])
    said = [json.loads(line) for line in lines if line.startswith('{"callback"')]
    assert [each for each in said if not each["seen"]] == []
    assert {each["callback"] for each in said} - {"(none)"} == CALLBACKS
    assert not list(tmp_path.glob("gamut-engine-*"))
    assert not list(tmp_path.glob("minestudio/tmp/*/*/gamut-engine-*"))


def test_the_bridge_keeps_the_contract(python):
    check_bridge(IsolatedBridge(SMALL), steps=10, timeout_s=600).raise_if_failed()


MAPPING = """
import sys
import numpy as np
from minestudio.utils.vpt_lib.action_mapping import CameraHierarchicalMapping
mapping, found = CameraHierarchicalMapping(n_camera_bins=11), {}
given = dict(np.load(sys.argv[1]))
agent = {key: given[key][:, None] for key in ("buttons", "camera")}
there = mapping.to_factored(agent)
back = mapping.from_factored({"buttons": given["keys"], "camera": given["bins"]})
np.savez(sys.argv[2], keys=there["buttons"], bins=there["camera"],
         buttons=back["buttons"][:, 0], camera=back["camera"][:, 0])
"""


def test_actions_are_mapped_both_ways_as_by_the_wheel(python, tmp_path):
    rng = np.random.default_rng(0)
    given = {
        "buttons": np.arange(INVENTORY_ALONE + 1),
        "camera": rng.integers(0, 121, INVENTORY_ALONE + 1),
        "keys": (rng.random((4000, len(KEYS))) < 0.15).astype(np.int64),
        "bins": np.where(rng.random((4000, 1)) < 0.3, 5, rng.integers(0, 11, (4000, 2))),
    }
    np.savez(tmp_path / "given.npz", **given)
    files = [str(tmp_path / name) for name in ("given.npz", "found.npz")]
    subprocess.run([python, "-c", MAPPING, *files], check=True, timeout=300, cwd=tmp_path)
    found = np.load(files[1])
    there = to_keys(given["buttons"], given["camera"])
    assert np.array_equal(there["keys"], found["keys"])
    assert np.array_equal(there["camera"], found["bins"])
    back = to_agent(given["keys"], given["bins"])
    assert np.array_equal(back["buttons"], found["buttons"])
    assert np.array_equal(back["camera"], found["camera"])
