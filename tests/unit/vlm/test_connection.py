"""Requests: when they end, what headers and URLs they have, and proxies."""

import base64
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from rollout.errors import ConfigError, PolicyUnavailable
from rollout.models.sections import Endpoint
from rollout.models.transport import Connection, HttpClient, chat_url, check_endpoint
from rollout.testing.chat_server import ChatServer, Scripted

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def seconds_to_lose(url):
    client, began = HttpClient(Endpoint(url=url, timeout_s=0.2, deadline_s=0.5)), time.monotonic()
    with pytest.raises(PolicyUnavailable, match=r"did not answer within 0\.5 s"):
        client.post(b"{}")
    return time.monotonic() - began


def test_a_server_that_drips_its_body_does_not_outlive_the_deadline():
    with ChatServer(lambda _: Scripted("slowly", drip_s=0.05)) as server:
        assert seconds_to_lose(server.url) < 1.5


def test_an_attempt_that_the_deadline_cuts_hides_no_error_before_it():
    answers = [Scripted("slowly", drip_s=0.05), Scripted("busy", status=503)]
    with ChatServer(lambda _: answers.pop()) as server:
        client = HttpClient(Endpoint(url=server.url, deadline_s=2.0))
        with pytest.raises(PolicyUnavailable, match="the last of 1 errors: status 503: busy"):
            client.post(b"{}")
    assert not answers


@contextmanager
def dripping_headers():
    """A server that sends the beginning of its headers, and then a byte now and then."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve(sock):
            with sock:
                try:
                    sock.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                    while not ended.wait(0.05):
                        sock.sendall(b"x")
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
            ended.set()
            server.shutdown(socket.SHUT_RDWR)


def test_nor_does_one_that_drips_headers():
    with dripping_headers() as url:
        assert seconds_to_lose(url) < 1.5


def test_nor_does_one_that_reads_no_request():
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection = Connection(Endpoint(url=f"http://127.0.0.1:{server.getsockname()[1]}/v1"))
        began = time.monotonic()
        with pytest.raises(Exception, match=r"timed out|in time"):
            connection.post(b"x" * (32 << 20), began + 0.3)
        assert time.monotonic() - began < 1.5


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h:8/v1", "http://h:8/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/d/x?api-version=1", "https://h/d/x/chat/completions?api-version=1"),
    ],
)
def test_a_query_stays_behind_the_path(url, target):
    assert chat_url(url) == target


@pytest.mark.parametrize("url", ["", "h:8000", "http://", "http://h:99999/v1", "http://[::1/v1"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(ConfigError, match=r"endpoint\.url=.*expected the base URL"):
        check_endpoint(Endpoint(url=url))


def test_headers_name_environment_variables(monkeypatch):
    monkeypatch.setenv("AZURE", "secret-of-azure")
    headers = {"api-key": "$AZURE", "X-Title": "Gamut", "X-Other": "Bearer $AZURE"}
    with ChatServer(lambda _: Scripted("no secret-of-azure", status=400)) as server:
        client = HttpClient(Endpoint(url=f"{server.url}?api-version=3", headers=headers))
        with pytest.raises(ConfigError, match=r"no \*\*\*"):
            client.post(b"{}")
    assert server.targets == ["/v1/chat/completions?api-version=3"]
    [sent] = server.headers
    assert (sent["api-key"], sent["x-title"]) == ("secret-of-azure", "Gamut")
    assert sent["x-other"] == "Bearer secret-of-azure"
    monkeypatch.setenv("AZURE", "a\nb")
    with pytest.raises(ConfigError, match=r"headers\.api-key.*AZURE.*no header can hold"):
        check_endpoint(Endpoint(url=server.url, headers=headers))
    monkeypatch.delenv("AZURE")
    with pytest.raises(ConfigError, match=r"headers\.api-key.*AZURE is not set"):
        check_endpoint(Endpoint(url=server.url, headers=headers))


def test_a_short_key_is_a_word_of_answers_too(monkeypatch):
    monkeypatch.setenv("LOCAL", "none")
    with ChatServer(lambda _: "none of these") as server:
        data = HttpClient(Endpoint(url=server.url, key_env="LOCAL")).post(b"{}").data
    assert data["choices"][0]["message"]["content"] == "none of these"


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy"])
@pytest.mark.parametrize("scheme", ["http://", ""])
def test_a_proxy_gets_its_user_and_password(monkeypatch, name, scheme):
    with ChatServer(lambda _: "yes") as proxy:
        place = proxy.url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv(name, f"{scheme}me:p%40ss@{place}")
        client = HttpClient(Endpoint(url="http://models.example/v1"))
        assert client.post(b"{}").data["choices"]
    assert proxy.targets == ["http://models.example/v1/chat/completions"]
    assert base64.b64decode(proxy.headers[0]["proxy-authorization"].split()[1]) == b"me:p@ss"


@pytest.mark.parametrize(
    ("proxy", "says"),
    [
        ("socks5://me:pass-word@h:1", "socks5://h:1 in the environment needs PySocks"),
        ("ftp://me:pass-word@h:1", "ftp://h:1 in the environment cannot be used"),
        ("http://me:pass-word@h:port", "cannot be used"),
        ("http://", "cannot be used"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(monkeypatch, proxy, says):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(ConfigError, match=says) as told:
        check_endpoint(Endpoint(url="http://models.example/v1"))
    assert "pass-word" not in str(told.value)
    monkeypatch.setenv("no_proxy", "models.example")
    check_endpoint(Endpoint(url="http://models.example/v1"))
