"""Bridges of servers: what schemas become, and servers that fail."""

import base64
import json
import math
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from gymnasium import spaces
from websockets.sync.server import serve

from bridges.openenv import McpBridge, OpenenvBridge
from bridges.openenv.client import OpenenvSession, with_pictures
from bridges.openenv.columns import shape_of
from bridges.openenv.instance import ServedInstance
from rollout.api import Start, StateSpace
from rollout.api.state import Factor
from rollout.errors import ConfigError, GameCrashed, GameStartError, GameTimeout, OutOfTurnError
from rollout.models.observations import observation_values

ACTION = {
    "$defs": {"Way": {"enum": ["up", "down"], "type": "string"}},
    "properties": {
        "metadata": {"type": "object"},
        "type": {"const": "move", "type": "string"},
        "way": {"$ref": "#/$defs/Way"},
        "speed": {"type": "integer", "minimum": 1, "maximum": 3},
        "fast": {"type": "boolean", "default": True},
        "force": {"type": "number", "minimum": 0, "maximum": 2},
        "point": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        "say": {"type": "string", "maxLength": 9},
        "extra": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["way", "speed", "force", "point"],
}
RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (12, 10, 3), dtype=np.uint8)
PNG = base64.b64encode(cv2.imencode(".png", RGB[..., ::-1])[1].tobytes()).decode()
SEEN = {
    "properties": {
        "at": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        "count": {"type": "integer"},
        "won": {"type": "boolean"},
        "legal": {"type": "array", "items": {"type": "integer"}},
        "text": {"type": "string"},
        "file": {"type": "string"},
        "uri": {"type": "string"},
        "screen": {"type": "array"},
        "screen_shape": {"type": "array", "items": {"type": "integer"}},
        "nested": {"type": "array"},
        "later": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "done": {"type": "boolean"},
    }
}
FIRST = {
    "at": [0.5, 1],
    "count": 3,
    "won": False,
    "legal": [0, 2],
    "text": "hello",
    "file": PNG,
    "uri": f"data:image/png;base64,{PNG}",
    "screen": RGB.ravel().tolist(),
    "screen_shape": [12, 10, 3],
    "nested": RGB.tolist(),
    "later": None,
}


def test_actions_become_columns_and_the_data_that_the_server_takes():
    shape = shape_of(ACTION, SEEN, FIRST)
    leaves = shape.actions.spaces
    assert "metadata" not in leaves
    assert "type" not in leaves
    assert leaves["way"] == spaces.Discrete(2)
    assert shape.labels["way"] == ("up", "down")
    assert leaves["speed"] == spaces.Discrete(3, start=1)
    assert shape.defaults == {"fast": 1}
    row = {
        "way": 1,
        "speed": 3,
        "fast": 0,
        "force": 1.5,
        "point": [4, 5],
        "say": "",
        "extra": "7",
    }
    data = shape.action({key: np.array([value]) for key, value in row.items()})
    assert data == {
        "type": "move",
        "way": "down",
        "speed": 3,
        "fast": False,
        "force": 1.5,
        "point": [4, 5],
        "extra": 7,
    }
    assert json.loads(json.dumps(data)) == data
    with pytest.raises(ValueError, match="expected JSON"):
        shape.action({key: np.array([v]) for key, v in {**row, "extra": "{"}.items()})


def test_observations_become_columns_without_loss():
    shape = shape_of(ACTION, SEEN, FIRST)
    seen = shape.write(FIRST)
    for key in ("file", "uri", "screen", "nested"):
        assert np.array_equal(seen[key][0], RGB), key
    assert seen["at"].tolist() == [[0.5, 1.0]]
    assert (seen["count"][0], seen["won"][0], seen["text"][0]) == (3, 0, "hello")
    assert json.loads(seen["legal"][0]) == [0, 2]
    assert seen["later"][0] == ""
    assert shape.write({**FIRST, "later": 5})["later"][0] == "5"
    assert "done" not in shape.observations.spaces


def test_models_see_the_names_of_several_texts():
    shape = shape_of(ACTION, SEEN, FIRST)
    spec = SimpleNamespace(observation_space=shape.observations)
    text = observation_values(spec, shape.write(FIRST), 0, {})["text"].splitlines()
    assert "legal: [0, 2]" in text
    assert "hello" in text  # the column `text` is the text itself


@pytest.mark.parametrize(
    ("key", "value"),
    [("at", [1]), ("at", None), ("count", "x"), ("won", 7), ("file", "AAAA"), ("nested", [[1]])],
)
def test_an_observation_that_breaks_its_schema_is_a_crash(key, value):
    with pytest.raises(GameCrashed, match=f"observation '{key}'"):
        shape_of(ACTION, SEEN, FIRST).write({**FIRST, key: value})


def test_pictures_in_a_list_are_fields():
    picture = {"type": "image", "mimeType": "image/png", "name": "rgb", "data": PNG}
    found = with_pictures({"pictures": [picture], "text": "a", "empty": [], "metadata": {}})
    assert found == {"pictures/rgb": PNG, "text": "a", "empty": []}


