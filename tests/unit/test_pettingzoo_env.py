"""``ParallelWorld``: PettingZoo's rules, agents that are done, games that fail."""

import copy
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from gymnasium import spaces

from rollout.api import Limits, Splits, Task
from rollout.errors import ConfigError, OutOfTurnError, SpaceError, UnknownNameError
from rollout.pettingzoo_env import ParallelWorld
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator

with warnings.catch_warnings():
    # PettingZoo's tests load a game of its own in a way that it calls deprecated itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test, parallel_seed_test


@dataclass(frozen=True)
class NamedBridge(FakeBridge):
    """A game that knows how its agents are called."""

    def agent_names(self):
        return ("ann", "ben", "cleo")


@dataclass(frozen=True)
class MaskedBridge(FakeBridge):
    """A game in which the first, third and fifth action are never legal."""

    @property
    def spec(self):
        spec = super().spec
        mask = {f"mask/{key}": spaces.MultiBinary(int(s.n)) for key, s in spec.action_space.items()}
        seen = spaces.Dict({**spec.observation_space.spaces, **mask})
        return replace(spec, observation_space=seen)

    def launch(self, workdir, ports, *, width, timeout_s):
        return Masking(super().launch(workdir, ports, width=width, timeout_s=timeout_s), self.spec)


class Masking:
    """An instance whose frames have masks."""

    def __init__(self, instance, spec):
        self._instance = instance
        [self._mask] = [key for key in spec.observation_space if key.startswith("mask/")]
        self.close = instance.close

    def reset(self, slots, starts, *, timeout_s):
        return self._masked(self._instance.reset(slots, starts, timeout_s=timeout_s))

    def step(self, actions, *, timeout_s):
        return self._masked(self._instance.step(actions, timeout_s=timeout_s))

    def _masked(self, frame):
        legal = np.tile(np.array([0, 1, 0, 1, 0], np.int8), (len(frame.game_over), 1))
        return replace(frame, observations={**frame.observations, self._mask: legal})


def make(bridge=None, *, limit=12, **options):
    bridge = bridge or FakeBridge(max_width=3, with_details=True)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=limit))
    return ParallelWorld(bridge, task, **options)


def sample(env):
    return {name: env.action_space(name).sample() for name in env.agents}


def play(env, steps, seed=0):
    for name in env.possible_agents:
        env.action_space(name).seed(seed)
    calls = [env.reset(seed=seed)]
    for _ in range(steps):
        if not env.agents:
            break
        calls.append(env.step(sample(env)))
    env.close()
    return calls


def assert_equal(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_equal(a[key], b[key])
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_equal(one, other)
    else:
        assert np.array_equal(a, b, equal_nan=isinstance(a, float))


@pytest.mark.parametrize("limit", [7, 200])
def test_it_passes_pettingzoos_own_test(limit):
    env = make(limit=limit)
    parallel_api_test(env, num_cycles=50)
    env.close()


def test_it_passes_pettingzoos_test_of_seeds():
    bridge = FakeBridge(max_width=3)
    parallel_seed_test(lambda: make(bridge, limit=200), num_cycles=20)


def test_agents_have_the_names_of_the_bridge_or_of_their_slots():
    env = make(NamedBridge())
    assert env.possible_agents == ["ann", "ben", "cleo"]
    env.close()
    env = make(width=2)
    assert env.possible_agents == ["slot_0", "slot_1"]
    assert env.agents == []
    assert env.observation_space("slot_1") is env.observation_space("slot_0")
    with pytest.raises(ConfigError, match=r"slot_0.*got 'ann'"):
        env.action_space("ann")
    env.close()


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="expected 1 to 3 slots"):
        make(width=4)
    with pytest.raises(ConfigError, match="expected 3, one slot for each"):
        make(NamedBridge(), width=2)


def test_observations_and_infos_are_the_agents_own():
    env = make()
    observations, infos = env.reset(seed=3)
    for name in env.agents:
        space = env.observation_space(name)
        assert space.contains(observations[name])
        assert {"state", "seed", "details"} <= infos[name].keys()
    assert len({infos[name]["state"] for name in env.agents}) == 1
    assert len({infos[name]["seed"] for name in env.agents}) == 3
    kept = copy.deepcopy(observations)
    env.step(sample(env))
    assert_equal(observations, kept)  # what was handed out is never written again
    env.close()


