"""Games as an environment server of OpenEnv 0.10: the socket, the requests, and who may come in.

A session is one game. The socket ``/ws`` opens one for its connection; ``openenv/session/create``
of ``/mcp`` opens one that requests name by ``session_id``, and that a socket may join. The
protocol is that of the wheel ``openenv`` 0.10.0; ``docs/serve.md`` describes what is beyond it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from rollout.interop import openenv_wire as wire
from rollout.interop.games import Game, Games
from rollout.interop.gate import Gate
from rollout.interop.moments import Moment
from rollout.interop.openenv_tasks import Tasks
from rollout.interop.openenv_wire import Refused
from rollout.models.observations import is_shown_picture

_SEND_S = 30.0  # for a client to take an answer
_REAP_S = 5.0  # between two looks for sessions that are idle
_GOING_AWAY, _TRY_LATER = 1001, 1013  # codes of a close
_ENCODERS = 4  # threads that encode pictures

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Session:
    """One client's game.

    Attributes:
        game: the game.
        episode: the name that the client gave its episode, or a random one.
        attached: whether a socket has it.
        used: when it was used last, monotonic seconds.
    """

    game: Game
    episode: str | None = None
    attached: bool = False
    used: float = field(default_factory=time.monotonic)

    @property
    def plays(self) -> bool:
        """True if an episode is in progress."""
        last = self.game.last
        return self.game.busy or (last is not None and not last.done)


class OpenEnvServer:
    """Serves games; ``app`` is the ASGI application.

    Args:
        games: the games; each session takes one.
        name: name of the environment in the Task API.
        token: what clients must send; None to serve the programs of this machine only.
        idle_s: time after which a session that is not used ends.
        message_bytes: largest request; the socket has its own limit.

    Attributes:
        sessions: those that are open, by their names.
        draining: set to refuse new sessions and new episodes.
    """

    def __init__(
        self, games: Games, name: str, token: str | None, idle_s: float, message_bytes: int
    ) -> None:
        self.games, self.name, self.draining = games, name, False
        self.sessions: dict[str, Session] = {}
        self._idle_s, self._message_bytes = idle_s, message_bytes
        shown = games.spec.observation_space.spaces.values()
        self._encoders = (
            ThreadPoolExecutor(_ENCODERS) if any(map(is_shown_picture, shown)) else None
        )
        self._reaped = time.monotonic()
        self.app: ASGIApp = Gate(Starlette(routes=self._routes()), token)

    @property
    def playing(self) -> int:
        """Number of sessions with an episode in progress."""
        return sum(session.plays for session in self.sessions.values())

    def close(self) -> None:
        """Closes all sessions; the games stay."""
        for name in list(self.sessions):
            self._end(name)
        if self._encoders is not None:
            self._encoders.shutdown(wait=False)

    # -- sessions ------------------------------------------------------------------------------

    def begin(self, *, attached: bool = False) -> str:
        """Opens a session and returns its name.

        Raises:
            CapacityError: every game is in use.
            Refused: the server is ending.
        """
        self.reap()
        if self.draining:
            raise Refused(wire.CAPACITY, "the server is ending; connect to another", 503, "ending")
        name = secrets.token_urlsafe(18)
        self.sessions[name] = Session(self.games.open(), attached=attached)
        return name

    def find(self, name: object) -> Session:
        """Returns a session.

        Raises:
            Refused: there is none of this name.
        """
        session = self.sessions.get(name) if isinstance(name, str) else None
        if session is None:
            raise Refused(
                wire.SESSION,
                f"there is no session {str(name)[:64]!r}: it was closed, was idle for more than "
                f"{self._idle_s:g} s, or never was; open another",
                *(404, "gone"),
            )
        session.used = time.monotonic()
        return session

    def _end(self, name: str) -> None:
        session = self.sessions.pop(name, None)
        if session is not None:
            session.game.close()

    def reap(self) -> None:
        """Ends sessions that no socket has and that were idle for too long."""
        now = time.monotonic()
        if now < self._reaped + _REAP_S:
            return
        self._reaped = now
        for name, session in list(self.sessions.items()):
            if not session.attached and session.used < now - self._idle_s:
                self._end(name)

    async def _reset(self, session: Session, data: object) -> dict[str, Any]:
        if self.draining:
            raise Refused(wire.SESSION, "the server is ending; connect to another", 503, "ending")
        where = wire.reset_arguments(data)
        moment = await session.game.reset_async(**where)
        assert isinstance(data, dict)
        session.episode = data.get("episode_id") or secrets.token_hex(8)
        return await self._observation(session, moment)

    async def _step(self, session: Session, action: object) -> dict[str, Any]:
        moment = await session.game.step_async(wire.action_of(action))
        return await self._observation(session, moment)

    async def _observation(self, session: Session, moment: Moment) -> dict[str, Any]:
        make = partial(wire.observation_data, moment, session.episode or "", self.games.task.goal)
        if self._encoders is None:
            return make()
        return await asyncio.get_running_loop().run_in_executor(self._encoders, make)

    # -- the socket ----------------------------------------------------------------------------

    async def _socket(self, socket: WebSocket) -> None:
        await socket.accept()
        given = socket.query_params.get("session_id")
        try:
            name = self.begin(attached=True) if given is None else given
            session = self.find(name)
            if given is not None and session.attached:
                raise Refused(
                    wire.SESSION, "another client is connected to this session", 409, "busy"
                )
        except Exception as error:  # noqa: BLE001 - each is answered with a code
            await self._send(socket, "error", wire.error_data(self._told(error)))
            await socket.close(_TRY_LATER)
            return
        session.attached = True
        try:
            await self._converse(socket, session)
        except (WebSocketDisconnect, TimeoutError, OSError):
            pass  # it is gone, or does not read
        finally:
            session.attached, session.used = False, time.monotonic()
            if given is None:
                self._end(name)

    async def _converse(self, socket: WebSocket, session: Session) -> None:
        while True:
            try:
                async with asyncio.timeout(self._idle_s):
                    received = await socket.receive()
            except TimeoutError:
                late = f"nothing was sent for {self._idle_s:g} s; connect again"
                await self._send(
                    socket, "error", wire.error_data(Refused(wire.SESSION, late, 408, "idle"))
                )
                await socket.close(_GOING_AWAY)
                return
            if received["type"] == "websocket.disconnect":
                return
            session.used = time.monotonic()
            try:
                answer = await self._answer(session, received.get("text"))
            except Exception as error:  # noqa: BLE001 - each is answered with a code
                answer = "error", wire.error_data(self._told(error))
            if answer is None:
                await socket.close()
                return
            await self._send(socket, *answer)

    async def _send(self, socket: WebSocket, kind: str, data: dict[str, Any]) -> None:
        """Sends a message; a client that does not read is left after a time."""
        async with asyncio.timeout(_SEND_S):
            await socket.send_text(wire.write(kind, data))

    async def _answer(
        self, session: Session, text: str | None
    ) -> tuple[str, dict[str, Any]] | None:
        """Returns kind and data of the answer to a message; None if the client ends the session."""
        if text is None:
            raise Refused(wire.INVALID_JSON, "expected JSON in a text message, got bytes", 400)
        message = wire.read(text)
        kind = message.get("type")
        if extra := message.keys() - {"type", "data"}:
            raise Refused(wire.VALIDATION, f"expected type and data, got also {sorted(extra)[:5]}")
        if kind == "reset":
            return "observation", await self._reset(session, message.get("data", {}))
        if kind == "step":
            return "observation", await self._step(session, message.get("data"))
        if kind == "state":
            return "state", wire.state_data(session.game.last, session.episode)
        if kind == "mcp":
            return "mcp", self._rpc(message.get("data"))
        if kind == "close":
            return None
        known = "expected reset, step, state, mcp or close"
        raise Refused(wire.UNKNOWN_TYPE, f"Unknown message type: {str(kind)[:64]!r}; {known}")

    def _told(self, error: Exception) -> Refused:
        refused = wire.refusal_of(error)
        if refused.reason == "internal":
            log.error("a request failed", exc_info=error)
        return refused

    # -- requests ------------------------------------------------------------------------------

    def _routes(self) -> list[Route | WebSocketRoute]:
        tasks, paths = Tasks(self.games, self.name), dict[str, dict[str, str]]()
        plain: dict[str, tuple[Callable[[], Any], str]] = {
            "/health": (self._health, "Health of the server"),
            "/metadata": (self._metadata, "Name and goal of the environment"),
            "/schema": (partial(wire.schemas, self.games), "Actions, observations, states"),
            "/list_environments": (lambda: [self.name], "Names of the environments"),
            "/openapi.json": (lambda: wire.openapi(paths), "This document"),
        }
        named: dict[str, tuple[str, Callable[..., Any], str]] = {
            "/state": ("get", self._http_state, "State of a session"),
            "/reset": ("post", self._http_reset, "Begins an episode"),
            "/step": ("post", self._http_step, "Plays an action"),
            "/mcp": ("post", self._http_rpc, "JSON-RPC: sessions"),
            "/{env_name}/splits": ("get", tasks.splits, "State sets"),
            "/{env_name}/tasks": ("post", tasks.tasks, "Tasks of a split"),
            "/{env_name}/num_tasks": ("post", tasks.num_tasks, "Number of tasks of a split"),
            "/{env_name}/task": ("post", tasks.task, "A task"),
            "/{env_name}/task_range": ("post", tasks.tasks, "Some tasks of a split"),
        }
        paths |= {path: {"get": about} for path, (_, about) in plain.items()}
        paths |= {path: {method: about} for path, (method, _, about) in named.items()}
        routes: list[Route | WebSocketRoute] = [WebSocketRoute("/ws", self._socket)]
        for path, (make, _) in plain.items():
            routes.append(Route(path, self._serving(partial(_call, make), body=False)))
        for path, (method, function, _) in named.items():
            serve = self._serving(function, body=method == "post")
            routes.append(Route(path, serve, methods=[method.upper()]))
        return routes

    def _serving(
        self, function: Callable[[Request, Any], Any], *, body: bool
    ) -> Callable[[Request], Awaitable[Response]]:
        """Returns the endpoint of a function of a request and its body."""

        async def endpoint(request: Request) -> Response:
            status = 200
            try:
                data = await self._body(request) if body else b""
                found = function(request, data)
                if isinstance(found, Awaitable):
                    found = await found
            except Exception as error:  # noqa: BLE001 - each is answered with a code
                refused = self._told(error)
                found, status = {"detail": wire.error_data(refused)}, refused.status
            if request.url.path.endswith("/health") and self.draining:
                status = 503
            return Response(wire.document(found), status, media_type="application/json")

        return endpoint

    async def _body(self, request: Request) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout(_SEND_S):
                async for part in request.stream():
                    body += part
                    if len(body) > self._message_bytes:
                        most = f"expected a body of at most {self._message_bytes} bytes"
                        raise Refused(wire.VALIDATION, most, 413, "too_large")
        except ClientDisconnect as error:
            half = "the connection was closed in the middle of the body"
            raise Refused(wire.VALIDATION, half, 400) from error
        except TimeoutError:
            late = f"the body did not arrive within {_SEND_S:g} s"
            raise Refused(wire.VALIDATION, late, 408, "timeout") from None
        return bytes(body)

    def _health(self) -> dict[str, Any]:
        return {"status": "degraded" if self.draining else "healthy"}

    def _metadata(self) -> dict[str, Any]:
        spec, task = self.games.spec, self.games.task
        return {
            "name": self.name,
            "description": task.goal or f"{spec.name}, task {task.name}",
            "version": spec.version,
        }

    async def _http_reset(self, _: Request, body: bytes) -> dict[str, Any]:
        data = wire.read(body or b"{}")
        given = data.pop("session_id", None)
        if given is not None:
            return await self._reset(self.find(given), data)
        name = self.begin(attached=True)  # as OpenEnv has it: what it begins ends with the answer
        try:
            return await self._reset(self.sessions[name], data)
        finally:
            self._end(name)

    async def _http_step(self, _: Request, body: bytes) -> dict[str, Any]:
        data = wire.read(body)
        if data.get("session_id") is None:
            raise Refused(
                wire.SESSION,
                "a step without a session_id has no episode: create a session by "
                "openenv/session/create at /mcp, or use the socket /ws",
                *(409, "out_of_turn"),
            )
        session = self.find(data["session_id"])
        limit = data.get("timeout_s")
        if limit is not None and not (isinstance(limit, int | float) and 0 < limit < 1e6):
            raise Refused(wire.VALIDATION, f"timeout_s: expected seconds above 0, got {limit!r}")
        try:
            async with asyncio.timeout(limit):
                return await self._step(session, data.get("action"))
        except TimeoutError:
            late = f"the step takes longer than timeout_s={limit:g}; the session is busy with it"
            raise Refused(wire.EXECUTION, late, 504, "timeout") from None

    def _http_state(self, request: Request, _: bytes) -> dict[str, Any]:
        name = request.query_params.get("session_id")
        if name is None:
            return wire.state_data(None, None)
        session = self.find(name)
        return wire.state_data(session.game.last, session.episode)

    def _http_rpc(self, _: Request, body: bytes) -> dict[str, Any]:
        try:
            request = wire.read(body)
        except Refused as error:
            return _rpc_error(None, -32700, str(error))
        return self._rpc(request)

    def _rpc(self, request: object) -> dict[str, Any]:
        """Returns the answer to a request of JSON-RPC."""
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            return _rpc_error(None, -32600, "expected a request of JSON-RPC 2.0 with a method")
        number, params = request.get("id"), request.get("params", {})
        if not isinstance(params, dict):
            return _rpc_error(number, -32602, "expected params as an object")
        try:
            if request["method"] == "openenv/session/create":
                result: dict[str, Any] = {"session_id": self.begin()}
            elif request["method"] == "openenv/session/close":
                if self.find(params.get("session_id")).attached:
                    raise Refused(
                        wire.SESSION, "a client is connected to this session", 409, "busy"
                    )
                self._end(params["session_id"])
                result = {"session_id": params["session_id"], "closed": True}
            else:
                return _rpc_error(number, -32601, f"Method not found: {request['method'][:64]}")
        except Exception as error:  # noqa: BLE001 - each is answered with a code
            refused = self._told(error)
            return _rpc_error(number, -32000, str(refused), wire.error_data(refused))
        return {"jsonrpc": "2.0", "id": number, "result": result}


def _call(make: Callable[[], Any], _: Request, __: bytes) -> Any:
    return make()


def _rpc_error(
    number: object, code: int, message: str, data: dict[str, Any] | None = None
) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": number, "error": error}
