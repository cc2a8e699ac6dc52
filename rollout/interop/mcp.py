"""Games as an MCP server: reset, act, observe and legal_actions are tools, one session a game."""

from __future__ import annotations

import base64
import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rollout.cli import Session
from rollout.config import BridgeConfig, HostConfig, LogConfig, Section, StateSetConfig, key
from rollout.errors import ConfigError, GamutError, OutOfTurnError, missing_extra
from rollout.interop.failures import CapacityError, GameLost, code_of
from rollout.interop.games import SPLITS, Game, Games
from rollout.interop.moments import Moment
from rollout.models.grammar import UnusableAnswerError
from rollout.models.observations import observation_values
from rollout.signals import Stopped, say

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server import Server
    from starlette.applications import Starlette
    from starlette.types import Receive, Scope, Send

PATH = "/mcp"
_ERROR = -32000  # of JSON-RPC: the server failed, and no result is made up
_SESSION, _VERSION = "mcp-session-id", b"mcp-protocol-version"
_INTEGER = {"type": "integer", "minimum": 0}
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


class McpConfig(Section):
    """Serves the games of a task to one MCP client by standard input and output, or by HTTP."""

    bridge: BridgeConfig = key(..., "The game.")
    task: str = key(
        "", "Task of the bridge, or path of a .yaml file; empty for the game's own reward."
    )
    state_set: StateSetConfig = key(
        StateSetConfig, "Where episodes start unless clients say, and how states are divided."
    )
    seed: int = key(0, "Seed of the seeds that clients do not give.", ge=0)
    port: int | None = key(
        None,
        "Port of this machine's loopback interface for streamable HTTP; null for standard input "
        "and output.",
        ge=1,
        le=65535,
    )
    games: int = key(1, "Games, and with them the most sessions at once.", unit="games", gt=0)
    idle_s: float = key(
        600.0, "Time after which another session may take the game of one.", unit="s", gt=0
    )
    host: HostConfig = key(HostConfig, "How games are hosted and restarted.")
    log: LogConfig = key(LogConfig, "Log output.")


