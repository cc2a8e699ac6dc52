"""Random, scripted and callable policies."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from policies.callable import CallablePolicy
from policies.random import BLOCK_ROWS, RandomPolicy
from policies.scripted import ScriptedPolicy
from rollout.api import AnyText, Start, State, check_columns
from rollout.errors import ConfigError, OutOfTurnError

BUTTON = spaces.Dict({"action": spaces.Discrete(5, start=2)})
PAD = spaces.Dict(
    {
        "stick": spaces.Box(-1, 1, (2,), np.float32),
        "buttons": spaces.MultiBinary(3),
        "dial": spaces.MultiDiscrete([3, 7]),
        "say": spaces.Text(5),
    }
)
OBS = np.zeros((64, 3), np.float32)


def build(recipe, space=BUTTON, seed=0):
    return recipe.build(
        SimpleNamespace(action_space=space, observation_space=spaces.Dict()), None, seed=seed
    )


def act(policy, rows, memory=None, details=None):
    observations = {"observation": OBS[:rows]} if rows else {}
    return policy.act(observations, memory or {}, details=details, explore=True)


def start(episode=0, state=0, seed=0):
    return Start(State(state, {"seed": state}), seed, episode)


# Functions that test_callable asks for by name.
def bare(observations):
    return np.full(len(observations["observation"]), 3, np.int32)


def full(observations, details, explore):
    return {"action": [4 if explore else 2 for _ in details]}


def too_few(observations):
    return np.array([3])


def fractions(observations):
    return np.full(len(observations["observation"]), 2.5)


def wrong_name(observations):
    return {"button": bare(observations)}


def four(observations, details, explore, more):
    return bare(observations)


async def alone(observations):
    return bare(observations)


NOT_A_FUNCTION = 3


@pytest.mark.parametrize("space", [BUTTON, PAD])
def test_random_actions_are_actions(space):
    policy = build(RandomPolicy(), space)
    for rows in 1, 7, 64:
        decision = act(policy, rows)
        check_columns(space, decision.actions, (rows,))
        for row in range(rows):
            assert {key: column[row] for key, column in decision.actions.items()} in space


def test_random_is_one_stream_however_it_is_batched():
    def stream(space, batches):
        policy = build(RandomPolicy(), space, seed=3)
        drawn = [act(policy, rows).actions for rows in batches]
        return {key: np.concatenate([d[key] for d in drawn]) for key in space.spaces}

    whole = stream(PAD, [64, 64, 64])
    parts = stream(PAD, [1, 63, 40, 24, 64])
    assert all(np.array_equal(whole[key], parts[key]) for key in PAD.spaces)
    beyond = BLOCK_ROWS // 64 + 3  # across a block of what is drawn ahead
    one, other = stream(BUTTON, [64] * beyond), stream(BUTTON, [1, 63] + [64] * (beyond - 1))
    assert np.array_equal(one["action"], other["action"])
    assert set(one["action"].tolist()) == {2, 3, 4, 5, 6}
    assert abs(one["action"].mean() - 4) < 0.1


def test_random_seeds_and_kept_actions():
    one, same, other = (build(RandomPolicy(), seed=s) for s in (1, 1, 2))
    drawn = [act(policy, 64).actions["action"] for policy in (one, same, other)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    assert not np.array_equal(
        drawn[0], act(build(RandomPolicy(seed=5), seed=1), 64).actions["action"]
    )
    kept = drawn[0].copy()
    for _ in range(2 * BLOCK_ROWS // 64):
        act(one, 64)
    assert np.array_equal(drawn[0], kept)


def test_random_plays_games_of_text_alone():
    assert act(build(RandomPolicy()), 0, details=[{}, {}]).actions["action"].shape == (2,)


def test_random_refuses_what_it_cannot_draw():
    with pytest.raises(ConfigError, match="at least one column"):
        build(RandomPolicy(), spaces.Dict({}))


SCRIPTS = {
    0: {"action": [2, 3, 4]},
    1: {"action": [6]},
    (17, 42): {"action": [5, 5]},
}


def run(policy, starts, steps):
    memory = policy.initial_memory(starts)
    played = []
    for _ in range(steps):
        decision = act(policy, len(starts), memory)
        memory = decision.memory
        played.append(decision.actions["action"].tolist())
    return played


def test_scripts_are_replayed_exactly():
    policy = build(ScriptedPolicy(SCRIPTS, after="repeat_last"))
    starts = [start(0), start(1), start(1, state=17, seed=42)]
    assert run(policy, starts, 4) == [[2, 6, 5], [3, 6, 5], [4, 6, 5], [4, 6, 5]]
    assert act(policy, 1, policy.initial_memory([start(0)])).actions["action"].dtype == np.int64


def test_scripts_do_not_depend_on_batching():
    rng = np.random.default_rng(0)
    scripts = {n: {"action": rng.integers(2, 7, 10)} for n in range(6)}
    policy = build(ScriptedPolicy(scripts))
    memory = policy.initial_memory([start(n) for n in range(6)])
    played = {n: [] for n in range(6)}
    while any(len(actions) < 10 for actions in played.values()):
        ready = [n for n in range(6) if len(played[n]) < 10]
        batch = rng.permutation(ready)[: rng.integers(1, len(ready) + 1)]
        decision = act(policy, len(batch), {key: value[batch] for key, value in memory.items()})
        for key, value in decision.memory.items():
            memory[key][batch] = value
        for n, action in zip(batch, decision.actions["action"], strict=True):
            played[n].append(action)
    assert all(np.array_equal(played[n], scripts[n]["action"]) for n in range(6))


def test_after_the_script():
    scripts = {"action": [3]}
    assert run(build(ScriptedPolicy(scripts, after="repeat_last")), [start(9)], 2) == [[3], [3]]
    assert run(build(ScriptedPolicy(scripts, after="noop")), [start(9)], 2) == [[3], [2]]
    with pytest.raises(OutOfTurnError, match=r"every episode has 1 actions.*set after"):
        run(build(ScriptedPolicy(scripts)), [start(9)], 2)
    with pytest.raises(ConfigError, match=r"no script for episode 9 \(state 0, seed 0\)"):
        build(ScriptedPolicy(SCRIPTS)).initial_memory([start(9)])


def test_nothing_is_the_zero_of_every_column():
    one = {
        "stick": np.ones((1, 2), np.float32),
        "buttons": [[1, 1, 1]],
        "dial": [[2, 6]],
        "say": ["hello"],
    }
    policy = build(ScriptedPolicy({0: one}, after="noop"), PAD)
    memory = policy.initial_memory([start()])
    first = act(policy, 1, memory)
    check_columns(PAD, first.actions, (1,))
    assert first.actions["say"].tolist() == ["hello"]
    second = act(policy, 1, first.memory).actions
    assert {key: column.tolist() for key, column in second.items()} == {
        "stick": [[0, 0]],
        "buttons": [[0, 0, 0]],
        "dial": [[0, 0]],
        "say": [""],
    }


def test_scripts_from_files(tmp_path):
    (tmp_path / "many.json").write_text(
        json.dumps({"0": {"action": [2, 3]}, "17:42": {"action": [4, 5]}})
    )
    (tmp_path / "one.json").write_text(json.dumps([2, 3]))
    np.savez(tmp_path / "many.npz", **{"0/action": np.array([2, 3]), "17:42/action": [4, 5]})
    np.savez(tmp_path / "one.npz", action=np.array([2, 3], np.int32))
    np.save(tmp_path / "one.npy", np.array([2, 3]))
    for name in "many.json", "many.npz":
        policy = build(ScriptedPolicy(str(tmp_path / name)))
        assert run(policy, [start(0), start(0, 17, 42)], 2) == [[2, 4], [3, 5]]
    for name in "one.json", "one.npz", "one.npy":
        assert run(build(ScriptedPolicy(str(tmp_path / name))), [start(7)], 2) == [[2], [3]]


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ("nowhere.json", "cannot be read"),
        ("actions.txt", r"expected a file .json, .npz, .npy or .js"),
        ({0: {"button": [2]}}, r"expected the columns \['action'\], got \['button'\]"),
        ({0: {"action": [[2]]}}, r"expected the shape \[T, \[\]\]"),
        ({0: {"action": [2.5]}}, "values that do not fit"),
        ({0: {"action": ["jump"]}}, "values that do not fit"),
        ({0: {"action": [7]}}, "got 7"),
        ({0: {"action": []}}, "one length above 0"),
        ({"first": {"action": [2]}}, "got the key 'first'"),
    ],
)
def test_scripts_that_do_not_fit(actions, text):
    with pytest.raises(ConfigError, match=text):
        build(ScriptedPolicy(actions))


TEXT = spaces.Text(40, charset="await bot;\n")
PROGRAMS = spaces.Dict({"kind": spaces.Discrete(2), "code": TEXT})


def test_a_program_is_started_once_and_its_error_is_logged(tmp_path, caplog):
    (tmp_path / "p.js").write_text("await bot;\n")
    policy = build(ScriptedPolicy(str(tmp_path / "p.js")), PROGRAMS)
    failed = {"error_type": "ActionError", "error_line": 1, "error_message": "too far"}
    details = [{"code_info": {"code_error": error}} for error in ({}, failed)]
    first = act(policy, 2, policy.initial_memory([start(3), start(4)]), details)
    check_columns(PROGRAMS, first.actions, (2,))
    assert first.actions["kind"].tolist() == [1, 1]
    assert first.actions["code"].tolist() == ["await bot;\n"] * 2
    assert not caplog.records  # of the episode before
    second = act(policy, 2, first.memory, details)
    assert second.actions["kind"].tolist() == [0, 0]
    assert second.actions["code"].tolist() == ["", ""]
    assert "episode 4:" in caplog.text
    assert "ended with ActionError in line 1: too far" in caplog.text
    assert "episode 3:" not in caplog.text


def test_a_program_may_hold_any_character_where_the_game_takes_it(tmp_path):
    (tmp_path / "p.js").write_text("// an em dash \u2014\n", encoding="utf-8")
    space = spaces.Dict({"kind": spaces.Discrete(2), "code": AnyText(40, charset="ab")})
    policy = build(ScriptedPolicy(str(tmp_path / "p.js")), space)
    actions = act(policy, 1, policy.initial_memory([start(3)])).actions
    assert actions["code"].tolist() == ["// an em dash \u2014\n"]


@pytest.mark.parametrize(
    ("text", "space", "why"),
    [
        ("bot", BUTTON, r"bridge\.actions=code; the actions of this game are \['action'\]"),
        (None, PROGRAMS, "cannot be read"),
        (" ", PROGRAMS, "a program of 1 to 40 characters, got 1"),
        ("bot" * 20, PROGRAMS, "got 60"),
        ("bot\n\u00e4", PROGRAMS, "line 2: expected the characters of the game, got '\u00e4'"),
    ],
)
def test_programs_that_cannot_be_played(tmp_path, text, space, why):
    if text is not None:
        (tmp_path / "p.js").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=why):
        build(ScriptedPolicy(str(tmp_path / "p.js")), space)


def test_script_options():
    with pytest.raises(ConfigError, match="after must be one of"):
        ScriptedPolicy(SCRIPTS, after="loop")
    with pytest.raises(ConfigError, match="must name a file"):
        ScriptedPolicy()


def target(name):
    return CallablePolicy(function=f"{__name__}:{name}")


def test_callable():
    decision = act(build(target("bare")), 3)
    assert decision.actions["action"].tolist() == [3, 3, 3]
    assert decision.actions["action"].dtype == np.int64
    decision = act(build(target("full")), 2, details=[{}, {}])
    assert decision.actions["action"].tolist() == [4, 4]
    assert pickle.loads(pickle.dumps(target("bare"))) == target("bare")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bar", "Nearest: bare"),
        ("NOT_A_FUNCTION", "expected a function, got int"),
        ("four", r"expected play\(observation, context\)"),
        ("alone", r"expected play\(observation, context\)"),
    ],
)
def test_functions_that_cannot_be_asked(name, text):
    with pytest.raises(ConfigError, match=text):
        build(target(name))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("too_few", r"shape \[1\]; expected \[3\]"),
        ("fractions", "as float64; expected int64"),
        ("wrong_name", r"columns \['button'\]; expected \['action'\]"),
    ],
)
def test_answers_that_are_no_actions(name, text):
    with pytest.raises(ConfigError, match=text):
        act(build(target(name)), 3)


def test_modules_that_do_not_exist():
    with pytest.raises(ConfigError, match="cannot be imported"):
        build(CallablePolicy(function="no_such_module:act"))
    for wrong in "", "module", ":act", "module:":
        with pytest.raises(ConfigError, match="'module:function'"):
            CallablePolicy(function=wrong)
    with pytest.raises(ConfigError, match="expected a mapping with the columns"):
        act(build(target("bare"), PAD), 3)