def test_the_same_seed_plays_the_same_and_another_does_not():
    assert_equal(play(make(), 30, seed=5), play(make(), 30, seed=5))
    first, other = make().reset(seed=5), make().reset(seed=6)
    assert first[1]["slot_0"]["seed"] != other[1]["slot_0"]["seed"]


def test_limits_truncate_and_done_agents_are_gone():
    env = make(limit=4)
    env.reset(seed=0)
    for step in range(4):
        agents = list(env.agents)
        observations, rewards, terminated, truncated, infos = env.step(sample(env))
        for told in (observations, rewards, terminated, truncated, infos):
            assert list(told) == agents
        for name in agents:
            over = terminated[name] or truncated[name]
            assert over == (name not in env.agents)
            if step == 3:
                assert over
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})
    env.reset()
    assert env.agents == env.possible_agents
    env.close()


def test_states_can_be_chosen_and_taken_in_turn():
    bridge = FakeBridge(max_width=2)
    states = Splits(bridge.spec.state_space, 1).take("test", 2)
    env = make(bridge, states=states, order="in_turn", limit=2)
    seen = [env.reset()[1]["slot_1"]["state"] for _ in range(3)]
    assert seen == [str(states[k].index) for k in (0, 1, 0)]
    env.close()


def test_actions_are_asked_of_exactly_those_who_play():
    env = make()
    with pytest.raises(OutOfTurnError, match="call reset first"):
        env.step({})
    env.reset()
    actions = sample(env)
    with pytest.raises(ConfigError, match="expected actions of"):
        env.step({name: actions[name] for name in env.agents[:2]})
    with pytest.raises(ConfigError, match="expected actions of"):
        env.step({**actions, "ann": 0})
    space = env.action_space("slot_0")
    assert isinstance(space, spaces.Discrete)
    with pytest.raises(SpaceError):
        env.step({**actions, "slot_0": space.n})
    env.close()


def test_done_agents_do_what_idle_says():
    env = make(idle={"move": 2})
    assert env._idle["move"].tolist() == [2, 2, 2]
    env.close()
    with pytest.raises(SpaceError):
        make(idle={"move": 99})
    with pytest.raises(UnknownNameError, match="move"):
        make(idle={"moves": 1})


def test_a_game_that_dies_ends_the_episodes_and_the_next_reset_starts_another(tmp_path):
    bridge = FakeBridge(max_width=2, crash_on_step=1, once_file=str(tmp_path / "once"))
    env = make(bridge, limit=50)
    env.reset()
    observations, _, terminated, truncated, infos = env.step(sample(env))
    assert env.agents == []
    assert truncated == {"slot_0": True, "slot_1": True}
    assert not any(terminated.values())
    assert infos["slot_0"]["lost"]
    assert infos["slot_0"]["reason"]
    assert env.observation_space("slot_0").contains(observations["slot_0"])
    with pytest.raises(OutOfTurnError):
        env.step({})
    env.reset()
    assert env.agents == env.possible_agents
    env.step(sample(env))
    env.close()
    env.close()


@pytest.mark.heavy
def test_rllib_takes_it():
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv

    env = ParallelPettingZooEnv(make(limit=5))
    assert set(env.action_space.spaces) == {"slot_0", "slot_1", "slot_2"}
    observations, _ = env.reset(seed=1)
    assert set(observations) == set(env.agents)
    over = False
    for _ in range(5):
        playing = observations
        actions = {name: env.action_space[name].sample() for name in env.par_env.agents}
        observations, rewards, terminated, truncated, _ = env.step(actions)
        assert rewards.keys() == actions.keys() <= playing.keys()
        over = not env.par_env.agents
        if over:
            break
    assert over
    assert all(terminated[name] or truncated[name] for name in actions)
    env.close()


def test_infos_have_the_mask_for_sampling_from_the_action_space():
    bridge = MaskedBridge(max_width=3)
    [key] = bridge.spec.action_space.spaces
    env = make(bridge)
    _, infos = env.reset(seed=0)
    for _ in range(5):
        actions = {}
        for name in env.agents:
            mask = infos[name]["action_mask"]
            assert mask.tolist() == [0, 1, 0, 1, 0], key
            actions[name] = env.action_space(name).sample(mask)
            assert actions[name] in {1, 3}
        _, _, _, _, infos = env.step(actions)
    env.close()
