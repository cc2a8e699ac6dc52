"""Actions as text: what is read, what is refused, and that nothing is guessed."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.spaces import NEW, RESUME
from bridges.stardojo.bridge import StardojoBridge
from bridges.stardojo.skills import CALLS
from policies.vlm import VlmPolicy
from policies.vlm.answers import Reader
from policies.vlm.options import History
from rollout.api import AnyText, BridgeSpec, check_columns
from rollout.config import BridgeConfig
from rollout.errors import ConfigError
from rollout.models.grammar import Grammar, UnusableAnswerError, columns_of
from rollout.models.sections import Endpoint
from rollout.tasks import bridge_and_task
from rollout.testing.fakes import FakeBridge


def spec_of(actions, labels=None):
    return BridgeSpec(
        name="game",
        version="1",
        observation_space=spaces.Dict({"x": spaces.Discrete(2)}),
        action_space=spaces.Dict(actions),
        state_space=FakeBridge().spec.state_space,
        action_labels=labels or {},
    )


MOVES = spec_of({"action": spaces.Discrete(3)}, {"action": ("noop", "turn left", "go")})
KEYS = spec_of(
    {
        "buttons": spaces.MultiBinary(3),
        "camera": spaces.MultiDiscrete([3, 3]),
        "speed": spaces.Box(-1.0, 1.0, (2,), np.float32),
        "say": spaces.Text(10, min_length=0),
    },
    {
        "buttons": ("forward", "jump", "attack"),
        "camera": ("pitch", "yaw"),
        "camera/pitch": ("-10", "0", "10"),
        "camera/yaw": ("-10", "0", "10"),
    },
)


NUMBERED = spec_of({"action": spaces.Discrete(3, start=4)})


@pytest.mark.parametrize(
    ("text", "value"), [("turn left", 1), ("  Turn   LEFT ", 1), ('"go"', 2), ("noop", 0)]
)
def test_a_name_is_an_action(text, value):
    assert Grammar(MOVES).parse(text) == {"action": value}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("turn", "unknown"),
        ("turn left and go", "unknown"),
        ("go.", "unknown"),
        ("1", "unknown"),
        (" ", "empty"),
    ],
)
def test_anything_else_is_not(text, code):
    with pytest.raises(UnusableAnswerError) as told:
        Grammar(MOVES).parse(text)
    assert told.value.code == code


def test_without_names_it_is_a_number_of_the_space():
    grammar = Grammar(spec_of({"action": spaces.Discrete(3, start=4)}))
    assert grammar.parse("5") == {"action": 5}
    for text, code in (("7", "out_of_range"), ("3", "out_of_range"), ("4.5", "malformed")):
        with pytest.raises(UnusableAnswerError) as told:
            grammar.parse(text)
        assert told.value.code == code


def test_several_columns_are_an_object_in_which_idle_ones_may_be_missing():
    row = Grammar(KEYS).parse('{"buttons": ["Jump", "forward"], "camera": {"yaw": "10"}}')
    assert row["buttons"].tolist() == [1, 1, 0]
    assert row["camera"].tolist() == [1, 2]
    assert row["speed"].tolist() == [0, 0]
    assert row["say"] == ""


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ('{"buttons": ["fly"]}', "unknown", "fly"),
        ('{"button": ["jump"]}', "unknown", 'did you mean "buttons"'),
        ('{"speed": [0, 2]}', "out_of_range", "from -1 to 1"),
        ('{"speed": [0]}', "malformed", "shape"),
        ('{"speed": [0, NaN]}', "malformed", "shape"),
        ('{"say": "far too long for it"}', "out_of_range", "10 characters"),
        ('{"camera": {"roll": "0"}}', "unknown", "roll"),
        ("[1, 2]", "malformed", "JSON object"),
        ("jump", "malformed", "JSON"),
    ],
)
def test_a_wrong_part_is_named(text, code, says):
    with pytest.raises(UnusableAnswerError) as told:
        Grammar(KEYS).parse(text)
    assert told.value.code == code
    assert says in told.value.problem


PROGRAMS = spec_of({"code": AnyText(20, min_length=0, charset="ab")})


@given(st.text(max_size=30))
def test_a_program_holds_any_character_and_one_too_long_is_unusable(program):
    text = json.dumps({"code": program})
    if len(program) <= 20:
        assert Grammar(PROGRAMS).parse(text) == {"code": program}
        return
    with pytest.raises(UnusableAnswerError, match=f"it has {len(program)}") as told:
        Grammar(PROGRAMS).parse(text)
    assert told.value.code == "out_of_range"


@pytest.mark.parametrize("spec", [MOVES, KEYS])
def test_random_actions_and_nothing_are_in_the_space(spec):
    grammar = Grammar(spec)
    rows = [grammar.random(np.random.default_rng(seed)) for seed in range(20)]
    rows.append(grammar.noop)
    check_columns(spec.action_space, columns_of(spec.action_space, rows), (21,))


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=60), st.sampled_from([MOVES, KEYS]))
def test_any_text_is_an_action_or_unusable(text, spec):
    try:
        row = Grammar(spec).parse(text)
    except UnusableAnswerError:
        return
    check_columns(spec.action_space, columns_of(spec.action_space, [row]), (1,))


# Answers -----------------------------------------------------------------------------------------


def read(form, text, *, tools=(), finish="stop", spec=MOVES):
    reader = Reader(form, Grammar(spec), {"thought": "why"})
    return reader.read(text, list(tools), finish)


def test_tags():
    answer = read("tags", "I see.\n<thought>a wall</thought>\n<action>\ngo\n</action> done")
    assert (answer.row, answer.action, answer.fields) == (
        {"action": 2},
        "go",
        {"thought": "a wall"},
    )


@pytest.mark.parametrize(
    ("text", "finish", "code"),
    [
        ("I would go.", "stop", "no_block"),
        ("<action>go</action> or <action>noop</action>", "stop", "two_blocks"),
        ("<action>rightup</action> so I go", "stop", "unknown"),
        ("<action>go</action>", "length", "cut"),
        ("<action>go</action>", "content_filter", "refused"),
        ("  ", "stop", "empty"),
    ],
)
def test_an_answer_is_never_searched_for_a_move(text, finish, code):
    with pytest.raises(UnusableAnswerError) as told:
        read("tags", text, finish=finish)
    assert told.value.code == code


def test_json_and_tool():
    data = json.dumps({"thought": "w", "action": "go"})
    for answer in (
        read("json", data),
        read("json", f"```json\n{data}\n```"),
        read("tool", "", tools=[("act", data)]),
    ):
        assert (answer.row, answer.fields) == ({"action": 2}, {"thought": "w"})
    keys = json.dumps({"thought": "w", "action": {"buttons": ["jump"]}})
    assert read("json", keys, spec=KEYS).row["buttons"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("form", "text", "tools", "code"),
    [
        ("json", "so: {}", (), "malformed"),
        ("json", "{}", (), "no_block"),
        ("tool", '{"action": "go"}', (), "no_block"),
        ("tool", "", [("act", "{}"), ("act", "{}")], "two_blocks"),
        ("tool", "", [("move", "{}")], "no_block"),
    ],
)
def test_wrong_objects(form, text, tools, code):
    with pytest.raises(UnusableAnswerError) as told:
        read(form, text, tools=tools)
    assert told.value.code == code


@pytest.mark.parametrize("spec", [MOVES, KEYS])
@pytest.mark.parametrize("form", ["tags", "json"])
def test_what_is_written_for_the_history_is_read_again(spec, form):
    reader = Reader(form, Grammar(spec), {"thought": "why"})
    action = "turn left" if spec is MOVES else '{"buttons": ["jump"]}'
    answer = reader.read(reader.write({"thought": "x"}, action), [], "stop")
    again = columns_of(spec.action_space, [answer.row])
    first = columns_of(spec.action_space, [Grammar(spec).parse(action)])
    assert all((again[key] == first[key]).all() for key in first)
    assert answer.fields == {"thought": "x"}


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**31), st.sampled_from([MOVES, KEYS, NUMBERED]))
def test_an_action_that_is_written_is_read_as_itself(seed, spec):
    grammar = Grammar(spec)
    row = grammar.random(np.random.default_rng(seed))
    if "say" in row:
        row["say"] = "hi"[: seed % 3]
    read = grammar.parse(grammar.write(row))
    assert row.keys() == read.keys()
    assert all(np.array_equal(row[key], read[key]) for key in row)


def test_columns_that_only_some_actions_use_may_be_left_out_and_lists_are_told_once():
    bridge = StardojoBridge(layout="calls", skills=2)
    grammar = Grammar(bridge.spec)
    row = grammar.parse('{"name": "move", "x": 3, "y": -1}')
    assert (row["name"], row["x"], row["y"], row["then/name"]) == (CALLS.index("move"), 3, -1, 0)
    assert grammar.write(row) == '{"name": "move", "x": 3, "y": -1}'
    assert grammar.noop["name"] == CALLS.index("wait")
    assert grammar.description.count('"Chest"') == 1
    with pytest.raises(UnusableAnswerError, match="no action"):
        grammar.parse('{"name": "move", "direction": "upwards"}')


def test_a_program_may_have_its_lines_as_they_are_and_resuming_is_the_default():
    grammar = Grammar(MineflayerBridge(actions="code").spec)
    row = grammar.parse('{"kind": "new", "code": "await f();\nawait g();"}')
    assert (row["kind"], row["code"]) == (NEW, "await f();\nawait g();")
    assert grammar.parse('{"kind": "resume"}') == grammar.parse("{}") == grammar.noop
    assert grammar.noop["kind"] == RESUME


@pytest.mark.parametrize("prompt", ["act", "think", "brief"])
def test_a_prompt_that_shows_nothing_of_the_observation_is_refused(prompt):
    name, task = "minigrid_fourrooms", {"name": "gymnasium"}
    options = {
        "endpoint": Endpoint(url="http://127.0.0.1:9/v1"),
        "model": "m",
        "fallback": "random",
    }
    _, blind, goal = bridge_and_task(BridgeConfig.model_validate(task), name)
    with pytest.raises(ConfigError, match="would show nothing that MiniGrid-FourRooms-v0 observes"):
        VlmPolicy(**options, prompt=prompt).build(blind.spec, goal, seed=0)
    seeing = BridgeConfig.model_validate({**task, "render": True})
    _, drawn, goal = bridge_and_task(seeing, name)
    VlmPolicy(**options, prompt=prompt, history=History(images=1)).build(drawn.spec, goal, seed=0)
