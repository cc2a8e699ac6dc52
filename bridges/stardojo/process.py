"""The process of the real game, or of a server that speaks its protocol: started, owned, ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rollout.errors import GameCrashed, GameStartError

SAVES = Path(".config/StardewValley/Saves")
"""Folder of the saves below a home directory, on Linux."""
LOG_BYTES = 2**20
_TAIL = 500  # characters of the log in an error
_POLL_S = 0.1
_GRACE_S = 2.0
_NEVER = threading.Event()


class GameProcess:
    """One game with everything it starts, in a process group of its own.

    The bridge runs in the game's own process of Gamut, below a guard that ends the whole tree if
    that dies for any reason (docs/processes.md); ``close`` ends the group.

    Args:
        command: program and arguments.
        folder: of this game alone; its home directory and its log are made in it.
        port: that the game was told to listen on.

    Raises:
        GameStartError: it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, port: int, environment: Mapping[str, str]
    ) -> None:
        self.port, self.home = port, folder / "home"
        self._log = folder / "game.log"
        self.home.mkdir(parents=True, exist_ok=True)
        own = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **environment, **own},
                    process_group=0,
                )
        except OSError as error:
            raise GameStartError(f"the game {[*command]} cannot be started: {error}") from error

    def alive(self) -> None:
        """Raises an error if the game has ended, and keeps its log short.

        Raises:
            GameCrashed: it has.
        """
        # Not reaped, so that its process group, which may have other members, keeps its number.
        ended = self._process.returncode is None and os.waitid(
            os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT
        )
        if ended or self._process.returncode is not None:
            self.close()
            code = self._process.returncode
            raise GameCrashed(f"the game ended with exit code {code}; its log: {self._tail()}")
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_BYTES:
                os.truncate(self._log, 0)

    def _tail(self) -> str:
        with contextlib.suppress(OSError):
            lines = self._log.read_text(errors="replace").strip().splitlines()
            return " | ".join(lines)[-_TAIL:] or "empty"
        return "not there"

    def copy_save(self, source: Path) -> str:
        """Copies a save into the home of this game; returns the name of its folder.

        Args:
            source: the folder of a save; its main file has the name of the folder.
        """
        name = f"{source.name}_Port_{self.port}"
        target = self.home / SAVES / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        (target / source.name).rename(target / name)
        return name

    def close(self) -> None:
        """Ends the game and its process group. Idempotent; never raises."""
        if self._process.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def until(deadline: float) -> bool:
    """Waits a moment; returns whether the deadline, in monotonic seconds, is still to come."""
    _NEVER.wait(min(_POLL_S, max(deadline - time.monotonic(), 0.0)))
    return time.monotonic() < deadline