def test_options_that_do_not_fit_are_refused():
    for make in (
        OpenenvBridge,
        lambda: OpenenvBridge(url="ws://localhost"),
        lambda: OpenenvBridge(url="http://localhost", command=("a",)),
        lambda: OpenenvBridge(url="http://localhost", schema={"actions": {}}),
        lambda: OpenenvBridge(url="http://localhost", splits="test"),
        McpBridge,
        lambda: McpBridge(url="http://localhost", command=("a",)),
    ):
        with pytest.raises(ConfigError):
            make()
    with pytest.raises(ConfigError, match="describes no actions"):
        shape_of({}, SEEN, FIRST)


OBSERVATION = {"type": "observation", "data": {"observation": {"n": 1}, "reward": 2, "done": False}}


NO_REWARDS = ("", "1", [], {}, [1.0], math.nan, -math.inf, 1e39, 10**400)
NO_FLAGS = ("false", "", [], {}, 2)


def seen(**data):
    return {**OBSERVATION, "data": {**OBSERVATION["data"], **data}}


def error(code):
    return {"type": "error", "data": {"code": code, "message": "why"}}


class _Server:
    """Stands for ``bridges.openenv.client.Server``."""

    def __init__(self, port):
        self.headers, self.url = {}, f"http://127.0.0.1:{port}"

    def why(self):
        return ""

    def close(self):
        pass


@contextmanager
def answering(answers):
    """A server that gives one answer for each type of message; a number closes the connection."""

    def talk(socket):
        for text in socket:
            answer = answers.get(json.loads(text)["type"], {"type": "state", "data": {}})
            if isinstance(answer, int):
                socket.close(answer, "gone")
                return
            if answer is not None:
                socket.send(answer if isinstance(answer, str) else json.dumps(answer))

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield _Server(server.socket.getsockname()[1])
        server.shutdown()
        thread.join(5)


START = Start(StateSpace((Factor("seed", range(9)),)).state(3), 0)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (1011, GameCrashed, "connection .* was lost in step.*gone"),
        (error("EXECUTION_ERROR"), GameCrashed, "EXECUTION_ERROR: why"),
        ("{", GameCrashed, "no JSON"),
        ("[]", GameCrashed, "answered step with"),
        ({"type": "observation", "data": {}}, GameCrashed, "without an observation"),
        (None, GameTimeout, "no answer to step within 0.2 s"),
        ({**OBSERVATION, "type": "state"}, GameCrashed, "without an observation"),
        *((seen(reward=each), GameCrashed, "finite number as the reward") for each in NO_REWARDS),
        *((seen(done=each), GameCrashed, "done: expected true or false") for each in NO_FLAGS),
        (seen(metadata="many"), GameCrashed, "metadata that are no object: 'many'"),
    ],
)
def test_a_server_that_fails_is_a_crash_with_the_reason(answer, kind, said):
    with answering({"reset": OBSERVATION, "step": answer}) as server:
        session = OpenenvSession(server, timeout_s=5)
        try:
            assert session.reset(START, timeout_s=5).reward == 2
            with pytest.raises(kind, match=said):
                session.step({}, timeout_s=0.2 if answer is None else 5)
        finally:
            session.close()


def test_a_server_without_a_free_session_is_waited_for_and_named():
    said = "opens no session: CAPACITY_REACHED: why"
    with (
        answering({"state": error("CAPACITY_REACHED")}) as server,
        pytest.raises(GameStartError, match=said),
    ):
        OpenenvSession(server, timeout_s=0.3)


@pytest.mark.parametrize("errors", [{"a": 1}, "many", [], [5], [{"loc": 3, "msg": "more"}]])
def test_an_action_that_is_refused_for_whatever_reason_is_told(errors):
    refused = error("VALIDATION_ERROR")
    refused["data"]["errors"] = errors
    with answering({"step": refused}) as server:
        session = OpenenvSession(server, timeout_s=5)
        try:
            assert session.step({}, timeout_s=5).error.startswith("why")
        finally:
            session.close()


def test_an_action_that_is_refused_changes_nothing_and_is_told():
    answers = {"reset": OBSERVATION, "step": error("VALIDATION_ERROR")}
    with answering(answers) as server:
        action = {"properties": {"a": {"type": "object"}}, "required": ["a"]}
        shape = shape_of(action, {"properties": {"n": {"type": "integer"}}}, {"n": 1})
        instance = ServedInstance("game", OpenenvSession(server, timeout_s=5), shape)
        try:
            with pytest.raises(OutOfTurnError):
                instance.step({"a": np.array(["{}"], object)}, timeout_s=5)
            instance.reset([0], [START], timeout_s=5)
            for number, text in enumerate(("{}", "{"), start=1):
                frame = instance.step({"a": np.array([text], object)}, timeout_s=5)
                assert frame.observations["n"].tolist() == [1]
                assert frame.signals["reward"].tolist() == [0.0]
                assert frame.tick.tolist() == [number]
                assert ("why" in frame.details[0]["text"]) == (text == "{}")
            answers["step"] = {**OBSERVATION, "data": {**OBSERVATION["data"], "done": True}}
            assert instance.step({"a": np.array(["{}"], object)}, timeout_s=5).game_over[0]
        finally:
            instance.close()
