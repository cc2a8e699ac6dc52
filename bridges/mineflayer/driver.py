"""The Node process of one instance, seen from outside: messages with deadlines, closing.

A message is a length, a little-endian uint32, and that many bytes of msgpack: a map. The process
has its end of a socket pair as file descriptor 3; it ends when the socket is closed.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import select
import signal
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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

FD = 3
"""File descriptor of the socket in the process."""

Message = dict[str, Any]

_LENGTH = struct.Struct("<I")
_MOST = 1 << 30  # bytes of a message; a larger length is invalid
_LAST_OUTPUT = 3000  # characters of the log that are quoted in an error message
_REAP_S = 1.0  # its socket closes a moment before its exit status is known
_POLL_S = 0.005
_LEAST_S = 0.5  # reserved for killing it, whatever the deadline
_ABOVE = 10  # the process's end of the pair must not be one of the descriptors it is given
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
        self._log, self._close_s = workdir / LOG, close_s
        self._broken = self._closed = False
        self._ids = itertools.count(1)
        ours, theirs = socket.socketpair()
        try:
            self.pid = _spawn(command, theirs, self._log, env or {})
        except OSError as error:
            ours.close()
            raise GameStartError(
                f"the game's process {command[0]} did not start: {error.strerror or error}"
            ) from error
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        # Readable once the process has ended: its children may keep its socket open.
        self._alive = os.pidfd_open(self.pid)
        self._readable, self._writable = select.poll(), select.poll()
        for poll, event in ((self._readable, select.POLLIN), (self._writable, select.POLLOUT)):
            poll.register(ours, event)
            poll.register(self._alive, select.POLLIN)
        self._ended: str | None = None  # its exit status, once it was reaped

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
            self._send(_LENGTH.pack(len(body)) + body, deadline)
            size = _LENGTH.unpack(self._receive(_LENGTH.size, deadline))[0]
            if not 0 < size <= _MOST:
                raise self._garbage(op, f"{size} bytes announced")
            data = self._receive(size, deadline)
        except TimeoutError as error:
            raise self._late(op, timeout_s) from error
        except (EOFError, OSError) as error:
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

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._wait_for(self._writable, deadline)

    def _receive(self, size: int, deadline: float) -> bytearray:
        data = bytearray(size)
        view, got = memoryview(data), 0
        while got < size:
            try:
                more = self._socket.recv_into(view[got:])
            except BlockingIOError:
                self._wait_for(self._readable, deadline)
                continue
            if not more:
                raise EOFError
            got += more
        return data

    def _wait_for(self, poll: select.poll, deadline: float) -> None:
        ready = poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise TimeoutError
        if [number for number, _ in ready] == [self._alive]:
            raise EOFError

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
        how = self._wait(time.monotonic() + _REAP_S) or "closed its socket and continues"
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
        try:
            said = self._log.read_text(errors="replace").strip()[-_LAST_OUTPUT:]
        except OSError:
            return ""  # its folder was removed
        return f"; last lines of {self._log.name}:\n{said}" if said else ""

    def _wait(self, deadline: float) -> str | None:
        """Returns how the process ended, or None if it has not; does not reap it.

        Until it is reaped no other process can get its id, so its group can be killed safely.
        """
        if self._ended is not None:
            return self._ended
        pause = threading.Event()
        while True:
            try:
                found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return "reaped by someone else"
            if found is not None:
                if found.si_code == os.CLD_EXITED:
                    return f"exit code {found.si_status}"
                return f"killed by {signal.Signals(found.si_status).name}"
            if time.monotonic() >= deadline:
                return None
            pause.wait(_POLL_S)

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
            with contextlib.suppress(GameError, InputError, OSError):
                self.ask("close", {}, timeout_s=0.4 * self._close_s)
                self._wait(time.monotonic() + 0.2 * self._close_s)
        self._socket.close()
        if self._wait(time.monotonic()) is None and not self._broken:
            self._signal(signal.SIGTERM)
            self._wait(time.monotonic() + 0.2 * self._close_s)
        self._signal(signal.SIGKILL)
        self._ended = self._wait(max(deadline, time.monotonic() + _LEAST_S)) or "not reaped"
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)
        os.close(self._alive)
        pause = threading.Event()
        while self._still_runs() and time.monotonic() < deadline:
            pause.wait(_POLL_S)

    def _still_runs(self) -> bool:
        """Whether a process of the group still exists; a killed one may not have ended yet."""
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # gone, or its id belongs to another process
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _spawn(
    command: Sequence[str], theirs: socket.socket, log: Path, more: Mapping[str, str]
) -> int:
    """Starts a process in a group of its own, with the socket as ``FD``; returns its id."""
    end = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    env = {key: value for key, value in os.environ.items() if key not in _NOT_TOLD}
    env |= {"TZ": "UTC", **more}
    try:
        return os.posix_spawn(
            command[0],
            list(command),
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, end, FD),
                *((os.POSIX_SPAWN_CLOSE, each) for each in _inherited()),
            ],
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT, signal.SIGTERM),
        )
    finally:
        os.close(end)


def _inherited() -> list[int]:
    """Descriptors that a process started now would inherit unintentionally."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the listing itself has been closed
            if int(path.name) > FD and os.get_inheritable(int(path.name)):
                found.append(int(path.name))
    return found
