"""The chaos game's process, seen from outside: messages with deadlines, crashes, closing."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from bridges.chaos.game import CLOSE, FAULTS, HEADER, LENGTH, OK, ORPHAN
from bridges.chaos.plan import Phase, Strike
from rollout.errors import GameCrashed, GameStartError, GameTimeout

PROGRAM = Path(__file__).with_name("game.py")
LOG = "chaos.log"
_LAST_OUTPUT = 2000  # characters of its log that are quoted in an error message
_REAP_S = 1.0  # its pipe closes a moment before its exit status is known
_POLL_S = 0.005
_LEAST_S = 0.5  # reserved for killing it, whatever the deadline


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
        self._log, self._close_s = workdir / LOG, close_s
        self._broken = self._closed = False
        self._grandchild: psutil.Process | None = None
        self.grandchild_pid = 0
        """Process id of the grandchild; 0 for none."""
        try:
            with self._log.open("ab") as log:
                # A process group of its own, which can be killed as a whole and without its bridge.
                self._process = subprocess.Popen(
                    [sys.executable, "-S", "-I", str(PROGRAM)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    process_group=0,
                )
        except OSError as error:
            raise GameStartError(f"the chaos game's process did not start: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        try:
            self._handshake(settings, timeout_s)
        except (GameCrashed, GameTimeout) as error:
            self.close()
            raise GameStartError(str(error)) from error

    @property
    def pid(self) -> int:
        """Process id of the game, which is also that of its process group."""
        return self._process.pid

    def _handshake(self, settings: Mapping[str, Any], timeout_s: float) -> None:
        self._send(json.dumps(settings).encode(), "start")
        try:
            hello = json.loads(self._receive("start", timeout_s))
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
        # There is never a second request in progress, and the longest is a few kilobytes, so it
        # fits into the pipe even if the game no longer reads.
        self._send(self._header(what, strike) + body, phase)
        answer = self._receive(phase, timeout_s, size)
        if len(answer) != size:
            raise self.garbage(phase, f"{len(answer)} bytes instead of {size}")
        return answer

    def _header(self, what: bytes, strike: Strike) -> bytes:
        return HEADER.pack(what, strike.seconds, FAULTS.index(strike.fault))

    def _send(self, message: bytes, phase: Phase) -> None:
        try:
            self._stdin.write(LENGTH.pack(len(message)) + message)
        except OSError as error:
            raise self._died(phase) from error

    def _receive(self, phase: Phase, timeout_s: float, size: int | None = None) -> bytes:
        deadline = time.monotonic() + timeout_s
        head = self._read(LENGTH.size, deadline, phase, timeout_s)
        count = LENGTH.unpack(head)[0]
        most = 4096 if size is None else size + len(OK)
        if not 0 < count <= most:
            raise self.garbage(phase, f"{count} bytes announced instead of {most}")
        answer = self._read(count, deadline, phase, timeout_s)
        if not answer.startswith(OK):
            raise self.garbage(phase, f"it begins with {answer[:4]!r}")
        return answer[len(OK) :]

    def _read(self, count: int, deadline: float, phase: Phase, timeout_s: float) -> bytes:
        data = b""
        while len(data) < count:
            left = deadline - time.monotonic()
            if not self._poll.poll(max(0.0, left) * 1000):
                self._broken = True
                raise GameTimeout(
                    f"the chaos game gave no answer to {phase} within {timeout_s:g} s; give it "
                    f"more time, or the phase a shorter latency"
                )
            more = os.read(self._stdout.fileno(), count - len(data))
            if not more:
                raise self._died(phase)
            data += more
        return data

    def garbage(self, phase: Phase, what: str) -> GameCrashed:
        """Returns the error for an invalid reply; the game gets no more requests."""
        self._broken = True
        return GameCrashed(f"the chaos game answered {phase} with garbage: {what}")

    def _died(self, phase: Phase) -> GameCrashed:
        self._broken = True
        ended = self._wait(time.monotonic() + _REAP_S)
        said = f"; last output: {words}" if (words := self._last_output()) else ""
        how = "closed its pipe and continues" if ended is None else ended
        return GameCrashed(f"the chaos game ended in {phase}: {how}{said}")

    def _last_output(self) -> str:
        try:
            return self._log.read_text(errors="replace").strip()[-_LAST_OUTPUT:]
        except OSError:
            return ""  # its folder was removed

    def _wait(self, deadline: float) -> str | None:
        """Returns how the process ended, or None if it has not; does not reap it.

        Until it is reaped no other process can get its id, so its group can be killed safely.
        """
        pause = threading.Event()
        while True:
            try:
                found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
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
        """Ends the game and its grandchild, unless that is an orphan. Idempotent; never raises.

        A working game is told to close, then sent SIGTERM, then killed, each for a part of the
        deadline; a broken one is killed at once.
        """
        self.close_with(Strike())

    def close_with(self, strike: Strike) -> None:
        """Does what ``close`` does, with a latency and a fault."""
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._close_s
        if not self._broken:
            self._part(strike)
        self._kill(max(deadline, time.monotonic() + _LEAST_S))
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                pipe.close()

    def _part(self, strike: Strike) -> None:
        with contextlib.suppress(GameCrashed):  # it has died and cannot reply
            self._send(self._header(CLOSE, strike), "close")
            if self._wait(time.monotonic() + 0.5 * self._close_s) is None:
                self._signal(signal.SIGTERM)
                self._wait(time.monotonic() + 0.25 * self._close_s)

    def _kill(self, deadline: float) -> None:
        self._signal(signal.SIGKILL)
        if self._grandchild is not None:  # it may have left the group
            with contextlib.suppress(psutil.Error):
                self._grandchild.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, deadline - time.monotonic()))
        pause = threading.Event()
        while self._still_runs() and time.monotonic() < deadline:
            pause.wait(_POLL_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _still_runs(self) -> bool:
        """Whether the grandchild still runs; a zombie counts as gone."""
        try:
            return (
                self._grandchild is not None
                and self._grandchild.is_running()
                and self._grandchild.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.Error:
            return False
