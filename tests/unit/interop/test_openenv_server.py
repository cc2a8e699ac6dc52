"""The server of OpenEnv's protocol: what it answers, and what wrong input does not disturb."""

import asyncio
import base64
import json
from contextlib import contextmanager

import cv2
import numpy as np
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from rollout.api import Limits, Task
from rollout.config import HostConfig, make_config
from rollout.errors import ConfigError
from rollout.interop import openenv_wire as wire
from rollout.interop.games import Games, bridge_of
from rollout.interop.openenv_server import OpenEnvServer
from rollout.interop.serving import ServeConfig
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator

HERE = HostConfig(isolation="in_process", backoff_s=0)
TOKEN = "a-token-of-more-than-sixteen-letters"


@contextmanager
def serving(bridge=None, *, games=2, host=HERE, token=None, idle_s=60.0, task=None):
    bridge = bridge or FakeBridge(with_details=True)
    limits = Limits(steps=6)
    task = task or Task("t", "Reach it.", bridge.spec.state_space, FakeEvaluator(), limits)
    with Games(bridge, task, games=games, host=host) as played:
        server = OpenEnvServer(played, "fake", token, idle_s, 1000)
        with TestClient(server.app, base_url="http://localhost") as client:
            client.server = server
            yield client
        server.close()


def ask(socket, kind, **data):
    socket.send_text(json.dumps({"type": kind, "data": data} if data else {"type": kind}))
    return said(socket)


def said(socket):
    answer = socket.receive_json()
    return answer["type"], answer["data"]


def test_a_session_plays_an_episode():
    with serving() as client, client.websocket_connect("ws://localhost/ws") as socket:
        kind, data = ask(socket, "reset", seed=3, split="test", index=2, episode_id="mine")
        assert (kind, data["reward"], data["done"]) == ("observation", None, False)
        observation = data["observation"]
        assert "cells to go" in observation["text"]
        assert len(observation["columns"]["position"]) == 2
        [picture] = observation["pictures"]
        file = np.frombuffer(base64.b64decode(picture["data"]), np.uint8)
        assert (picture["mimeType"], picture["name"]) == ("image/png", "image")
        games = client.server.games
        with games.open() as game:
            shown = game.reset(seed=3, split="test", index=2).observations["image"]
        assert np.array_equal(cv2.imdecode(file, 1)[..., ::-1], shown)
        for step in range(1, 7):
            kind, data = ask(socket, "step", move=0)
            assert data["reward"] is not None
            assert data["metadata"]["step"] == step
        assert data["done"]
        assert data["metadata"]["end"] == "truncated"
        kind, state = ask(socket, "state")
        assert (kind, state["episode_id"], state["step_count"]) == ("state", "mine", 6)
        assert state["state"] == str(games.splits["test"][2].index)
        socket.send_text('{"type": "close"}')
        with pytest.raises(WebSocketDisconnect):
            socket.receive_text()
    assert not client.server.sessions


WRONG = [
    ("{", "INVALID_JSON", "invalid"),
    ("NaN", "INVALID_JSON", "invalid"),
    ("[" * 900, "INVALID_JSON", "invalid"),
    ("[1]", "VALIDATION_ERROR", "invalid"),
    ("{}", "UNKNOWN_TYPE", "invalid"),
    ('{"type": {"a": 1}}', "UNKNOWN_TYPE", "invalid"),
    ('{"type": "restet"}', "UNKNOWN_TYPE", "invalid"),
    ('{"type": "reset", "more": 1}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": [1]}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"sed": 1}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"seed": -1}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"seed": 1e300}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"split": "tset"}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"split": {}, "index": 1}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"split": "test", "index": "a"}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"state": {"colour": []}}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "reset", "data": {"state": [1]}}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "step"}', "VALIDATION_ERROR", "invalid"),
    ('{"type": "step", "data": {}}', "VALIDATION_ERROR", "action_malformed"),
    ('{"type": "step", "data": {"jump": 1}}', "VALIDATION_ERROR", "action_malformed"),
    ('{"type": "step", "data": {"move": 5}}', "VALIDATION_ERROR", "action_out_of_range"),
    ('{"type": "step", "data": {"move": {"a": [1]}}}', "VALIDATION_ERROR", "action_malformed"),
    ('{"type": "step", "data": {"move": true}}', "VALIDATION_ERROR", "action_malformed"),
]


def test_wrong_messages_get_codes_and_disturb_nothing():
    with serving() as client, client.websocket_connect("ws://localhost/ws") as socket:
        ask(socket, "reset", seed=1)
        for number, (text, code, reason) in enumerate(WRONG):
            socket.send_text(text)
            kind, data = said(socket)
            assert (kind, data["code"], data["reason"]) == ("error", code, reason), text
            assert data["message"], number
        socket.send_bytes(b'{"type": "state"}')
        assert said(socket)[1]["code"] == "INVALID_JSON"
        assert ask(socket, "step", move=1, metadata={"any": 1})[1]["metadata"]["step"] == 1


