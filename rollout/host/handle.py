"""One running game behind a uniform, non-blocking face.

A handle takes one command at a time (``launch``, ``reset``, ``step``) and later gives its result.
Between the two, ``waitable`` is something ``multiprocessing.connection.wait`` can wait on; ``None``
means that the result is there for the asking (the game runs in this process, and runs when its
result is asked for).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from typing import Any, Protocol

import numpy as np

from rollout.api import Bridge, Columns, Frame, Instance, Start
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    InputError,
)
from rollout.host.channel import Channel, create_memory
from rollout.host.guarded import Guarded, Namespace, ending

_REAP_S = 0.5  # its socket closes a moment before its guard knows how it ended
# What crosses the socket: a byte that says what follows. A step whose actions are in the shared
# memory, and its answer, are that byte alone: this is the hot path of games that step in
# microseconds, and every pickle and every system call on it shows.
STEP, FRAME, MESSAGE = b"s", b"f", b"m"
# Characters of a death notice that go to the last words and to the last action of the dead.
_LAST_WORDS, _LAST_ACTION = 600, 160


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
        """Returns what is known of the end of the game, in one line."""
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

    Frames and actions travel through shared memory, commands through a socket. The child and all
    that it starts live under a guard (``rollout.host.guard``), which ends them when the child ends
    or the host dies, however. The guard is not between the two: a step is still one byte each way.

    Args:
        bridge: the recipe.
        workdir: folder of the game; what it prints goes to ``game.log`` there.
        ports: that it may listen on.
        width: its slots.
        namespace: whether it gets a PID namespace; see ``rollout.host.guarded.Guarded``.
    """

    def __init__(
        self,
        bridge: Bridge,
        workdir: Path,
        ports: Sequence[int],
        width: int,
        *,
        namespace: Namespace = "never",
    ) -> None:
        self._bridge, self._workdir, self._ports, self._width = bridge, workdir, ports, width
        self._namespace: Namespace = namespace
        self._guarded: Guarded | None = None
        self._connection: Connection | None = None
        self._acted = False  # whether the actions in the channel have been played
        self._loose: Columns = {}  # columns of the last action that are not in the channel
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
        try:
            self._workdir.mkdir(parents=True, exist_ok=True)
            memory = create_memory(self._bridge.spec, self._width)
        except OSError as error:
            raise GameStartError(f"its process could not be started: {error}") from error
        ours, theirs = socketpair()
        descriptors = (theirs.fileno(), memory)
        command = [sys.executable, "-m", "rollout.host.child", *map(str, descriptors)]
        try:
            with self._stderr.open("ab") as output:
                self._guarded = Guarded(
                    command, output, descriptors=descriptors, namespace=self._namespace
                )
            self._channel = Channel(memory, self._bridge.spec, self._width)
        except OSError as error:
            ours.close()
            raise GameStartError(f"its process could not be started: {error}") from error
        except ConfigError:
            ours.close()
            raise
        finally:
            theirs.close()
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
        self._acted = False
        self._send(("reset", slots, list(starts), timeout_s))

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        if self._channel is None:
            raise GameCrashed("the game is not running")
        self._rows, self._acted = None, True
        loose = self._channel.write_actions(actions)
        if loose or timeout_s != self._step_s:
            self._step_s, self._loose = timeout_s, loose
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
            if self._guarded is not None:
                self._guarded.wait(_REAP_S)
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

    @property
    def pid(self) -> int | None:
        """Process number of the child; None while it is not known."""
        return None if self._guarded is None else self._guarded.pid

    def memory_mb(self) -> float:
        """Returns the memory that the game's whole tree has resident now, in MB of 2**20 bytes.

        Zero before the launch and after the end. Cheap enough for every few seconds.
        """
        return 0.0 if self._guarded is None else self._guarded.memory_mb()

    def death_notice(self) -> str:
        """Returns how the game ended, its number, age, peak memory, last action and last words."""
        parts = []
        if self._guarded is not None:
            guarded, code = self._guarded, self._guarded.exit_code
            if code is not None:
                parts.append(ending(code))
            else:
                parts.append("its guard was killed" if guarded.guard_lost else "still running")
            if guarded.pid is not None:
                parts.append(f"pid {guarded.pid}")
            parts.append(f"age {guarded.age_s:.1f} s")
            if peak := guarded.peak_mb():
                parts.append(f"peak memory {peak:.0f} MB")
        if self._acted and self._channel is not None:
            parts.append("last action " + _brief(self._channel.actions | self._loose))
        if words := _last_words(self._stderr):
            parts.append("last words: " + words)
        return "; ".join(parts)

    def close(self, timeout_s: float) -> None:
        """Ends the game and whatever it started.

        With time given, the game is told to end; if it does not, its tree gets TERM and a second
        later KILL. Without, KILL at once, which takes some 10 ms. Waits at most 3 seconds longer
        than ``timeout_s``, and only for what the kernel does not let go of: the guard goes on.
        """
        guarded, self._guarded = self._guarded, None
        connection, self._connection = self._connection, None
        at_once = timeout_s <= 0
        if connection is not None:
            if not at_once and guarded is not None:
                _say_goodbye(connection, guarded, timeout_s)
            connection.close()
        if guarded is not None:
            guarded.stop(at_once=at_once)
        self._channel = None


def _say_goodbye(connection: Connection, guarded: Guarded, timeout_s: float) -> None:
    try:
        os.write(connection.fileno(), MESSAGE)
        connection.send(("close",))
    except OSError:
        return  # it has ended, or will be ended
    guarded.wait(timeout_s)


def _brief(actions: Columns) -> str:
    """Returns the columns of one action in a few words: of many slots the first and the last."""
    with np.printoptions(threshold=8, edgeitems=2, precision=4):
        columns = [
            f"{key}={column[0] if len(column) == 1 else column}" for key, column in actions.items()
        ]
    return _cut(" ".join(" ".join(columns).split()), _LAST_ACTION)


def _last_words(log: Path) -> str:
    """Returns the end of what a game printed, in one line."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * _LAST_WORDS))
            text = file.read().decode(errors="replace")
    except OSError:  # it was never started
        return ""
    lines = [line.strip() for line in text.splitlines()]
    return " | ".join(line for line in lines if line)[-_LAST_WORDS:]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
