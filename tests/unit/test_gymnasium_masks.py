"""Masks of games of Gymnasium: in the observation, by a method, in the info; one game or many."""

import logging
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from bridges.gymnasium import GymnasiumBridge, masks
from bridges.gymnasium.vector import FEWEST, VectorInstance
from policies.random import RandomPolicy
from rollout.api import Start, Task, probing
from rollout.config import HostConfig
from rollout.errors import ConfigError, GameCrashed, NothingLegalError, SpaceError
from rollout.evaluators import GameReward
from rollout.host import Player, PlayOptions, Pool, hosting
from rollout.host.hosting import HostPlan, log_launch
from rollout.testing import check_bridge


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch):
    """Games are made here, not in a process of their own, which takes a second."""
    monkeypatch.setattr(probing, "supervised", True)
    monkeypatch.setattr(masks, "_warned", set())


class Door(gymnasium.Env):
    """Refuses illegal actions: what is legal is drawn in each step.

    Args:
        where: habit in which it gives its mask.
        joined: whether the mask is one array.
        stuck_at: step from which nothing is legal; -1 for never.
        wrong_at: step from which the mask is too short.
        strict: whether it refuses actions that are not legal.
    """

    def __init__(self, where="observation", joined=True, stuck_at=-1, wrong_at=-1, strict=True):
        self.strict = strict
        self.where, self.joined, self.stuck_at, self.wrong_at = where, joined, stuck_at, wrong_at
        self.action_space = spaces.MultiDiscrete([3, 2], start=[1, 0])
        self.observation_space = spaces.Box(-1, 1, (2,), np.float32)
        if where == "observation":
            shown = spaces.MultiBinary(5)
            if not joined:
                shown = spaces.Tuple([spaces.MultiBinary(3), spaces.MultiBinary(2)])
            both = {"action_mask": shown, "observation": self.observation_space}
            self.observation_space = spaces.Dict(both)
        if where == "method":
            self.action_masks = self._given

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.length = 0, int(self.np_random.integers(3, 30))
        self._draw()
        return self._seen(), self._info()

    def step(self, action):
        legal = self.legal[[action[0] - 1, 3 + action[1]]].all()
        assert legal or not self.strict, (action, self.legal)
        self.number += 1
        self._draw()
        over = self.number == self.length
        return self._seen(), float(action[0]), over, False, {} if over else self._info()

    def _draw(self):
        self.legal = (self.np_random.random(5) < 0.4).astype(np.int8)
        self.legal[self.np_random.integers(3)] = 1
        self.legal[3 + self.np_random.integers(2)] = 1
        if 0 <= self.stuck_at <= self.number:
            self.legal[3:] = 0

    def _given(self):
        legal = self.legal[:4] if 0 <= self.wrong_at <= self.number else self.legal
        return legal.copy() if self.joined else (legal[:3].copy(), legal[3:].copy())

    def _seen(self):
        seen = np.full(2, self.number / 30, np.float32)
        if self.where == "observation":
            return {"observation": seen, "action_mask": self._given()}
        return seen

    def _info(self):
        return {"action_mask": self._given()} if self.where == "info" else {}


class Doors(SyncVectorEnv):
    def __init__(self, num_envs, max_episode_steps=None, **kwargs):
        made = [lambda: Door(**kwargs)] * num_envs
        super().__init__(made, autoreset_mode=AutoresetMode.DISABLED)
        if kwargs.get("where") == "method":
            self.action_masks = lambda: np.stack(self.call("action_masks"))


gymnasium.register("GamutDoor-v0", Door)
gymnasium.register("GamutDoors-v0", Door, vector_entry_point=Doors)


def bridge_of(*, id_="GamutDoor-v0", options=(), **kwargs):
    where = kwargs.get("where", "observation")
    given = {"masks": "info"} if where == "info" else {}
    return GymnasiumBridge(id=id_, kwargs=kwargs, **{**given, **dict(options)})


def player_of(bridge, folder, *, width=1, restarts=0):
    spec = bridge.spec
    task = Task("t", "", spec.state_space, GameReward())
    host = HostConfig(isolation="in_process", restarts=restarts, backoff_s=0)
    pool = Pool(bridge, folder, 1, width, host)
    policy = RandomPolicy().build(spec, task, seed=0)
    return Player(pool, task, policy, PlayOptions(8, None, retries=0))


def play(player, bridge, episodes):
    state = bridge.spec.state_space.state
    player.offer(Start(state(n), n, n) for n in range(episodes))
    fragments = []
    try:
        while (fragment := player.next_fragment()) is not None:
            fragments.append(fragment)
    except NothingLegalError as error:
        return fragments, error
    finally:
        player.close()
    return fragments, None


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("where", ["observation", "method", "info"])
def test_a_mask_is_found_in_each_of_the_three_habits(where, joined, tmp_path):
    bridge = bridge_of(where=where, joined=joined)
    assert sorted(bridge.spec.observation_space) == ["mask/action", "observation"]
    assert bridge.spec.observation_space["mask/action"] == spaces.MultiBinary(5)
    fragments, error = play(player_of(bridge, tmp_path, width=3), bridge, 12)
    assert error is None
    assert sum(len(f.results) for f in fragments) == 12  # Door refuses what is not legal
    assert not any(f.losses for f in fragments)


def test_it_is_a_bridge(tmp_path):
    check_bridge(bridge_of(where="info", strict=False), steps=30).raise_if_failed()


