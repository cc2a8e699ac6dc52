"""Which machines of a cluster fail more than others and get no new actors. No Ray here."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from rollout.configuration.host_section import HostConfig

_AHEAD = 3
"""A machine must fail this many times as often as the best other one to be quarantined."""


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
        times, window = self._failures[machine], self._host.restart_window_s
        while times and window is not None and times[0] < now - window:
            times.popleft()
        return len(times)

    def quarantined(self, now: float) -> tuple[str, ...]:
        """Returns the machines that get no new actors, sorted."""
        for machine in [m for m, end in self._ends.items() if end <= now]:
            del self._ends[machine]
            self._failures[machine].clear()
        return tuple(sorted(self._ends))