class McpGames:
    """The tools of an MCP server over games; each session has a game from its first reset on.

    Args:
        games: the games.
        name: of the server.
        idle_s: seconds without a call after which another session may take a game.
    """

    def __init__(self, games: Games, name: str, *, idle_s: float = 600.0) -> None:
        self._games, self._name, self._idle_s = games, name, idle_s
        self._held: dict[str, tuple[Game, float]] = {}  # by session, least recently used first

    def server(self) -> Server[Any]:
        """Returns a server for any transport of the package ``mcp``."""
        from mcp.server import Server  # noqa: PLC0415 - an extra

        actions = self._games.grammar.description
        told = [
            self._games.task.goal,
            "Call reset to begin an episode, then act until it has ended.",
            f"An action is {actions[:1].lower()}{actions[1:]}",
        ]
        return Server(
            self._name,
            version=self._games.spec.version,
            instructions="\n".join(filter(None, told)),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        del context, params
        from mcp_types import ListToolsResult, Tool  # noqa: PLC0415 - an extra

        where = {
            "seed": {**_INTEGER, "description": "seed of the episode"},
            "split": {"enum": [each for each in SPLITS if each in self._games.splits]},
            "index": {**_INTEGER, "description": "number of the state in the split"},
        }
        act = {"action": self._games.grammar.schema}
        tools = {
            "reset": ("Begins an episode.", {"type": "object", "properties": where}),
            "act": (
                "Plays an action and returns what is seen then.",
                {"type": "object", "properties": act, "required": ["action"]},
            ),
            "observe": ("Returns what is seen now, once more.", _NO_ARGUMENTS),
            "legal_actions": ("Returns all actions, and which are legal now.", _NO_ARGUMENTS),
        }
        return ListToolsResult(
            tools=[
                Tool(name=name, description=doc, input_schema=schema)
                for name, (doc, schema) in tools.items()
            ]
        )

    async def _call(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        from mcp import MCPError  # noqa: PLC0415 - an extra
        from mcp_types import INVALID_PARAMS, CallToolResult, TextContent  # noqa: PLC0415

        session = context.request.headers.get(_SESSION, "") if context.request else ""
        given = params.arguments or {}
        try:
            return await self._play(params.name, given, session)
        except (CapacityError, GameLost) as error:
            raise MCPError(_ERROR, f"{code_of(error)}: {error}") from error
        except _UnknownError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except (GamutError, UnusableAnswerError) as error:
            code = code_of(error)
            told = TextContent(type="text", text=f"{code}: {error}")
            return CallToolResult(content=[told], structured_content={"error": code}, is_error=True)

    async def _play(
        self, tool: str, given: Mapping[str, Any], session: str
    ) -> types.CallToolResult:
        known = {"reset": ("seed", "split", "index"), "act": ("action",)}
        if tool not in ("reset", "act", "observe", "legal_actions"):
            raise _UnknownError(
                f"there is no tool {tool!r}; expected reset, act, observe or legal_actions"
            )
        for name in given:
            if name not in known.get(tool, ()):
                raise _UnknownError(f"{tool} takes no {name!r}")
        if tool == "reset":
            return _result(await self._game(session).reset_async(**given))
        game = self._held[session][0] if session in self._held else None
        if tool == "legal_actions":
            return self._legal(game)
        if game is None or game.last is None:
            raise OutOfTurnError("there is no episode; call reset first")
        if tool == "observe":
            return _result(game.last)
        if "action" not in given:
            raise _UnknownError("act needs 'action'")
        self._held[session] = (game, time.monotonic())
        return _result(await game.step_async(given["action"]))

    def _game(self, session: str) -> Game:
        """Returns the game of a session; takes one that is free, or one that was left."""
        held = self._held.pop(session, None)
        if held is not None:
            game = held[0]
        else:
            try:
                game = self._games.open()
            except CapacityError:
                oldest = min(self._held, key=lambda name: self._held[name][1], default=None)
                if oldest is None or time.monotonic() - self._held[oldest][1] < self._idle_s:
                    raise
                self._held.pop(oldest)[0].close()
                game = self._games.open()
        self._held[session] = (game, time.monotonic())
        return game

    def _legal(self, game: Game | None) -> types.CallToolResult:
        from mcp_types import CallToolResult, TextContent  # noqa: PLC0415 - an extra

        grammar = self._games.grammar
        legal = game.last.legal if game is not None and game.last is not None else ""
        text = "\n".join(
            filter(None, (grammar.description, f"Legal now: {legal}" if legal else ""))
        )
        return CallToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content={"schema": grammar.schema, "legal": legal},
        )

    def http_app(self) -> Starlette:
        """Returns an application of streamable HTTP under ``/mcp``, for programs of this machine.

        Only protocol versions with sessions are spoken; clients of later ones fall back to them.
        """
        from starlette.middleware import Middleware  # noqa: PLC0415 - an extra

        app = self.server().streamable_http_app(streamable_http_path=PATH, json_response=True)
        app.user_middleware.append(Middleware(_WithSessions, left=self._left))
        return app

    def _left(self, session: str) -> None:
        """Gives back the game of a session that its client has ended."""
        held = self._held.pop(session, None)
        if held is not None:
            held[0].close()


class _UnknownError(Exception):
    """A call of a tool that there is not, or with arguments that it does not take."""


class _WithSessions:
    """Refuses requests of protocol versions without sessions, in which no game can be kept.

    Args:
        app: what serves the others.
        left: called with the session that a client has ended.
    """

    def __init__(self, app: Any, left: Callable[[str], None]) -> None:
        self._app, self._left = app, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request or refuses it."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: PLC0415 - an extra
        from starlette.responses import PlainTextResponse  # noqa: PLC0415

        sent = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        if sent.get(_VERSION, HANDSHAKE_PROTOCOL_VERSIONS[0]) in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
            if scope.get("method") == "DELETE":
                self._left(sent.get(_SESSION.encode(), ""))
            return
        known = ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
        refused = PlainTextResponse(f"expected a protocol version with sessions: {known}", 400)
        await refused(scope, receive, send)


def _result(moment: Moment) -> types.CallToolResult:
    """Returns what a client sees: text, pictures without loss, and numbers as data."""
    from mcp_types import CallToolResult, ImageContent, TextContent  # noqa: PLC0415 - an extra

    small = observation_values(moment.spec, moment.columns, 0, moment.details)["observation"]
    ended = moment.result
    data = {
        "observation": small,
        "step": moment.step,
        "reward": moment.reward,
        "progress": None if math.isnan(moment.progress) else moment.progress,
        "done": moment.done,
        "terminated": moment.terminated,
        "truncated": moment.truncated,
        "success": moment.success,
        "legal": moment.legal,
        "total_reward": None if ended is None else ended.total_reward,
    }
    texts = [moment.text()]
    if ended is not None:
        texts.append(
            f"The episode has ended ({moment.end}): total reward {ended.total_reward:g}, "
            f"success {'undecided' if moment.success is None else str(moment.success).lower()}."
        )
    content: list[Any] = [TextContent(type="text", text=text) for text in texts if text]
    for _, file in moment.pictures():
        picture = base64.b64encode(file).decode("ascii")
        content.append(ImageContent(type="image", data=picture, mime_type="image/png"))
    return CallToolResult(content=content, structured_content=data)


def mcp(config: McpConfig, session: Session) -> str | None:
    """Serves until the client has closed the connection, or a signal arrives."""
    del session
    if config.port is None and config.games != 1:
        raise ConfigError(
            f"games={config.games}: one client plays one game by standard input and output; set "
            "port too, or games=1"
        )
    with (
        _needed(),
        Games(
            config.bridge,
            config.task,
            games=config.games,
            state_set=config.state_set,
            host=config.host,
            seed=config.seed,
        ) as games,
    ):
        served = McpGames(games, config.bridge.name, idle_s=config.idle_s)
        if config.port is None:
            _serve_stdio(served)
        else:
            _serve_http(served, config.port)
    return None


@contextlib.contextmanager
def _needed() -> Iterator[None]:
    try:
        import mcp.server  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise missing_extra("gamut mcp", "mcp") from error
    yield


def _serve_stdio(served: McpGames) -> None:
    import anyio  # noqa: PLC0415
    from mcp.server.stdio import stdio_server  # noqa: PLC0415

    async def serve() -> None:
        server = served.server()
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())

    anyio.run(serve)


def _serve_http(served: McpGames, port: int) -> None:
    import uvicorn  # noqa: PLC0415

    say(f"http://127.0.0.1:{port}{PATH} (Ctrl-C ends)")
    config = uvicorn.Config(
        served.http_app(), host="127.0.0.1", port=port, log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    with contextlib.suppress(Stopped):
        server.run()
