"""What ``scripts/play.py`` says to wrong input; no window is opened."""

import sys

import pytest

from policies.human_window import window
from rollout.cli import main
from rollout.commands.play import PlayConfig, play


@pytest.fixture
def call(tmp_path, capsys, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")

    def run(*settings):
        common = ("bridge.name=fake", f"output={tmp_path / 'run'}")
        status = main(play, PlayConfig, "", ["--set", *common, *settings])
        return status, capsys.readouterr().err

    window.cache_clear()
    yield run
    window.cache_clear()


BAD = {
    "policy.name=random": "got random; others play by collect.py",
    "policy.keys={up: [w]}": "unknown action in policy.keys 'up'. Valid: 0, 1, 2, 3, 4",
    "policy.keys={1: [w], 2: [w]}": "policy.keys",
    "policy.column=position": "unknown image observation 'position'. Valid: image",
    "policy.scale=-1": "scale must be at least 0",
    "episodes=0": "episodes",
    "bridge.name=cartpole": "unknown bridge 'cartpole'",
}


@pytest.mark.parametrize("setting", BAD)
def test_bad_input_is_one_line_and_status_2(call, setting, tmp_path):
    status, said = call(setting)
    assert status == 2, said
    assert BAD[setting] in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_key_that_there_is_not(call):
    status, said = call('policy.keys={"1": [spcae]}')
    assert status == 2
    assert "unknown key 'spcae'. Nearest: space" in said


def test_a_game_without_a_picture(call):
    status, said = call("bridge.name=gymnasium", "bridge.id=CartPole-v1", "bridge.render=false")
    assert status == 2
    assert "CartPole-v1 shows observation" in said
    assert "bridge.observe=[rgb]" in said


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a screen of their own")
def test_without_a_screen_it_says_what_to_do(call, monkeypatch, tmp_path):
    monkeypatch.delenv("SDL_VIDEODRIVER")
    status, said = call()
    assert status == 2
    assert said.startswith("error: a person needs a screen")
    assert "xvfb-run" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
