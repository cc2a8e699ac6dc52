"""AtariBridge: the frames of Gymnasium's own wrappers, seeds, options."""

import functools
import pickle
from pathlib import Path

import ale_py
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from bridges.gymnasium import AtariBridge
from rollout.api import Start
from rollout.errors import ConfigError, UnknownNameError

pytestmark = pytest.mark.heavy

gymnasium.register_envs(ale_py)

NOOP, FIRE, RIGHT, LEFT = 0, 1, 2, 3


def launch(bridge, width=1):
    return bridge.launch(Path(), [], width=width, timeout_s=60)


def reset(bridge, instance, seed, slot=0):
    return instance.reset([slot], [Start(bridge.spec.state_space.state(seed), 0)], timeout_s=60)


def step(instance, *actions):
    return instance.step({"action": np.array(actions, np.int64)}, timeout_s=60)


def reference(game, stack=4, **options):
    """What the bridge promises to show, made of Gymnasium's parts."""
    env = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0)
    env = AtariPreprocessing(env, **options)
    return FrameStackObservation(env, stack) if stack > 1 else env


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("Pong", {}),
        ("Breakout", {"frame_skip": 2, "noop_max": 0, "stack": 3}),
        ("Breakout", {"frame_skip": 1, "size": 42, "grayscale": False, "stack": 1}),
    ],
)
def test_frames_are_those_of_gymnasiums_wrappers(game, options):
    bridge = AtariBridge(id=game, sticky=0.0, **options)
    names = {"size": "screen_size", "grayscale": "grayscale_obs"}
    env = reference(game, **{names.get(key, key): v for key, v in options.items()})
    assert env.observation_space == bridge.spec.observation_space["observation"]
    instance = launch(bridge)
    frame = reset(bridge, instance, 3)
    picture, _ = env.reset(seed=3)
    rng = np.random.default_rng(0)
    for number in range(30):
        assert np.array_equal(frame.observations["observation"][0], picture), number
        action = FIRE if number == 0 else int(rng.integers(env.action_space.n))
        frame = step(instance, action)
        picture, reward, over, cut, info = env.step(action)
        assert frame.signals["reward"][0] == reward
        assert frame.signals["lives"][0] == info["lives"]
        assert (frame.game_over[0], frame.game_truncated[0]) == (over, cut)
        assert frame.tick[0] == (number + 1) * bridge.frame_skip


def test_sticky_actions_hold_the_last_action():
    bridge = AtariBridge(id="Pong", sticky=0.25, frame_skip=1)
    instance = launch(bridge)
    reset(bridge, instance, 0)
    game = instance._games[0]
    emulator = game._ale = Listener(game._ale)
    chosen = np.random.default_rng(0).integers(0, 6, 800).tolist()
    for action in chosen:
        step(instance, action)
    actions = game._actions
    held = [actions[NOOP], *emulator.heard]
    wanted = [actions[action] for action in chosen]
    assert all(now in (want, last) for now, want, last in zip(held[1:], wanted, held, strict=False))
    changed = [n for n in range(800) if wanted[n] != held[n]]
    stuck = sum(held[n + 1] == held[n] for n in changed)
    assert 0.2 < stuck / len(changed) < 0.3


def play_until(instance, frame, done, most=400):
    for number in range(most):
        if done(frame):
            return frame
        frame = step(instance, FIRE if number % 2 else NOOP)
    raise AssertionError("the game went on")


def test_a_lost_life_ends_an_episode_only_if_asked():
    for ends in True, False:
        bridge = AtariBridge(id="Breakout", sticky=0.0, terminal_on_life_loss=ends)
        instance = launch(bridge)
        frame = reset(bridge, instance, 0)
        assert frame.signals["lives"].tolist() == [5]
        frame = play_until(instance, frame, lambda f: f.signals["lives"][0] < 5)
        assert frame.game_over.tolist() == [ends]


def test_the_last_frame_is_the_last_screen_of_the_game():
    bridge = AtariBridge(id="Breakout", sticky=0.0, stack=1, size=None, grayscale=False)
    instance = launch(bridge)
    frame = play_until(instance, reset(bridge, instance, 0), lambda f: f.game_over[0], 2000)
    screen = instance._games[0]._ale.getScreenRGB()
    assert np.array_equal(frame.observations["observation"][0], screen)


