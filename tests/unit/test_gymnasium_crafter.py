"""CrafterBridge: seeded per episode, facts as signals, death apart from the time limit."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from bridges.gymnasium import CrafterBridge
from rollout.api import Start
from rollout.errors import ConfigError

pytestmark = pytest.mark.heavy

NOOP, DO, PLACE_PLANT = 0, 5, 10
SMALL = CrafterBridge(area=24)  # a world that is quick to make


def launch(bridge=SMALL, width=1):
    return bridge.launch(Path(), [], width=width, timeout_s=60)


def reset(instance, seed, bridge=SMALL, slot=0):
    return instance.reset([slot], [Start(bridge.spec.state_space.state(seed), 0)], timeout_s=60)


def step(instance, *actions):
    return instance.step({"action": np.array(actions, np.int64)}, timeout_s=60)


def play(instance, seed, steps, slot=0, width=1):
    """Every column of every frame of an episode of random actions."""
    rng = np.random.default_rng(seed)
    frame = reset(instance, seed, slot=slot)
    shown = []
    for action in [*rng.integers(0, 17, steps).tolist(), None]:
        columns = {**frame.observations, **frame.signals, "over": frame.game_over}
        shown.append({k: v[0 if len(v) == 1 else slot].copy() for k, v in columns.items()})
        if action is not None:
            frame = step(instance, *[action] * width)
    return shown


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a[key], b[key]) for a, b in zip(one, other, strict=True) for key in a
    )


def test_a_seed_shows_the_same_frames_regardless_of_was_played_before():
    fresh, used = launch(), launch()
    play(used, 1, 40)
    garbage = [bytearray(100 + n) for n in range(5000)]  # other addresses for its creatures
    play(used, 2, 10)
    first, again = play(fresh, 5, 120), play(used, 5, 120)
    assert same(first, again)
    assert not same(first[:5], play(used, 6, 4))
    del garbage


def test_slots_do_not_disturb_one_another():
    three = launch(width=3)
    for slot in 0, 2:
        reset(three, 10 + slot, slot=slot)
    assert same(play(launch(), 5, 30), play(three, 5, 30, slot=1, width=3))


def test_it_is_the_game_that_crafter_makes():
    import crafter

    bridge = CrafterBridge(area=32)
    instance = launch(bridge)
    frame = reset(instance, 7, bridge)
    game = crafter.Env(area=(32, 32), seed=7)
    assert np.array_equal(frame.observations["observation"][0], game.reset())
    ours = instance._games[0]._env._world
    assert np.array_equal(ours._mat_map, game._world._mat_map)
    assert np.array_equal(ours._obj_map, game._world._obj_map)
    # Crafter first removes creatures, by the order of a set, at its tenth step.
    for action in np.random.default_rng(0).integers(0, 17, 9).tolist():
        picture, reward, _, info = game.step(action)
        frame = step(instance, action)
        assert np.array_equal(frame.observations["observation"][0], picture)
        assert frame.signals["reward"][0] == np.float32(reward)
        assert frame.signals["position/x"][0] == info["player_pos"][0]
        for name, count in info["achievements"].items():
            assert frame.signals[f"achievement/{name}"][0] == count


def test_achievements_show_after_scripted_actions():
    instance = launch()
    frame = reset(instance, 3)
    assert set(frame.signals) == set(SMALL.spec.signals)
    assert frame.signals["health"].tolist() == [9]
    assert frame.signals["reward"].tolist() == [0.0]
    tries = 0
    while not frame.signals["inventory/sapling"][0]:
        frame = step(instance, DO)  # one in ten strokes at the grass ahead gives a sapling
        tries += 1
        assert tries < 100
    assert frame.signals["achievement/collect_sapling"].tolist() == [1]
    assert frame.signals["reward"][0] == 1.0
    frame = step(instance, PLACE_PLANT)
    assert frame.signals["achievement/place_plant"].tolist() == [1]
    assert frame.signals["inventory/sapling"].tolist() == [0]
    assert frame.tick.tolist() == [tries + 1]
    frame = reset(instance, 3)
    assert frame.signals["achievement/place_plant"].tolist() == [0]


def test_death_is_not_the_time_limit():
    bridge = CrafterBridge(area=24, length=3)
    instance = launch(bridge, 2)
    for slot in 0, 1:
        reset(instance, slot, bridge, slot)
    step(instance, NOOP, NOOP)
    instance._games[0]._env._player.health = 0
    frame = step(instance, NOOP, NOOP)
    assert (frame.game_over.tolist(), frame.game_truncated.tolist()) == ([True, False], [False] * 2)
    frame = step(instance, NOOP, NOOP)
    assert (frame.game_over.tolist(), frame.game_truncated.tolist()) == (
        [True, False],
        [False, True],
    )
    assert frame.tick.tolist() == [2, 3]


def test_without_reward():
    bridge = CrafterBridge(area=24, reward=False)
    instance = launch(bridge)
    frame = reset(instance, 3, bridge)
    for _ in range(100):
        frame = step(instance, DO)
        assert frame.signals["reward"].tolist() == [0.0]
        if frame.signals["achievement/collect_sapling"][0]:
            return
    raise AssertionError("no sapling")


def test_spec_and_options():
    spec = CrafterBridge(size=32).spec
    assert spec.observation_space["observation"].shape == (32, 32, 3)
    assert spec.action_space["action"].n == 17
    assert sum(name.startswith("achievement/") for name in spec.signals) == 22
    assert sum(name.startswith("inventory/") for name in spec.signals) == 12
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL
    for wrong in {"size": 0}, {"size": 17}, {"length": 0}, {"area": 3}, {"seeds": 0}:
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be"):
            CrafterBridge(**wrong)
