"""The engine under MineStudio's own code: the wheel as it is on PyPI, in its own Python."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridges.mineflayer.node import packages_problem
from bridges.minestudio import __file__ as bridge
from bridges.minestudio.install import install

SCRIPT = Path(__file__).with_name("minestudio_wheel.py")
REQUIREMENTS = Path(bridge).with_name("requirements.txt")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gamut-minestudio"
CALLBACKS = {
    *("SummonMobs", "InitInventory", "Commands", "Voxels", "GateRewards", "Rewards"),
    *("MaskActions", "Record", "Task", "PrevAction", "SpeedTest", "JudgeReset"),
    *("FastReset", "HardReset"),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


def python():
    """Returns the Python of an environment with MineStudio, made once; skips where it cannot be."""
    found, uv = CACHE / "bin" / "python", Path(sys.executable).with_name("uv")
    if (CACHE / "ready").exists():
        return found
    wheels = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.find-links"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    torch = {"UV_FIND_LINKS": wheels} if wheels else {"UV_TORCH_BACKEND": "cpu"}
    subprocess.run([uv, "venv", "-q", "--clear", "-p", "3.11", CACHE], check=True, timeout=60)
    made = subprocess.run(
        [uv, "pip", "install", "-q", "--no-deps", "--python", found, "-r", REQUIREMENTS],
        env={**os.environ, **torch}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"cannot install MineStudio: {made.stderr[-300:]}")
    (CACHE / "ready").touch()
    return found


def test_the_unchanged_wheel_plays_with_all_its_callbacks(tmp_path):
    found = install(tmp_path / "minestudio")
    path = f"{found['PATH_FIRST']}{os.pathsep}{os.environ['PATH']}"
    output = tmp_path / "output.txt"
    with output.open("w") as file:  # no pipe: MineStudio's daemon would keep it open
        done = subprocess.run(
            [python(), SCRIPT, tmp_path],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False,
            timeout=1500,
            env={**os.environ, "MINESTUDIO_DIR": found["MINESTUDIO_DIR"], "PATH": path},
        )  # fmt: skip
    lines = output.read_text().splitlines()
    assert done.returncode == 0, "\n".join(lines[-60:])
    said = [json.loads(line) for line in lines if line.startswith('{"callback"')]
    assert [each for each in said if not each["seen"]] == []
    assert {each["callback"] for each in said} - {"(none)"} == CALLBACKS