@pytest.mark.parametrize(
    ("where", "joined"), [("observation", 1), ("method", 1), ("info", 1), ("info", 0)]
)
def test_a_vector_environment_has_the_masks_of_the_single_games(where, joined, tmp_path):
    frames = []
    for width in (FEWEST, 1):
        bridge = bridge_of(id_="GamutDoors-v0", where=where, joined=bool(joined))
        instance = bridge.launch(Path(), [], width=width, timeout_s=60)
        assert isinstance(instance, VectorInstance) == (width == FEWEST)
        state = bridge.spec.state_space.state
        found = [instance.reset(range(width), [Start(state(7), 0)] * width, timeout_s=9).take([0])]
        for _ in range(2):
            mask = found[-1].observations["mask/action"][0]
            chosen = [1 + mask[:3].argmax(), mask[3:].argmax()]
            actions = {"action": np.array([chosen] * width, np.int64)}
            found.append(instance.step(actions, timeout_s=9).take([0]))
        instance.close()
        frames.append(found)
    for one, other in zip(*frames, strict=True):
        np.testing.assert_array_equal(
            one.observations["mask/action"], other.observations["mask/action"]
        )
        assert one.observations["mask/action"].any()


def test_what_it_is_said_to_be_and_is_not_is_refused():
    with pytest.raises(ConfigError, match=r"masks=method: the game has no method action_masks\(\)"):
        bridge_of(where="observation", options={"masks": "method"}).spec  # noqa: B018
    with pytest.raises(ConfigError, match="masks=observation: the game has no observation"):
        bridge_of(where="method", options={"masks": "observation"}).spec  # noqa: B018


def test_a_mask_in_the_observation_of_another_shape_is_refused_before_launch():
    class Wrong(Door):
        def __init__(self):
            super().__init__()
            self.observation_space["action_mask"] = spaces.MultiBinary(4)

    gymnasium.register("GamutWrongDoor-v0", Wrong)
    try:
        with pytest.raises(SpaceError, match=r"'action_mask', MultiBinary\(4\).*masks=none"):
            GymnasiumBridge(id="GamutWrongDoor-v0").spec  # noqa: B018
        assert (
            "action_mask"
            in GymnasiumBridge(id="GamutWrongDoor-v0", masks="none").spec.observation_space.spaces
        )
    finally:
        del gymnasium.registry["GamutWrongDoor-v0"]


@pytest.mark.parametrize("where", ["method", "info"])
def test_a_mask_of_another_shape_loses_the_episode_by_name(where):
    bridge = bridge_of(where=where, wrong_at=1)
    instance = bridge.launch(Path(), [], width=1, timeout_s=60)
    frame = instance.reset([0], [Start(bridge.spec.state_space.state(0), 0)], timeout_s=9)
    mask = frame.observations["mask/action"][0]
    chosen = np.array([[1 + mask[:3].argmax(), mask[3:].argmax()]], np.int64)
    with pytest.raises(GameCrashed, match=r"step of slot 0.*the mask of 'action'.*\[5\].*\[4\]"):
        instance.step({"action": chosen}, timeout_s=9)
    instance.close()


def test_an_info_without_a_mask_is_refused_in_the_first_frame():
    bridge = bridge_of(where="observation", options={"masks": "info"})
    instance = bridge.launch(Path(), [], width=1, timeout_s=60)
    with pytest.raises(GameCrashed, match=r"reset of slot 0.*the info has no 'action_mask'"):
        instance.reset([0], [Start(bridge.spec.state_space.state(0), 0)], timeout_s=9)
    instance.close()


def test_where_nothing_is_legal_the_run_ends_and_keeps_what_was_played(tmp_path):
    bridge = bridge_of(where="method", stuck_at=6)
    fragments, error = play(player_of(bridge, tmp_path, width=2), bridge, 40)
    said = str(error)
    assert "the mask 'mask/action' allows none of 2 values in choice 1 of 2, in step 6" in said
    assert "of slot" in said
    # Every step that was played before is in a fragment, with the episodes that had ended.
    assert sum(int(f.valid.sum()) for f in fragments) >= 12


def test_where_nothing_is_legal_at_first_nothing_is_played(tmp_path):
    bridge = bridge_of(where="info", stuck_at=0)
    fragments, error = play(player_of(bridge, tmp_path), bridge, 4)
    assert "in step 0 of slot 0 of instance 0" in str(error)
    assert not sum(int(f.valid.sum()) for f in fragments)


@pytest.mark.parametrize("width", [1, FEWEST])
def test_a_mask_in_the_info_that_masks_nothing_is_told_once(width, caplog):
    bridge = bridge_of(id_="GamutDoors-v0", where="info", options={"masks": "auto"})
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            instance = bridge.launch(Path(), [], width=width, timeout_s=60)
            instance.reset([0], [Start(bridge.spec.state_space.state(0), 0)], timeout_s=9)
            instance.close()
    told = [r.getMessage() for r in caplog.records if "bridge.masks=info" in r.getMessage()]
    assert len(told) == 1


def test_an_observation_that_looks_like_a_mask_is_told_at_launch(caplog):
    bridge = bridge_of(where="observation", options={"masks": "none"})
    task = Task("t", "", bridge.spec.state_space, GameReward())
    plan = HostPlan(bridge=bridge, task=task, policy=RandomPolicy(), instances=1, width=1)
    hosting._warn_of_mask.cache_clear()
    with caplog.at_level(logging.WARNING):
        log_launch(plan, 0)
        log_launch(plan, 0)  # as for a validation
    [told] = [r.getMessage() for r in caplog.records if "looks like a mask" in r.getMessage()]
    assert "the observation 'action_mask' of GamutDoor-v0" in told
    assert "name it 'mask/action'" in told
