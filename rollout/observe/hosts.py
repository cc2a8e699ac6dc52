"""How the games of a run fare: what every host says of its own, put together for the metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

CAUSES = ("failed", "recycled", "quarantined", "spared", "host")
"""Why games were replaced: as ``Pool.counts`` has it, and ``host`` for a whole host that was."""

QUEUES = ("waiting", "in_flight", "inference")
"""What may pile up: episodes on offer that no slot has taken, fragments asked of hosts and not yet
taken by the driver, and requests that a policy of its own actor has yet to answer."""


@dataclass(frozen=True, slots=True)
class HostFigures:
    """How the games of one host fare; travels beside its fragments.

    Attributes:
        instances: games that it is to have.
        ready: those of them that are up, whether they play or wait.
        waiting: episodes on offer that no slot has taken yet.
        memory_mb: resident memory of all its games when last measured; 0 where it is not measured.
        counts: what was done to its games since it was launched, as ``Pool.counts``.
    """

    instances: int
    ready: int
    waiting: int = 0
    memory_mb: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)


class HostTable:
    """The newest figures of every host of a run.

    A host that died has no games that are ready, and what was done to them still counts.
    """

    def __init__(self) -> None:
        self.replaced = 0
        self._newest: dict[int, HostFigures] = {}
        self._before: Counter[str] = Counter()  # counts of hosts that are no more
        self._queues: dict[str, int] = {}

    def note(self, host: int, figures: HostFigures) -> None:
        """Takes what a host says of itself now.

        Args:
            host: its number.
            figures: its own.
        """
        self._newest[host] = figures

    def bury(self, host: int, *, replaced: bool) -> None:
        """Notes that a host died.

        Args:
            host: its number; one that never said anything will do.
            replaced: whether another takes its place under this number.
        """
        self.replaced += replaced
        last = self._newest.get(host)
        if last is not None:
            self._before.update(last.counts)
            self._newest[host] = HostFigures(last.instances, ready=0)

    def queue(self, name: str, depth: int) -> None:
        """Notes how much is queued now.

        Args:
            name: one of ``QUEUES``.
            depth: number of entries.

        Raises:
            ValueError: there is no such queue.
        """
        if name not in QUEUES:
            raise ValueError(f"expected a queue of {', '.join(QUEUES)}, got {name!r}")
        self._queues[name] = depth

    def values(self) -> dict[str, float]:
        """Returns the figures for a line of metrics; nothing before a host has spoken.

        ``games/ready`` is the share of the instances that are up; restarts are counted from the
        beginning of this session, by cause.
        """
        hosts = self._newest.values()
        instances = sum(h.instances for h in hosts)
        if not instances:
            return {}
        counts = self._before + sum((Counter(h.counts) for h in hosts), Counter())
        counts["host"] = self.replaced
        queues = {"waiting": sum(h.waiting for h in hosts), **self._queues}
        memory = sum(h.memory_mb for h in hosts)
        return {
            "games/instances": instances,
            "games/ready": sum(h.ready for h in hosts) / instances,
            **({"games/memory_mb": memory} if memory else {}),
            **{f"restarts/{cause}": counts[cause] for cause in CAUSES},
            **{f"queue/{name}": depth for name, depth in queues.items()},
        }
