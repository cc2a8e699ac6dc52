"""EnvPool's bridge with a stand-in for EnvPool: slots, seeds, ends, and what is refused."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from gymnasium import spaces

from bridges.gymnasium import EnvpoolBridge, envpool
from bridges.gymnasium.envpool_spaces import _plain, space_of
from rollout.api import Start
from rollout.errors import ConfigError, GameStartError, SpaceError, UnknownNameError
from rollout.testing import check_bridge


class Config(NamedTuple):
    seed: int = 1
    num_levels: int = 0
    start_level: int = 0
    stack: int = 4


OBSERVATION = spaces.Dict(
    {
        "spot": spaces.Box(np.array([-9, 0], np.float32), np.float32(3e9)),
        "tick": spaces.Discrete(99, start=0),
    }
)


INFO = {
    "info:env_id": ([], "int32"),
    "info:players.env_id": ([-1], "int32"),
    "elapsed_step": ([], "int32"),
    "info:lives": ([-1], "int32"),
    "info:reward": ([], "float64"),
    "info:ram": ([128], "uint8"),
}


class Pool:
    """Games of 5 or 6 steps that show seed and step; answers are in the reverse order of slots."""

    def __init__(self, num_envs, seed=0, env_seed=None, start_level=None, **_):
        self.random = [np.random.default_rng(s) for s in env_seed or range(seed, seed + num_envs)]
        self.level, self.at, self.spot = start_level, [-1] * num_envs, [0.0] * num_envs
        self.sent = {}

    def async_reset(self):
        self.sent = dict.fromkeys(range(len(self.at)))

    def reset(self, env_id=None):
        self.sent = dict.fromkeys(range(len(self.at)) if env_id is None else env_id.tolist())
        return self.recv(reset=True)

    def send(self, action, env_id):
        for slot, chosen in zip(env_id.tolist(), action.tolist(), strict=True):
            assert self.at[slot] >= 0, "stepped before its reset"
            self.sent[slot] = None if self.at[slot] >= 5 else chosen

    def recv(self, reset=False):
        slots, reward = sorted(self.sent, reverse=True), []
        for slot in slots:
            chosen = self.sent.pop(slot)
            if chosen is None:
                self.at[slot], self.spot[slot] = 0, self.random[slot].random() * 100
            else:
                self.at[slot] += 1
                self.spot[slot] += chosen
            reward.append(float(self.at[slot]))
        at = np.array([self.at[slot] for slot in slots])
        spot = np.array([[self.level or 0, self.spot[slot]] for slot in slots], np.float32)
        shown = {"spot": spot, "tick": at}
        info = {"env_id": np.array(slots), "lives": 9 - at, "reward": at * 2.0, "elapsed_step": at}
        if reset:
            return shown, info
        cut = at == 5
        return shown, np.array(reward, np.float32), cut & (spot[:, 1] < 50), cut, info


@pytest.fixture
def here(monkeypatch):
    """EnvPool is in this interpreter."""
    module = ModuleType("envpool")
    module.__spec__ = object()

    def make_spec(id_, stack=4, cfg_path="", wad_path="", **kwargs):
        assert isinstance(stack, int)
        action = spaces.MultiBinary(3) if id_ == "Odd-v0" else spaces.Discrete(3)
        return SimpleNamespace(
            gymnasium_observation_space=OBSERVATION,
            gymnasium_action_space=action,
            config=Config(**kwargs),
            state_array_spec={
                key: SimpleNamespace(shape=shape, dtype=np.dtype(dtype))
                for key, (shape, dtype) in INFO.items()
            },
        )

    module.list_all_envs, module.make_spec = lambda: ["Game-v0", "Odd-v0"], make_spec
    module.make = lambda id_, env_type, **kwargs: Pool(**kwargs)
    monkeypatch.setitem(sys.modules, "envpool", module)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9")
    envpool._seen.cache_clear()
    yield
    envpool._seen.cache_clear()


@pytest.mark.parametrize("seeding", ["episode", "slot"])
def test_it_keeps_the_contract(here, seeding):
    check_bridge(EnvpoolBridge("Game-v0", seeding=seeding), steps=20).raise_if_failed()


@pytest.mark.parametrize("seeding", ["episode", "slot"])
def test_the_last_frame_of_an_episode_is_its_own(here, seeding):
    bridge = EnvpoolBridge("Game-v0", seeding=seeding)
    instance = bridge.launch(Path(), [], width=3, timeout_s=1)
    starts = [Start(bridge.spec.state_space.state(0), seed=4)] * 3
    instance.reset([0, 2], starts[:2], timeout_s=1)
    spots = []
    for step in range(1, 8):
        frame = instance.step({"action": np.array([1, 0, 2])}, timeout_s=1)
        spots.append(frame.observations["spot"][:, 1].tolist())
        last = min(step, 5)
        assert frame.observations["tick"].tolist() == [last, 0, last]
        assert frame.signals["reward"].tolist() == [last, 0, last]
        assert frame.signals["lives"].tolist() == [9 - last, 0, 9 - last]
        assert frame.signals["info/reward"].tolist() == [2 * last, 0, 2 * last]
        assert frame.game_truncated.tolist() == [step >= 5, False, step >= 5]
    moved = np.subtract(spots[4], spots[0])
    assert np.allclose(moved, [4, 0, 8], atol=1e-4)
    assert spots[6] == spots[4]
    again = instance.reset([2, 0], starts[:2], timeout_s=1)
    assert again.observations["tick"].tolist() == [0, 0]
    assert again.signals["lives"].tolist() == [9, 9]


def test_a_state_of_a_game_with_levels_is_a_level(here):
    bridge = EnvpoolBridge("Game-v0")
    instance = bridge.launch(Path(), [], width=2, timeout_s=1)
    starts = [Start(bridge.spec.state_space.state(n), seed=0) for n in (7, 90)]
    frame = instance.reset([0, 1], starts, timeout_s=1)
    assert frame.observations["spot"][:, 0].tolist() == [7, 90]


def test_what_cannot_be_repeated_is_said(here):
    spec = EnvpoolBridge("Game-v0", seeding="slot").spec
    assert (spec.reproducible, spec.uses_seed, spec.state_space.size) == (False, True, 1)
    assert EnvpoolBridge("Game-v0", seeding="episode").spec.reproducible


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kwargs": {"num_envs": 3}}, "num_envs follow from width"),
        ({"kwargs": {"num_levels": 200}}, "choose levels by the state set"),
        ({"kwargs": {"num_levels": -1}, "seeding": "slot"}, "num_levels must be an integer from 0"),
        ({"kwargs": {"num_threads": 2}}, "num_threads follow"),
        ({"kwargs": [1]}, "a mapping of names"),
        ({"seeds": 0}, "seeds must be"),
        ({"seeding": "none"}, "seeding must be one of episode, slot"),
    ],
)
def test_options_that_are_refused(options, text):
    with pytest.raises(ConfigError, match=text):
        EnvpoolBridge("Game-v0", **options)


def test_games_that_are_refused(here):
    with pytest.raises(UnknownNameError, match="Game-v0"):
        _ = EnvpoolBridge("Gamme-v0").spec
    with pytest.raises(UnknownNameError, match=r"option of Game-v0 'sed'\. Nearest: seed"):
        _ = EnvpoolBridge("Game-v0", {"sed": 2}).spec
    with pytest.raises(ConfigError, match=r"stack must be of type int, as 4; got 'many'"):
        _ = EnvpoolBridge("Game-v0", {"stack": "many"}).spec
    with pytest.raises(SpaceError, match="MultiBinary"):
        _ = EnvpoolBridge("Odd-v0").spec


def test_without_its_interpreter_it_says_how_to_make_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GAMUT_CACHE", str(tmp_path))
    envpool._seen.cache_clear()
    with pytest.raises(ConfigError, match="gamut env make envpool"):
        _ = EnvpoolBridge("Game-v0").spec
    program = tmp_path / "environments" / "envpool" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'No module named x' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="No module named x"):
        _ = EnvpoolBridge("Game-v0").spec
    seen = {"version": "9", "config": {"max_num_players": "2"}}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(seen)}'\n")
    with pytest.raises(ConfigError, match="several players"):
        _ = EnvpoolBridge("Game-v0").spec
    seen |= {
        "info": {},
        "config": {},
        "observation": _plain(OBSERVATION),
        "action": _plain(spaces.Discrete(2)),
    }
    program.write_text(f"#!/bin/sh\necho '{json.dumps(seen)}'\n")
    bridge = EnvpoolBridge("Game-v0")
    assert bridge.spec.version == "1/envpool 9"
    with pytest.raises(GameStartError, match="gamut env make envpool"):
        bridge.launch(tmp_path, [], width=1, timeout_s=1)


def test_spaces_survive_the_way():
    for space in OBSERVATION, spaces.Discrete(4, start=2), spaces.Box(-np.inf, 3, (2, 2)):
        assert space_of(json.loads(json.dumps(_plain(space)))) == space


def test_a_process_of_its_own_works_in_the_folder_of_the_instance(here, tmp_path, monkeypatch):
    (tmp_path / "game").mkdir()
    (tmp_path / "own.cfg").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rollout.api.probing.supervised", True)
    bridge = EnvpoolBridge("Game-v0", {"cfg_path": "own.cfg", "wad_path": "of the game"})
    instance = bridge.launch(tmp_path / "game", [], width=1, timeout_s=1)
    assert Path.cwd() == tmp_path / "game"
    options = instance._bridge.kwargs
    assert options == {"cfg_path": str(tmp_path / "own.cfg"), "wad_path": "of the game"}