def test_a_limit_on_frames_truncates():
    bridge = AtariBridge(id="Pong", max_frames=60, noop_max=0)
    instance = launch(bridge)
    frame = reset(bridge, instance, 0)
    frame = play_until(instance, frame, lambda f: f.game_truncated[0], 30)
    assert not frame.game_over[0]


def test_seeds_reproduce_and_slots_do_not_disturb_one_another():
    bridge = AtariBridge(id="Pong", sticky=0.25)
    three = launch(bridge, 3)
    for slot in 0, 1, 2:
        reset(bridge, three, slot, slot)
    for _ in range(5):
        step(three, LEFT, RIGHT, NOOP)

    def shown(instance, seed, slot, width):
        frames = [reset(bridge, instance, seed, slot).observations["observation"][0].copy()]
        rng = np.random.default_rng(1)
        for action in rng.integers(0, 6, 40).tolist():
            frame = step(instance, *[action] * width)
            frames.append(frame.observations["observation"][slot].copy())
        return np.stack(frames)

    alone = launch(bridge)
    first = shown(alone, 7, 0, 1)
    assert np.array_equal(first, shown(three, 7, 1, 3))
    assert np.array_equal(first, shown(alone, 7, 0, 1))
    assert not np.array_equal(first, shown(alone, 8, 0, 1))


def test_fire_score_and_clipped_reward():
    bridge = AtariBridge(
        id="Breakout", fire_on_reset=True, clip_reward=True, full_action_space=True
    )
    assert bridge.spec.action_space["action"].n == 18
    instance = launch(bridge)
    reset(bridge, instance, 0)
    game = instance._games[0]
    game._ale = Points(game._ale, 7)
    frame = step(instance, NOOP)
    assert frame.signals["reward"].tolist() == [1.0]
    assert frame.signals["score"].tolist() == [28.0]
    assert reset(bridge, instance, 0).signals["score"].tolist() == [0.0]


class Listener:
    """An emulator that notes the actions it is given."""

    def __init__(self, ale):
        self._ale, self.heard = ale, []

    def __getattr__(self, name):
        return getattr(self._ale, name)

    def act(self, action):
        self.heard.append(action)
        return self._ale.act(action)


class Points:
    """An emulator in which every frame scores."""

    def __init__(self, ale, points):
        self._ale, self._points = ale, points

    def __getattr__(self, name):
        return getattr(self._ale, name)

    def act(self, action):
        self._ale.act(action)
        return self._points


def test_spec_and_options():
    spec = AtariBridge(id="Pong").spec
    assert spec.name == "ALE/Pong-v5"
    assert spec.observation_space["observation"].shape == (4, 84, 84)
    assert spec.ticks_per_second == 60
    assert set(spec.signals) == {"reward", "lives", "score"}
    plain = AtariBridge(id="ALE/Pong-v5", size=None, grayscale=False, stack=2).spec
    assert plain.observation_space["observation"].shape == (2, 210, 160, 3)
    bridge = AtariBridge(id="Pong")
    assert pickle.loads(pickle.dumps(bridge)) == bridge
    for wrong in (
        {"frame_skip": 0},
        {"stack": 0},
        {"size": 0},
        {"seeds": 0},
        {"noop_max": -1},
        {"sticky": 1.5},
        {"sticky": -0.1},
        {"max_frames": 0},
        {"id": ""},
    ):
        with pytest.raises(ConfigError):
            AtariBridge(**wrong)


@pytest.mark.parametrize(
    ("bridge", "error", "text"),
    [
        (AtariBridge(id="Pongg"), UnknownNameError, "Nearest: Pong"),
        (AtariBridge(id="ALE/Pongg-v5"), UnknownNameError, "Nearest: ALE/Pong-v5"),
        (AtariBridge(id="PongNoFrameskip-v4"), UnknownNameError, "Pong"),
        (AtariBridge(id="Pong", mode=77), ConfigError, "Invalid game mode"),
        (AtariBridge(id="Freeway", fire_on_reset=True), ConfigError, "Freeway has no fire button"),
    ],
)
def test_games_and_modes_that_do_not_exist(bridge, error, text):
    with pytest.raises(error, match=text):
        functools.partial(getattr, bridge, "spec")()


@pytest.mark.parametrize("stack", [1, 4])
def test_the_spec_names_the_stack(stack):
    assert AtariBridge(id="Pong", stack=stack).spec.stacks == (
        {"observation": 0} if stack > 1 else {}
    )
