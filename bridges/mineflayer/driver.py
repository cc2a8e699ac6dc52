"""The Node process of one instance, seen from outside: messages with deadlines, closing.

A message is a length, a little-endian uint32, and that many bytes of msgpack: a map. The number of
the process's end of a socket pair is its last argument; it ends when the socket is closed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout.api.child_process import REAP_S, ConnectedProcess
from rollout.errors import (
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    InputError,
    SpaceError,
    StateError,
)

LOG = "node.log"
"""Name of the file in the instance's folder with what Node wrote to stdout and stderr."""

Message = dict[str, Any]

_LENGTH = struct.Struct("<I")
_MOST = 1 << 30  # bytes of a message; a larger length is invalid
_SHOWN = 3000  # characters of the log that are quoted in an error message
# A user's Node settings in the environment must not change what a world does.
_NOT_TOLD = ("NODE_OPTIONS", "NODE_PATH", "NODE_DEBUG", "DEBUG")


class Driver:
    """One running game process.

    Not thread-safe. After any ``GameError`` only ``close`` may be called: the next reply would
    belong to a request that was abandoned.

    Args:
        command: program and arguments, the first an absolute path.
        workdir: folder for its log.
        close_s: seconds that ``close`` may take.

    Raises:
        GameStartError: the process could not be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        workdir: Path,
        *,
        close_s: float,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._close_s = close_s
        self._broken = self._closed = False
        self._ids = itertools.count(1)
        own = {key: value for key, value in os.environ.items() if key not in _NOT_TOLD}
        own |= {"TZ": "UTC", **(env or {})}
        try:
            self.child = ConnectedProcess(command, log=workdir / LOG, env=own)
        except OSError as error:
            raise GameStartError(
                f"the game's process {command[0]} did not start: {error.strerror or error}"
            ) from error
        self.pid = self.child.pid

    def ask(self, op: str, fields: Mapping[str, Any], *, timeout_s: float) -> Message:
        """Returns the reply to a request.

        Args:
            op: name of the request, as in the protocol.
            fields: further fields of the request.
            timeout_s: seconds it may take.

        Raises:
            GameTimeout: no reply came in time.
            GameCrashed: the process ended, a server refused or kicked an agent, or the reply is
                invalid; the message has the reason and the last lines of the log.
            StateError: the game cannot start from that state.
            SpaceError: an action is not valid.
        """
        import msgpack  # type: ignore[import-untyped]  # noqa: PLC0415 - with the game only

        number = next(self._ids)
        deadline = time.monotonic() + timeout_s
        body = msgpack.packb({"id": number, "op": op, **fields}, use_bin_type=True)
        try:
            self.child.send(_LENGTH.pack(len(body)) + body, deadline)
            size = _LENGTH.unpack(self.child.receive(_LENGTH.size, deadline))[0]
            if not 0 < size <= _MOST:
                raise self._garbage(op, f"{size} bytes announced")
            data = self.child.receive(size, deadline)
        except TimeoutError as error:
            raise self._late(op, timeout_s) from error
        except EOFError as error:
            raise self._died(op) from error
        try:
            answer = msgpack.unpackb(data, strict_map_key=False)
        except (ValueError, msgpack.exceptions.UnpackException) as error:
            raise self._garbage(op, f"not msgpack: {error}") from error
        if not isinstance(answer, dict) or answer.get("id") != number:
            raise self._garbage(op, f"no answer to request {number}: {str(answer)[:200]}")
        if answer.get("ok") is not True:
            raise self._refused(op, answer.get("error"))
        return answer

    def _late(self, op: str, timeout_s: float) -> GameTimeout:
        self._broken = True
        return GameTimeout(
            f"the game gave no answer to {op} within {timeout_s:g} s{self._last_output()}"
        )

    def garbage(self, op: str, what: str) -> GameCrashed:
        """Returns the error for an invalid reply; the game gets no more requests."""
        return self._garbage(op, what)

    def _garbage(self, op: str, what: str) -> GameCrashed:
        self._broken = True
        return GameCrashed(f"the game answered {op} with garbage: {what}{self._last_output()}")

    def _died(self, op: str) -> GameCrashed:
        self._broken = True
        how = self.child.ended(time.monotonic() + REAP_S) or "closed its socket and continues"
        return GameCrashed(f"the game's process ended in {op}: {how}{self._last_output()}")

    def _refused(self, op: str, error: object) -> InputError | GameError:
        """Returns the error that a negative reply stands for."""
        if not isinstance(error, dict):
            return self._garbage(op, f"neither ok nor an error: {error!r}")
        kind, text = str(error.get("kind")), str(error.get("message"))
        if kind == "state":
            return StateError(text)
        if kind == "action":
            return SpaceError(text)
        self._broken = True
        said = {
            "refused": f"the server refused: {text}",
            "kicked": f"the server kicked an agent: {text}",
            "ended": f"the server has gone: {text}",
        }.get(kind)
        if said:
            return GameCrashed(said)
        return GameCrashed(f"the game failed in {op}: {text}{self._last_output()}")

    def _last_output(self) -> str:
        said = self.child.last_output(_SHOWN)
        return f"; last lines of {LOG}:\n{said}" if said else ""

    def close(self) -> None:
        """Ends the process and all of its group. Idempotent; never raises.

        A working game is asked to close, then sent SIGTERM, then killed, each for a part of the
        deadline; a broken one is killed at once.
        """
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._close_s
        if not self._broken:
            with contextlib.suppress(GameError, InputError):
                self.ask("close", {}, timeout_s=0.4 * self._close_s)
                self.child.ended(time.monotonic() + 0.2 * self._close_s)
        self.child.close(deadline, patience_s=0.0 if self._broken else 0.2 * self._close_s)
