"""The endpoint in front of a model: what programs of others send to it, right and wrong."""

import base64
import http.client
import json
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollout.errors import BudgetExhausted, PolicyUnavailable
from rollout.models.client import ModelClient
from rollout.models.foreign import RefusedError, request_of
from rollout.models.gateway import Gateway, StepCalls, new_key
from rollout.models.sections import Endpoint, RunLimits
from rollout.testing.chat_server import ChatServer, Scripted

DEFAULTS = {"temperature": 1.0, "max_tokens": 64}
ASK = {"model": "any", "messages": [{"role": "user", "content": "What now?"}]}
PNG = bytes(cv2.imencode(".png", np.zeros((20, 20, 3), np.uint8))[1])


def url_of(file=PNG, kind="image/png"):
    return f"data:{kind};base64,{base64.b64encode(file).decode()}"


def pictured(*urls):
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return {"messages": [{"role": "user", "content": [*parts, {"type": "text", "text": "?"}]}]}


@contextmanager
def opened(script=lambda _: "left", left=None, **limits):
    """A gateway in front of a scripted server, with a step in progress; yields a client of it."""
    with ChatServer(script) as server:
        endpoint = Endpoint(url=server.url, deadline_s=2.0)
        model = ModelClient(endpoint, "tiny", limits=RunLimits(**limits), prices="", replies=None)
        gateway, key = Gateway(model, "tiny"), new_key()
        calls = StepCalls([7, 0], DEFAULTS, left, {"step": 0})
        with gateway.step(key, calls):
            yield Http(gateway, key), calls, server
        gateway.close()


class Http:
    """A client that knows nothing of OpenAI's."""

    def __init__(self, gateway, key):
        self.gateway, self.key = gateway, key
        self.address = urlsplit(gateway.base_url(key))

    def send(self, body=ASK, path=None, method="POST", headers=None):
        path = path or f"{self.address.path}/chat/completions"
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=9)
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, body if method == "POST" else None, headers or {})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        retry = response.headers.get("x-should-retry")
        assert (retry == "false") == (response.status >= 400)
        return response.status, content

    def refused(self, *args, **options):
        status, content = self.send(*args, **options)
        return status, json.loads(content)["error"]["message"]


def test_a_completion_has_what_openais_have():
    script = Scripted("left", tool='{"x": 1}', model="tiny-0821", finish="stop")
    with opened(lambda _: script) as (client, calls, server):
        status, content = client.send({**ASK, "tools": [{"type": "function"}], "seed": 3})
        assert server.requests[0]["tools"] == [{"type": "function"}]
        assert server.requests[0]["model"] == "tiny"
    data = json.loads(content)
    [choice] = data["choices"]
    [tool] = choice["message"]["tool_calls"]
    assert (status, data["object"], data["model"]) == (200, "chat.completion", "tiny-0821")
    assert choice["finish_reason"] == "tool_calls"
    assert tool["function"] == {"name": "act", "arguments": '{"x": 1}'}
    assert data["usage"] == {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    [call] = calls.close(None)
    assert (call.answer, call.tools, call.number) == ("left", [["act", '{"x": 1}']], 0)


def test_a_conversation_with_tools_goes_through():
    said = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}
    heard = {"role": "tool", "tool_call_id": "1", "content": "done"}
    with opened() as (client, calls, server):
        assert client.send({"messages": [*ASK["messages"], said, heard]})[0] == 200
        assert server.requests[0]["messages"][1:] == [{**said, "content": ""}, heard]
        assert calls.close(None)[0].messages[2] == heard


def test_a_stream_is_the_whole_answer_in_one_event():
    script = Scripted("left", tool="{}")
    with opened(lambda _: script) as (client, _, server):
        options = {"stream": True, "stream_options": {"include_usage": True}}
        status, content = client.send({**ASK, **options})
        assert not {"stream", "stream_options"} & server.requests[0].keys()
    *events, end, _ = content.decode().split("\n\n")
    first, usage = [json.loads(event.removeprefix("data: ")) for event in events]
    assert (status, end) == (200, "data: [DONE]")
    assert first["choices"][0]["delta"]["content"] == "left"
    assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert (usage["choices"], usage["usage"]["total_tokens"]) == ([], 110)


def test_pictures_are_sent_as_they_came():
    with opened() as (client, calls, server):
        far = "https://example.org/a.png"
        assert client.send(pictured(url_of(), far, url_of()))[0] == 200
        parts = server.requests[0]["messages"][0]["content"]
    assert [part["image_url"]["url"] for part in parts[:3]] == [url_of(), far, url_of()]
    [call] = calls.close(None)
    assert PNG.hex() not in json.dumps(call.as_json())


