"""Any MCP server as a bridge: its tools are the actions, their results the observations."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bridges.openenv.bridge import PROBE_S, Served, ServedBridge, seed_space, with_tools
from bridges.openenv.client import SEED, headers
from bridges.openenv.columns import shape_of
from bridges.openenv.instance import Reply, flag_of, reward_of
from rollout.api import Start, option
from rollout.errors import ConfigError, GameCrashed, GameStartError, GameTimeout, missing_extra
from rollout.files import open_file

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client

T = TypeVar("T")

TEXT, PICTURE = "text", "picture"
_LOG = "server.log"
_SHOWN = 2000  # characters of the log of a server in an error
_CLOSE_S = 8.0
_TOLD = (-32602, -32601)  # JSON-RPC: invalid arguments, unknown method


@dataclass(frozen=True)
class McpBridge(ServedBridge):
    """Hosts an MCP server as a game, by its standard input and output or by HTTP.

    An action is the name of a tool and its arguments as JSON; with a single tool its arguments are
    the columns. The observation is the text of the result, and its pictures. The state is a seed,
    which the tool ``reset`` gets if it takes one. The server is asked once, before launch.
    """

    tools: tuple[str, ...] = option((), "tools that are actions; empty for all but that of reset")
    reset: str = option(
        "reset", "tool that begins an episode; a server without it gets a new session for each"
    )
    reset_arguments: Mapping[str, Any] = option(dict, "further arguments of that tool")
    reward: str = option("reward", "field of a result with the reward, e.g. info/score")
    done: str = option("done", "field of a result that says whether the episode has ended")
    truncated: str = option("truncated", "field of a result that says whether it was cut")
    ends: tuple[str, ...] = option((), "tools whose call ends the episode")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_texts("tools", "ends")
        if bool(self.url) == bool(self.command):
            raise ConfigError(
                "expected either url, e.g. http://127.0.0.1:8000/mcp, or command, e.g. "
                f"[python, my_server.py], got url={self.url!r} and command={[*self.command]}"
            )

    def session(self, workdir: Path, port: int, timeout_s: float) -> McpSession:
        """Returns a new game: a connection of its own."""
        del port
        return McpSession(self, workdir, timeout_s)

    def ask(self, workdir: Path) -> Served:
        """Returns what the server says of its game."""
        session = self.session(workdir, 0, PROBE_S)
        try:
            offered = {tool.name: tool for tool in session.offered if tool.name != self.reset}
            for name in (*self.tools, *self.ends):
                if name not in offered:
                    raise ConfigError(
                        f"tools: the server has no tool {name!r}; it has {', '.join(offered)}"
                    )
            tools = [offered[name] for name in self.tools or offered]
            if not tools:
                raise ConfigError("the server offers no tools that could be actions")
            space = seed_space(self.seeds)
            first = session.reset(Start(space.state(0), 0), timeout_s=PROBE_S).observation
            told = [
                {"name": tool.name, "description": tool.description, "schema": tool.input_schema}
                for tool in tools
            ]
            return Served(
                session.title,
                session.version,
                shape_of(self._actions(tools), {"properties": {TEXT: {"type": "string"}}}, first),
                space,
                with_tools(self.goal or session.instructions, told),
            )
        finally:
            session.close()

    def _actions(self, tools: Sequence[mcp_types.Tool]) -> Mapping[str, Any]:
        """Returns the schema of the actions."""
        if len(tools) == 1 and tools[0].input_schema.get("properties"):
            return tools[0].input_schema
        names = [tool.name for tool in tools]
        fields = {"tool": {"enum": names}, "arguments": {"type": "object"}}
        return {"type": "object", "properties": fields, "required": ["tool"]}


class McpSession:
    """A connection to an MCP server, on an event loop in a thread of its own.

    Args:
        bridge: its options.
        workdir: folder of the log of a server that is started.
        timeout_s: seconds until the server must have told its tools.

    Raises:
        ConfigError: the package ``mcp`` is missing.
        GameStartError: the server does not start or answer.
    """

    def __init__(self, bridge: McpBridge, workdir: Path, timeout_s: float) -> None:
        try:
            from anyio.from_thread import start_blocking_portal  # noqa: PLC0415
            from mcp import MCPError  # noqa: PLC0415
        except ImportError as error:
            raise missing_extra("the bridge mcp", "mcp") from error
        self._bridge, self._log, self._error = bridge, workdir / _LOG, MCPError
        self._stack, self._fresh = contextlib.ExitStack(), True
        self._portal = self._stack.enter_context(start_blocking_portal())
        self._alive: concurrent.futures.Future[None] | None = None
        self._seen: dict[str, Any] = {}
        try:
            self._connect(timeout_s)
        except BaseException:
            self.close()
            raise

    def _connect(self, timeout_s: float) -> None:
        """Opens a connection and lists the tools."""
        ready: concurrent.futures.Future[Client] = concurrent.futures.Future()
        self._alive = self._portal.start_task_soon(self._live, ready)
        try:
            self._client = ready.result(timeout_s)
            self.offered = self._wait(self._client.list_tools, timeout_s).tools
        except Exception as error:
            raise GameStartError(f"{self._name} did not start: {_said(error)}{self._why()}") from (
                error
            )
        info = self._client.server_info
        self.title = (info.title or info.name) if info else self._name
        self.version = f"1/mcp {info.version if info else 'unknown'}"
        self.instructions = self._client.instructions or ""
        tool = next((each for each in self.offered if each.name == self._bridge.reset), None)
        self._resets = tool is not None
        self._seeded = tool is not None and SEED in tool.input_schema.get("properties", {})

    async def _live(self, ready: concurrent.futures.Future[Client]) -> None:
        """Keeps the connection until ``close``; enters and leaves it in one task."""
        import anyio  # noqa: PLC0415
        from mcp import Client  # noqa: PLC0415

        self._over = anyio.Event()
        try:
            async with self._transport() as transport, Client(transport) as client:
                ready.set_result(client)
                await self._over.wait()
        except Exception as error:  # noqa: BLE001 - told to the thread that waits
            if not ready.done():
                ready.set_exception(error)

    @contextlib.asynccontextmanager
    async def _transport(self) -> AsyncIterator[Any]:
        from mcp import StdioServerParameters, stdio_client  # noqa: PLC0415
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415
        from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415

        if self._bridge.command:
            program, *words = self._bridge.command
            given = StdioServerParameters(command=program, args=words, env=dict(os.environ))
            with self._log.open("a") as log:
                yield stdio_client(given, errlog=log)
        else:
            async with create_mcp_http_client(headers(self._bridge.token)) as http:
                yield streamable_http_client(self._bridge.url, http_client=http)

    @property
    def _name(self) -> str:
        return self._bridge.url or " ".join(self._bridge.command)

    def _why(self) -> str:
        said = ""
        with contextlib.suppress(OSError), open_file(self._log) as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 4 * _SHOWN))
            said = log.read().decode(errors="replace").strip()[-_SHOWN:]
        return f"; its last output: {said}" if said else ""

    def _wait(
        self, call: Callable[..., Coroutine[Any, Any, T]], timeout_s: float, *given: Any
    ) -> T:
        pending = self._portal.start_task_soon(call, *given)
        try:
            found: T = pending.result(timeout_s)
            return found
        except concurrent.futures.TimeoutError:
            pending.cancel()
            raise

    def reset(self, start: Start, *, timeout_s: float) -> Reply:
        """Begins an episode."""
        self._seen = {}
        if not self._resets:
            if not self._fresh:
                self._disconnect()
                self._connect(timeout_s)
            self._fresh = False
            return Reply({TEXT: ""})
        seed = {SEED: start.state[SEED]} if self._seeded else {}
        reply = self._call(self._bridge.reset, {**self._bridge.reset_arguments, **seed}, timeout_s)
        if reply.details.get("is_error"):
            raise GameCrashed(f"{self._name} refused to reset: {reply.observation[TEXT]}")
        return reply

    def step(self, action: Mapping[str, Any], *, timeout_s: float) -> Reply:
        """Calls a tool."""
        if "tool" in action and len(self._bridge.tools) != 1:
            tool, given = str(action["tool"]), action.get("arguments", {})
            if not isinstance(given, dict):
                return Reply({}, error=f"arguments: expected a JSON object, got {given!r}")
        else:
            tool, given = self._only, dict(action)
        return self._call(tool, given, timeout_s)

    @property
    def _only(self) -> str:
        names = [tool.name for tool in self.offered if tool.name != self._bridge.reset]
        return (self._bridge.tools or names)[0]

    def _call(self, tool: str, given: dict[str, Any], timeout_s: float) -> Reply:
        try:
            result = self._wait(self._client.call_tool, timeout_s, tool, given)
        except concurrent.futures.TimeoutError as error:
            raise GameTimeout(f"{self._name}: {tool} gave no result in {timeout_s:g} s") from error
        except self._error as error:
            if error.code in _TOLD:
                return Reply({}, error=str(error))
            raise GameCrashed(f"{self._name} failed in {tool}: {error}{self._why()}") from error
        except Exception as error:
            raise GameCrashed(f"{self._name} failed in {tool}: {_said(error)}{self._why()}") from (
                error
            )
        return self._read(tool, result)

    def _read(self, tool: str, result: mcp_types.CallToolResult) -> Reply:
        """Returns a result as what an agent sees; a picture that is not in it stays the last."""
        texts = [part.text for part in result.content if part.type == "text"]
        pictures = [part.data for part in result.content if part.type == "image"]
        names = [PICTURE, *(f"{PICTURE}_{n}" for n in range(2, len(pictures) + 1))]
        self._seen |= {TEXT: "\n".join(texts), **dict(zip(names, pictures, strict=False))}
        data = result.structured_content
        if not isinstance(data, Mapping):
            data = _object(texts[0]) if len(texts) == 1 else {}
        bridge = self._bridge
        where = f"{self._name}: {tool}"
        reward = reward_of(_at(data, bridge.reward), where)
        truncated = flag_of(_at(data, bridge.truncated), f"{where}: {bridge.truncated}")
        done = flag_of(_at(data, bridge.done), f"{where}: {bridge.done}")
        return Reply(
            dict(self._seen),
            reward,
            done or tool in bridge.ends or truncated,
            truncated,
            details={"is_error": True} if result.is_error else {},
        )

    def _disconnect(self) -> None:
        alive, self._alive = self._alive, None
        if alive is not None:
            with contextlib.suppress(Exception):
                self._portal.call(self._over.set)
                alive.result(_CLOSE_S)
            alive.cancel()

    def close(self) -> None:
        """Ends the connection, and the server if it was started. Idempotent; never raises."""
        with contextlib.suppress(Exception):
            self._disconnect()
        with contextlib.suppress(Exception):
            self._stack.close()


def _object(text: str) -> Mapping[str, Any]:
    """Returns the JSON object that a text is, else an empty one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _at(data: Any, path: str) -> Any:
    """Returns the value at a path such as ``info/score``; None if there is none."""
    for name in path.split("/"):
        data = data.get(name) if isinstance(data, Mapping) else None
    return data


def _said(error: BaseException) -> str:
    """Returns an error as text; of a group of errors, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
