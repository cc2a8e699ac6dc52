"""The state of the games of a run, combined from all hosts for the metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CAUSES = ("failed", "recycled", "quarantined", "spared", "host")
"""Causes of game restarts: those of ``Pool.counts``, and ``host`` if a whole host was replaced."""

QUEUES = ("waiting", "in_flight", "inference")
"""Queues: episodes that wait for a slot, fragments requested from hosts and not yet taken by the
driver, and requests that an inference actor has not answered yet."""


@dataclass(frozen=True, slots=True)
class HostFigures:
    """The state of one host's games, sent with its fragments.

    Attributes:
        instances: number of instances that it should have.
        ready: number of instances that are running, playing or not.
        waiting: episodes that wait for a slot.
        games_s: seconds that its player has waited for games since its first decision.
        own_s: seconds that its player has worked since then: the policy, and everything around it.
        memory_mb: resident memory of all its games when last measured; 0 if not measured.
        counts: events of its games since it was launched, as in ``Pool.counts``.
        policy: figures of its policy, see ``rollout.api.Reporting``.
    """

    instances: int
    ready: int
    waiting: int = 0
    memory_mb: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    games_s: float = 0.0
    own_s: float = 0.0
    policy: Mapping[str, float] = field(default_factory=dict)


def sum_figures(figures: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Returns the sums of figures by name."""
    sums: defaultdict[str, float] = defaultdict(float)
    for each in figures:
        for name, value in each.items():
            sums[name] += value
    return dict(sums)


class HostTable:
    """The newest figures of every host of a run.

    A host that died has no ready games, but its counts are kept.
    """

    def __init__(self) -> None:
        self.replaced = 0
        self._newest: dict[int, HostFigures] = {}
        self._before: Counter[str] = Counter()  # counts of hosts that have ended
        self._queues: dict[str, int] = {}

    def note(self, host: int, figures: HostFigures) -> None:
        """Records the newest figures of a host, by its number."""
        self._newest[host] = figures

    def lose(self, host: int, *, replaced: bool) -> None:
        """Records that a host failed.

        Args:
            host: number of the host, which need not have sent figures.
            replaced: whether another host takes its place under this number.
        """
        self.replaced += replaced
        last = self._newest.get(host)
        if last is not None:
            self._before.update(last.counts)
            self._newest[host] = HostFigures(last.instances, ready=0)

    def queue(self, name: str, depth: int) -> None:
        """Records the current length of one of ``QUEUES``.

        Raises:
            ValueError: there is no such queue.
        """
        if name not in QUEUES:
            raise ValueError(f"expected a queue of {', '.join(QUEUES)}, got {name!r}")
        self._queues[name] = depth

    def values(self) -> dict[str, float]:
        """Returns the figures for a metrics line; nothing before a host has sent figures.

        ``games/ready`` is the share of instances that are running, and ``players/games`` the share
        of their time that players wait for games; restarts are counted since the beginning of this
        session, by cause.
        """
        hosts = self._newest.values()
        instances = sum(h.instances for h in hosts)
        if not instances:
            return {}
        counts = Counter(self._before)
        for host in hosts:
            counts.update(host.counts)
        counts["host"] = self.replaced
        queues = {"waiting": sum(h.waiting for h in hosts), **self._queues}
        memory = sum(h.memory_mb for h in hosts)
        games_s = sum(h.games_s for h in hosts)
        played_s = games_s + sum(h.own_s for h in hosts)
        return {
            **sum_figures(h.policy for h in hosts),
            "games/instances": instances,
            "games/ready": sum(h.ready for h in hosts) / instances,
            **({"games/memory_mb": memory} if memory else {}),
            **({"players/games": games_s / played_s} if played_s else {}),
            **{f"restarts/{cause}": counts[cause] for cause in CAUSES},
            **{f"queue/{name}": depth for name, depth in queues.items()},
        }