def test_only_a_step_in_progress_is_answered():
    with opened() as (client, calls, server):
        port = client.address.port
        for path in (f"/{new_key()}/v1/chat/completions", "/v1/chat/completions", "//v1/models"):
            assert client.refused(path=path)[0] in (401, 404)
        status, _ = client.send(
            path="/v1/chat/completions", headers={"Authorization": f"Bearer {client.key}"}
        )
        assert status == 200
        calls.close(None)
        assert client.refused()[0] == 401
        assert len(server.requests) == 1
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()


def test_it_lists_its_model_and_has_no_other_places():
    with opened() as (client, *_):
        status, content = client.send(path=f"{client.address.path}/models", method="GET")
        assert (status, json.loads(content)["data"][0]["id"]) == (200, "tiny")
        assert client.send(path=f"{client.address.path}/models/tiny", method="GET")[0] == 200
        assert client.refused(path=f"{client.address.path}/responses")[0] == 404
        assert client.gateway._server.server_address[0] == "127.0.0.1"


def test_bodies_are_bounded_and_have_a_length():
    with opened() as (client, _, server):
        status, said = client.refused(headers={"Content-Length": str(1 << 40)})
        assert (status, "at most 33,554,432 bytes" in said) == (413, True)
        assert client.refused(headers={"Content-Length": "many"})[0] == 413
        assert client.send()[0] == 200
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff\xfe{", "expected JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "a list of messages"),
        ({"messages": "hello"}, "a list of messages"),
        ({"messages": ["hello"]}, "a message with a role"),
        ({"messages": [{"content": "hello"}]}, "a message with a role"),
        ({"messages": [{"role": "user", "content": 3}]}, "a text or a list of parts"),
        ({"messages": [{"role": "user", "content": [3]}]}, "a part of type text or image_url"),
        ({**ASK, "n": 2}, "expected n=1"),
        ({**ASK, "max_tokens": "many"}, "expected a number for max_tokens"),
        ({**ASK, "temperature": -1}, "expected a number for temperature"),
        (pictured("data:image/png;base64,%%"), "a picture in base64"),
        (pictured("data:text/plain;base64,aGk="), "expected data:image"),
        (pictured(url_of(), url_of(PNG, "image/webp")), "pictures of one type"),
    ],
)
def test_requests_that_are_none_are_explained_and_do_no_harm(body, said):
    with opened() as (client, calls, server):
        status, message = client.refused(body)
        assert (status, said in message) == (400, True), message
        assert calls.failure is None
        assert not server.requests


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "role", "content", "type", "text", "image_url", "url"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PARTS = st.lists(JSON, max_size=3).map(lambda parts: [{"role": "user", "content": parts}])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*ASK, *DEFAULTS, "n"]), JSON), PARTS | JSON)
def test_any_json_is_a_request_or_refused(data, messages):
    body = json.dumps({**data, "messages": messages}).encode()
    try:
        request, _ = request_of(body, DEFAULTS)
    except RefusedError as error:
        status = error.status
    else:
        status = 200
        assert all(isinstance(each["content"], str | list) for each in request.messages)
        assert request.fields["max_tokens"] is not None
    assert status in (200, 400)


def test_limits_and_failures_have_their_own_codes():
    with opened(calls=1) as (client, calls, _):
        assert client.send()[0] == 200
        assert client.refused()[0] == 429
        assert isinstance(calls.failure, BudgetExhausted)
    with opened(left=1) as (client, calls, _):
        assert client.send()[0] == 200
        assert client.refused() == (429, "the episode has used its calls (limits.episode_calls)")
        assert calls.failure is None
        assert calls.refused
    with opened(lambda _: Scripted("away", status=500)) as (client, calls, _):
        assert client.refused()[0] == 503
        assert isinstance(calls.failure, PolicyUnavailable)
        assert client.refused()[0] == 503


def test_calls_at_once_have_their_numbers_and_those_in_flight_are_waited_for():
    with opened(lambda _: Scripted("left", delay_s=0.2)) as (client, calls, server):
        threads = [threading.Thread(target=client.send) for _ in range(64)]
        for thread in threads:
            thread.start()
        while len(server.requests) < 8:
            threading.Event().wait(0.01)
        made = calls.close(None)  # of those that have begun
        for thread in threads:
            thread.join(20)
    numbers = [call.number for call in made]
    assert numbers == list(range(len(made)))
    assert len(made) >= 8
    assert len(server.requests) == len(made)
