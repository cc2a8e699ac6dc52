"""Games in another interpreter, which has NumPy and Gymnasium and none of our other packages."""

import json
import os
import pickle
import venv
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from bridges.gymnasium import GymnasiumBridge
from rollout.api import Environment, Start
from rollout.cli import main
from rollout.commands.env import make_environment
from rollout.config import CollectConfig, HostConfig
from rollout.errors import ConfigError
from rollout.host import Pool
from rollout.host.channel import pack
from rollout.host.interpreter import check_interpreter
from rollout.job import open_job

GAME = GymnasiumBridge(id="CartPole-v1")
NEEDED = ("numpy", "numpy.libs", "gymnasium", "cloudpickle", "farama_notifications")
NEEDED_FILES = ("typing_extensions.py",)

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    venv.create(folder, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    ours = Path(find_spec("numpy").origin).parents[1]
    for name in (*NEEDED, *NEEDED_FILES):
        if (ours / name).exists():
            (packages / name).symlink_to(ours / name)
    (packages / "other-7.dist-info").mkdir()
    (packages / "other-7.dist-info" / "METADATA").write_text("Name: other\nVersion: 7\n")
    return folder / "bin" / "python"


@pytest.fixture
def script(tmp_path):
    def write(name, text):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return file

    return write


def test_a_message_names_nothing_that_differs_between_versions():
    message = {
        "array": np.arange(6, dtype=np.int16).reshape(2, 3)[:, ::2],
        "texts": np.array([["a"], ["ü"]], object),
        "empty": np.zeros((0, 4), np.float32),
        "number": np.float32(0.25),
        "path": PurePosixPath("/tmp/x"),
    }
    data = pack(message)
    assert all(name not in data for name in (b"_core", b"numpy.core", b"pathlib"))
    found = pickle.loads(data)
    assert found["path"] == Path("/tmp/x")
    for key in ("array", "texts", "empty", "number"):
        np.testing.assert_array_equal(found[key], message[key])
        assert found[key].dtype == message[key].dtype
    found["array"][0, 0] = 9  # may be written to, as any message


def play(folder, **options):
    """Returns the observations of a short episode."""
    pool = Pool(GAME, folder, host=HostConfig(restarts=0, **options))
    try:
        pool.launch()
        frames = []
        while len(frames) < 9:
            for event in pool.recv(timeout_s=60.0):
                assert event.kind != "failed", event.reason
                if event.kind == "launched":
                    pool.reset(0, [0], [Start(GAME.spec.state_space.state(0), 3)])
                    continue
                frames.append(event.frame.observations["observation"].copy())
                pool.send(0, {"action": np.array([len(frames) % 2])})
        return np.stack(frames)
    finally:
        pool.close()


def test_games_play_the_same_in_another_interpreter(python, tmp_path):
    there = play(tmp_path / "there", python=str(python))
    assert np.array_equal(play(tmp_path / "here"), there)


@pytest.mark.long
@pytest.mark.parametrize(("version", "numpy"), [("3.12", "1.26.4"), ("3.13", "2.2.6")])
def test_games_play_the_same_with_other_versions(version, numpy, tmp_path, monkeypatch):
    theirs = Path.home().glob(".pyenv/versions/*/bin")  # where uv does not look
    monkeypatch.setenv("PATH", os.pathsep.join((os.environ["PATH"], *map(str, theirs))))
    needed = ("gymnasium==1.2.2", "cloudpickle", "farama-notifications", "typing-extensions")
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("\n".join((f"numpy=={numpy}", *needed)))
    try:
        make_environment(Environment("x", requirements, version), tmp_path / "x")
    except ConfigError as error:
        pytest.skip(f"cannot be made: {error}")
    python = tmp_path / "x" / "bin" / "python"
    found = check_interpreter(python, GAME)
    assert found.python.startswith(version)
    assert found.packages["numpy"] == numpy
    there = play(tmp_path / "there", python=str(python))
    assert np.array_equal(play(tmp_path / "here"), there)


def test_a_run_records_the_interpreter_of_its_games(python, tmp_path):
    def work(config, session):
        with open_job("collect", config, session, needs_ray=False):
            pass

    given = ["bridge.name=gymnasium", "bridge.id=CartPole-v1", "policy=random", "episodes=1"]
    given += [f"output={tmp_path / 'run'}", f"host.python={python}"]
    assert main(work, CollectConfig, "", ["--set", *given]) == 0
    [session] = json.loads((tmp_path / "run" / "run.json").read_text())["sessions"]
    [games] = session["games"]
    assert games["path"] == str(python)
    assert games["packages"]["other"] == "7"


def test_an_interpreter_that_lacks_something_is_refused_before_launch(bare, script, tmp_path):
    for python, said in (
        (tmp_path / "nothing", r"nothing \(host.python\), which is no program"),
        (script("silent", "exit 3"), "which is no Python: it said ''"),
        (script("old", "echo 3.10.2; exit 1"), "which is Python 3.10.2; expected 3.11 or newer"),
        (bare, "cannot import what the game needs: .*No module named 'numpy'; install it there"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_interpreter(python, GAME)


def test_a_relative_path_is_that_of_the_folder_of_the_driver(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert HostConfig(python="venv/bin/python").python == str(tmp_path / "venv/bin/python")
    assert HostConfig(python="~/venv/bin/python").python == "~/venv/bin/python"


def test_games_of_another_interpreter_cannot_run_in_this_process():
    with pytest.raises(ValueError, match="isolation=subprocess"):
        HostConfig(python="/usr/bin/python3", isolation="in_process")


def test_an_interpreter_that_is_missing_on_a_machine_is_a_failed_start(tmp_path):
    pool = Pool(GAME, tmp_path, host=HostConfig(restarts=0, python="/nowhere/python"))
    pool.launch()
    [event] = pool.recv(timeout_s=60.0)
    assert event.kind == "failed"
    assert "there is no interpreter /nowhere/python on this machine" in event.reason
    pool.close()
