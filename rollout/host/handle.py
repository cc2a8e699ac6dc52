"""A uniform, non-blocking interface to one running game.

A handle takes one command at a time (``launch``, ``reset``, ``step``) and later returns its result.
Meanwhile, ``waitable`` is an object for ``multiprocessing.connection.wait``. ``None`` means that
the result is available on request: the game runs in this process when its result is requested.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from pathlib import Path
from socket import socketpair
from typing import Any, Protocol

import numpy as np

from rollout.api import Bridge, Columns, Frame, Instance, Start
from rollout.api.child_process import ending
from rollout.errors import (
    GameCrashed,
    GameError,
    GameStartError,
    GameTimeout,
    InputError,
    raise_signal,
    trace_of,
)
from rollout.host.channel import Channel, Incomplete, Wire, create_memory
from rollout.host.frames import FrameCheck, describe
from rollout.host.guarded import Guarded, Namespace
from rollout.host.interpreter import link_packages, recipe_for_other, require_program

_REAP_S = 0.5  # its socket closes slightly before its guard reports how it ended
ERRORS = {"start": GameStartError, "timeout": GameTimeout, "input": InputError}
"""Errors of a game by their name in a reply; all others count as a crash."""

# Characters of a death notice for the last output and the last action.
_LAST_OUTPUT, _LAST_ACTION = 600, 160


class Handle(Protocol):
    """A running game; see the module."""

    @property
    def waitable(self) -> Any:
        """Object to wait on for the result of the pending command; None if no wait is needed."""
        ...

    def launch(self, timeout_s: float) -> None:
        """Requests the launch of the game; its result is None."""
        ...

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """Requests a reset; its result is a frame with ``len(slots)`` rows."""
        ...

    def step(self, actions: Columns, timeout_s: float) -> None:
        """Requests a step; its result is a frame with ``width`` rows."""
        ...

    def result(self) -> Frame | None:
        """Returns the result of the pending command.

        Raises:
            Incomplete: only a part of it has arrived; ask again once ``waitable`` is ready.
            GameError: the command failed; the handle must be killed.
        """
        ...

    def death_notice(self) -> str:
        """Returns one line on the end of the game, for error messages."""
        ...

    def close(self, timeout_s: float) -> None:
        """Ends the game, gracefully within ``timeout_s`` seconds (0: kill). Never raises."""
        ...


class InProcessHandle:
    """A game that is a library: it runs in this process when its result is requested."""

    def __init__(self, bridge: Bridge, workdir: Path, ports: Sequence[int], width: int) -> None:
        self._bridge, self._workdir, self._ports, self._width = bridge, workdir, ports, width
        self._instance: Instance | None = None
        # Name, rows of its frame, arguments and timeout of the command to run.
        self._pending: tuple[str, int, tuple[Any, ...], float] | None = None
        self._check = FrameCheck(bridge.spec)

    waitable = None

    def launch(self, timeout_s: float) -> None:
        """See ``Handle``."""
        self._pending = ("launch", 0, (), timeout_s)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """See ``Handle``."""
        self._pending = ("reset", len(slots), (slots, starts), timeout_s)

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        self._pending = ("step", self._width, (actions,), timeout_s)

    def result(self) -> Frame | None:
        """See ``Handle``."""
        if self._pending is None:
            raise GameCrashed("no command is pending")
        (name, rows, arguments, timeout_s), self._pending = self._pending, None
        try:
            if name == "launch":
                self._workdir.mkdir(parents=True, exist_ok=True)
                self._instance = self._bridge.launch(
                    self._workdir, self._ports, width=self._width, timeout_s=timeout_s
                )
                return None
            if self._instance is None:
                raise GameCrashed("the game is not running")
            frame = getattr(self._instance, name)(*arguments, timeout_s=timeout_s)
            return self._check(frame, rows)
        except (GameError, InputError):
            raise
        except BaseException as error:  # also SystemExit and KeyboardInterrupt of the game
            raise_signal(error)
            crashed = GameCrashed(describe(error))
            crashed.trace = trace_of(error)
            raise crashed from error

    def death_notice(self) -> str:
        """See ``Handle``."""
        return "in process"

    def close(self, timeout_s: float) -> None:
        """See ``Handle``."""
        del timeout_s
        instance, self._instance = self._instance, None
        if instance is not None:
            try:
                instance.close()
            except BaseException as error:  # noqa: BLE001 - the game is abandoned in any case
                raise_signal(error)


class SubprocessHandle:
    """A game in a subprocess: it can hang, crash or be killed without affecting the host.

    Frames and actions are in shared memory, commands go through a socket. The child and all its
    subprocesses run under a guard (``rollout.host.guard``), which ends them when the child ends or
    the host dies for any reason. The guard is not part of the connection: a step is one byte each
    way.

    Args:
        bridge: the recipe.
        workdir: folder of the game; its output goes to ``game.log`` there, whose size is bounded.
        ports: ports on which it may listen.
        width: number of slots.
        namespace: whether it gets a PID namespace; see ``rollout.host.guarded.Guarded``.
        python: the interpreter; None for ours.
    """

    def __init__(
        self,
        bridge: Bridge,
        workdir: Path,
        ports: Sequence[int],
        width: int,
        *,
        namespace: Namespace = "never",
        python: Path | None = None,
    ) -> None:
        self._python = python
        self._bridge, self._workdir, self._ports, self._width = bridge, workdir, ports, width
        self._namespace: Namespace = namespace
        self._guarded: Guarded | None = None
        self._wire: Wire | None = None
        self._acted = False  # whether the actions in the channel have been played
        self._loose: Columns = {}  # columns of the last action that are not in the channel
        self._channel: Channel | None = None
        self._whole: Frame | None = None  # views of every row, made once
        self._rows: list[int] | None = None  # rows of the reply; None for all rows
        self._step_s = 0.0  # timeout that the child knows
        self._stderr = workdir / "game.log"
        self._everyone = list(range(width))

    @property
    def waitable(self) -> Any:
        """See ``Handle``."""
        return self._wire

    def launch(self, timeout_s: float) -> None:
        """See ``Handle``."""
        try:
            self._start()
        except OSError as error:
            raise GameStartError(f"its process could not be started: {error}") from error
        bridge = self._bridge if self._python is None else recipe_for_other(self._bridge)
        self._send(("launch", bridge, str(self._workdir), self._ports, self._width, timeout_s))

    def _start(self) -> None:
        self._workdir.mkdir(parents=True, exist_ok=True)
        ours, theirs = socketpair()
        with contextlib.ExitStack() as unless_started, theirs:
            unless_started.enter_context(ours)
            memory = create_memory(self._bridge.spec, self._width)
            descriptors = (theirs.fileno(), memory)
            program, variables = sys.executable, dict[str, str]()
            if self._python is not None:
                require_program(self._python)
                program = str(self._python)
                variables = link_packages(self._workdir.with_name("packages"), self._bridge)
            command = [program, "-m", "rollout.host.child", *map(str, descriptors)]
            try:
                with self._stderr.open("ab") as output:
                    self._guarded = Guarded(
                        command,
                        output,
                        descriptors=descriptors,
                        namespace=self._namespace,
                        variables=variables,
                    )
                self._channel = Channel(memory, self._bridge.spec, self._width)
            finally:
                os.close(memory)
            unless_started.pop_all()
        self._wire = Wire(ours)
        self._whole = self._channel.frame(slice(None), None)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """See ``Handle``."""
        slots = list(slots)
        self._rows = None if slots == self._everyone else slots
        self._acted = False
        self._send(("reset", slots, list(starts), timeout_s))

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        if self._channel is None or self._wire is None:
            raise GameCrashed("the game is not running")
        self._rows, self._acted = None, True
        loose = self._channel.write_actions(actions)
        if loose or timeout_s != self._step_s:
            self._step_s, self._loose = timeout_s, loose
            self._send(("step", loose, timeout_s))
            return
        try:
            self._wire.step()
        except OSError as error:
            raise GameCrashed(f"the game's process is gone ({error})") from error

    def _send(self, message: tuple[Any, ...]) -> None:
        if self._wire is None:
            raise GameCrashed("the game is not running")
        try:
            self._wire.send(message)
        except OSError as error:
            raise GameCrashed(f"the game's process is gone ({error})") from error

    def result(self) -> Frame | None:
        """See ``Handle``."""
        if self._wire is None or self._channel is None or self._whole is None:
            raise GameCrashed("the game is not running")
        try:
            kind, payload = self._wire.receive()
        except (EOFError, OSError) as error:
            if self._guarded is not None:
                self._guarded.wait(_REAP_S)
            raise GameCrashed("the game's process ended") from error
        if kind == "launched":
            return None
        if kind == "frame":
            details, loose = payload or (None, {})
            if self._rows is not None:
                frame = self._channel.frame(np.array(self._rows), details)
            else:
                frame, frame.details = self._whole, details
            frame.observations.update(loose)
            return frame
        text, trace = payload
        failed = ERRORS.get(kind, GameCrashed)(text)
        failed.trace = trace
        raise failed

    @property
    def pid(self) -> int | None:
        """Process id of the child; None while unknown."""
        return None if self._guarded is None else self._guarded.pid

    def memory_mb(self) -> float:
        """Returns the resident memory of the game's whole process tree, in MB of 2**20 bytes.

        Zero before the launch and after the end. Cheap enough to call every few seconds.
        """
        return 0.0 if self._guarded is None else self._guarded.memory_mb()

    def stopped(self) -> str:
        """Returns a description of a stopped process of the game (SIGSTOP); else empty."""
        return "" if self._guarded is None else self._guarded.stopped()

    def death_notice(self) -> str:
        """Returns how the game ended, its pid, age, peak memory, last action and last output."""
        parts = []
        if self._guarded is not None:
            guarded, code = self._guarded, self._guarded.exit_code
            if code is not None:
                parts.append(ending(code))
            else:
                parts.append(
                    "its guard was killed" if guarded.guard_lost else "bridge process still running"
                )
            if guarded.pid is not None:
                parts.append(f"pid {guarded.pid}")
            if stopped := guarded.stopped_below():
                parts.append(stopped)
            parts.append(f"age {guarded.age_s:.1f} s")
            if peak := guarded.peak_mb():
                parts.append(f"peak memory {peak:.0f} MB")
        if self._acted and self._channel is not None:
            parts.append("last action " + _describe_actions(self._channel.actions | self._loose))
        if output := _last_output(self._stderr):
            parts.append("last output: " + output)
        return "; ".join(parts)

    def close(self, timeout_s: float) -> None:
        """Ends the game and all its subprocesses.

        With a positive timeout, the game is told to end; if it does not, its tree gets TERM and a
        second later KILL. With 0, it gets KILL at once, which takes about 10 ms. Waits at most 3
        seconds longer than ``timeout_s``, and only for processes held by the kernel; the guard
        continues.
        """
        guarded, self._guarded = self._guarded, None
        wire, self._wire = self._wire, None
        at_once = timeout_s <= 0
        if wire is not None:
            if not at_once and guarded is not None:
                with contextlib.suppress(OSError):  # it has ended, or will be ended
                    wire.send(("close",))
                    guarded.wait(timeout_s)
            wire.close()
        if guarded is not None:
            guarded.stop(at_once=at_once)
        self._channel = None


def await_result(handle: Handle, timeout_s: float, what: str = "the game") -> Frame | None:
    """Returns the result of the pending command of a handle, once it is complete.

    Args:
        handle: the handle.
        timeout_s: longest wait in seconds.
        what: subject of the timeout's message.

    Raises:
        GameTimeout: it is not complete by then.
        GameError: the command failed.
    """
    end = time.monotonic() + timeout_s
    while handle.waitable is None or wait([handle.waitable], max(0.0, end - time.monotonic())):
        with contextlib.suppress(Incomplete):
            return handle.result()
    raise GameTimeout(f"{what} did not reply within {timeout_s:g} s")


def _describe_actions(actions: Columns) -> str:
    """Returns a short text for the columns of one action: of many slots the first and the last."""
    with np.printoptions(threshold=8, edgeitems=2, precision=4):
        columns = [
            f"{key}={column[0] if len(column) == 1 else column}" for key, column in actions.items()
        ]
    return _shorten(" ".join(" ".join(columns).split()), _LAST_ACTION)


def _last_output(log: Path) -> str:
    """Returns the end of a game's output, in one line."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4 * _LAST_OUTPUT))
            text = file.read().decode(errors="replace")
    except OSError:  # it was never launched
        return ""
    lines = [line.strip() for line in text.splitlines()]
    return " | ".join(line for line in lines if line)[-_LAST_OUTPUT:]


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
