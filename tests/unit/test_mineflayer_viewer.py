"""The renderer ``prismarine``: what it draws, and what becomes of its process."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from bridges.mineflayer import MineflayerBridge, bridge, setup, viewer_process
from bridges.mineflayer.node import STAMP, WHERE, Node, lock_digest, packages_problem
from bridges.mineflayer.spaces import neutral
from bridges.mineflayer.viewer_process import (
    VIEWER,
    viewer_command,
    viewer_packages,
    viewer_problem,
)
from rollout.api import Start
from rollout.errors import ConfigError, GameCrashed, OutOfTurnError, UnknownNameError
from rollout.testing import check_bridge

PATIENT_S = 240.0
SPACE = MineflayerBridge().spec.state_space
CALM = {"difficulty": "peaceful", "site": "flat", "time": "noon", "weather": "clear"}
NODE = Node(Path("/opt/node/bin/node"), "24.0.0")
TURN = 4
"""Column of ``low_level`` for the yaw; 12 is straight on, a step is 15 degrees."""


def missing():
    """Why the extra cannot be used here; empty if it can."""
    try:
        viewer_command()
    except ConfigError as error:
        return str(error)
    return packages_problem() and "run `make mineflayer`"


def installed(test):
    test = pytest.mark.skipif(bool(missing()), reason=f"the extra is not installed: {missing()}")(
        test
    )
    for mark in (pytest.mark.process, pytest.mark.heavy, pytest.mark.slow):
        test = mark(test)
    return pytest.mark.timeout(900)(test)


def viewed(**options):
    options = {"observe": ("rgb", "position"), "view_distance": 3, "spawning": False, **options}
    return MineflayerBridge(renderer="prismarine", **options)


def start(number=0, **values):
    first = {factor.name: factor.values[0] for factor in SPACE}
    return Start(SPACE.state(SPACE.index(first | CALM | values)), 40 + number)


@pytest.fixture
def launch(tmp_path):
    begun = []

    def begin(width=1, **options):
        folder = tmp_path / str(len(begun))
        folder.mkdir()
        begun.append(viewed(**options).launch(folder, (), width=width, timeout_s=PATIENT_S))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def family(pid):
    """A process and all below it."""
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


# Without the extra ------------------------------------------------------------------------------


def test_the_renderer_is_an_option_that_changes_no_space():
    with pytest.raises(UnknownNameError, match="prismarine"):
        MineflayerBridge(renderer="prismarin")
    ours, theirs = MineflayerBridge(observe=("rgb",)).spec, viewed(observe=("rgb",)).spec
    assert theirs.observation_space == ours.observation_space
    assert theirs.resources.memory_mb > ours.resources.memory_mb
    assert theirs.deadlines.close_s > ours.deadlines.close_s
    assert viewed(observe=("life",)).spec.resources == MineflayerBridge().spec.resources


def test_a_missing_extra_is_reported_before_anything_is_started(monkeypatch, tmp_path):
    def never(*args, **kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setenv(WHERE, str(tmp_path / "shared"))
    (tmp_path / "package-lock.json").write_text('{"packages": {}}')
    monkeypatch.setattr(viewer_packages, "__defaults__", (tmp_path,))
    monkeypatch.setattr(viewer_process, "find_node", lambda: NODE)
    monkeypatch.setattr(bridge, "game_command", lambda: (["node"], {}))
    monkeypatch.setattr(bridge, "ViewedDriver", never)
    with pytest.raises(ConfigError, match=r"not installed.*bridges\.mineflayer\.setup --viewer"):
        viewed().launch(tmp_path, (), width=1, timeout_s=PATIENT_S)


def test_a_missing_x_server_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(viewer_process, "viewer_packages", lambda: tmp_path)
    monkeypatch.setattr(viewer_process, "find_node", lambda: NODE)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install xvfb"):
        viewer_command()


NPM = """#!/bin/sh
echo "$@" >> "$OUT"
mkdir -p node_modules/gl/build/Release
case "$1" in rebuild)
  echo "$npm_config_build_from_source $npm_config_nodedir" >> "$OUT"
  [ -z "$FAIL" ] || { echo no compiler; exit 1; }
  touch node_modules/gl/build/Release/webgl.node;;
