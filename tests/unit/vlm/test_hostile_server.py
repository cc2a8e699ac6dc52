"""A server that breaks every rule costs a bounded time, bounded memory and one line of error."""

import functools
import gzip
import json
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.vlm.answers import _tagged_blocks
from rollout.errors import ConfigError, GamutError, PolicyUnavailable
from rollout.models.chat_api import json_object, response_of, split_reasoning
from rollout.models.sections import Endpoint
from rollout.models.transport import HttpClient, _retry_after
from rollout.testing.chat_server import ChatServer, Scripted

MESSAGE = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
GOOD = json.dumps(MESSAGE).encode()


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@contextmanager
def answering(pieces):
    """A server that sends these bytes after each request, then closes the connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def serve(sock):
            with sock:
                try:
                    # All of it: closing a connection with unread bytes resets it, and the client
                    # may then lose what was sent. Head and body come apart.
                    request = b""
                    while not request.endswith(b"\r\n\r\n{}") and (more := sock.recv(1 << 16)):
                        request += more
                    for piece in pieces():
                        sock.sendall(piece)
                except OSError:
                    pass

        def accept():
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(sock,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def ask(url, deadline_s=0.4):
    """Returns the data or the error of a call, and the seconds it took."""
    client = HttpClient(Endpoint(url=url, timeout_s=0.5, deadline_s=deadline_s))
    began = time.monotonic()
    try:
        found = client.post(b"{}").data
    except GamutError as error:
        found = error
    return found, time.monotonic() - began


def response(head, body=b""):
    return b"HTTP/1.1 " + head.replace(b"\n", b"\r\n") + b"\r\n\r\n" + body


STREAM = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
RESPONSES = {
    "nothing": b"",
    "no HTTP": b"\x16\x03\x01 what?\r\n\r\n",
    "half a status": b"HTTP/1.1 20",
    "odd status": response(b"abc OK\nContent-Length: 2", b"{}"),
    "half a body": response(b"200 OK\nContent-Length: 5000", GOOD),
    "half a stream": response(b"200 OK\nContent-Type: text/event-stream", STREAM),
    "half a chunk": response(b"200 OK\nTransfer-Encoding: chunked", b"ffff\r\n" + GOOD),
    "odd chunk": response(b"200 OK\nTransfer-Encoding: chunked", b"zz\r\n" + GOOD),
    "odd length": response(b"200 OK\nContent-Length: -1, 7, x", b"{"),
    "a long header": response(b"200 OK\nX: " + b"x" * 70_000, GOOD),
    "many headers": response(b"200 OK" + b"\nX: y" * 500, GOOD),
    "interim for ever": b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000,
    "no gzip": response(b"200 OK\nContent-Encoding: gzip", b"\x1f\x8b" + GOOD),
    "gzip upon gzip": response(b"200 OK\nContent-Encoding: " + b"gzip, " * 50 + b"gzip", b"x"),
    "a page": response(b"502 Bad Gateway", b"<html>\n<h1>\x1b[2J\n502\n</h1>\n" * 999),
    "nothing with 503": response(b"503 Busy\nContent-Length: 0"),
    "a list": response(b"200 OK", b"[1, 2]"),
    "odd types": response(b"200 OK", b'{"choices": {"0": 1}, "error": 0, "usage": []}'),
    "an odd error": response(b"500 Oops", b'{"error": [["a\\nb"], {"message": 3}]}'),
    "nested": response(b"200 OK", b'{"choices": ' + b"[" * 200_000),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_broken_response_is_one_line_in_time(name):
    with answering(lambda: [RESPONSES[name]]) as url:
        found, seconds = ask(url)
    assert isinstance(found, PolicyUnavailable), found
    assert seconds < 3
    said = str(found)
    assert "\n" not in said
    assert len(said) < 1000
    assert not said.endswith(": ")


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(RESPONSES)), st.integers(0, 400), st.binary(max_size=6))
def test_a_damaged_response_raises_nothing_else(name, at, bytes_):
    whole = RESPONSES[name][:2000]
    with answering(lambda: [whole[:at] + bytes_ + whole[at + len(bytes_) :]]) as url:
        found, seconds = ask(url, 0.05)
    assert seconds < 3
    assert isinstance(found, GamutError | dict)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_says_where_to(status):
    with ChatServer(lambda _: GOOD.decode()) as other:
        to = Scripted("", status=status, headers={"Location": f"{other.url}/chat/completions"})
        with ChatServer(lambda _: to) as server:
            found, _ = ask(server.url)
        assert not other.requests, "a key must not go elsewhere"
    assert isinstance(found, ConfigError)
    assert f"redirects to {other.url}/chat/completions; set endpoint.url" in str(found)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["-5", "nan", "inf", "1e400", "1e308", "9" * 5000, "soon", "Mon, 99 Foo 1"])
    | st.sampled_from(["Fri, 31 Dec 9999 23:59:59 GMT", "Fri, 31 Dec 1 00:00:00 +9999", "\u0661"])
    | st.text(st.characters(max_codepoint=255), max_size=30)
    | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,5} [A-Z][a-z]{2} [0-9:+-]{1,20}", fullmatch=True)
)
def test_any_retry_after_is_a_pause_or_none(value):
    pause = _retry_after({"Retry-After": value})
    assert pause == -1 or pause >= 0


def test_a_year_of_retry_after_is_not_waited_for_by_the_calls_that_follow():
    answers = [Scripted("", status=429, headers={"Retry-After": "31536000"})]
    with ChatServer(lambda _: answers.pop() if answers else "yes") as server:
        client = HttpClient(Endpoint(url=server.url, deadline_s=0.4))
        with pytest.raises(PolicyUnavailable, match="status 429"):
            client.post(b"{}")
        time.sleep(0.4)
        assert client.post(b"{}").data["choices"]


HEAD = b"HTTP/1.1 200 OK\r\n%s\r\n\r\n"


def gigabyte():
    yield HEAD % b"Content-Length: 1073741824"
    for _ in range(1024):
        yield b"x" * (1 << 20)


@functools.cache
def compressed():
    return gzip.compress(bytes(1 << 28), 1)


def bomb():
    yield HEAD % b"Content-Encoding: gzip"
    yield compressed()


def test_a_stream_of_too_many_events_is_no_response(monkeypatch):
    monkeypatch.setattr("rollout.models.chat_api._MOST_EVENTS", 9)
    for number, known in ((8, True), (9, False)):
        found = response_of(STREAM * number + b"data: [DONE]\n\n")
        assert (found is not None) == known


@pytest.mark.process
@pytest.mark.parametrize("pieces", [gigabyte, bomb])
def test_a_response_of_any_size_takes_bounded_memory(pieces):
    compressed()  # not while the client waits
    code = (
        "import sys\n"
        "from rollout.models.transport import HttpClient\n"
        "from rollout.models.sections import Endpoint\n"
        "try:\n"
        "    HttpClient(Endpoint(url=sys.argv[1], timeout_s=60, deadline_s=2)).post(b'{}')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
        # Of this program alone: ru_maxrss begins with what the process that forked it had.
        "status = open('/proc/self/status').read()\n"
        "print(status.split('VmHWM:')[1].split()[0])\n"
    )
    with answering(pieces) as url:
        command = [sys.executable, "-c", code, url]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    said, kilobytes = done.stdout.splitlines()
    assert "more than 32 MiB" in said
    assert int(kilobytes) < 1_000_000


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (json_object, "```json" + "\n" * 1_000_000),
        (json_object, "```json\n{}" + "\n " * 500_000),
        (split_reasoning, "a" + " " * 1_000_000 + "</think>"),
        (split_reasoning, "<think></think>" * 60_000),
        (lambda text: _tagged_blocks(text, "action"), "<action>" * 120_000),
        (lambda text: response_of(text.encode()), "data:\n" * 160_000),
        (lambda text: response_of(text.encode()), STREAM.decode() * 5_000 + "data: [DONE]\n"),
    ],
)
def test_a_megabyte_of_anything_is_read_in_seconds(read, text):
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    try:
        read(text)
    except ValueError as error:
        assert len(str(error)) < 1000  # noqa: PT017 - some are answers, some are not
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - began < 10


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```json\n{}\n```", {}),
        (' ```\n\n{"a": 1}\n\n ``` \n', {"a": 1}),
        ("```json\n```", None),
        ("```{}```", None),
        ("```yaml\n{}\n```", None),
        ("```json\n{} \nx```", None),
    ],
)
def test_a_fence_of_markdown_is_taken_off(text, found):
    if found is None:
        with pytest.raises(ValueError, match="JSON"):
            json_object(text)
    else:
        assert json_object(text) == found
