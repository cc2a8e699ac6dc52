"""A server of OpenAI's chat API with scripted answers, for tests and benchmarks."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Request = dict[str, Any]


@dataclass(frozen=True)
class Scripted:
    """Scripted response to one request.

    Attributes:
        text: the answer.
        tool: arguments of a call of the tool ``act``; None for no call.
        delay_s: seconds before it answers.
        status: HTTP status; others than 200 have ``text`` as the message of an error.
        headers: further headers.
        finish: reason why the model stopped.
        model: the reported model; empty for the requested one.
        usage: the reported usage; None to report none.
        body: the whole body in place of all this; empty for none.
        reset: whether the connection is reset in the middle of the body.
        drip_s: seconds before each byte of the body; 0 sends it at once.
    """

    text: str = ""
    tool: str | None = None
    delay_s: float = 0.0
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish: str = "stop"
    model: str = ""
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
        }
    )
    body: bytes = b""
    reset: bool = False
    drip_s: float = 0.0

    def encoded(self, request: Request) -> bytes:
        """Returns the body of the response."""
        if self.body:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.text}}).encode()
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool is not None:
            function = {"name": "act", "arguments": self.tool}
            message["tool_calls"] = [{"id": "1", "type": "function", "function": function}]
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        data = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": self.model or request.get("model", ""),
            "choices": [choice],
        }
        if self.usage is not None:
            data["usage"] = dict(self.usage)
        return json.dumps(data).encode()


class ChatServer:
    """The server, in threads of this process; a context manager.

    Args:
        script: returns the response to a request, given as JSON; a text is an answer.
        port: its port; 0 for a free one.

    Attributes:
        url: its base URL.
        requests: all requests that came, in order.
        keys: their headers ``Authorization``.
        headers: all their headers, with names in lower case.
        targets: their targets: paths, or whole URLs from a client that takes this for a proxy.
        paid: how often each request was answered with status 200, by its digest.
        most: most requests that were in work at once.
    """

    def __init__(self, script: Callable[[Request], Scripted | str], port: int = 0) -> None:
        self._script = script
        self.requests: list[Request] = []
        self.keys: list[str] = []
        self.targets: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.paid: Counter[str] = Counter()
        self.most = self._running = 0
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._server = _Server(("127.0.0.1", port), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    request = json.loads(body)
                except ValueError:  # the client died while it sent it
                    self.close_connection = True
                else:
                    outer._answer(self, request)

            def log_message(self, *_: object) -> None:
                """Logs nothing."""

        return Handler

    def _answer(self, handler: BaseHTTPRequestHandler, request: Request) -> None:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
            self.requests.append(request)
            self.targets.append(handler.path)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self.keys.append(handler.headers.get("Authorization", ""))
        try:
            done = self._script(request)
            done = Scripted(done) if isinstance(done, str) else done
            self._closing.wait(done.delay_s)
            body = done.encoded(request)
            if done.status == 200 and not done.reset:
                with self._lock:
                    self.paid[digest_of(request)] += 1
            handler.send_response(done.status)
            for name, value in done.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Type", "application/json")
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            if done.reset:
                handler.wfile.write(body[: len(body) // 2])
                handler.connection.shutdown(socket.SHUT_RDWR)
                handler.close_connection = True
                return
            for piece in (body[i : i + 1] for i in range(len(body))) if done.drip_s else [body]:
                self._closing.wait(done.drip_s)
                handler.wfile.write(piece)
        except OSError:  # the client has gone
            handler.close_connection = True
        finally:
            with self._lock:
                self._running -= 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_: object) -> None:
        """Logs nothing, since clients of tests die on purpose."""


def digest_of(request: Request) -> str:
    """Returns a digest of the content of a request."""
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
