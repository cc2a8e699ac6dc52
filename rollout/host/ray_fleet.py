"""Hosts in Ray actors, whose fragments are returned in the order of their completion."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from rollout.api import Fragment, Loss, Start
from rollout.api.fragment import Phase
from rollout.cluster.resources import actor_options, require_resources
from rollout.host.actors import Actor, Supervisor
from rollout.host.hosting import FleetEvents, GameHost, HostPlan, HostReport
from rollout.host.ray_actors import RayLauncher, Watched, close_hosts
from rollout.host.ray_watch import require_ray
from rollout.host.schedule import Ledger, Schedule

log = logging.getLogger(__name__)

_LATE_S = 30.0  # after which idle hosts play the episodes of one that has not appeared
_LOOK_S = 0.25  # between two looks at all hosts, whose cost grows with their number


@dataclass
class _Host:
    """One host of the fleet.

    Attributes:
        ledger: the episodes that it holds.
        want: number of episodes to keep in its queue.
        waiting: number of episodes in its queue that no slot has taken.
        withdrawn: whether its actor was killed because it did not appear while others were idle.
    """

    actor: Actor
    ledger: Ledger
    want: int
    waiting: int = 0
    withdrawn: bool = False


class RayFleet:
    """Hosts in Ray actors.

    Each actor has up to ``host.max_in_flight`` requests for fragments; a new one follows when a
    fragment is taken. So a slow consumer slows the games instead of filling the memory. The
    episodes of an actor that is replaced are played again, from the same starts.

    Args:
        plan: plan of the hosts.
        actors: number of Ray actors.
        check: called often; an exception in it ends ``play``.
        supervisor: supervisor of actors that run already; None launches actors of its own.
    """

    def __init__(
        self,
        plan: HostPlan,
        actors: int = 1,
        check: Callable[[], None] = lambda: None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.plan, self.news, self._check = plan, FleetEvents(), check
        self._weights: tuple[Any, ...] = ()  # a reference to weights, and their version
        self.supervisor = supervisor or self._launch(plan, actors)
        self._hosts = [
            _Host(actor, Ledger(plan.play.retries), plan.slots) for actor in self.supervisor.actors
        ]

    def _launch(self, plan: HostPlan, actors: int) -> Supervisor:
        require_resources(plan.needs, actors * plan.instances)
        return Supervisor(
            RayLauncher(
                OneThreadHost,
                lambda number, incarnation: (plan, number, incarnation),
                actor_options(plan.needs, actors, instances=plan.instances),
            ),
            actors,
            plan.host,
            restarts=plan.host.actor_restarts,
            stall_s=plan.stall_s,
            policy_s=plan.host.policy_s,
            name="host",
            failed=self.failed,
        )

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Plays with the given weights from now on, also in actors that are replaced."""
        require_ray()
        self._weights = (ray.put(dict(weights)), version)

    def play(self, schedule: Schedule) -> Iterator[Fragment]:
        """Yields the fragments of all actors in the order in which they are ready.

        Raises:
            BudgetExhausted: no actor is left; see ``Supervisor.require_available``.
        """
        self._schedule = schedule
        self._relaunch_withdrawn()
        looked = float("-inf")
        while True:
            self._check()
            now = self.supervisor.clock()
            if now - looked >= _LOOK_S or not self._waits:
                looked = now
                self._look(schedule)
            if not self._waits:
                if schedule.exhausted:
                    return
                self.supervisor.require_available()
            for actor in self.supervisor.wait():
                host = self._hosts[actor.number]
                fragments = self._take(host)
                self._fill_requests(schedule, host)  # it plays on while these are consumed
                yield from fragments
                self._fill_requests(schedule, host)  # they may have made further episodes due

    def _look(self, schedule: Schedule) -> None:
        """Does what depends on all actors, whether they have anything to say or not."""
        self.supervisor.poll()
        self._reassign_late(schedule)
        for host in self._hosts:
            self._fill_requests(schedule, host)
        in_flight = sum(len(host.actor.requests) for host in self._hosts)
        self.news.hosts.queue("in_flight", in_flight)

    @property
    def _waits(self) -> bool:
        """True if an actor has a request."""
        return any(host.actor.requests for host in self._hosts)

    def _fill_requests(self, schedule: Schedule, host: _Host) -> None:
        """Keeps an actor supplied with episodes and requests for fragments."""
        most, actor = self.plan.host.max_in_flight or 2, host.actor
        while actor.handle is not None and len(actor.requests) < most:
            starts = schedule.take(max(0, host.want - host.waiting))
            if not starts and not host.ledger.held:
                break
            host.ledger.give(starts)
            host.waiting += len(starts)
            actor.requests.append(self._request(actor, starts))

    def _request(self, actor: Actor, starts: Sequence[Start]) -> Any:
        """Requests fragments of an actor; returns the reference to its reply."""
        return actor.handle.play.remote(starts, *self._weights)

    def _take(self, host: _Host) -> Sequence[Fragment]:
        actor = host.actor
        taken: tuple[HostReport, list[Fragment]] | None = self.supervisor.take(actor)
        if taken is None:
            return ()
        report, fragments = taken
        host.waiting = report.waiting
        self.news.read(report)
        self.news.hosts.note(actor.number, report.figures)
        results = [result for fragment in fragments for result in fragment.results]
        losses = [loss for fragment in fragments for loss in fragment.losses]
        host.ledger.settle(results, losses, report.abandoned)
        if not fragments and not actor.requests and host.ledger.held:
            # It has nothing left to play but still holds episodes, which were dropped.
            self._play_again(host, "the host has forgotten it", "actor")
        # Short episodes need a longer queue than there are slots; long ones must not wait in it.
        host.want = max(self.plan.slots, len(results) + 1)
        return fragments

    def _reassign_late(self, schedule: Schedule) -> None:
        """Returns the episodes of hosts that have not appeared to the schedule, for idle hosts.

        After the loss of a node there may be no room for its actors until another node joins.
        """
        actors = self.supervisor.actors
        if not schedule.exhausted or not any(
            a.handle is not None and a.pulse is not None and not a.requests for a in actors
        ):
            return
        now = self.supervisor.clock()
        for host in self._hosts:
            actor, held = host.actor, host.ledger.held
            late = actor.pulse is None and now - actor.last_progress > _LATE_S
            if late and actor.handle is not None and held:
                self.supervisor.withdraw(actor)
                host.withdrawn, host.waiting = True, 0
                schedule.give_back(held.values())  # not begun, so not an attempt
                log.warning(
                    "host %d has not appeared; others play its %d episodes", actor.number, len(held)
                )
                held.clear()

    def _relaunch_withdrawn(self) -> None:
        """Launches the withdrawn actors again."""
        for host in self._hosts:
            if host.withdrawn:
                host.withdrawn = False
                self.supervisor.launch(host.actor)

    def failed(self, actor: Actor, reason: str, phase: Phase) -> None:
        """Returns the episodes of an actor that failed to the schedule."""
        self._play_again(self._hosts[actor.number], reason, phase)
        self._hosts[actor.number].waiting = 0
        replaced = actor.due is not None
        self.news.hosts.lose(actor.number, replaced=replaced)
        self.news.replaced += replaced

    def _play_again(self, host: _Host, reason: str, phase: Phase) -> None:
        """Returns the episodes of a host to the schedule; they count as lost."""
        held = list(host.ledger.held.values())
        again, abandoned = host.ledger.lose()
        self._schedule.give_back(again)
        self.news.abandoned += abandoned
        first = host.actor.number * self.plan.instances
        self.news.losses += [Loss(start, first, 0, phase, reason, 0) for start in held]

    def close(self) -> None:
        """Ends every game and every actor."""
        close_hosts(self.supervisor, self.plan)


class OneThreadHost(Watched, GameHost):
    """A host whose libraries use one thread, since many actors share the processors.

    Ray limits OpenMP by the processors of the actor; OpenCV and Numba are limited here, before a
    bridge or a policy imports them.
    """

    def __init__(self, plan: HostPlan, number: int, incarnation: int) -> None:
        for name in ("OPENCV_FOR_THREADS_NUM", "NUMBA_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        super().__init__(plan, number, incarnation)