def test_out_of_turn_is_told():
    with serving() as client, client.websocket_connect("ws://localhost/ws") as socket:
        kind, data = ask(socket, "step", move=1)
        assert (kind, data["code"], data["reason"]) == ("error", "EXECUTION_ERROR", "out_of_turn")
        assert ask(socket, "state") == ("state", {"episode_id": None, "step_count": 0})


def test_capacity_is_told_and_ends_with_a_session():
    with serving(games=1) as client:
        with client.websocket_connect("ws://localhost/ws"):
            with client.websocket_connect("ws://localhost/ws") as second:
                assert said(second)[1]["code"] == "CAPACITY_REACHED"
                with pytest.raises(WebSocketDisconnect):
                    second.receive_text()
            answer = client.post("/reset", json={})
            assert answer.status_code == 503
            assert answer.json()["detail"]["code"] == "CAPACITY_REACHED"
        with client.websocket_connect("ws://localhost/ws") as third:
            assert ask(third, "reset")[0] == "observation"


def test_a_lost_game_is_an_error_without_a_reward(tmp_path):
    bridge = FakeBridge(crash_on_step=2, once_file=str(tmp_path / "once"))
    with serving(bridge) as client, client.websocket_connect("ws://localhost/ws") as socket:
        ask(socket, "reset", seed=1)
        ask(socket, "step", move=1)
        kind, data = ask(socket, "step", move=1)
        assert (kind, data["code"], data["reason"]) == ("error", "EXECUTION_ERROR", "lost")
        assert "reward" not in data
        assert ask(socket, "step", move=1)[1]["reason"] == "out_of_turn"
        assert ask(socket, "reset", seed=1)[1]["metadata"]["attempt"] == 1


def test_a_session_by_name_has_one_client_at_a_time():
    with serving() as client:
        made = client.post("/mcp", json={"jsonrpc": "2.0", "id": 7, "method": CREATE}).json()
        name = made["result"]["session_id"]
        assert made["id"] == 7
        step = {"session_id": name, "action": {"move": 1}, "timeout_s": 5}
        assert client.post("/step", json=step).json()["detail"]["reason"] == "out_of_turn"
        assert client.post("/reset", json={"session_id": name, "seed": 2}).json()["done"] is False
        assert client.post("/step", json=step).json()["metadata"]["step"] == 1
        with client.websocket_connect(f"ws://localhost/ws?session_id={name}") as socket:
            assert ask(socket, "state")[1]["step_count"] == 1
            with client.websocket_connect(f"ws://localhost/ws?session_id={name}") as other:
                assert said(other)[1]["code"] == "SESSION_ERROR"
            close = {"method": CLOSE, "params": {"session_id": name}}
            assert client.post("/mcp", json=close).json()["error"]["data"]["reason"] == "busy"
            assert ask(socket, "step", move=1)[1]["metadata"]["step"] == 2
        assert client.get("/state", params={"session_id": name}).json()["step_count"] == 2
        assert client.post("/mcp", json=close).json()["result"]["closed"]
        gone = client.post("/step", json=step)
        assert (gone.status_code, gone.json()["detail"]["reason"]) == (404, "gone")
        with client.websocket_connect(f"ws://localhost/ws?session_id={name}") as socket:
            assert said(socket)[1]["reason"] == "gone"


CREATE, CLOSE = "openenv/session/create", "openenv/session/close"


def test_requests_are_those_of_openenv():
    with serving() as client:
        assert client.get("/health").json() == {"status": "healthy"}
        assert client.get("/metadata").json()["description"] == "Reach it."
        assert client.get("/schema").json()["action"]["required"] == ["move"]
        assert {"/reset", "/step", "/state"} < client.get("/openapi.json").json()["paths"].keys()
        assert client.get("/state").json() == {"episode_id": None, "step_count": 0}
        assert client.get("/list_environments").json() == ["fake"]
        assert [s["name"] for s in client.get("/Fake/splits").json()] == list(
            client.server.games.splits
        )
        count = client.post("/fake/num_tasks", json={"split": "test"}).json()["num_tasks"]
        assert count == client.server.games.splits["test"].size
        task = client.post("/fake/task", json={"split": "test", "index": 4}).json()["task"]
        some = {"split": "test", "start": 4, "stop": 6}
        assert client.post("/fake/task_range", json=some).json()["tasks"][0] == task
        assert client.server.games.splits["test"][4].index == int(task["state"])
        begun = client.post("/reset", json={"seed": 5}).json()
        assert begun["metadata"]["seed"] == 5
        assert not client.server.sessions


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/reset", "{", 400),
        ("/reset", '{"seed": "x"}', 422),
        ("/reset", " " * 2000, 413),
        ("/step", '{"action": {"move": 1}}', 409),
        ("/step", '{"session_id": "no", "action": {}}', 404),
        ("/step", '{"session_id": 1}', 404),
        ("/fake/tasks", '{"split": "test"}', 422),
        ("/fake/task_range", '{"split": "test", "start": 5, "stop": 1}', 422),
        ("/fake/task", '{"split": "tset", "index": 1}', 422),
        ("/fake/task", '{"split": "test", "index": -1}', 422),
        ("/fake/task", '{"split": "test", "index": 1.5}', 422),
        ("/other/task", '{"split": "test", "index": 1}', 404),
    ],
)
def test_wrong_requests_get_codes(path, body, status):
    with serving() as client:
        answer = client.post(path, content=body)
        assert answer.status_code == status, answer.text
        assert answer.json()["detail"]["message"]


