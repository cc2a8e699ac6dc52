"""A player and its games in one place, and what they are built from. No Ray here."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rollout.api import (
    Bridge,
    BridgeSpec,
    Fragment,
    Loss,
    PolicyRecipe,
    Resources,
    Start,
    Task,
    Trainable,
)
from rollout.api.fragment import Phase
from rollout.host.player import Player, PlayOptions
from rollout.host.pool import Pool
from rollout.host.processes import owned_workdir, remove_workdir, sweep_orphans
from rollout.host.schedule import Schedule
from rollout.host.supervision import PoolOptions, Supervision
from rollout.observe.hosts import HostFigures, HostTable
from rollout.observe.logs import about

if TYPE_CHECKING:
    from rollout.config import HostConfig


log = logging.getLogger(__name__)


def pool_options(host: HostConfig, spec: BridgeSpec) -> PoolOptions:
    """Returns how games are hosted by a configuration.

    Args:
        host: the configuration.
        spec: of the bridge, for the deadlines and needs that the configuration leaves open.
    """
    minutes = host.recycle_minutes
    rules = Supervision(
        host.restarts,
        host.restart_window_s,
        host.backoff_s,
        quarantine_s=host.quarantine_s,
        recycle_episodes=host.recycle_episodes,
        recycle_s=None if minutes is None else 60.0 * minutes,
        memory_mb=host.memory_mb,
        spares=host.spares,
        boots=host.boots,
        policy_s=host.policy_s,
        machine_failures=host.machine_failures,
    )
    return PoolOptions(
        host.isolation,
        host.restarts,
        host.deadlines(spec.deadlines),
        supervision=rules,
        needs=host.needs(spec.resources),
    )


@dataclass(frozen=True)
class HostPlan:
    """Everything a player is built from; travels to wherever it plays.

    Attributes:
        bridge: recipe of the game.
        task: what is played.
        policy: recipe of who plays.
        seed: of the run; every player's policy gets a seed of its own from it.
        instances: copies of the game beside each player.
        width: slots of each.
        pool: how they are hosted.
        play: how they are played.
    """

    bridge: Bridge
    task: Task
    policy: PolicyRecipe
    seed: int = 0
    instances: int = 1
    width: int = 1
    pool: PoolOptions = field(default_factory=PoolOptions)
    play: PlayOptions = field(default_factory=PlayOptions)

    @property
    def slots(self) -> int:
        """Number of episodes that one player plays at a time."""
        return self.instances * self.width

    @property
    def needs(self) -> Resources:
        """What one instance needs of the machine it runs on."""
        return self.pool.needs or self.bridge.spec.resources

    def build(self, number: int, incarnation: int, workdir: Path) -> Player:
        """Returns the player with this number, its games being launched."""
        # Spawn keys of players are longer than those of episodes, so the two never meet.
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number, incarnation, 0))
        policy_seed = int(sequence.generate_state(1, np.uint64)[0] >> 1)
        policy = self.policy.build(self.bridge.spec, self.task, seed=policy_seed)
        pool = Pool(self.bridge, workdir, self.instances, self.width, self.pool)
        return Player(pool, self.task, policy, self.play, first_instance=number * self.instances)


@dataclass(frozen=True, slots=True)
class Report:
    """What comes back beside a fragment.

    Attributes:
        waiting: episodes on offer that no slot has taken yet.
        abandoned: episodes given up since the last report.
        figures: how its games fare.
        idle_failures: instance, phase and reason of games that failed with no episode in them.
    """

    waiting: int
    abandoned: tuple[Start, ...]
    figures: HostFigures
    idle_failures: tuple[tuple[int, Phase, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Pulse:
    """A sign of life.

    Attributes:
        progress: a number that changes as long as anything happens.
        deciding_s: how long the policy has been deciding; 0 while it is not asked.
    """

    progress: int
    deciding_s: float


class GameHost:
    """One player and its games; what a Ray actor of the fleet is made of."""

    def __init__(self, plan: HostPlan, number: int, incarnation: int = 0) -> None:
        sweep_orphans()
        self._workdir = owned_workdir(f"gamut-host-{number}-")
        self._player = plan.build(number, incarnation, self._workdir)

    def play(
        self,
        starts: Sequence[Start],
        weights: Mapping[str, Any] | None = None,
        version: int = 0,
    ) -> tuple[Report, list[Fragment]]:
        """Plays until fragments are complete.

        Args:
            starts: more episodes to play.
            weights: for a trainable policy, what it acts with from now on.
            version: number of those weights.

        Returns:
            them; none when every episode on offer has ended.
        """
        player = self._player
        if weights is not None and isinstance(player.policy, Trainable):
            player.policy.load(weights, version)
        player.offer(starts)
        fragments = player.next_fragments()
        abandoned, player.abandoned = tuple(player.abandoned), []
        failures, player.idle_failures = tuple(player.idle_failures), []
        waiting = len(player.starts)
        return Report(waiting, abandoned, player.pool.figures(waiting), failures), fragments

    def pulse(self) -> Pulse:
        """Returns a sign of life; may be asked while it plays, by another thread."""
        since = self._player.deciding_since
        return Pulse(self._player.progress, 0.0 if since is None else time.monotonic() - since)

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self._player.close()
        remove_workdir(self._workdir)


@dataclass
class FleetNews:
    """What happened beside the fragments.

    Attributes:
        losses: episodes that were lost with their host.
        abandoned: episodes that were lost more often than they are retried.
        replaced: number of hosts that were replaced.
        hosts: how their games fare.
    """

    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    replaced: int = 0
    hosts: HostTable = field(default_factory=HostTable)

    def read(self, report: Report) -> None:
        """Takes in what a report tells beside its fragments, and says what nothing else does."""
        self.abandoned += report.abandoned
        tell_idle_failures(report.idle_failures)


def tell_idle_failures(failures: Iterable[tuple[int, Phase, str]]) -> None:
    """Logs games that failed with no episode in them, which no loss tells of.

    Args:
        failures: instance, phase and reason of each.
    """
    for instance, phase, reason in failures:
        with about(instance=instance):
            log.warning("a game failed in %s, with no episode in it: %s", phase, reason)


class Fleet(Protocol):
    """Whatever plays a schedule: ``LocalFleet`` here, ``rollout.host.fleet.RayFleet`` on Ray."""

    @property
    def news(self) -> FleetNews:
        """What happened beside the fragments."""
        ...

    def play(self, schedule: Schedule) -> Iterator[Fragment]:
        """Yields the fragments of a schedule's episodes, first ready first."""
        ...

    def close(self) -> None:
        """Ends every game."""
        ...


class LocalFleet:
    """One player in this process; the plain loop, for debugging and tests."""

    def __init__(self, plan: HostPlan) -> None:
        self.plan, self.news = plan, FleetNews()
        self._host = GameHost(plan, 0)

    def play(self, schedule: Schedule) -> Iterator[Fragment]:
        """Yields every fragment of the schedule's episodes."""
        want = 2 * self.plan.slots
        waiting = 0
        while True:
            report, fragments = self._host.play(schedule.take(max(0, want - waiting)))
            waiting = report.waiting
            self.news.read(report)
            self.news.hosts.note(0, report.figures)
            if not fragments and schedule.exhausted:
                return
            want = max(want, sum(len(f.results) for f in fragments) + self.plan.slots)
            yield from fragments

    def close(self) -> None:
        """Ends every game."""
        self._host.close()
