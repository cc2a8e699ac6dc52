"""A policy changes nothing that is recorded, and chooses only actions that exist."""

import sys
import types

import numpy as np
import pytest
from gymnasium import spaces

from policies.callable import CallablePolicy
from rollout.api import Decision, Start, Task
from rollout.config import HostConfig
from rollout.errors import PluginError, SpaceError
from rollout.host import Player, Pool
from rollout.host.policy_calls import ActionCheck
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator

ALL = np.ones(2, bool)


def brighten(observations):
    observations["image"] //= 2
    return np.zeros(len(observations["image"]), np.int64)


def leave_alone(observations):
    return np.zeros(len(observations["image"]), np.int64)


def scribble(observations, details, explore):
    if details is not None:
        for each in details:
            each["tick"] = "changed"
    return leave_alone(observations)


def choose_99(observations):
    return np.full(len(observations["image"]), 99, np.int64)


class Remembering:
    """Changes its memory in place."""

    version, extras = 0, {}

    def initial_memory(self, starts):
        return {"seen": np.zeros(len(starts), np.int64)}

    def act(self, observations, memory, *, details, explore):
        memory["seen"] += 1
        return Decision({"move": np.zeros(len(memory["seen"]), np.int64)}, memory)


def play(tmp_path, policy, *, instances=1, calls=1, bridge=None):
    """Plays an episode in each instance and returns the fragments."""
    bridge = bridge or FakeBridge(with_details=True, max_steps=3)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator())
    if not hasattr(policy, "act"):
        name = f"{__name__}:{policy.__name__}"
        policy = CallablePolicy(function=name).build(bridge.spec, task, seed=0)
    if calls > 1:
        policy.calls = calls
    player = Player(Pool(bridge, tmp_path, instances, 1, HostConfig()), task, policy)
    state = bridge.spec.state_space.state(0)
    player.offer([Start(state, seed, seed) for seed in range(instances)])
    found = []
    try:
        while (fragment := player.next_fragment()) is not None:
            found.append(fragment)
    finally:
        player.close()
    return found


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Lets policies find the functions here, however the tests were imported."""
    module = types.ModuleType(__name__)
    module.__dict__.update(globals())
    monkeypatch.setitem(sys.modules, __name__, module)


@pytest.mark.parametrize(("instances", "calls"), [(1, 1), (2, 1), (2, 2)])
def test_a_policy_cannot_write_into_its_observations(tmp_path, instances, calls):
    with pytest.raises(PluginError) as caught:
        play(tmp_path, brighten, instances=instances, calls=calls)
    said = str(caught.value)
    assert f"the policy {__name__}:brighten tried to write into an array that is read-only" in said
    assert f"{__file__}:" in said
    assert "write into a copy" in said
    assert "x /= 255" in said


@pytest.mark.parametrize(("instances", "calls"), [(1, 1), (2, 1), (2, 2)])
def test_what_it_does_to_the_details_is_not_recorded(tmp_path, instances, calls):
    def details(policy):
        found = play(tmp_path, policy, instances=instances, calls=calls)
        return {f.starts[0].episode: [f.details, f.final_details] for f in found}

    assert details(scribble) == details(leave_alone)


def test_memory_changed_in_place_is_recorded_as_it_was(tmp_path):
    (fragment,) = play(tmp_path, Remembering())
    assert fragment.memory["seen"].tolist() == [0]


@pytest.mark.parametrize(("instances", "calls"), [(1, 1), (2, 1), (2, 2)])
def test_an_action_that_does_not_exist_reaches_neither_game_nor_recording(
    tmp_path, instances, calls
):
    said = rf"the policy {__name__}:choose_99 chose 99 for 'move' in slot 0; expected .*Discrete"
    with pytest.raises(PluginError, match=said):
        play(tmp_path, choose_99, instances=instances, calls=calls)


SPACE = spaces.Dict(
    {
        "one": spaces.Discrete(3, start=-1),
        "many": spaces.MultiDiscrete([2, 5]),
        "bits": spaces.MultiBinary(2),
        "number": spaces.Box(-1.0, 1.0, (2,), np.float32),
        "free": spaces.Box(-np.inf, np.inf, (), np.float64),
        "byte": spaces.Box(3, 9, (), np.uint8),
        "text": spaces.Text(3),
    }
)


def legal(width):
    return {
        "one": np.full(width, -1, np.int64),
        "many": np.tile([1, 4], (width, 1)),
        "bits": np.ones((width, 2), np.int8),
        "number": np.tile(np.float32([-1, 1]), (width, 1)),
        "free": np.full(width, 1e300),
        "byte": np.full(width, 9, np.uint8),
        "text": np.array(["anything"] * width, object),
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("one", 2),
        ("one", -2),
        ("many", [2, 0]),
        ("many", [0, -1]),
        ("bits", [0, 2]),
        ("number", [0.0, 1.5]),
        ("number", [np.nan, 0.0]),
        ("free", np.nan),
        ("byte", 2),
    ],
)
@pytest.mark.parametrize("width", [1, 2])
def test_values_outside_of_a_space(key, value, width):
    check, actions = ActionCheck(SPACE, width, Remembering()), legal(width)
    check(actions, np.ones(width, bool))
    actions[key][-1] = value
    with pytest.raises(PluginError, match=rf"Remembering chose .* for '{key}' in slot {width - 1}"):
        check(actions, np.ones(width, bool))
    idle = np.ones(width, bool)
    idle[-1] = False
    check(actions, idle)  # the action of a slot without an episode does nothing
    check(legal(width), np.ones(width, bool))


def test_other_columns_in_a_later_step():
    check = ActionCheck(SPACE, 2, Remembering())
    for key, value in (("one", np.zeros(2)), ("bits", np.zeros(2, np.int8)), ("free", None)):
        with pytest.raises(SpaceError, match=key):
            check(legal(2) | {key: value}, ALL)
    with pytest.raises(SpaceError, match="missing"):
        check({}, ALL)