def test_half_a_request_is_no_error_of_the_server(caplog):
    parts = [
        {"type": "http.request", "body": b'{"se', "more_body": True},
        {"type": "http.disconnect"},
    ]
    scope = {"type": "http", "method": "POST", "path": "/reset", "query_string": b""}
    sent = []

    async def receive():
        return parts.pop(0)

    async def send(message):
        sent.append(message)

    with serving() as client:
        asyncio.run(client.server.app({**scope, "headers": [(b"host", b"[::1]")]}, receive, send))
    assert sent[0]["status"] == 400
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.parametrize("body", ["{", "[]", "{}", '{"method": 1}', '{"method": "a", "params": 1}'])
def test_wrong_json_rpc_is_answered(body):
    with serving() as client:
        answer = client.post("/mcp", content=body).json()
        assert answer["jsonrpc"] == "2.0"
        assert answer["error"]["code"] < -32000


def test_with_a_token_nothing_is_served_without_it():
    with serving(token=TOKEN) as client:
        assert client.get("/schema").status_code == 401
        assert client.get("/health").status_code == 200
        assert client.get("/schema", headers={"Authorization": "Bearer no"}).status_code == 401
        known = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/schema", headers=known).status_code == 200
        assert client.get(f"/{TOKEN}/schema").status_code == 200
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://localhost/ws"):
            pass
        with client.websocket_connect(f"ws://localhost/{TOKEN}/ws") as socket:
            assert ask(socket, "reset")[0] == "observation"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Host": ""}]
)
def test_without_a_token_pages_of_other_sites_are_refused(headers):
    with serving() as client:
        assert client.get("/schema", headers=headers).status_code == 401


def test_a_server_that_ends_lets_episodes_end():
    with serving() as client, client.websocket_connect("ws://localhost/ws") as socket:
        ask(socket, "reset")
        client.server.draining = True
        assert client.server.playing == 1
        assert client.get("/health").status_code == 503
        with client.websocket_connect("ws://localhost/ws") as late:
            assert said(late)[1]["reason"] == "ending"
        while not ask(socket, "step", move=0)[1]["done"]:
            pass
        assert client.server.playing == 0
        assert ask(socket, "reset")[1]["reason"] == "ending"


def test_answers_are_json_without_nan_and_infinity():
    bridge = FakeBridge()
    own = bridge_of(bridge, "")[1]  # the game's own reward has no progress
    with serving(bridge, task=own) as client:
        text = client.post("/reset", json={"seed": 1}).text
        with client.websocket_connect("ws://localhost/ws") as socket:
            socket.send_text('{"type": "reset", "data": {"seed": 1}}')
            texts = [text, socket.receive_text()]
    for text in [*texts, wire.write("observation", {"columns": {"far": [np.inf, np.nan]}})]:
        data = json.loads(text, parse_constant=pytest.fail)
    assert data["data"]["columns"]["far"] == ["Infinity", "NaN"]
    assert json.loads(texts[0])["metadata"]["progress"] is None


def test_an_unknown_argument_of_reset_is_answered_with_all_known_ones():
    with serving() as client:
        answer = client.post("/reset", json={"sed": 1})
    assert (answer.status_code, answer.json()["detail"]["code"]) == (422, "VALIDATION_ERROR")
    assert "Valid: episode_id, index, seed, split, state" in answer.json()["detail"]["message"]


def test_idle_sessions_end():
    with serving(idle_s=0.2) as client:
        with client.websocket_connect("ws://localhost/ws") as socket:
            assert said(socket)[1]["reason"] == "idle"
        made = client.post("/mcp", json={"method": CREATE}).json()
        session = client.server.sessions[made["result"]["session_id"]]
        session.used -= 1
        client.server._reaped -= 10
        client.server.reap()
        assert not client.server.sessions
        assert client.server.games.free == 2


def test_only_loopback_is_served_without_a_token(tmp_path):
    for address in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ConfigError, match="token_file"):
            make_config(ServeConfig, {"bridge": "fake", "address": address})
    file = tmp_path / "token"
    config = {"bridge": "fake", "address": "0.0.0.0", "token_file": str(file)}
    for text in (None, "short", "with a space in the middle of it", "ü" * 40):
        if text is not None:
            file.write_text(text)
        with pytest.raises(ConfigError, match="token_file"):
            make_config(ServeConfig, config).token()
    file.write_text(f"{TOKEN}\n")
    assert make_config(ServeConfig, config).token() == TOKEN
