"""The places of a pool, and the games in them."""

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

from rollout.api import Frame
from rollout.api.fragment import Phase
from rollout.host.handle import Handle
from rollout.host.supervision import BootSlots, Health, Supervision

Kind = Literal["launched", "reset", "step", "failed"]

NEVER = float("inf")
NEARLY = 0.9
"""Share of the memory cap from which a game is replaced as planned."""


@dataclass(slots=True)
class Event:
    """What an instance has to say.

    Attributes:
        instance: its number in the pool.
        kind: ``launched`` and every slot waits for a reset; ``reset`` and ``step`` carry a frame;
            ``failed``: every episode in it is lost.
        frame: as its instance returned it; valid until the next command to the instance.
        seconds: time the command took.
        phase: for ``failed``, what was being done.
        reason: for ``failed``, what went wrong.
        replaced: for ``failed``, whether a fresh copy is there or will be, without a long rest.
    """

    instance: int
    kind: Kind
    frame: Frame | None = None
    seconds: float = 0.0
    phase: Phase = "step"
    reason: str = ""
    replaced: bool = True


@dataclass(slots=True)
class Game:
    """One running copy of a game.

    Attributes:
        handle: speaks to it.
        folder: its own, removed with it.
        launched: when it was asked to come up, monotonic seconds.
        up: whether it has come up.
        boot: its place among those that come up; None once it has, or where there is no limit.
        memory_mb: resident memory of its processes when last measured.
    """

    handle: Handle
    folder: Path
    launched: float
    up: bool = False
    boot: int | None = None
    memory_mb: float = 0.0

    def arrived(self) -> None:
        """Gives back its place among those that come up; whatever became of it."""
        if self.boot is not None:
            BootSlots.leave(self.boot)
            self.boot = None


@dataclass(slots=True)
class Seat:
    """The place of one instance, which may be filled anew.

    Attributes:
        health: its record of failures.
        game: who sits there; None while nobody does.
        phase: of the command in flight; None when the game waits for one.
        sent: when that command was given.
        deadline: when it is overdue.
        trouble: why it could not even be given.
        due: when the next game is to be launched; None when that is not planned.
        resting: whether that is the end of its quarantine.
        incarnation: how often it was filled anew.
        episodes: finished by its present game.
    """

    health: Health
    game: Game | None = None
    phase: Phase | None = None
    sent: float = 0.0
    deadline: float = NEVER
    trouble: str = ""
    due: float | None = None
    resting: bool = False
    incarnation: int = 0
    episodes: int = 0

    @property
    def runs_here(self) -> bool:
        """Whether its game plays in this process, when its answer is asked for."""
        return (
            self.phase is not None and self.game is not None and self.game.handle.waitable is None
        )

    @property
    def expects(self) -> bool:
        """Whether something will be heard of it: an answer, or that a new game is up."""
        return self.phase is not None or (self.due is not None and not self.resting)

    @property
    def alive(self) -> bool:
        """Whether a game is there, or about to be launched."""
        return self.game is not None or (self.due is not None and not self.resting)

    def worn(self, rules: Supervision, now: float) -> bool:
        """Returns whether its game is to be replaced as planned.

        Never before its first episode has ended, or games that need most of their memory from the
        beginning would be replaced for ever.
        """
        game = self.game
        if game is None or not game.up or not self.episodes:
            return False
        episodes, age, cap = rules.recycle_episodes, rules.recycle_s, rules.memory_mb
        return (
            (episodes is not None and self.episodes >= episodes)
            or (age is not None and now - game.launched >= age)
            or (cap is not None and game.memory_mb >= NEARLY * cap)
        )


@dataclass
class Undertaker:
    """Ends games without making anybody wait, and removes what is left of them."""

    keep_workdirs: bool
    _threads: list[threading.Thread] = field(default_factory=list)

    def bury(self, game: Game) -> None:
        """Kills a game at once."""
        game.handle.close(0.0)
        self._clean(game)

    def retire(self, game: Game, timeout_s: float) -> None:
        """Ends a healthy game politely, in the background if it has a process of its own."""
        if game.handle.waitable is None:
            game.handle.close(timeout_s)
            self._clean(game)
            return
        self._threads = [t for t in self._threads if t.is_alive()]
        thread = threading.Thread(target=self._end, args=(game, timeout_s), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _end(self, game: Game, timeout_s: float) -> None:
        game.handle.close(timeout_s)
        self._clean(game)

    def _clean(self, game: Game) -> None:
        if not self.keep_workdirs:
            shutil.rmtree(game.folder, ignore_errors=True)

    def wait(self, timeout_s: float) -> None:
        """Waits until all that were retired are gone, for so long at most."""
        end = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))


def free_ports(count: int) -> Sequence[int]:
    """Returns ports that were free a moment ago; all are held open until all are chosen."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for s in held:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
