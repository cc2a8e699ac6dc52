"""Vector environments of the bridge ``gymnasium``: the episodes of single games, only faster."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from bridges.gymnasium import GymnasiumBridge
from bridges.gymnasium import bridge as module
from bridges.gymnasium.vector import FEWEST, VectorInstance
from rollout.api import Start, probing, sample
from rollout.errors import ConfigError, GameCrashed
from rollout.testing import check_bridge


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Games are made here, not in a process of their own, which takes a second."""
    monkeypatch.setattr(probing, "supervised", True)


class Walk(gymnasium.Env):
    """Ends after a number of steps that the seed decides; its spaces are nested."""

    observation_space = spaces.Dict(
        {"place": spaces.Box(-99, 99, (2,), np.float64), "left": spaces.Discrete(30)}
    )
    action_space = spaces.Dict(
        {"go": spaces.Box(-1, 1, (2,), np.float32), "up": spaces.Discrete(3)}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.left = self.np_random.random(2), int(self.np_random.integers(3, 30))
        return self._seen(), {}

    def step(self, action):
        self.place, self.left = self.place + action["go"], self.left - 1
        return self._seen(), float(action["up"]), self.left == 0, False, {}

    def _seen(self):
        return {"place": self.place.copy(), "left": self.left}


class Many(SyncVectorEnv):
    """A vector environment of a third party."""

    def __init__(self, num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, max_episode_steps=None):
        super().__init__([Walk] * num_envs, autoreset_mode=autoreset_mode)


class Short(Many):
    """Has a game less than it was asked for."""

    def __init__(self, num_envs, autoreset_mode, max_episode_steps):
        super().__init__(num_envs - 1, autoreset_mode)


class ShortRewards(Many):
    def step(self, actions):
        shown, reward, *rest = super().step(actions)
        return shown, reward[1:], *rest


class Resetting(Many):
    """Resets its games itself, whenever they end."""

    def __init__(self, num_envs, max_episode_steps=None):
        super().__init__(num_envs)


class OneSeed(Many):
    """Draws all starts from one generator."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed[0] if isinstance(seed, list) else seed, options=options)


class Broken(Many):
    def __init__(self, num_envs, **kwargs):
        raise ImportError("no module named cuda")


for kind in Many, Short, ShortRewards, Resetting, OneSeed, Broken:
    gymnasium.register(
        f"GamutVector{kind.__name__}-v0", Walk, vector_entry_point=kind, max_episode_steps=20
    )


def launch(bridge, width):
    return bridge.launch(Path(), [], width=width, timeout_s=60)


def play(bridge, width, steps):
    """The class of the instance and the bytes of its frames, with episodes one after another."""
    instance, spec = launch(bridge, width), bridge.spec
    rng, seeds = np.random.default_rng(0), iter(range(10**6))
    over, frames, ends = list(range(width))[::2], [], [0, 0]  # half of the slots begin later
    for step in range(steps):
        if over:
            starts = [Start(spec.state_space.state(next(seeds)), seed=0) for _ in over]
            frames.append(instance.reset(over, starts, timeout_s=60).take(range(len(over))))
        frame = instance.step(sample(spec.action_space, width, rng), timeout_s=60)
        frames.append(frame.take(range(width)))
        ends[0] += int(frame.game_over.sum())
        ends[1] += int(frame.game_truncated.sum())
        ended = np.flatnonzero(frame.game_over | frame.game_truncated)
        over = ended[ended % 3 > 0].tolist()  # some slots stay idle for a while
        if step % 25 == 5:
            over += list(range(width))[1::2] if step == 5 else ended[ended % 3 == 0].tolist()
            over = sorted(set(over))
    instance.close()
    columns = [
        [*f.observations.values(), *f.signals.values(), f.game_over, f.game_truncated, f.tick]
        for f in frames
    ]
    return type(instance), ends, [[c.tobytes() for c in each] for each in columns]


@pytest.mark.parametrize(
    ("id_", "kwargs", "width", "vector"),
    [
        ("CartPole-v1", {}, 250, True),
        ("CartPole-v1", {"max_episode_steps": 20, "sutton_barto_reward": True}, FEWEST, True),
        ("GamutVectorMany-v0", {}, FEWEST, True),
        ("CartPole-v1", {}, FEWEST - 1, False),
        ("GamutVectorResetting-v0", {}, FEWEST, False),
        ("GamutVectorOneSeed-v0", {}, FEWEST, False),
        ("GamutVectorBroken-v0", {}, FEWEST, False),
    ],
)
def test_episodes_are_those_of_single_games(id_, kwargs, width, vector, monkeypatch):
    bridge = GymnasiumBridge(id=id_, kwargs=kwargs)
    kind, ends, frames = play(bridge, width, 80)
    monkeypatch.setattr(module, "FEWEST", 10**6)
    _, _, single = play(bridge, width, 80)
    assert (kind is VectorInstance) == vector
    assert frames == single
    assert ends[0]
    assert ends[1] or "max_episode_steps" not in kwargs


@pytest.mark.parametrize(
    "options", [{"factors": {"kind": [1]}}, {"info_signals": ["x"]}, {"render": True}]
)
def test_options_of_single_games_play_single_games(options):
    assert not isinstance(launch(GymnasiumBridge(**options), FEWEST), VectorInstance)


@pytest.mark.parametrize("name", ["Short", "ShortRewards"])
def test_a_vector_environment_of_another_width_is_refused_before_the_launch(name):
    bridge = GymnasiumBridge(id=f"GamutVector{name}-v0")
    with pytest.raises(ConfigError, match=f"GamutVector{name}.*register the id without"):
        _ = bridge.spec


def test_a_width_that_is_wrong_for_many_slots_only_is_refused_at_the_launch(monkeypatch):
    bridge = GymnasiumBridge(id="GamutVectorMany-v0")
    assert bridge.spec.reproducible
    monkeypatch.setattr(
        Many, "num_envs", property(lambda self: 3, lambda self, n: None), raising=False
    )
    with pytest.raises(ConfigError, match=r"made with 16 games.*num_envs = 3"):
        launch(bridge, FEWEST)


def test_a_vector_environment_that_raises_crashes_with_its_own_words(monkeypatch):
    bridge = GymnasiumBridge(id="GamutVectorMany-v0")
    instance = launch(bridge, FEWEST)
    starts = [Start(bridge.spec.state_space.state(0), seed=0)]
    instance.reset([1], starts, timeout_s=60)
    monkeypatch.setattr(Walk, "step", lambda self, action: 1 // 0)
    with pytest.raises(GameCrashed, match="vector environment failed: ZeroDivisionError"):
        instance.step(
            sample(bridge.spec.action_space, FEWEST, np.random.default_rng(0)), timeout_s=1
        )


@pytest.mark.parametrize("id_", ["CartPole-v1", "GamutVectorMany-v0"])
def test_conformance(id_):
    bridge = GymnasiumBridge(id=id_)
    assert isinstance(launch(bridge, FEWEST), VectorInstance)
    check_bridge(bridge, width=FEWEST, steps=30).raise_if_failed()
