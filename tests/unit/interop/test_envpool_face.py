"""``rollout.interop.envpool``: EnvPool's interface, with the rewards of our other interfaces."""

import sys
from types import ModuleType

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollout.api import Limits, Task
from rollout.config import HostConfig
from rollout.errors import (
    BudgetExhausted,
    ConfigError,
    OutOfTurnError,
    SpaceError,
    UnknownNameError,
)
from rollout.interop import envpool
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator
from rollout.vector_env import RemoteVectorEnv


def parts(bridge=None, limit=12, restarts=50, isolation="in_process"):
    bridge = bridge or FakeBridge()
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=limit))
    return bridge, task, HostConfig(isolation=isolation, restarts=restarts, backoff_s=0)


def make(bridge=None, *, limit=12, restarts=50, isolation="in_process", **options):
    bridge, task, host = parts(bridge, limit, restarts, isolation)
    return envpool.EnvPool(bridge, task, host=host, **options)


def actions(steps, games, seed=0):
    return np.random.default_rng(seed).integers(0, 5, (steps, games))


def by_game(chosen, games, batch_size, isolation="in_process"):
    """Plays the same actions of each game in whatever order they reply; rewards by game."""
    envs = make(num_envs=games, batch_size=batch_size, seed=3, isolation=isolation)
    seen = {number: [] for number in range(games)}
    envs.async_reset()
    while any(len(rows) <= len(chosen) for rows in seen.values()):
        _, rewards, over, cut, info = envs.recv()
        for row, number in enumerate(info["env_id"].tolist()):
            shown = (info["state"][row], int(info["seed"][row]), int(info["elapsed_step"][row]))
            seen[number].append((float(rewards[row]), bool(over[row]), bool(cut[row]), *shown))
        going = [n for n in info["env_id"].tolist() if len(seen[n]) <= len(chosen)]
        if going:
            envs.send(np.array([chosen[len(seen[n]) - 1, n] for n in going]), going)
    envs.close()
    return seen


@pytest.mark.process
def test_rewards_are_those_of_the_vector_env():
    """First ready or all together, in this process or in others: each game plays the same."""
    chosen = actions(40, 4)
    bridge, task, host = parts()
    env = RemoteVectorEnv(bridge, task, num_envs=4, host=host, seed=3)
    _, infos = env.reset()
    expected = {n: [(0.0, False, False)] for n in range(4)}
    states = {n: [(infos["state"][n], int(infos["seed"][n]))] for n in range(4)}
    for row in chosen:
        _, rewards, over, cut, infos = env.step(row)
        for n in range(4):
            expected[n].append((float(rewards[n]), bool(over[n]), bool(cut[n])))
            if infos.get("_state", np.zeros(4, bool))[n]:
                states[n].append((infos["state"][n], int(infos["seed"][n])))
    env.close()
    for batch_size, isolation in ((4, "in_process"), (1, "in_process"), (2, "subprocess")):
        seen = by_game(chosen, 4, batch_size, isolation)
        assert {n: [row[:3] for row in rows] for n, rows in seen.items()} == expected
        begun = {n: [row[3:5] for row in rows if row[5] == 0] for n, rows in seen.items()}
        assert begun == states
    assert sum(len(each) for each in states.values()) > 8


def test_spaces_and_attributes():
    envs = make(num_envs=3, batch_size=2, seed=7)
    assert envs.action_space == spaces.Discrete(5)
    assert isinstance(envs.observation_space, spaces.Dict)
    assert len(envs) == 3
    assert envs.is_async
    assert envs.all_env_ids.tolist() == [0, 1, 2]
    assert envs.config["batch_size"] == envs.spec.config.batch_size == 2
    assert envs.spec.config.seed == 7
    assert envs.spec.action_space is envs.action_space
    envs.close()
    envs.close()


def test_step_and_reset_of_some_games():
    envs = make(num_envs=3)
    observations, info = envs.reset()
    assert set(observations) == set(envs.observation_space.spaces)
    assert info["env_id"].tolist() == [0, 1, 2]
    *_, info = envs.step(np.array([1, 2]), np.array([2, 0]))
    assert info["env_id"].tolist() == [2, 0]  # as they were sent
    assert info["elapsed_step"].tolist() == [1, 1]
    assert info["players"]["env_id"].tolist() == [2, 0]
    _, info = envs.reset([2])
    assert (info["env_id"].tolist(), info["elapsed_step"].tolist()) == ([2], [0])
    *_, info = envs.step({"move": np.array([0]), "env_id": np.array([1])})
    assert (info["env_id"].tolist(), info["elapsed_step"].tolist()) == ([1], [1])
    envs.close()


