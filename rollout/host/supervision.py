"""How failing games are treated: budgets, pauses, rests, planned restarts, boots in turn. No Ray.

A *seat* is the place of one instance in a pool. A game that fails is replaced at once the first
time, after a growing pause when its successors fail too, and after a long rest, its *quarantine*,
once its seat has used up its budget. Failures are forgotten after a while, so that a run of weeks
does not end of a game that dies once a day.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rollout.api import Deadlines, Resources

Isolation = Literal["auto", "in_process", "subprocess"]

SETTLED_S = 60.0
"""A game that has lived this long has come up well: its seat's next failure counts as the first."""


@dataclass(frozen=True)
class Supervision:
    """When games are replaced.

    Attributes:
        restarts: failures within ``window_s`` that a seat may have replaced.
        window_s: seconds after which a failure is forgotten; None never forgets.
        backoff_s: pause before the second replacement in a row; doubled for each one more.
        backoff_cap_s: longest such pause.
        quarantine_s: rest of a seat that used up its budget, while others play; None is for ever.
        recycle_episodes: finished episodes after which a game is replaced as planned; None never.
        recycle_s: age at which it is, once no episode is under way; None never.
        memory_mb: resident memory of a game's processes at which it is killed, and at nine tenths
            of which it is replaced as planned; None for no cap.
        spares: games that are kept launched and waiting, to take the place of one that fails.
        boots: games that may come up at the same time on one machine; None for any number.
        policy_s: deadline for a policy to decide; an actor in which it takes longer is replaced.
        machine_failures: actors that may fail on one machine within ``window_s`` before it rests
            for ``quarantine_s``, while there are machines that fail less; None for any number.
    """

    restarts: int = 5
    window_s: float | None = 3600.0
    backoff_s: float = 0.1
    backoff_cap_s: float = 60.0
    quarantine_s: float | None = 300.0
    recycle_episodes: int | None = None
    recycle_s: float | None = None
    memory_mb: float | None = None
    spares: int = 0
    boots: int | None = None
    policy_s: float = 300.0
    machine_failures: int | None = 3


@dataclass(frozen=True)
class PoolOptions:
    """How instances are hosted.

    Attributes:
        isolation: ``in_process``, ``subprocess``, or ``auto`` for what the bridge asks for.
        restarts: how many failures of a seat are made good; see ``Supervision``, whose number it
            replaces where that is given too.
        deadlines: seconds for each phase; None for the bridge's own.
        keep_workdirs: whether the folders of dead instances are left for inspection.
        supervision: when games are replaced; None for the rules by default.
        needs: what one game needs of its machine; None for what its bridge says.
    """

    isolation: Isolation = "auto"
    restarts: int = 5
    deadlines: Deadlines | None = None
    keep_workdirs: bool = False
    supervision: Supervision | None = None
    needs: Resources | None = None

    @property
    def rules(self) -> Supervision:
        """The rules of supervision."""
        return self.supervision or Supervision(restarts=self.restarts)


@dataclass
class Health:
    """The record of one seat.

    Attributes:
        failures: when it failed, within the window.
        in_a_row: failures since it finished an episode, or a game of it was settled.
        quarantines: rests it was given.
    """

    rules: Supervision
    failures: deque[float] = field(default_factory=deque)
    in_a_row: int = 0
    quarantines: int = 0

    def failed(self, now: float, lived_s: float) -> float | None:
        """Notes a failure.

        Args:
            now: when, in seconds of any clock that only rises.
            lived_s: how long the game had been up.

        Returns:
            seconds until the next try; None when the budget is used up.
        """
        rules = self.rules
        if rules.window_s is not None:
            while self.failures and self.failures[0] < now - rules.window_s:
                self.failures.popleft()
        self.failures.append(now)
        self.in_a_row = 1 if lived_s >= SETTLED_S else self.in_a_row + 1
        if len(self.failures) > rules.restarts:
            return None
        if self.in_a_row == 1:
            return 0.0
        # The exponent is bounded, so that a failure at every boot for days does not overflow.
        pause = rules.backoff_s * 2.0 ** min(self.in_a_row - 2, 30)
        return float(min(rules.backoff_cap_s, pause))

    def rest(self) -> float | None:
        """Returns how long a seat without budget rests; None when it is given up.

        After it, the seat has one try: another failure within the window sends it back.
        """
        if self.rules.quarantine_s is not None:
            self.quarantines += 1
        return self.rules.quarantine_s


class BootSlots:
    """At most so many games come up at once on this machine, whoever launches them.

    A place is a lock on a file, which the kernel takes back however its holder dies.

    Args:
        count: number of places.
        name: of what comes up; different names do not wait for one another.
        folder: where the files are; by default one for this user, among temporary files.
    """

    def __init__(self, count: int, name: str, folder: Path | None = None) -> None:
        user = Path(tempfile.gettempdir()) / f"gamut-boots-{os.getuid()}"
        self._folder = folder or user
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() else "-" for c in name)
        self._paths = [self._folder / f"{safe}-{k}.lock" for k in range(count)]

    def take(self) -> int | None:
        """Returns a place, to be given to ``leave`` later; None when none is free now."""
        for path in self._paths:
            place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(place)
            else:
                return place
        return None

    @staticmethod
    def leave(place: int) -> None:
        """Gives a place back."""
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)
        os.close(place)