esac
"""


@pytest.fixture
def npm(tmp_path, monkeypatch):
    monkeypatch.setenv("OUT", str(tmp_path / "calls"))
    monkeypatch.setattr(setup, "find_node", lambda: NODE)
    program = tmp_path / "npm"
    program.write_text(NPM)
    program.chmod(0o755)
    return [str(program)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "viewer"
    folder.mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy2(VIEWER / name, folder)
    return folder


def test_only_gl_has_its_scripts_run(npm, folder, tmp_path):
    assert viewer_problem(folder) == "its packages are not installed"
    assert setup.install(folder, command=npm, build=viewer_process.BUILT)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert "--ignore-scripts" in calls[0].split()
    assert calls[0].split()[0] == "ci"
    assert calls[1].split()[:2] == ["rebuild", "gl"]
    assert calls[2].split()[0] == "true"
    assert not viewer_problem(folder)
    assert (folder / "node_modules" / STAMP).read_text().strip() == lock_digest(folder)
    (folder / "node_modules/gl/build/Release/webgl.node").unlink()
    assert viewer_problem(folder) == "its package gl is not compiled"


def test_a_build_that_fails_says_what_it_takes_and_leaves_nothing(npm, folder, monkeypatch):
    monkeypatch.setenv("FAIL", "1")
    with pytest.raises(ConfigError, match=r"no compiler\n.*apt-get install build-essential"):
        setup.install(folder, command=npm, build=viewer_process.BUILT)
    assert viewer_problem(folder) == "its packages are not installed"


def test_the_lock_file_has_no_addresses_and_one_package_with_scripts():
    packages = json.loads((VIEWER / "package-lock.json").read_text())["packages"]
    assert not [name for name, each in packages.items() if "resolved" in each]
    assert [name for name, each in packages.items() if each.get("hasInstallScript")] == [
        "node_modules/gl"
    ]


# With it ----------------------------------------------------------------------------------------


@installed
def test_its_own_tests_pass():
    (node, _), env, _ = viewer_command()
    done = subprocess.run(
        [node, "--test", "--test-reporter=tap", "test/viewer.test.js"],
        cwd=VIEWER,
        env={"TZ": "UTC", "PATH": "/usr/bin:/bin", **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "\n# pass 0\n" not in done.stdout


@installed
@pytest.mark.parametrize("size", [(64, 64), (72, 128)], ids=str)
def test_sky_is_above_and_grass_below(launch, size):
    game = launch(rgb_height=size[0], rgb_width=size[1])
    picture = game.reset([0], [start()], timeout_s=PATIENT_S).observations["rgb"][0]
    assert picture.shape == (*size, 3)
    top, bottom = (
        picture[rows].reshape(-1, 3).mean(0) for rows in (slice(0, 10), slice(-10, None))
    )
    assert top[2] > top[0] + 40  # blue
    assert bottom[1] > bottom[0] + 10  # green
    assert bottom[1] > bottom[2] + 30
    assert (picture[:10].std((0, 1)) == 0).all()  # one sky
    assert (picture[-10:].std((0, 1)) > 2).all()  # a texture


@installed
def test_a_sheep_is_seen_where_it_stands_and_nights_are_dark(launch):
    game = launch()
    turn = neutral("low_level", 1)
    turn["action"][0, TURN] = 14

    def whitest(**values):
        game.reset([0], [start(**values)], timeout_s=PATIENT_S)
        seen = []
        for _ in range(12):  # all round
            picture = game.step(turn, timeout_s=PATIENT_S).observations["rgb"][0]
            seen.append(int((picture.min(-1) > 180).sum()))
        return max(seen)

    assert whitest(mob="sheep", mobs=4, distance=5) > 40
    assert whitest() < 5
    day = game.reset([0], [start()], timeout_s=PATIENT_S).observations["rgb"].mean()
    night = (
        game.reset([0], [start(time="midnight")], timeout_s=PATIENT_S).observations["rgb"].mean()
    )
    assert night < 0.5 * day


@installed
def test_equal_starts_and_actions_give_equal_pictures_in_any_process_and_order(launch):
    def played(game, slot, width):
        frame = game.reset([slot], [start(site="wild", mob="cow", mobs=4)], timeout_s=PATIENT_S)
        pictures = [frame.observations["rgb"][0].copy()]
        walk = neutral("low_level", width)
        walk["action"][:, 0] = 1
        for _ in range(6):
            frame = game.step(walk, timeout_s=PATIENT_S)
            pictures.append(frame.observations["rgb"][slot].copy())
        return np.stack(pictures)

    game, other = launch(width=2), launch()
    first = played(game, 0, 2)
    game.reset([1], [start(site="wild", time="midnight")], timeout_s=PATIENT_S)
    np.testing.assert_array_equal(played(game, 1, 2), first)
    np.testing.assert_array_equal(played(other, 0, 1), first)
    assert (first[0] != first[-1]).any()


@installed
def test_the_conformance_suite_passes():
    # Where a picture depends on what was drawn before, these fail first.
    checks = [
        "same start, same frames",
        "history does not matter",
        "width does not matter",
        "reset leaves other slots alone",
        "snapshots are exact",
        "close",
        "close leaves nothing",
    ]
    report = check_bridge(viewed(), steps=4, width=2, timeout_s=PATIENT_S, only=checks)
    report.raise_if_failed()
    assert set(checks) <= set(report.names("passed"))


@installed
def test_a_viewer_that_is_killed_is_a_crash_of_the_game_and_leaves_nobody(launch):
    game = launch()
    game.reset([0], [start()], timeout_s=PATIENT_S)
    viewer = game.driver.viewer.driver.pid
    everyone = family(game.driver.pid) + family(viewer)
    assert "Xvfb" in {each.name() for each in everyone}
    os.kill(viewer, signal.SIGKILL)
    with pytest.raises(GameCrashed, match="the viewer's process ended in draw: killed by SIGKILL"):
        game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
    _, alive = psutil.wait_procs(everyone, timeout=PATIENT_S)
    assert alive == []
    with pytest.raises(OutOfTurnError, match="has failed; launch another"):
        game.step(neutral("low_level", 1), timeout_s=PATIENT_S)


@installed
def test_the_viewer_ends_with_its_owner(launch):
    game = launch()
    game.reset([0], [start()], timeout_s=PATIENT_S)
    everyone = family(game.driver.viewer.driver.pid)
    began = time.monotonic()
    game.close()
    assert time.monotonic() - began < viewed().spec.deadlines.close_s + 20
    _, alive = psutil.wait_procs(everyone, timeout=PATIENT_S)
    assert alive == []
