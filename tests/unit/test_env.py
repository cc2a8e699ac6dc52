"""The interpreter of a bridge: made once, and replaced as a whole when its requirements change."""

import subprocess
from dataclasses import replace

import pytest

from rollout.api import Environment
from rollout.commands import env
from rollout.commands.env import main, make_environment
from rollout.errors import ConfigError

pytestmark = pytest.mark.process


@pytest.fixture
def wanted(tmp_path):
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# no packages\n")
    return Environment("game", requirements, "3.11")


def test_it_is_made_once_and_again_when_its_requirements_change(wanted, tmp_path, capfd):
    folder = tmp_path / "environments" / "game"
    assert make_environment(wanted, folder)
    said = subprocess.run(
        [folder / "bin" / "python", "-c", "import sys; print(sys.prefix)"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert said.strip() == str(folder)
    assert not make_environment(wanted, folder)
    before = sorted(folder.parent.iterdir())
    wanted.requirements.write_text("./no-such-folder\n")
    with pytest.raises(ConfigError, match=r"failed \(exit code \d+\); see above"):
        make_environment(wanted, folder)
    assert "no-such-folder" in capfd.readouterr().err
    assert sorted(folder.parent.iterdir()) == before
    assert (folder / "bin" / "python").exists()  # what was there


def test_it_is_told_that_uv_is_missing(wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(env.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="pip install uv"):
        make_environment(wanted, tmp_path / "game")


def test_it_says_which_python_to_install(wanted, tmp_path, monkeypatch):
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    wanted = replace(wanted, python="3.99")
    with pytest.raises(ConfigError, match=r"the folder of the program python3\.99 first on PATH"):
        make_environment(wanted, tmp_path / "game")


def test_a_bridge_without_an_interpreter_of_its_own_is_refused(capsys):
    assert main(["make", "fake"]) == 2
    assert "bridge fake has no interpreter of its own" in capsys.readouterr().err