def test_lost_games_are_told_and_replaced():
    envs = make(FakeBridge(exit_on_step=5), num_envs=2, limit=50, isolation="subprocess")
    envs.reset()
    for _ in range(12):
        _, rewards, over, cut, info = envs.step(np.zeros(2, int))
        if info["lost"].any():
            break
    lost = info["lost"]
    assert lost.any()
    assert (rewards[lost] == 0).all()
    assert cut[lost].all()
    assert not over[lost].any()
    assert all(info["reason"][lost])
    *_, info = envs.step(np.zeros(2, int))
    assert not info["lost"][lost].any()
    assert (info["elapsed_step"][lost] == 0).all()
    envs.close()


def test_games_that_cannot_be_replaced():
    envs = make(FakeBridge(crash_on_step=3), num_envs=2, limit=50, restarts=0)
    envs.reset()
    for _ in range(2):
        envs.step(np.zeros(2, int))
    with pytest.raises(BudgetExhausted, match="2 games"):
        envs.step(np.zeros(2, int))
    envs.close()


def test_out_of_turn_and_wrong_input():
    with pytest.raises(ConfigError, match=r"batch_size: expected 1 to num_envs=2, got 3"):
        make(num_envs=2, batch_size=3)
    with pytest.raises(UnknownNameError, match="gymnasium"):
        make(env_type="dm")
    envs = make(num_envs=2, batch_size=1)
    with pytest.raises(OutOfTurnError, match="async_reset"):
        envs.recv()
    envs.async_reset()
    with pytest.raises(OutOfTurnError, match="game 0 has not replied"):
        envs.send(np.zeros(2, int))
    for _ in range(2):
        envs.recv()
    with pytest.raises(OutOfTurnError, match="game 1 has not replied"):
        envs.send(np.zeros(2, int), [1, 1])
    with pytest.raises(ConfigError, match="expected 0 to 1, got 2"):
        envs.send(np.zeros(1, int), [2])
    with pytest.raises(SpaceError):
        envs.send(np.zeros(3, int), [0, 1])
    assert not envs._asked
    envs.close()


def test_lost_lives_and_clipped_rewards():
    """EnvPool's rules for Atari: a lost life is shown as an end, and the game goes on."""
    breakout = {"id": "Breakout", "sticky": 0.0, "noop_max": 1}
    options = {"host": {"isolation": "in_process"}, "episodic_life": True, "reward_clip": True}
    envs = envpool.make("atari", bridge=breakout, **options)
    envs.reset()
    ends, rewards, fire = [], [], np.ones(1, int)
    while not ends or not ends[-1]["terminated"][0]:
        _, reward, over, _, info = envs.step(fire)
        rewards.append((reward[0], info["reward"][0]))
        if over[0]:
            ends.append(info)
    assert [int(info["lives"][0]) for info in ends] == [4, 3, 2, 1, 0]
    assert all(np.diff([info["elapsed_step"][0] for info in ends]) > 0)
    assert [bool(info["terminated"][0]) for info in ends] == [False] * 4 + [True]
    assert all(shown == np.sign(own) for shown, own in rewards)
    *_, info = envs.step(fire)
    assert (info["lives"][0], info["elapsed_step"][0], info["reward"][0]) == (5, 0, 0)
    envs.close()


@pytest.fixture
def old_gym(monkeypatch):
    """Stands for the package gym, which is not installed beside ours."""
    gym = ModuleType("gym")
    gym.__version__, gym.spaces = "0.23.1", gymnasium.spaces
    monkeypatch.setitem(sys.modules, "gym", gym)


def test_the_old_interface_has_four_values(old_gym):
    envs = make(num_envs=2, env_type="gym", limit=3)
    observations = envs.reset()
    assert set(observations) == set(envs.observation_space.spaces)
    for _ in range(3):
        _, _, done, info = envs.step(np.zeros(2, int))
    assert done.tolist() == info["TimeLimit.truncated"].tolist() == [True, True]
    assert info["terminated"].tolist() == [True, True]  # the episode, for whatever reason
    envs.close()


def test_gym_is_named_where_it_is_missing():
    with pytest.raises(ConfigError, match="needs the package gym"):
        make(env_type="gym")


def test_a_script_that_imports_envpool(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["before"])
    monkeypatch.delitem(sys.modules, "envpool", raising=False)
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, envpool\n"
        "envs = envpool.make('fake', env_type='gymnasium', num_envs=2, seed=1)\n"
        "print(sys.argv[1:], len(envs), envs.reset()[1]['env_id'].tolist())\n"
        "envs.close()\n"
    )
    envpool.main([str(script), "--flag"])
    assert capsys.readouterr().out == "['--flag'] 2 [0, 1]\n"
    del sys.modules["envpool"]
