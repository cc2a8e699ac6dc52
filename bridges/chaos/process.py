"""The chaos game's process, seen from outside: messages with deadlines, crashes, closing."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from bridges.chaos.game import CLOSE, FAULTS, HEADER, LENGTH, OK, ORPHAN
from bridges.chaos.plan import Phase, Strike
from rollout.api.child_process import LEAST_S, REAP_S, ConnectedProcess
from rollout.errors import GameCrashed, GameStartError, GameTimeout

PROGRAM = Path(__file__).with_name("game.py")
LOG = "chaos.log"
_SHOWN = 2000  # characters of its log that are quoted in an error message
_POLL_S = 0.005


class GameProcess:
    """One running chaos game, with its grandchild.

    Not thread-safe. After any ``GameError`` only ``close`` may be called: the next reply of the
    game would belong to a request that was abandoned.

    Args:
        workdir: folder for its log.
        settings: see ``bridges.chaos.game.Program``; ``latency`` and ``fault`` are those of its
            start.
        timeout_s: seconds it may take to start.
        close_s: seconds that ``close`` may take.

    Raises:
        GameStartError: it did not start.
    """

    def __init__(
        self, workdir: Path, settings: Mapping[str, Any], *, timeout_s: float, close_s: float
    ) -> None:
        self._close_s = close_s
        self._broken = self._closed = False
        self._grandchild: psutil.Process | None = None
        self.grandchild_pid = 0
        """Process id of the grandchild; 0 for none."""
        command = (sys.executable, "-S", "-I", str(PROGRAM))
        try:
            self._child = ConnectedProcess(command, log=workdir / LOG, pipes=True)
        except OSError as error:
            raise GameStartError(f"the chaos game's process did not start: {error}") from error
        try:
            self._handshake(settings, timeout_s)
        except (GameCrashed, GameTimeout) as error:
            self.close()
            raise GameStartError(str(error)) from error

    @property
    def pid(self) -> int:
        """Process id of the game, which is also that of its process group."""
        return self._child.pid

    def _handshake(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        try:
            hello = json.loads(self._answer(json.dumps(settings).encode(), "start", timeout_s))
            self.grandchild_pid = int(hello["grandchild"])
        except (ValueError, LookupError, TypeError) as error:
            raise self.garbage("start", f"not its numbers: {error}") from error
        if self.grandchild_pid and settings["grandchild"] != ORPHAN:
            # Psutil stores the start time, so that a later process with the same id is not confused
            # with it.
            with contextlib.suppress(psutil.Error):
                self._grandchild = psutil.Process(self.grandchild_pid)

    def ask(
        self, phase: Phase, what: bytes, body: bytes, strike: Strike, *, size: int, timeout_s: float
    ) -> bytes:
        """Returns the reply to a request, ``size`` bytes.

        Raises:
            GameTimeout: no reply within ``timeout_s`` seconds.
            GameCrashed: the game died, or the reply is invalid.
        """
        answer = self._answer(_header(what, strike) + body, phase, timeout_s, size)
        if len(answer) != size:
            raise self.garbage(phase, f"{len(answer)} bytes instead of {size}")
        return answer

    def _answer(
        self, message: bytes, phase: Phase, timeout_s: float, size: int | None = None
    ) -> bytes:
        deadline = time.monotonic() + timeout_s
        most = 4096 if size is None else size + len(OK)
        try:
            self._child.send(LENGTH.pack(len(message)) + message, deadline)
            count = LENGTH.unpack(self._child.receive(LENGTH.size, deadline))[0]
            if not 0 < count <= most:
                raise self.garbage(phase, f"{count} bytes announced instead of {most}")
            answer = bytes(self._child.receive(count, deadline))
        except TimeoutError as error:
            self._broken = True
            raise GameTimeout(
                f"the chaos game gave no answer to {phase} within {timeout_s:g} s; give it "
                f"more time, or the phase a shorter latency"
            ) from error
        except EOFError as error:
            raise self._died(phase) from error
        if not answer.startswith(OK):
            raise self.garbage(phase, f"it begins with {answer[:4]!r}")
        return answer[len(OK) :]

    def garbage(self, phase: Phase, what: str) -> GameCrashed:
        """Returns the error for an invalid reply; the game gets no more requests."""
        self._broken = True
        return GameCrashed(f"the chaos game answered {phase} with garbage: {what}")

    def _died(self, phase: Phase) -> GameCrashed:
        self._broken = True
        ended = self._child.ended(time.monotonic() + REAP_S) or "closed its pipe and continues"
        said = f"; last output: {words}" if (words := self._child.last_output(_SHOWN)) else ""
        return GameCrashed(f"the chaos game ended in {phase}: {ended}{said}")

    def close(self) -> None:
        """Ends the game and its grandchild, unless that is an orphan. Idempotent; never raises.

        A working game is asked to close, then sent SIGTERM, then killed, each for a part of the
        deadline; a broken one is killed at once.
        """
        self.close_with(Strike())

    def close_with(self, strike: Strike) -> None:
        """Does what ``close`` does, with a latency and a fault."""
        if self._closed:
            return
        self._closed = True
        now = time.monotonic()
        deadline = now + self._close_s
        if not self._broken:
            message = _header(CLOSE, strike)
            with contextlib.suppress(TimeoutError, EOFError):  # it has died and cannot reply
                self._child.send(LENGTH.pack(len(message)) + message, deadline)
                self._child.ended(now + 0.5 * self._close_s)
        self._child.close(deadline, patience_s=0.0 if self._broken else 0.25 * self._close_s)
        self._kill_grandchild(max(deadline, time.monotonic() + LEAST_S))

    def _kill_grandchild(self, deadline: float) -> None:
        """Ends it if it has left the group; a zombie counts as ended."""
        if self._grandchild is None:
            return
        pause = threading.Event()
        with contextlib.suppress(psutil.Error):
            self._grandchild.kill()
            while self._grandchild.is_running() and time.monotonic() < deadline:
                if self._grandchild.status() == psutil.STATUS_ZOMBIE:
                    return
                pause.wait(_POLL_S)


def _header(what: bytes, strike: Strike) -> bytes:
    return HEADER.pack(what, strike.seconds, FAULTS.index(strike.fault))
