"""Any OpenEnv server as a bridge."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bridges.openenv.client import INDEX, SEED, SPLIT, TASK, OpenenvSession, Server
from bridges.openenv.columns import Shape, shape_of
from bridges.openenv.instance import SIGNALS, ServedInstance, Session
from rollout.api import (
    BridgeSpec,
    Deadlines,
    Factor,
    Instance,
    NamedCode,
    Resources,
    Start,
    StateSpace,
    option,
)
from rollout.errors import ConfigError

MAX_SEEDS = 2**31
_MOST_TASKS = 2**17
PROBE_S = 60.0


@dataclass(frozen=True)
class Served:
    """What is known of a game behind a server once it was asked.

    Attributes:
        name: of the game.
        version: of the server.
        shape: its columns.
        space: its states.
        mission: goal for policies.
    """

    name: str
    version: str
    shape: Shape
    space: StateSpace
    mission: str = ""


@dataclass(frozen=True)
class ServedBridge:
    """What the bridges of this package have in common."""

    url: str = option("", "address of the server")
    command: tuple[str, ...] = option((), "program that is started as server, for each instance")
    token: str = option("", "environment variable with the bearer token; empty for none")
    seeds: int = option(
        MAX_SEEDS, "states of a server without tasks: the seeds 0 to seeds - 1", ge=1, le=MAX_SEEDS
    )
    reproducible: bool = option(
        True, "whether the server repeats an episode bit for bit; false if it ignores seeds"
    )
    goal: str = option("", "goal told to policies, before the list of tools if there are any")
    step_s: float = option(60.0, "longest time of a step", unit="s", gt=0)

    needs_port: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"url must begin with http:// or https://, got {self.url!r}")
        self.check_texts("command")

    def check_texts(self, *names: str) -> None:
        """Makes tuples of options that are lists of texts.

        Raises:
            ConfigError: one is not.
        """
        for name in names:
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) for each in value):
                raise ConfigError(f"{name} must be a list of texts, got {value!r}")
            object.__setattr__(self, name, tuple(value))

    def code(self) -> Sequence[NamedCode]:
        """Returns the program that its options name; see ``rollout.api.NamesCode``."""
        return [NamedCode("command", self.command[0], program=True)] if self.command else []

    def session(self, workdir: Path, port: int, timeout_s: float) -> Session:
        """Returns a new game."""
        raise NotImplementedError

    def ask(self, workdir: Path) -> Served:
        """Returns what the server says of its game."""
        raise NotImplementedError

    @cached_property
    def _served(self) -> Served:
        with tempfile.TemporaryDirectory() as folder:
            return self.ask(Path(folder))

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; asks the server, once.

        Raises:
            GameStartError: it does not answer.
            ConfigError: what it describes is no game, or the options do not fit it.
        """
        served = self._served
        return BridgeSpec(
            name=served.name,
            version=served.version,
            observation_space=served.shape.observations,
            action_space=served.shape.actions,
            state_space=served.space,
            signals=SIGNALS,
            reproducible=self.reproducible,
            uses_seed=SEED not in (factor.name for factor in served.space),
            deadlines=Deadlines(PROBE_S, max(self.step_s, 30.0), self.step_s, 10.0),
            resources=Resources(memory_mb=200),
            ports=1 if self.needs_port and self.command else 0,
            action_labels=served.shape.labels,
            action_defaults=served.shape.defaults,
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Opens a session, on a server of its own if there is a command."""
        self.spec.require_width(width)
        session = self.session(workdir, ports[0] if ports else 0, timeout_s)
        return ServedInstance(self._served.name, session, self._served.shape, self._served.mission)


def seed_space(seeds: int) -> StateSpace:
    """Returns the states of a game that is determined by a seed."""
    return StateSpace((Factor(SEED, range(seeds), doc="what the reset gets"),))


def with_tools(goal: str, tools: Sequence[Mapping[str, Any]]) -> str:
    """Returns a goal with the tools that an agent may call and the schemas of their arguments."""
    lines = [
        f"- {tool['name']}: {tool.get('description') or ''}\n"
        f"  arguments: {json.dumps(tool.get('schema') or {}, ensure_ascii=False)}"
        for tool in tools
    ]
    return "\n".join(each for each in [goal, *(["The tools:", *lines] if lines else [])] if each)


@dataclass(frozen=True)
class OpenenvBridge(ServedBridge):
    """Hosts an OpenEnv server as a game: the protocol of openenv 0.10.0.

    The state is a task of the server by split and index, if it has tasks, else a seed. Numbers,
    arrays of fixed shape and pictures of an observation are columns, other fields columns of text
    or JSON; the signal ``reward`` is the server's. The server is asked once, before launch.
    """

    splits: tuple[str, ...] = option((), "splits of the server to play; empty for all")
    schema: Mapping[str, Mapping[str, Any]] = option(
        dict,
        "JSON schemas that replace those of fields: {action: {FIELD: ...}, observation: {...}}",
    )

    needs_port: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_texts("splits")
        if not self.url:
            raise ConfigError(
                "url is missing: the address of an OpenEnv server, e.g. http://127.0.0.1:8000"
            )
        if bool(self.command) != ("{port}" in self.url):
            raise ConfigError(
                "command and {port} in url belong together, e.g. url=http://127.0.0.1:{port} with "
                f"command=[python, -m, my.app, '{{port}}'], got url={self.url!r}"
            )
        schema: Any = self.schema
        whole = isinstance(schema, Mapping) and not {*schema} - {"action", "observation"}
        if not whole or not all(isinstance(each, Mapping) for each in schema.values()):
            raise ConfigError(
                "schema must be {action: {FIELD: JSON schema}, observation: {...}}, got "
                f"{self.schema}"
            )

    def session(self, workdir: Path, port: int, timeout_s: float) -> OpenenvSession:
        """Returns a new game on the server, or on one of its own."""
        words, token = self.command, self.token
        server = Server(
            self.url, words, token=token, workdir=workdir, port=port, timeout_s=timeout_s
        )
        return OpenenvSession(server, timeout_s=timeout_s)

    def ask(self, workdir: Path) -> Served:
        """Returns what the server says of its game."""
        session = self.session(workdir, free_port(), PROBE_S)
        try:
            return self._ask(session)
        finally:
            session.close()

    def _ask(self, session: OpenenvSession) -> Served:
        server = session.server
        schema = server.ask("/schema", timeout_s=PROBE_S) or {}
        about = server.ask("/metadata", timeout_s=PROBE_S) or {}
        tasks = server.tasks(timeout_s=PROBE_S)
        unknown = [split for split in self.splits if split not in tasks]
        if unknown:
            raise ConfigError(
                f"splits: the server has no {unknown[0]!r}; it has {', '.join(tasks) or 'none'}"
            )
        tasks = {k: n for k, n in tasks.items() if not self.splits or k in self.splits}
        space = self._space(tasks)
        start = Start(space.state(0), 0)
        first = session.reset(start, timeout_s=PROBE_S).observation
        action, tools = schema.get("action") or {}, list[dict[str, Any]]()
        if action.get("properties", {}).get("type", {}).get("const") == "call_tool":
            tools = self._tools(session)
            names = {"tool_name": {"enum": [tool["name"] for tool in tools]}}
            action = {**action, "properties": action["properties"] | (names if tools else {})}
        shape = shape_of(
            replaced(action, self.schema.get("action", {})),
            replaced(schema.get("observation") or {}, self.schema.get("observation", {})),
            first,
        )
        name, version = about.get("name") or self.url, about.get("version") or "unknown"
        mission = with_tools(self.goal, tools)
        return Served(str(name), f"1/openenv {version}", shape, space, mission)

    @staticmethod
    def _tools(session: OpenenvSession) -> list[dict[str, Any]]:
        """Returns the tools of a server whose actions are calls of tools."""
        call = {"jsonrpc": "2.0", "method": "tools/list", "params": {}, "id": 1}
        answer = session.ask("mcp", call, timeout_s=PROBE_S)
        result = (answer.get("data") or {}).get("result") or {}
        return [
            {
                "name": str(tool["name"]),
                "description": tool.get("description"),
                "schema": tool.get("inputSchema") or tool.get("input_schema"),
            }
            for tool in result.get("tools", ())
        ]

    def _space(self, tasks: Mapping[str, int]) -> StateSpace:
        if not tasks:
            return seed_space(self.seeds)
        if len(tasks) == 1:
            [(split, count)] = tasks.items()
            doc = "number of the server's task in its split"
            return StateSpace((Factor(SPLIT, (split,)), Factor(INDEX, range(count), doc=doc)))
        if sum(tasks.values()) > _MOST_TASKS:
            raise ConfigError(
                f"the server has {sum(tasks.values())} tasks, more than {_MOST_TASKS} in "
                f"several splits; name one in bridge.splits: {', '.join(tasks)}"
            )
        names = [f"{split}/{number}" for split, count in tasks.items() for number in range(count)]
        return StateSpace((Factor(TASK, names, doc="split and index of the server's task"),))


def replaced(schema: Mapping[str, Any], fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a schema of an object with other schemas for some of its fields."""
    return {**schema, "properties": {**schema.get("properties", {}), **fields}}


def free_port() -> int:
    """Returns a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
