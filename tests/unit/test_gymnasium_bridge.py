"""GymnasiumBridge: any registered game, any space, the contract of an instance."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from bridges.gymnasium import GymnasiumBridge
from bridges.gymnasium.making import find, make
from rollout.api import Start, State, sample
from rollout.errors import (
    GameCrashed,
    GameTimeout,
    InputError,
    OutOfTurnError,
    SpaceError,
    StateError,
)

pytestmark = pytest.mark.heavy

NESTED = spaces.Dict(
    {
        "pair": spaces.Tuple((spaces.Discrete(3, start=2), spaces.Box(-1, 1, (2,), np.float64))),
        "dials": spaces.MultiDiscrete([2, 5]),
        "lamps": spaces.MultiBinary(3),
        "word": spaces.Text(8),
        "list": spaces.Sequence(spaces.Discrete(9)),
    }
)
NESTED_ACTIONS = spaces.Dict(
    {
        "pair": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,), np.float32))),
        "dials": spaces.MultiDiscrete([2, 5]),
        "say": spaces.Text(8),
    }
)


class Echo(gymnasium.Env):
    """Shows a fresh sample of a nested space, and keeps the actions it was given."""

    observation_space, action_space = NESTED, NESTED_ACTIONS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.shown, self.given = [self.observation_space.sample()], []
        return self.shown[-1], {}

    def step(self, action):
        self.given.append(action)
        self.shown.append(self.observation_space.sample())
        info = {"depth": len(self.given), "deep": {"er": 0.5}}
        return self.shown[-1], float(len(self.given)), False, False, info


class Unseeded(gymnasium.Env):
    """Takes the seed and ignores it."""

    observation_space, action_space = spaces.Box(0, 1, (3,), np.float64), spaces.Discrete(2)
    rng = np.random.default_rng()

    def reset(self, *, seed=None, options=None):
        return self.rng.random(3), {}

    def step(self, action):
        return self.rng.random(3), 0.0, False, False, {}


class Bad(gymnasium.Env):
    """Shows whatever it was made with."""

    observation_space, action_space = spaces.Box(0, 1, (3,), np.float32), spaces.Discrete(2)

    def __init__(self, shown=None, fault=None):
        self.shown, self.fault = shown, fault

    def reset(self, *, seed=None, options=None):
        return np.zeros(3, np.float32), {}

    def step(self, action):
        if self.fault:
            raise RuntimeError(self.fault)
        return np.asarray(self.shown), 0.0, False, False, {}

    def close(self):
        raise RuntimeError("cannot even close")


class High(gymnasium.Env):
    """Zero is no observation of it."""

    observation_space, action_space = spaces.Box(4, 6, (1,), np.float64), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.array([5.0]), {}

    def step(self, action):
        return np.array([5.0]), 0.0, False, False, {}


for game in Echo, Unseeded, Bad, High:
    gymnasium.register(f"GamutTest{game.__name__}-v0", game)


def launch(bridge, width=1):
    return bridge.launch(Path(), [], width=width, timeout_s=60)


def starts(bridge, *seeds):
    space = bridge.spec.state_space
    return [Start(space.state(seed), seed=0, episode=seed) for seed in seeds]


def begin(bridge, *seeds):
    instance = launch(bridge, len(seeds))
    instance.reset(range(len(seeds)), starts(bridge, *seeds), timeout_s=60)
    return instance


def snapshot(frame):
    copy = frame.take(range(len(frame.tick)))
    columns = {**copy.observations, **copy.signals, "tick": copy.tick, "over": copy.game_over}
    return {**columns, "cut": copy.game_truncated, "details": copy.details}


def same(one, other):
    assert one.keys() == other.keys()
    return all(np.array_equal(one[key], other[key]) for key in one)


def play(instance, bridge, seed, steps, slot=0, width=1):
    """The frames of one slot in an episode of random actions, which depend on the seed alone."""
    rng = np.random.default_rng(seed)
    frame = instance.reset([slot], starts(bridge, seed), timeout_s=60)
    frames = [snapshot(frame)]
    for _ in range(steps):
        one = sample(bridge.spec.action_space, 1, rng)
        frame = instance.step({k: np.repeat(v, width, 0) for k, v in one.items()}, timeout_s=60)
        frames.append(snapshot(frame.take([slot])))
        if frame.game_over[slot] or frame.game_truncated[slot]:
            break
    return frames


GAMES = ["CartPole-v1", "MiniGrid-Empty-5x5-v0", "MiniGrid-FourRooms-v0"]


@pytest.mark.parametrize("id_", GAMES)
def test_a_seed_shows_the_same_frames_regardless_of_was_played_before(id_):
    bridge = GymnasiumBridge(id=id_)
    fresh, used = launch(bridge), launch(bridge)
    play(used, bridge, 1, 30)
    play(used, bridge, 2, 7)
    first, again = play(fresh, bridge, 5, 40), play(used, bridge, 5, 40)
    assert len(first) == len(again)
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    other = play(used, bridge, 6, 40)
    assert not all(same(a, b) for a, b in zip(first, other, strict=False))


def test_a_game_that_ignores_its_seed_is_found_out():
    bridge = GymnasiumBridge(id="GamutTestUnseeded-v0")
    instance = launch(bridge)
    assert not same(play(instance, bridge, 5, 3)[0], play(instance, bridge, 5, 3)[0])


def test_slots_and_instances_do_not_disturb_one_another():
    bridge = GymnasiumBridge(id="CartPole-v1")
    alone = play(launch(bridge), bridge, 3, 20)
    beside, noise = begin(bridge, 0, 1, 2), begin(bridge, 3)
    noise.step({"action": np.array([1])}, timeout_s=1)
    frames = play(beside, bridge, 3, 20, slot=1, width=3)
    assert len(frames) == len(alone)
    assert all(same(a, b) for a, b in zip(alone, frames, strict=True))


def test_slots_that_are_over_are_left_alone_until_they_are_reset():
    bridge = GymnasiumBridge(id="CartPole-v1")
    instance = begin(bridge, 0, 1)
    push = {"action": np.array([1, 0])}
    frame = instance.step(push, timeout_s=1)
    while not frame.game_over[0]:
        push["action"][1] = 1 - push["action"][1]  # slot 1 stays upright for longer
        frame = instance.step(push, timeout_s=1)
    assert not frame.game_over[1]
    before = snapshot(frame)
    after = snapshot(instance.step({"action": np.array([7, 1])}, timeout_s=1))  # 7 is no action
    assert all(np.array_equal(after[key][0], before[key][0]) for key in after if key != "details")
    assert after["tick"][1] == before["tick"][1] + 1
    frame = instance.reset([0], starts(bridge, 9), timeout_s=1)
    assert len(frame.tick) == 1
    assert not frame.game_over[0]
    assert frame.signals["reward"].tolist() == [0.0]
    frame = instance.step({"action": np.array([0, 1])}, timeout_s=1)
    assert frame.tick.tolist() == [1, before["tick"][1] + 2]


def test_slots_that_were_never_reset_stay_empty():
    bridge = GymnasiumBridge(id="GamutTestHigh-v0")
    instance = launch(bridge, 2)
    instance.reset([1], starts(bridge, 0), timeout_s=1)
    for tick in 1, 2:
        frame = instance.step({"action": np.array([9, 0])}, timeout_s=1)
        assert frame.tick.tolist() == [0, tick]
        assert frame.observations["observation"].tolist() == [[0.0], [5.0]]  # 0 is outside


def test_all_slots_over_repeat_the_frame():
    bridge = GymnasiumBridge(id="CartPole-v1", kwargs={"max_episode_steps": 2})
    instance = begin(bridge, 0)
    for _ in range(4):
        frame = instance.step({"action": np.array([0])}, timeout_s=1)
    assert frame.game_truncated.tolist() == [True]
    assert frame.game_over.tolist() == [False]
    assert frame.tick.tolist() == [2]


def test_methods_out_of_turn():
    bridge = GymnasiumBridge(id="CartPole-v1")
    instance = launch(bridge, 2)
    with pytest.raises(OutOfTurnError, match="no slot was ever reset"):
        instance.step({"action": np.array([0, 0])}, timeout_s=1)
    for slots, count in ([0, 0], 2), ([2], 1), ([0], 2):
        with pytest.raises(InputError, match="distinct slots from 0 to 1"):
            instance.reset(slots, starts(bridge, *range(count)), timeout_s=1)
    with pytest.raises(StateError, match="factor 'seed'"):
        instance.reset([0], [Start(State(0, {"biome": "sea"}), 0)], timeout_s=1)
    with pytest.raises(GameTimeout, match="1 of 2 slots"):
        instance.reset([0, 1], starts(bridge, 0, 1), timeout_s=-1)
    instance.close()
    instance.close()
    with pytest.raises(OutOfTurnError, match="closed"):
        instance.step({"action": np.array([0, 0])}, timeout_s=1)
    with pytest.raises(OutOfTurnError, match="closed"):
        instance.reset([0], starts(bridge, 0), timeout_s=1)


def test_nested_spaces_make_the_round_trip():
    bridge = GymnasiumBridge(id="GamutTestEcho-v0", info_signals=["depth", "deep/er", "absent"])
    assert bridge.spec.original_observation_space == NESTED
    assert set(bridge.spec.signals) == {"reward", "depth", "deep/er", "absent"}
    instance = begin(bridge, 0, 1)
    games = [game.unwrapped for game in instance._games]
    rng = np.random.default_rng(0)
    kept = []
    for step in range(3):
        actions = sample(bridge.spec.action_space, 2, rng)
        frame = instance.step(actions, timeout_s=1)
        kept.append(frame.details)
        for row, game in enumerate(games):
            shown, given = game.shown[-1], game.given[-1]
            assert frame.observations["pair/0"][row] == shown["pair"][0]
            assert frame.observations["pair/1"].dtype == np.float64
            assert np.array_equal(frame.observations["pair/1"][row], shown["pair"][1])
            assert np.array_equal(frame.observations["dials"][row], shown["dials"])
            assert np.array_equal(frame.observations["lamps"][row], shown["lamps"])
            assert frame.details[row] == {
                "word": shown["word"],
                "list": [int(n) for n in shown["list"]],
            }
            assert given in NESTED_ACTIONS
            assert given["say"] == actions["say"][row]
            assert np.array_equal(given["pair"][1], actions["pair/1"][row])
        assert frame.signals["reward"].tolist() == [step + 1] * 2
        assert frame.signals["depth"].tolist() == [step + 1] * 2
        assert frame.signals["deep/er"].tolist() == [0.5, 0.5]
        assert np.isnan(frame.signals["absent"]).all()
    assert kept[0] != kept[1]  # a list that was kept is not written again
    actions["dials"][:] = 9  # nor is an action that the game kept
    assert all((given["dials"] < 5).all() for game in games for given in game.given)


def test_missions_travel_in_details():
    bridge = GymnasiumBridge(id="MiniGrid-Empty-5x5-v0")
    assert set(bridge.spec.observation_space.spaces) == {"image", "direction"}
    instance = launch(bridge)
    frame = instance.reset([0], starts(bridge, 0), timeout_s=1)
    assert frame.details == [{"mission": "get to the green goal square"}]


def test_pictures_can_be_asked_for():
    bridge = GymnasiumBridge(id="CartPole-v1", render=True)
    shape = bridge.spec.observation_space["render"].shape
    instance = launch(bridge, 2)
    frame = instance.reset([0, 1], starts(bridge, 0, 1), timeout_s=1)
    assert frame.observations["render"].shape == (2, *shape)
    assert frame.observations["render"].std() > 0
    assert frame.observations["observation"].shape == (2, 4)


@pytest.mark.parametrize(
    ("kwargs", "text"),
    [
        ({"shown": [0.0, 0.0]}, r"expected the shape \[3\]"),
        ({"shown": 0.0}, r"expected the shape \[3\]"),
        ({"shown": [0.0, 2.0, 0.0]}, r"slot 0: expected values in Box.*got 2.0 at \[1\]"),
        ({"shown": [0.0, np.nan, 0.0]}, "got nan"),
        ({"shown": ["a", "b", "c"]}, "values that do not fit"),
        ({"fault": "the roof fell in"}, "step of slot 0 failed: RuntimeError: the roof fell in"),
    ],
)
def test_broken_games_crash_with_their_own_words(kwargs, text):
    bridge = GymnasiumBridge(id="GamutTestBad-v0", kwargs=kwargs)
    instance = begin(bridge, 0)
    with pytest.raises(GameCrashed, match=text):
        instance.step({"action": np.array([0])}, timeout_s=1)
    instance.close()  # although the game raises there


def test_sloppy_games_can_be_taken_as_they_are():
    bridge = GymnasiumBridge(
        id="GamutTestBad-v0", kwargs={"shown": [0.0, 2.0, 0.0]}, check_bounds=False
    )
    frame = begin(bridge, 0).step({"action": np.array([0])}, timeout_s=1)
    assert frame.observations["observation"].tolist() == [[0.0, 2.0, 0.0]]
    assert frame.observations["observation"].dtype == np.float32


@pytest.mark.parametrize(
    "actions",
    [{}, {"move": np.array([0])}, {"action": np.array([0, 0])}, {"action": np.array([0.0])}],
)
def test_actions_of_another_form_are_refused(actions):
    instance = begin(GymnasiumBridge(id="CartPole-v1"), 0)
    with pytest.raises(SpaceError):
        instance.step(actions, timeout_s=1)
    with pytest.raises(SpaceError, match="expected 0 to 1, got 2"):
        instance.step({"action": np.array([2])}, timeout_s=1)


@pytest.mark.parametrize(
    ("id_", "kwargs"),
    [
        ("MiniGrid-DoorKey-6x6-v0", {}),
        ("MiniGrid-MultiRoom-N4-S5-v0", {"agent_view_size": 5}),
        ("MiniGrid-FourRooms-v0", {"see_through_walls": True}),
    ],
)
def test_the_views_of_minigrid_are_its_own(id_, kwargs):
    spec = find(id_, [])
    mine, own = make(spec, kwargs), gymnasium.make(spec, **kwargs)
    assert "gen_obs_grid" in vars(mine.unwrapped)
    generator, carried = np.random.default_rng(0), 0
    for step in range(400):
        if step % 50 == 0:
            seen = [env.reset(seed=step)[0] for env in (mine, own)]
        np.testing.assert_array_equal(seen[0]["image"], seen[1]["image"], strict=True)
        views = [env.unwrapped.gen_obs_grid() for env in (mine, own)]
        np.testing.assert_array_equal(views[0][1], views[1][1], strict=True)
        carried += own.unwrapped.carrying is not None
        action = int(generator.choice(6, p=[0.2, 0.2, 0.3, 0.2, 0.05, 0.05]))
        seen = [env.step(action)[0] for env in (mine, own)]
    assert carried or "DoorKey" not in id_
    for env in (mine, own):
        env.close()


def test_the_actions_of_minigrid_have_their_names():
    spec = GymnasiumBridge(id="MiniGrid-Empty-5x5-v0").spec
    assert spec.action_labels["action"][:3] == ("left", "right", "forward")
    assert GymnasiumBridge(id="CartPole-v1").spec.action_labels == {}


def test_a_stack_of_frames_is_found():
    def stacked():
        return gymnasium.wrappers.FrameStackObservation(gymnasium.make("CartPole-v1"), 3)

    gymnasium.register("GamutTestStack-v0", entry_point=stacked)
    spec = GymnasiumBridge(id="GamutTestStack-v0").spec
    assert spec.observation_space["observation"].shape == (3, 4)
    assert spec.stacks == {"observation": 0}
    assert GymnasiumBridge(id="CartPole-v1").spec.stacks == {}
