"""Which machines of a cluster fail more than others, and rest for it. No Ray here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from rollout.host.supervision import Supervision

_AHEAD = 3
"""A machine is to blame when it fails this many times as often as the best of the others."""


class Machines:
    """The record of machines on which actors fail.

    A machine rests when actors failed on it ``machine_failures`` times within the window, and at
    least three times as often as on some other that is used: a game that fails everywhere is no
    machine's fault, and the last machine never rests.

    Args:
        rules: ``machine_failures``, ``window_s`` and ``quarantine_s`` are read.
    """

    def __init__(self, rules: Supervision) -> None:
        self._rules = rules
        self._failures: defaultdict[str, deque[float]] = defaultdict(deque)
        self._rests: dict[str, float] = {}

    def failed(self, machine: str, now: float, used: Iterable[str], *, weight: int = 1) -> bool:
        """Notes that an actor failed; returns whether its machine rests now.

        Args:
            machine: where; empty when nobody knows, which blames none.
            now: monotonic seconds.
            used: every machine that is alive, this one or not.
            weight: failures that this one counts for.
        """
        most = self._rules.machine_failures
        if not machine or most is None:
            return False
        resting = self.resting(now)
        if machine in resting:
            return True
        self._failures[machine].extend([now] * weight)
        others = [self._count(m, now) for m in used if m != machine and m not in resting]
        count = self._count(machine, now)
        if not others or count < max(most, _AHEAD * max(1, min(others))):
            return False
        rest = self._rules.quarantine_s
        self._rests[machine] = float("inf") if rest is None else now + rest
        return True

    def _count(self, machine: str, now: float) -> int:
        times, window = self._failures[machine], self._rules.window_s
        while times and window is not None and times[0] < now - window:
            times.popleft()
        return len(times)

    def resting(self, now: float) -> tuple[str, ...]:
        """Returns the machines that get no new actors, sorted."""
        for machine in [m for m, end in self._rests.items() if end <= now]:
            del self._rests[machine]
            self._failures[machine].clear()
        return tuple(sorted(self._rests))
