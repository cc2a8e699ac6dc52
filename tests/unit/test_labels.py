"""Names of actions: what fits a space, and what an action reads like."""

import numpy as np
import pytest
from gymnasium import spaces

from rollout.api import BridgeSpec, Factor, StateSpace
from rollout.api.spaces import describe_action
from rollout.errors import ContractError

SPACE = spaces.Dict(
    {
        "keys": spaces.MultiBinary(3),
        "camera": spaces.MultiDiscrete([3, 3], start=[-1, 0]),
        "move": spaces.Discrete(2, start=5),
        "force": spaces.Box(-1, 1, (2,)),
    }
)
LABELS = {
    "keys": ("attack", "back", "forward"),
    "camera": ("pitch", "yaw"),
    "camera/yaw": ("-10", "0", "10"),
    "move": ("stay", "go"),
}
ROW = {
    "keys": np.array([1, 0, 1], np.int8),
    "camera": np.array([-1, 2]),
    "move": np.int64(6),
    "force": np.array([0.5, -1.0], np.float32),
}


def make_spec(labels):
    return BridgeSpec(
        "game",
        "1",
        spaces.Dict({}),
        SPACE,
        StateSpace((Factor("seed", range(10)),)),
        action_labels=labels,
    )


def test_an_action_is_in_words():
    said = describe_action(SPACE, LABELS, ROW)
    assert said == "attack+forward  pitch -1 yaw 10  go  force [0.5 -1]"
    nothing = {"keys": np.zeros(3, np.int8)}
    assert describe_action(SPACE, LABELS, nothing) == "nothing"


def test_without_labels_there_are_numbers():
    only = spaces.Dict({"move": spaces.Discrete(2)})
    assert describe_action(only, {}, {"move": np.int64(1)}) == "1"
    assert describe_action(SPACE, {}, {"move": 5, "keys": ROW["keys"]}) == "keys [1 0 1]  move 5"


def test_labels_that_fit_are_taken():
    assert make_spec(LABELS).action_labels == LABELS
    assert make_spec({}).action_labels == {}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"keys": ("attack", "back")}, "expected 3 names for 'keys', got 2"),
        ({"keys": "abc"}, "expected 3 names for 'keys', got 'abc'"),
        ({"kyes": ("a", "b", "c")}, "no names can be given for 'kyes'; valid: .*keys"),
        ({"force": ("a", "b")}, "no names can be given for 'force'"),
        ({"camera/yaw": ("a", "b", "c")}, "no names can be given for 'camera/yaw'"),
        ({"camera": ("pitch", "yaw"), "camera/yaw": ("a",)}, "expected 3 names for 'camera/yaw'"),
        ({"move": ("stay", "go", "run")}, "expected 2 names for 'move', got 3"),
    ],
)
def test_labels_that_do_not_fit_break_the_contract(labels, message):
    with pytest.raises(ContractError, match=message):
        make_spec(labels)
