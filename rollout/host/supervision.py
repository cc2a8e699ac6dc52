"""Restart rules of failed games and actors, and limits on concurrent launches. No Ray.

The first failure is followed by a restart at once, further failures in a row by growing pauses.
After more failures within a window than the restart budget, a game goes into *quarantine*, a time
without new games, and an actor is abandoned. Older failures do not count, so that a run of weeks
survives one failure a day; nor does the budget end a game that plays many steps for each failure.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from rollout.configuration.sections import HostConfig
from rollout.errors import BudgetExhausted

SETTLED_S = 60.0
"""Seconds after which a game or actor counts as settled: its next failure is a first one again."""

LONGEST_PAUSE_S = 60.0
"""Longest pause before a restart."""

_AHEAD = 3
"""A machine must fail this many times as often as the best other one to be quarantined."""


@dataclass
class Health:
    """The record of failures of one instance of a pool, or of one actor.

    Attributes:
        host: ``restart_window_s``, ``failure_rate`` and ``backoff_s`` are read.
        restarts: failures within the window that are followed by a restart, however few steps were
            played; actors play no steps.
        failures: times of the failures within the window, monotonic seconds.
        played: for each of them, the steps since the failure before it.
        steps: steps since the last failure, counted by the pool.
        in_a_row: failures since an episode was finished, or since it had settled.
    """

    host: HostConfig
    restarts: int
    failures: deque[float] = field(default_factory=deque)
    played: deque[int] = field(default_factory=deque)
    steps: int = 0
    in_a_row: int = 0

    def failed(self, now: float, lived_s: float) -> float | None:
        """Records a failure.

        Args:
            now: when, in monotonic seconds.
            lived_s: how long the game or actor had been running.

        Returns:
            seconds until the restart; None when the restart budget is used up.
        """
        rate = self.host.failure_rate
        self.failures.append(now)
        self.played.append(self.steps)
        settled = lived_s >= SETTLED_S or self.steps * rate >= 1
        self.in_a_row, self.steps = 1 if settled else self.in_a_row + 1, 0
        recent = _count_recent(self.failures, now, self.host.restart_window_s)
        while len(self.played) > recent:
            self.played.popleft()
        if recent > self.restarts and recent > rate * sum(self.played):
            return None
        if self.in_a_row == 1:
            return 0.0
        # The exponent is bounded, so that failures at every launch for days do not overflow.
        return min(LONGEST_PAUSE_S, self.host.backoff_s * 2.0 ** min(self.in_a_row - 2, 30))


def exhausted(games: str, host: HostConfig, reason: str) -> BudgetExhausted:
    """Returns the error that ends a run whose games all fail; names the keys that decide.

    Args:
        games: their number and kind, e.g. ``4 instances``.
        host: configuration of their supervision.
        reason: reason of the last failure.
    """
    window = "" if host.restart_window_s is None else f" within {host.restart_window_s:g} s"
    return BudgetExhausted(
        f"all {games} failed more than {host.restarts} times{window} (host.restarts), and in more "
        f"than {host.failure_rate:.3g} of their steps (host.failure_rate); if the game cannot be "
        f"repaired, raise host.failure_rate, or host.restarts if it fails before its first step; "
        f"the last failure: {reason}"
    )


def _count_recent(times: deque[float], now: float, window_s: float | None) -> int:
    """Returns the number of times within the window; removes older ones."""
    while times and window_s is not None and times[0] < now - window_s:
        times.popleft()
    return len(times)


class Machines:
    """Records the machines on which actors fail.

    A machine is put into quarantine when actors failed on it ``machine_failures`` times within the
    window, and at least three times as often as on another one: a game that fails everywhere is not
    the fault of a machine, and the last machine is never put into quarantine.

    Args:
        host: only ``machine_failures``, ``restart_window_s`` and ``quarantine_s`` are used.
    """

    def __init__(self, host: HostConfig) -> None:
        self._host = host
        self._failures: defaultdict[str, deque[float]] = defaultdict(deque)
        self._ends: dict[str, float] = {}

    def failed(self, machine: str, now: float, used: Iterable[str], *, weight: int = 1) -> bool:
        """Records that an actor failed; returns whether its machine is in quarantine now.

        Args:
            machine: its machine; if unknown, empty, and the failure counts for no machine.
            now: monotonic seconds.
            used: all live machines of the cluster.
            weight: number of failures that this one counts as.
        """
        most = self._host.machine_failures
        if not machine or most is None:
            return False
        excluded = self.quarantined(now)
        if machine in excluded:
            return True
        self._failures[machine].extend([now] * weight)
        others = [self._count(m, now) for m in used if m != machine and m not in excluded]
        count = self._count(machine, now)
        if not others or count < max(most, _AHEAD * max(1, min(others))):
            return False
        rest = self._host.quarantine_s
        self._ends[machine] = float("inf") if rest is None else now + rest
        return True

    def _count(self, machine: str, now: float) -> int:
        return _count_recent(self._failures[machine], now, self._host.restart_window_s)

    def quarantined(self, now: float) -> tuple[str, ...]:
        """Returns the machines that get no new actors, sorted."""
        for machine in [m for m, end in self._ends.items() if end <= now]:
            del self._ends[machine]
            self._failures[machine].clear()
        return tuple(sorted(self._ends))


class LaunchLimit:
    """A limit on the games that are launched at the same time on this machine, by any process.

    A permit is a lock on a file, which the kernel releases when its holder dies.

    Args:
        count: number of permits.
        name: of the game; each name has permits of its own.
        folder: of the files; by default one of this user among the temporary files.
    """

    def __init__(self, count: int, name: str, folder: Path | None = None) -> None:
        user = Path(tempfile.gettempdir()) / f"gamut-launches-{os.getuid()}"
        self._folder = folder or user
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        safe = "".join(c if c.isalnum() else "-" for c in name)
        self._paths = [self._folder / f"{safe}-{k}.lock" for k in range(count)]

    def acquire(self) -> BaseFileLock | None:
        """Returns a permit, to be released later; None when all are taken."""
        for path in self._paths:
            permit = FileLock(path, thread_local=False, fallback_to_soft=False)
            with contextlib.suppress(Timeout):
                permit.acquire(blocking=False)
                return permit
        return None
