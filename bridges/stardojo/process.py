"""The process of the real game, or of a server that speaks its protocol: started, owned, ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rollout.api.child_process import ChildProcess
from rollout.errors import GameCrashed, GameStartError

SAVES = Path(".config/StardewValley/Saves")
"""Folder of the saves below a home directory, on Linux."""
LOG_BYTES = 2**20
_SHOWN = 500  # characters of the log in an error
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
            env = {**os.environ, **environment, **own}
            self._child = ChildProcess(command, log=self._log, env=env)
        except OSError as error:
            raise GameStartError(f"the game {[*command]} cannot be started: {error}") from error

    def alive(self) -> None:
        """Raises an error if the game has ended, and keeps its log short.

        Raises:
            GameCrashed: it has.
        """
        if how := self._child.ended():
            self.close()
            said = " | ".join(self._child.last_output(_SHOWN).splitlines()) or "empty"
            raise GameCrashed(f"the game ended: {how}; its log: {said}")
        with contextlib.suppress(OSError):
            if self._log.stat().st_size > LOG_BYTES:
                os.truncate(self._log, 0)

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
        self._child.close(time.monotonic() + 2 * _GRACE_S, patience_s=_GRACE_S)


def until(deadline: float) -> bool:
    """Waits a moment; returns whether the deadline, in monotonic seconds, is still to come."""
    _NEVER.wait(min(_POLL_S, max(deadline - time.monotonic(), 0.0)))
    return time.monotonic() < deadline
