"""Who may come in: an ASGI application before another one, which asks for a token."""

from __future__ import annotations

import hmac

from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from rollout.interop.addresses import is_loopback

_POLICY = 1008  # code of a close


class Gate:
    """Lets in who knows the token, in the header ``Authorization: Bearer`` or first in the path.

    Without a token only programs of this machine come in: a page of another site, which a browser
    here shows, is refused by its ``Origin`` and ``Host``. ``/health`` is open to all.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request or refuses it."""
        if scope["type"] in ("http", "websocket") and (why := self._refuse(scope)):
            if scope["type"] == "websocket":
                await WebSocket(scope, receive, send).close(_POLICY)  # the handshake fails: 403
            else:
                detail = {"message": why, "code": "SESSION_ERROR", "reason": "token"}
                answer = to_json({"detail": detail})
                await Response(answer, 401, media_type="application/json")(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refuse(self, scope: Scope) -> str:
        """Returns why a request is refused, empty if it is not; takes the token off its path."""
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        if self._token is None:
            host = headers.get("host", b"").decode("latin-1")
            name = host if host.endswith("]") else host.rsplit(":", 1)[0]
            if not is_loopback(name.strip("[]")) or "origin" in headers:
                return "without a token, only programs of this machine are served"
            return ""
        _, first, rest = (scope["path"] + "//").split("/", 2)
        if hmac.compare_digest(first.encode(), self._token.encode()):
            scope["path"] = "/" + rest.removesuffix("//").rstrip("/")
            return ""
        given = headers.get("authorization", b"")
        if hmac.compare_digest(given, b"Bearer " + self._token.encode()):
            return ""
        if scope["path"] == "/health":
            return ""
        return "expected the token, as `Authorization: Bearer TOKEN` or first in the path"
