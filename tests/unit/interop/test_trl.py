"""``rollout.interop.trl``: what a trainer sees of a game, without the trainer."""

import inspect

import numpy as np
import pytest
from transformers.utils import get_json_schema

from rollout.config import HostConfig
from rollout.errors import ConfigError, OutOfTurnError, UnknownNameError
from rollout.interop.failures import GameLost
from rollout.interop.trl import environment
from rollout.models.grammar import UnusableAnswerError
from rollout.testing.fakes import FakeBridge


@pytest.fixture
def make(request):
    def build(*arguments, **options):
        built = environment(*arguments, **options)
        request.addfinalizer(built.close)
        return built

    return build


def test_rewards_and_pictures_are_those_of_the_record(toy, make):
    made = make("toy", games=2, pictures=True)
    one, two = made(), made()
    rows = made.rows(3)
    returns, pictures = toy.record([(row["state"], row["seed"]) for row in rows])
    for row in rows:
        key = int(row["state"]), row["seed"]
        for env in (one, two):  # a group of GRPO: both play the same episode
            shown = [env.reset(**row)]
            shown += [env.act(action=toy.name(step)) for step in range(6)]
            seen = [np.asarray(blocks[1]["image"]) for blocks in shown]
            assert all(map(np.array_equal, seen, pictures[key]))
            assert env.get_reward() == returns[key]
            assert "The episode is over (terminated)." in shown[-1][0]["text"]
            with pytest.raises(OutOfTurnError, match="has ended"):
                env.act(action="stay")
    assert len(set(returns.values())) == 3


def test_resets_without_rows_are_the_same_in_every_environment(toy, make):
    made = make("toy", games=2)
    one, two = made(), made()
    starts = []
    for env in (one, two):
        for _ in range(2):
            assert isinstance(env.reset(prompt="any"), str)
            starts.append(env._game.last.start)
    assert starts[:2] == starts[2:]
    assert starts[0] != starts[1]


def test_the_tool_is_one_that_trl_reads(make):
    made = make(FakeBridge(), games=1)
    env = made()
    public = [n for n, _ in inspect.getmembers(type(env), inspect.isfunction) if n[0] != "_"]
    assert public == ["act", "get_reward", "reset"]
    schema = get_json_schema(env.act)["function"]
    assert schema["name"] == "act"
    number = {"type": "integer", "description": "action: a whole number from 0 to 4"}
    assert schema["parameters"]["properties"]["action"] == number
    assert schema["parameters"]["required"] == ["action"]


def test_names_lists_and_columns_that_may_be_left_out(make):
    schema = get_json_schema(make("blockworld", "hunt_sheep", games=1)().act)["function"]
    parameters = schema["parameters"]
    assert parameters["properties"]["keys"]["items"]["enum"][:3] == ["attack", "back", "forward"]
    assert parameters["properties"]["camera"]["type"] == "object"
    assert "required" not in parameters


def test_a_wrong_action_is_told_and_changes_nothing(toy, make):
    env = make("toy", games=1)()
    env.reset(seed=1)
    before = env._game.last
    for wrong in ({"action": "jump"}, {"move": "left"}, {}):
        with pytest.raises(UnusableAnswerError):
            env.act(**wrong)
    assert env._game.last is before


def test_a_lost_game_has_no_reward(make):
    """TRL leaves rollouts without a reward out of the baseline and the loss."""
    host = HostConfig(isolation="subprocess", backoff_s=0)
    env = make(FakeBridge(exit_on_step=2), games=1, host=host)()
    env.reset(seed=1)
    env.act(action=0)
    assert isinstance(env.get_reward(), float)
    with pytest.raises(GameLost):
        env.act(action=0)
    assert env.get_reward() is None
    with pytest.raises(OutOfTurnError, match="no result"):
        env.act(action=0)
    env.reset(seed=1)
    assert env.get_reward() == 0.0


def test_a_reset_that_fails_has_no_reward(make):
    host = HostConfig(isolation="in_process", retries=0, backoff_s=0)
    env = make(FakeBridge(crash_on_reset=1), games=1, host=host)()
    assert env.get_reward() is None
    with pytest.raises(GameLost):
        env.reset(seed=1)
    assert env.get_reward() is None


def test_wrong_input(make):
    with pytest.raises(ConfigError, match="tyo"):
        make("tyo")
    made = make(FakeBridge(), games=1)
    made()
    with pytest.raises(ConfigError, match="set games="):
        made()
    with pytest.raises(UnknownNameError, match="split"):
        made.rows(1, split="tset")
