"""The toy game, installed for a test, and its episodes as our own player plays them."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from rollout.api import Decision, Start
from rollout.commands.new import write_package
from rollout.config import HostConfig
from rollout.host import Player, PlayOptions, Pool
from rollout.interop.games import bridge_of

TOY = Path(__file__).with_name("toy_game.py")


def move(step):
    """The number of the action of every player at a step."""
    return (2 * step + 1) % 3


class _Fixed:
    """Plays ``move``."""

    version, extras = 0, {}

    def build(self, spec, task, *, seed):
        return self

    def initial_memory(self, starts):
        return {"step": np.zeros(len(starts), np.int64)}

    def act(self, observations, memory, *, details, explore):
        steps = memory["step"]
        return Decision({"move": move(steps)}, {"step": steps + 1}, {})


class Toy:
    """The toy game; ``record`` says what its episodes are."""

    names, move = ("stay", "left", "right"), staticmethod(move)

    def __init__(self, folder):
        self.folder = folder
        self.bridge, self.task = bridge_of("toy", "")

    def name(self, step):
        """The name of the action of every player at a step."""
        return self.names[move(step)]

    def record(self, keys):
        """Returns the return and the pictures of each ``(state, seed)``."""
        returns, pictures = {}, {}
        for number, (state, seed) in enumerate(keys):
            pool = Pool(
                self.bridge, self.folder / f"{number}", 1, 1, HostConfig(isolation="in_process")
            )
            player = Player(pool, self.task, _Fixed(), PlayOptions(steps=64))
            player.offer([Start(self.task.state_space.state(int(state)), seed, number, 0, "")])
            fragment = player.next_fragment()
            player.close()
            [result] = fragment.results
            assert result.length == 6
            returns[int(state), seed] = result.total_reward
            shown, last = fragment.observations["image"], fragment.final_observations["image"]
            pictures[int(state), seed] = [*shown[:6, 0], last[0]]
        return returns, pictures


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The package that ``gamut new bridge toy`` writes, with the toy game as its game."""
    write_package("bridge", "toy", tmp_path / "toy")
    package = tmp_path / "toy" / "toy"
    (package / "bridge.py").write_text(TOY.read_text())
    info = tmp_path / "toy" / "toy-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[gamut.bridges]\ntoy = toy:ToyBridge\n")
    monkeypatch.syspath_prepend(str(tmp_path / "toy"))
    paths = [str(tmp_path / "toy"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    yield Toy(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]
