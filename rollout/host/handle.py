"""One running game behind a uniform, non-blocking face.

A handle takes one command at a time (``launch``, ``reset``, ``step``) and later gives its result.
Between the two, ``waitable`` is something ``multiprocessing.connection.wait`` can wait on; ``None``
means that the result is there for the asking (the game runs in this process, and runs when its
result is asked for).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from typing import Any, Protocol

import numpy as np

from rollout.api import Bridge, Columns, Frame, Instance, Start
from rollout.errors import GameCrashed, GameError, GameStartError, GameTimeout, InputError
from rollout.host.channel import Channel, create_memory

_REAP_S = 0.5
# What crosses the socket: a byte that says what follows. A step whose actions are in the shared
# memory, and its answer, are that byte alone: this is the hot path of games that step in
# microseconds, and every pickle and every system call on it shows.
STEP, FRAME, MESSAGE = b"s", b"f", b"m"
_STDERR_TAIL = 2000  # characters of a dead game's last words that go into its death notice


class Handle(Protocol):
    """One running game; see the module."""

    @property
    def waitable(self) -> Any:
        """What to wait on for the result of the command in flight; None if there is no wait."""
        ...

    def launch(self, timeout_s: float) -> None:
        """Asks for the game to be started; its result is None."""
        ...

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """Asks for a reset; its result is a frame with ``len(slots)`` rows."""
        ...

    def step(self, actions: Columns, timeout_s: float) -> None:
        """Asks for a step; its result is a frame with ``width`` rows."""
        ...

    def result(self) -> Frame | None:
        """Returns the result of the command in flight.

        Raises:
            GameError: the command failed; the handle must be killed.
        """
        ...

    def death_notice(self) -> str:
        """Returns what is known of the end of the game: exit code, signal, last words."""
        ...

    def close(self, timeout_s: float) -> None:
        """Ends the game, politely for ``timeout_s`` seconds (0: kill). Never raises."""
        ...


class InProcessHandle:
    """A game that is a library: it runs in this process, when its result is asked for."""

    def __init__(self, bridge: Bridge, workdir: Path, ports: Sequence[int], width: int) -> None:
        self._bridge, self._workdir, self._ports, self._width = bridge, workdir, ports, width
        self._instance: Instance | None = None
        self._call: Callable[[], Frame | None] | None = None

    waitable = None

    def launch(self, timeout_s: float) -> None:
        """See ``Handle``."""

        def call() -> None:
            self._workdir.mkdir(parents=True, exist_ok=True)
            self._instance = self._bridge.launch(
                self._workdir, self._ports, width=self._width, timeout_s=timeout_s
            )

        self._call = call

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """See ``Handle``."""
        instance = self._running()
        self._call = lambda: instance.reset(slots, starts, timeout_s=timeout_s)

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        instance = self._running()
        self._call = lambda: instance.step(actions, timeout_s=timeout_s)

    def _running(self) -> Instance:
        if self._instance is None:
            raise GameCrashed("the game is not running")
        return self._instance

    def result(self) -> Frame | None:
        """See ``Handle``."""
        call, self._call = self._call, None
        if call is None:
            raise GameCrashed("no command is in flight")
        try:
            return call()
        except (GameError, InputError):
            raise
        except Exception as error:
            raise GameCrashed(f"{type(error).__name__}: {error}") from error

    def death_notice(self) -> str:
        """See ``Handle``."""
        return "in process"

    def close(self, timeout_s: float) -> None:
        """See ``Handle``."""
        del timeout_s
        instance, self._instance = self._instance, None
        if instance is not None:
            instance.close()


class SubprocessHandle:
    """A game in a process of its own: it may hang, crash or be killed without harm to the host.

    Frames and actions travel through shared memory, commands through a socket. The child leads a
    process group and watches its life line, a pipe from the host: when the host dies, however, the
    child kills its group.
    """

    def __init__(self, bridge: Bridge, workdir: Path, ports: Sequence[int], width: int) -> None:
        self._bridge, self._workdir, self._ports, self._width = bridge, workdir, ports, width
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._lifeline: int | None = None
        self._channel: Channel | None = None
        self._socket = -1
        self._whole: Frame | None = None  # views of every row, made once
        self._rows: list[int] | None = None  # rows of the answer; None for every row
        self._step_s = 0.0  # deadline the child knows
        self._stderr = workdir / "game.log"
        self._everyone = list(range(width))

    @property
    def waitable(self) -> Any:
        """See ``Handle``."""
        return self._connection

    def launch(self, timeout_s: float) -> None:
        """See ``Handle``."""
        self._workdir.mkdir(parents=True, exist_ok=True)
        memory = create_memory(self._bridge.spec, self._width)
        ours, theirs = socketpair()
        line_read, self._lifeline = os.pipe()
        try:
            command = [sys.executable, "-m", "rollout.host.child"]
            descriptors = (theirs.fileno(), line_read, memory)
            with self._stderr.open("ab") as stderr:
                self._process = subprocess.Popen(
                    [*command, *map(str, descriptors)],
                    stdin=subprocess.DEVNULL,
                    stdout=stderr,
                    stderr=stderr,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
            self._channel = Channel(memory, self._bridge.spec, self._width)
        except OSError as error:
            ours.close()
            raise GameStartError(f"its process could not be started: {error}") from error
        finally:
            theirs.close()
            os.close(line_read)
            os.close(memory)
        self._whole = self._channel.frame(slice(None), None)
        self._socket = ours.detach()
        self._connection = Connection(self._socket)
        self._send(
            ("launch", self._bridge, str(self._workdir), self._ports, self._width, timeout_s)
        )

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """See ``Handle``."""
        slots = list(slots)
        self._rows = None if slots == self._everyone else slots
        self._send(("reset", slots, list(starts), timeout_s))

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        if self._channel is None:
            raise GameCrashed("the game is not running")
        self._rows = None
        loose = self._channel.write_actions(actions)
        if loose or timeout_s != self._step_s:
            self._step_s = timeout_s
            self._send(("step", loose, timeout_s))
        else:
            self._write(STEP)

    def _send(self, message: tuple[Any, ...]) -> None:
        if self._connection is None:
            raise GameCrashed("the game is not running")
        self._write(MESSAGE)
        try:
            self._connection.send(message)
        except OSError as error:
            raise GameCrashed(f"the game's process is gone ({error})") from error

    def _write(self, byte: bytes) -> None:
        try:
            os.write(self._socket, byte)
        except OSError as error:
            raise GameCrashed(f"the game's process is gone ({error})") from error

    def result(self) -> Frame | None:
        """See ``Handle``."""
        if self._connection is None or self._channel is None or self._whole is None:
            raise GameCrashed("the game is not running")
        try:
            byte = os.read(self._socket, 1)
            if byte == FRAME:
                kind, payload = "frame", None
            elif byte == MESSAGE:
                kind, payload = self._connection.recv()
            else:
                raise EOFError
        except (EOFError, OSError) as error:
            if self._process is not None:  # its socket closes a moment before it can be reaped
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_REAP_S)
            raise GameCrashed("the game's process ended") from error
        if kind == "launched":
            return None
        if kind == "frame":
            if self._rows is not None:
                return self._channel.frame(np.array(self._rows), payload)
            self._whole.details = payload
            return self._whole
        errors = {"start": GameStartError, "timeout": GameTimeout, "input": InputError}
        raise errors.get(kind, GameCrashed)(payload)

    def death_notice(self) -> str:
        """See ``Handle``."""
        parts = []
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                parts.append("still running")
            elif code < 0:
                parts.append(f"killed by {signal.Signals(-code).name}")
            else:
                parts.append(f"exit code {code}")
        if self._stderr.exists():
            text = self._stderr.read_text(errors="replace").strip()[-_STDERR_TAIL:]
            if text:
                parts.append("last words: " + text)
        return "; ".join(parts)

    def close(self, timeout_s: float) -> None:
        """See ``Handle``."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if connection is not None:
            if timeout_s > 0 and process is not None and process.poll() is None:
                _say_goodbye(connection, process, timeout_s)
            connection.close()
        if process is not None:
            # The whole group, even when the leader has gone: it may have left children behind.
            _kill_group(process.pid)
            process.wait()
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None
        self._channel = None


def _say_goodbye(
    connection: Connection, process: subprocess.Popen[bytes], timeout_s: float
) -> None:
    try:
        os.write(connection.fileno(), MESSAGE)
        connection.send(("close",))
        process.wait(timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return  # it will be killed


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # nobody is left
