"""The instances of a pool and their games."""

from __future__ import annotations

import contextlib
import shutil
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from filelock import BaseFileLock

from rollout.api import Frame
from rollout.api.fragment import Phase
from rollout.configuration.sections import HostConfig
from rollout.host.handle import Handle
from rollout.host.supervision import Health

Kind = Literal["launched", "reset", "step", "failed"]

NEVER = float("inf")
NEARLY = 0.9
"""Fraction of the memory limit at which a game is replaced between two episodes."""


@dataclass(slots=True)
class Event:
    """An event of an instance.

    Attributes:
        instance: its number in the pool.
        kind: ``launched``: every slot waits for a reset; ``reset`` and ``step``: with a frame;
            ``failed``: every episode in it is lost.
        frame: as the instance returned it; valid until the next command to the instance.
        seconds: duration of the command.
        phase: for ``failed``, the phase.
        reason: for ``failed``, the reason.
        trace: for ``failed``, the traceback of the game's code, if it raised an error.
        replaced: for ``failed``, whether a new game runs or will run without a quarantine.
    """

    instance: int
    kind: Kind
    frame: Frame | None = None
    seconds: float = 0.0
    phase: Phase = "step"
    reason: str = ""
    trace: str = ""
    replaced: bool = True


@dataclass(slots=True)
class Game:
    """One running copy of a game.

    Attributes:
        handle: its handle.
        folder: its own folder, which is removed with it.
        launched: when its launch began, monotonic seconds.
        up: whether the launch is complete.
        permit: the permit to launch; None when returned, or if launches are not limited.
        memory_mb: resident memory of its processes when last measured.
        stopped: its stopped process at the last check; empty if none was.
    """

    handle: Handle
    folder: Path
    launched: float
    up: bool = False
    permit: BaseFileLock | None = None
    memory_mb: float = 0.0
    stopped: str = ""

    def fault(self, cap_mb: float | None) -> str:
        """Checks its processes; returns the reason to kill it, empty if there is none.

        A stopped process may be continued soon, as after the machine or a job was suspended, so
        it is a fault at the second check.
        """
        before, self.stopped = self.stopped, getattr(self.handle, "stopped", str)()
        if self.stopped and self.stopped == before:
            return f"{self.stopped} (SIGSTOP) and was not continued (SIGCONT)"
        if cap_mb is None:
            return ""
        self.memory_mb = float(getattr(self.handle, "memory_mb", float)())
        if self.memory_mb < cap_mb:
            return ""
        return f"{self.memory_mb:.0f} MB of memory, over the limit of {cap_mb:g} MB"

    def release(self) -> None:
        """Returns the permit to launch, if it holds one."""
        if self.permit is not None:
            self.permit.release()
            self.permit = None


@dataclass(slots=True)
class PooledInstance:
    """One instance of a pool, whose game may be replaced.

    Attributes:
        health: its record of failures.
        game: its current game; None if there is none.
        phase: phase of the pending command; None if there is none.
        sent: when that command was sent.
        deadline: when the command times out.
        send_error: why the command could not be sent.
        due: when the next game is launched; None if none is planned.
        quarantined: whether that is the end of a quarantine.
        incarnation: number of earlier games.
        episodes: number of episodes that its current game has finished.
    """

    health: Health
    game: Game | None = None
    phase: Phase | None = None
    sent: float = 0.0
    deadline: float = NEVER
    send_error: str = ""
    due: float | None = None
    quarantined: bool = False
    incarnation: int = 0
    episodes: int = 0

    @property
    def runs_here(self) -> bool:
        """True if its pending command will run in this process, when its result is read."""
        return (
            self.phase is not None and self.game is not None and self.game.handle.waitable is None
        )

    @property
    def expects(self) -> bool:
        """True if an event will follow: a result, or the launch of a new game."""
        return self.phase is not None or (self.due is not None and not self.quarantined)

    @property
    def alive(self) -> bool:
        """True if a game runs or is about to be launched."""
        return self.game is not None or (self.due is not None and not self.quarantined)

    def due_for_recycling(self, host: HostConfig, now: float) -> bool:
        """Returns whether its game has reached a limit for replacement.

        Never before its first episode has ended, otherwise games that need most of their memory
        from the beginning would be replaced forever.
        """
        game = self.game
        if game is None or not game.up or not self.episodes:
            return False
        episodes, age, cap = host.recycle_episodes, host.recycle_s, host.memory_mb
        return (
            (episodes is not None and self.episodes >= episodes)
            or (age is not None and now - game.launched >= age)
            or (cap is not None and game.memory_mb >= NEARLY * cap)
        )


@dataclass
class GameCloser:
    """Ends games without blocking, and removes their folders."""

    _threads: list[threading.Thread] = field(default_factory=list)

    def kill(self, game: Game) -> None:
        """Kills a game at once."""
        self._end(game, 0.0)

    def close(self, game: Game, timeout_s: float) -> None:
        """Closes a healthy game; in the background if it has its own process."""
        if game.handle.waitable is None:
            self._end(game, timeout_s)
            return
        self._threads = [t for t in self._threads if t.is_alive()]
        thread = threading.Thread(target=self._end, args=(game, timeout_s), daemon=True)
        self._threads.append(thread)
        thread.start()

    @staticmethod
    def _end(game: Game, timeout_s: float) -> None:
        game.handle.close(timeout_s)
        shutil.rmtree(game.folder, ignore_errors=True)

    def wait(self, timeout_s: float) -> None:
        """Waits until all closed games have ended, at most ``timeout_s`` seconds."""
        end = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


def free_ports(count: int) -> Sequence[int]:
    """Returns free ports; all are held open until all are chosen."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in held:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
