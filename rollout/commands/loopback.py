"""A server of pages for the browsers of this machine, for who knows its token."""

from __future__ import annotations

import hmac
import secrets
import sys
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from rollout.errors import InputError
from rollout.files import open_file
from rollout.signals import one_line, tell

HOST = "127.0.0.1"
_HOSTS = (HOST, "localhost")
_IDLE_S = 30.0  # for which a connection may send nothing
_PIECE = 1 << 20  # bytes of a file sent at once
_MOST_BYTES = 100_000  # of what a page sends
_SAFE = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Answer: TypeAlias = tuple[str, Iterable[str | bytes]]
"""The type of a document, and its parts."""


def pieces(file: Path) -> Iterator[bytes]:
    """Yields the bytes of a file, for an ``Answer``."""
    with open_file(file) as opened:
        while piece := opened.read(_PIECE):
            yield piece


class LoopbackServer(ThreadingHTTPServer):
    """A server on the loopback interface; its addresses begin with a random token.

    Attributes:
        url: the address of the page.
        takes: whether pages may send something.
    """

    daemon_threads = True
    takes: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Handler)
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def answer(self, path: str, query: str = "") -> Answer | None:
        """Returns what is at a path below the token, None if nothing is.

        Raises:
            InputError: it cannot be read; the browser is told why.
        """
        raise NotImplementedError

    def receive(self, path: str, body: bytes) -> Answer | None:
        """Takes what a page sends to a path, and returns the reply; None if nothing is there.

        Raises:
            InputError: it cannot be taken; the browser is told why.
        """
        del path, body
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing if the browser has closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def serve(self) -> None:
        """Tells the address and serves until it is interrupted."""
        tell(one_line(f"{self.url}  (Ctrl-C ends it)"))
        sys.stdout.flush()
        self.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    timeout: ClassVar[float | None] = _IDLE_S

    def do_GET(self) -> None:
        self._reply(None)

    def do_POST(self) -> None:
        assert isinstance(self.server, LoopbackServer)
        if not self.server.takes:
            self.send_error(501)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            self.close_connection = True
            said = f"expected a body of at most {_MOST_BYTES:,} bytes with its length"
            self._send(413, "text/plain", [said])
            return
        self._reply(self.rfile.read(int(length)))

    def _reply(self, body: bytes | None) -> None:
        server = self.server
        assert isinstance(server, LoopbackServer)
        # Another site's name may be made to lead here; the browser then sends that name.
        host, _, _ = self.headers.get("Host", "").partition(":")
        address, _, query = self.path.partition("?")
        _, token, *rest = address.split("/", 2) + [""] * 2
        known = hmac.compare_digest(token.encode(), server.token.encode())
        if host not in _HOSTS:
            self._send(403, "text/plain", [f"expected the host {HOST} or localhost"])
        elif not known:
            self._send(404, "text/plain", ["there is nothing at this address"])
        else:
            try:
                if body is None:
                    found = server.answer(rest[0], query)
                else:
                    found = server.receive(rest[0], body)
            except (InputError, OSError) as error:
                self._send(500, "text/plain", [str(error)])
                return
            if found is None:
                self._send(404, "text/plain", ["there is nothing here now; load the page again"])
            else:
                self._send(200, *found)

    def _send(self, status: int, kind: str, parts: Iterable[str | bytes]) -> None:
        self.send_response(status)
        charset = "; charset=utf-8" if kind.startswith(("text/", "application/")) else ""
        for name, value in {"Content-Type": f"{kind}{charset}", **_SAFE}.items():
            self.send_header(name, value)
        self.end_headers()
        for part in parts:
            if isinstance(part, str):
                part = part.encode("utf-8", "backslashreplace")  # noqa: PLW2901
            self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""
