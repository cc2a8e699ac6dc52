"""A small client of OpenEnv servers: HTTP for what they are, a WebSocket for one game.

Written against the protocol of openenv 0.10.0.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import urllib3

from bridges.openenv.instance import Reply, flag_of, left, reward_of
from rollout.api import Start
from rollout.api.child_process import REAP_S, ChildProcess
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    missing_extra,
)

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

SEED, SPLIT, INDEX, TASK = "seed", "split", "index", "task"
"""Factors of the states: the seed of a reset; split and index of a task, or ``SPLIT/INDEX``."""

_LARGEST = 2**26  # bytes of a message
_PAUSE_S = 0.1  # between two attempts to reach a server
_END_S = 5.0  # for a server of ours to end
_SHOWN = 2000  # characters of its log, or of its answer, in an error
_REFUSED = ("CAPACITY_REACHED", "FACTORY_ERROR", "SESSION_ERROR")  # errors without a session


def headers(token: str) -> dict[str, str]:
    """Returns the headers of a request.

    Args:
        token: environment variable with a bearer token; empty for none.

    Raises:
        ConfigError: it is not set.
    """
    if not token:
        return {}
    if not (secret := os.environ.get(token, "").strip()):
        raise ConfigError(f"token: the environment variable {token} is not set; export the token")
    return {"Authorization": f"Bearer {secret}"}


class Server:
    """An OpenEnv server: one that runs elsewhere, or one that is started here.

    Args:
        url: its address; with ``{port}`` in it for a server that is started here.
        command: the program that is started, with ``{port}`` for its port; empty for none.
        token: see ``headers``.
        workdir: folder of its log.
        port: a free one.
        timeout_s: seconds until it must answer.

    Raises:
        GameStartError: it did not start or does not answer.
    """

    def __init__(
        self,
        url: str,
        command: Sequence[str] = (),
        *,
        token: str = "",
        workdir: Path,
        port: int = 0,
        timeout_s: float,
    ) -> None:
        self.url = url.replace("{port}", str(port)).rstrip("/")
        self.headers = headers(token)
        self._http = urllib3.PoolManager(maxsize=1, retries=False)
        self._child: ChildProcess | None = None
        if command:
            words = [word.replace("{port}", str(port)) for word in command]
            try:
                self._child = ChildProcess(words, log=workdir / "server.log")
            except OSError as error:
                raise GameStartError(f"command {words} cannot be started: {error}") from error
        try:
            self._await(time.monotonic() + timeout_s, timeout_s)
        except BaseException:
            self.close()
            raise

    def _await(self, deadline: float, timeout_s: float) -> None:
        pause = threading.Event()
        while True:
            try:
                self._http.request(
                    "GET", f"{self.url}/health", headers=self.headers, timeout=left(deadline) or 0.1
                )
            except urllib3.exceptions.HTTPError as error:
                if self._child is None or self._child.ended() or not left(deadline):
                    raise GameStartError(
                        f"{self.url} does not answer within {timeout_s:g} s: {error}{self.why()}"
                    ) from error
                pause.wait(_PAUSE_S)
            else:
                return

    def why(self) -> str:
        """Returns how a server of ours ended, and its last output, for an error."""
        if self._child is None:
            return ""
        how = self._child.ended(time.monotonic() + REAP_S)
        said = self._child.last_output(_SHOWN)
        return (f"; its server ended, {how}" if how else "") + (
            f"; its last output: {said}" if said else ""
        )

    def ask(self, path: str, data: Any = None, *, timeout_s: float) -> Any:
        """Returns the JSON answer to a GET request, or to a POST request with data.

        Returns:
            None if the server does not have it.

        Raises:
            GameStartError: it refuses the request or does not answer.
        """
        method = "GET" if data is None else "POST"
        extra = {} if data is None else {"json": data}
        try:
            found = self._http.request(
                method, f"{self.url}{path}", headers=self.headers, timeout=timeout_s, **extra
            )
            if found.status in {404, 405, 501}:
                return None
            if found.status != 200:
                text = found.data.decode(errors="replace")[:_SHOWN]
                raise GameStartError(f"{self.url}{path} answered {found.status}: {text}")
            return found.json()
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise GameStartError(f"{self.url}{path} did not answer: {error}{self.why()}") from error

    def tasks(self, *, timeout_s: float) -> dict[str, int]:
        """Returns the number of tasks of each split; empty if the server has no tasks."""
        names = self.ask("/list_environments", timeout_s=timeout_s) or []
        for name in names[:1]:
            place = f"/{quote(str(name), safe='')}"
            splits = self.ask(f"{place}/splits", timeout_s=timeout_s) or []
            found = {}
            for split in (str(each["name"]) for each in splits):
                count = self.ask(f"{place}/num_tasks", {"split": split}, timeout_s=timeout_s)
                found[split] = int((count or {}).get("num_tasks", 0))
            return {split: count for split, count in found.items() if count}
        return {}

    def close(self) -> None:
        """Ends it if it was started here. Idempotent; never raises."""
        self._http.clear()
        if self._child is not None:
            self._child.close(time.monotonic() + _END_S, patience_s=_END_S / 2)


class OpenenvSession:
    """One game on a server; see ``rollout.api.Instance`` for the errors.

    Args:
        server: the server, which is closed with the session.
        timeout_s: seconds until it must have a free session.

    Raises:
        ConfigError: the package ``websockets`` is missing.
        GameStartError: the server cannot be reached, or has no free session.
    """

    def __init__(self, server: Server, *, timeout_s: float) -> None:
        self.server = server
        self._stack = contextlib.ExitStack()
        self._stack.callback(server.close)
        try:
            self._socket = self._open(time.monotonic() + timeout_s)
        except BaseException:
            self.close()
            raise

    def _open(self, deadline: float) -> ClientConnection:
        """Returns a connection that has a session; waits for a free one."""
        try:
            from websockets.exceptions import WebSocketException  # noqa: PLC0415
            from websockets.sync.client import connect  # noqa: PLC0415
        except ImportError as error:
            raise missing_extra("the bridge openenv", "openenv") from error
        self._lost: tuple[type[Exception], ...] = (WebSocketException, OSError)
        parts = urlsplit(self.server.url)
        scheme = "wss" if parts.scheme == "https" else "ws"
        pause, refused = threading.Event(), ""
        while True:
            with contextlib.ExitStack() as stack:
                try:
                    socket = stack.enter_context(
                        connect(
                            f"{scheme}://{parts.netloc}{parts.path}/ws",
                            additional_headers=self.server.headers,
                            open_timeout=left(deadline),
                            close_timeout=1.0,
                            ping_interval=None,  # a step may keep a server from answering pings
                            max_size=_LARGEST,
                            legacy=False,
                        )
                    )
                    refused = self._refusal(socket, deadline)
                except (*self._lost, GameError) as error:
                    why = refused or f"{error}{self.server.why()}"
                    raise GameStartError(f"{self.server.url} opens no session: {why}") from error
                if not refused:
                    self._stack.push(stack.pop_all())
                    return socket
            if not left(deadline):
                raise GameStartError(f"{self.server.url} opens no session: {refused}")
            pause.wait(_PAUSE_S)

    def _refusal(self, socket: ClientConnection, deadline: float) -> str:
        """Returns why a server opened no session; empty if it did."""
        self._socket = socket
        answer = self.ask("state", None, timeout_s=left(deadline))
        data = answer.get("data") or {}
        if answer.get("type") == "error" and data.get("code") in _REFUSED:
            return f"{data.get('code')}: {data.get('message')}"
        return ""

    def ask(self, kind: str, data: Mapping[str, Any] | None, *, timeout_s: float) -> dict[str, Any]:
        """Sends a message and returns the answer, of type observation, state, mcp or error."""
        message = {"type": kind} | ({} if data is None else {"data": data})
        try:
            with contextlib.suppress(*self._lost):  # it may have said why before it closed
                self._socket.send(json.dumps(message))
            answer = json.loads(self._socket.recv(timeout=timeout_s))
        except TimeoutError as error:
            raise GameTimeout(
                f"{self.server.url} gave no answer to {kind} within {timeout_s:g} s"
            ) from error
        except self._lost as error:
            raise GameCrashed(
                f"the connection to {self.server.url} was lost in {kind}: "
                f"{error}{self.server.why()}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise GameCrashed(f"{self.server.url} answered {kind} with no JSON") from error
        if not isinstance(answer, dict):
            raise GameCrashed(f"{self.server.url} answered {kind} with {str(answer)[:_SHOWN]}")
        return answer

    def reset(self, start: Start, *, timeout_s: float) -> Reply:
        """Begins an episode: the task of the state, and a seed."""
        values = start.state.values
        data: dict[str, Any] = {"seed": values.get(SEED, start.seed)}
        if SEED not in values:
            split, _, index = str(values.get(TASK, "")).rpartition("/")
            task = {SPLIT: values.get(SPLIT, split), INDEX: int(values.get(INDEX, index))}
            data = {SEED: start.seed, **task}
        return self._reply("reset", data, timeout_s)

    def step(self, action: Mapping[str, Any], *, timeout_s: float) -> Reply:
        """Plays an action."""
        return self._reply("step", action, timeout_s)

    def _reply(self, kind: str, data: Mapping[str, Any], timeout_s: float) -> Reply:
        answer = self.ask(kind, data, timeout_s=timeout_s)
        where = f"{self.server.url} answered {kind}"
        given = answer.get("data")
        if not isinstance(given, dict):
            given = {}
        if answer.get("type") == "error":
            code, said = given.get("code"), given.get("message")
            if code == "VALIDATION_ERROR" and kind == "step":
                return Reply({}, error=f"{said} {_first_problem(given.get('errors'))}".strip())
            raise GameCrashed(f"{where} with {code}: {said}")
        seen = given.get("observation")
        if answer.get("type") != "observation" or not isinstance(seen, dict):
            raise GameCrashed(f"{where} without an observation: {json.dumps(answer)[:_SHOWN]}")
        metadata = given.get("metadata") or seen.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise GameCrashed(f"{where} with metadata that are no object: {metadata!r:.200}")
        about = {k: v for k, v in metadata.items() if k != "episode_id"}  # another each time
        return Reply(
            with_pictures(seen),
            reward_of(given.get("reward"), where),
            flag_of(given.get("done"), f"{where}: done"),
            bool(about.get("truncated") is True or about.get("end") == "truncated"),
            details={"metadata": about} if about else {},
        )

    def close(self) -> None:
        """Ends the session, and the server if it was started here. Idempotent; never raises."""
        with contextlib.suppress(Exception):
            self._socket.send(json.dumps({"type": "close"}))
        with contextlib.suppress(Exception):
            self._stack.close()


def _first_problem(problems: Any) -> str:
    """Returns place and message of the first of a server's errors of validation, if it has any."""
    first = problems[0] if isinstance(problems, list) and problems else None
    if not isinstance(first, dict):
        return ""
    place = first.get("loc")
    words = "/".join(map(str, place)) if isinstance(place, list) else ""
    return f"{words} {first.get('msg', '')}"


def with_pictures(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an observation with a field ``KEY/NAME`` for each picture in a list of them.

    A picture of a list has the form of image content in MCP: ``mimeType``, ``data``, ``name``.
    """
    found = dict[str, Any]()
    for key, value in seen.items():
        pictures = value if isinstance(value, list) and value else [None]
        if all(isinstance(p, dict) and "data" in p and "mimeType" in p for p in pictures):
            for number, picture in enumerate(pictures):
                found[f"{key}/{picture.get('name') or number}"] = picture["data"]
        elif key != "metadata":
            found[key] = value
    return found
