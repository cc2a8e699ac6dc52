"""Players in many actors, and their fragments in the order in which they are ready."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError, RayActorError, RayTaskError

from rollout.api import Fragment, Loss
from rollout.api.fragment import Phase
from rollout.cluster.resources import actor_options, require_resources
from rollout.errors import BudgetExhausted, GamutError
from rollout.host.hosting import FleetNews, GameHost, HostPlan, Report
from rollout.host.machines import Machines
from rollout.host.schedule import Ledger, Schedule

log = logging.getLogger(__name__)

_NODE = "ray.io/node-id"  # label that Ray gives every node
_WATCH = "watch"  # concurrency group that answers while a game is being played
_POLL_S = 2.0  # how often hosts that are silent are looked after
_FETCH_S = 120.0  # most time to fetch a fragment that is ready
_STALL_MARGIN_S = 30.0  # beyond the longest deadline of a game, before its host counts as hung
_ARRIVAL_S = 900.0  # most time for an actor to appear: a cluster may have to start a machine first
_ANSWER_S = 30.0  # most time for an actor that lives to say where it is
_RELIEF_S = 30.0  # from then on what is held for one is played by others, if they have nothing else


@dataclass
class FleetOptions:
    """How many hosts there are, and how they are kept alive.

    Attributes:
        actors: number of Ray actors.
        max_in_flight: fragments asked of one actor before the last is taken: back-pressure.
        restarts: how often one actor may be replaced.
    """

    actors: int = 1
    max_in_flight: int = 2
    restarts: int = 5


@dataclass
class _Member:
    """One actor of the fleet."""

    number: int
    ledger: Ledger
    handle: Any = None
    incarnation: int = 0
    machine: str = ""  # where it is; empty until it has said so
    asked: Any = None  # the question where it is
    pending: deque[Any] = field(default_factory=deque)
    want: int = 1
    waiting: int = 0
    pulse: Any = None  # an unanswered question for its progress
    progress: int = -1
    deciding_s: float = 0.0  # how long its policy had been deciding when last heard of
    moved: float = 0.0  # when its progress was last seen to change
    due: float | None = None  # when it is launched again, after a rest of its games
    relieved: bool = False  # whether it was ended because it did not appear, and others were idle


class RayFleet:
    """Players in Ray actors.

    Each actor is asked for up to ``max_in_flight`` fragments; the next is asked of it once one has
    been taken, so a slow consumer slows the games instead of filling the memory. An actor that
    dies or hangs is replaced within its budget, and what it held is played again, from the same
    starts, by whoever is free.
    """

    def __init__(self, plan: HostPlan, options: FleetOptions) -> None:
        self.plan, self.options, self.news = plan, options, FleetNews()
        deadlines = plan.pool.deadlines or plan.bridge.spec.deadlines
        longest = max(deadlines.start_s, deadlines.reset_s, deadlines.step_s)
        self._stall_s = longest + _STALL_MARGIN_S
        self._members = [
            _Member(n, Ledger(plan.play.retries), want=plan.slots) for n in range(options.actors)
        ]
        needs = plan.needs
        require_resources(needs, options.actors * plan.instances)
        self._placement = actor_options(needs, options.actors, instances=plan.instances)
        self._machines = Machines(plan.pool.rules)
        self._looked = time.monotonic()
        for member in self._members:
            self._launch(member)

    def _launch(self, member: _Member) -> None:
        placement = dict(self._placement)
        if resting := self._machines.resting(time.monotonic()):
            placement["label_selector"] = {_NODE: f"!in({','.join(resting)})"}
        member.handle = _remote_host(self.plan, member.number, member.incarnation, placement)
        member.machine = ""
        member.asked = member.handle.machine.options(concurrency_group=_WATCH).remote()
        member.progress, member.pulse, member.waiting, member.deciding_s = -1, None, 0, 0.0
        member.moved = time.monotonic()

    def play(self, schedule: Schedule) -> Iterator[Fragment]:
        """Yields the fragments of all actors, first ready first.

        Raises:
            BudgetExhausted: every actor failed more often than its budget allows.
        """
        for member in self._members:
            if member.relieved:
                member.relieved = False
                self._launch(member)
        while True:
            self._relaunch()
            self._relieve(schedule)
            self._ask(schedule)
            heads = {m.pending[0]: m for m in self._members if m.pending}
            if not heads:
                if all(m.handle is None for m in self._members) and not schedule.exhausted:
                    raise BudgetExhausted(
                        f"all {len(self._members)} actors failed more than "
                        f"{self.options.restarts} times; see the log for each death"
                    )
                return
            for ref in _ready(list(heads)):
                member = heads[ref]
                if not member.pending or member.pending[0] is not ref:
                    continue  # the actor was replaced while the consumer had the last fragment
                yield from self._take(member, schedule)
            self._look_after(schedule)

    def _relaunch(self) -> None:
        """Launches the actors whose rest is over."""
        for member in self._members:
            if member.due is not None and member.due <= time.monotonic():
                member.due = None
                self._launch(member)

    def _ask(self, schedule: Schedule) -> None:
        """Keeps every living actor supplied with episodes and with requests."""
        for member in self._members:
            while member.handle is not None and len(member.pending) < self.options.max_in_flight:
                starts = schedule.take(max(0, member.want - member.waiting))
                idle = not member.ledger.held and not starts
                if idle or (member.pending and not starts and not member.ledger.held):
                    break
                member.ledger.give(starts)
                member.waiting += len(starts)
                member.pending.append(member.handle.play.remote(starts))

    def _take(self, member: _Member, schedule: Schedule) -> Sequence[Fragment]:
        ref = member.pending.popleft()
        report: Report
        fragments: list[Fragment]
        try:
            report, fragments = ray.get(ref, timeout=_FETCH_S)
        except RayTaskError as error:
            self._task_failed(member, schedule, error)
            return ()
        except (RayActorError, ObjectLostError, GetTimeoutError) as error:
            # What it had played may be lost with its node, and be noticed before the actor is.
            self._replace(member, schedule, _first_line(error))
            return ()
        member.waiting = report.waiting
        member.moved, member.progress = time.monotonic(), max(0, member.progress)
        self.news.read(report)
        self.news.hosts.note(member.number, report.figures)
        self.news.hosts.queue("in_flight", sum(len(m.pending) for m in self._members))
        results = [result for fragment in fragments for result in fragment.results]
        losses = [loss for fragment in fragments for loss in fragment.losses]
        member.ledger.settle(results, losses, report.abandoned)
        if not fragments and not member.pending and member.ledger.held:
            # It has nothing left to play and yet owes episodes: they were dropped on the way.
            self._take_back(member, schedule, "the host has forgotten it")
        # Short episodes need a longer queue than there are slots, long ones must not hoard.
        member.want = max(self.plan.slots, len(results) + 1)
        return fragments

    def _relieve(self, schedule: Schedule) -> None:
        """Has idle actors play what is held for actors that have not appeared.

        Where a node was lost there may be no room for its actors until there is another.
        """
        if not schedule.exhausted or not any(
            m.handle is not None and m.progress >= 0 and not m.pending for m in self._members
        ):
            return
        for member in self._members:
            late = time.monotonic() - member.moved > _RELIEF_S and member.progress < 0
            if late and member.handle is not None and member.ledger.held:
                ray.kill(member.handle)
                member.handle, member.relieved = None, True
                member.pending.clear()
                # They were not begun, so that this is no attempt.
                schedule.give_back(member.ledger.held.values())
                log.warning(
                    "host %d has not appeared; others play its %d episodes",
                    member.number,
                    len(member.ledger.held),
                )
                member.ledger.held.clear()

    def _task_failed(self, member: _Member, schedule: Schedule, error: RayTaskError) -> None:
        cause = error.as_instanceof_cause()
        if isinstance(cause, BudgetExhausted):
            # All its games rest: so does it, unless it is the machine's fault.
            rules, rest = self.plan.pool.rules, 0.0
            if not self._blame(member, weight=rules.machine_failures or 1, patience_s=_ANSWER_S):
                rest = float("inf") if rules.quarantine_s is None else rules.quarantine_s
            self._replace(member, schedule, str(cause), blamed=True, rest_s=rest)
        else:
            raise cause from None if isinstance(cause, GamutError) else error

    def _look_after(self, schedule: Schedule) -> None:
        """Finds actors that have hung, however deep: nothing in them moves any more."""
        now = time.monotonic()
        away, self._looked = now - self._looked, now
        for member in self._members:
            if away > 2 * _POLL_S:
                member.moved += away  # the consumer kept us: that is not the actors' doing
            if member.handle is None or not member.pending:
                member.moved = now
                continue
            if member.pulse is None:
                if now - member.moved > _POLL_S:
                    member.pulse = member.handle.pulse.options(concurrency_group=_WATCH).remote()
            elif ray.wait([member.pulse], timeout=0)[0]:
                self._read_pulse(member, now)
            self._judge(member, schedule, now)

    def _judge(self, member: _Member, schedule: Schedule, now: float) -> None:
        """Replaces an actor whose game, policy or whose whole process stands still."""
        phase: Phase = "actor"
        limit, what = self._stall_s, "nothing moved"
        if member.progress < 0:
            limit, what = max(limit, _ARRIVAL_S), "its actor did not appear"
        elif member.deciding_s > 0.0:
            limit, phase = self.plan.pool.rules.policy_s, "policy"
            what = "its policy has not decided"
        if now - member.moved > limit:
            self._replace(member, schedule, f"{what} for {limit:.0f} s", phase=phase)

    def _read_pulse(self, member: _Member, now: float) -> None:
        pulse, member.pulse = member.pulse, None
        try:
            heard = ray.get(pulse, timeout=1.0)
        except (RayActorError, RayTaskError, GetTimeoutError):
            return  # its fragment will say the same, with the reason
        member.deciding_s = heard.deciding_s
        if heard.progress != member.progress:
            member.progress, member.moved = heard.progress, now

    def _blame(self, member: _Member, *, weight: int = 1, patience_s: float = 0.0) -> bool:
        """Notes that an actor failed where it was; returns whether that machine rests now.

        An actor that lives (``patience_s``) says where it is: its error may overtake that answer.
        """
        if not member.machine and ray.wait([member.asked], timeout=patience_s)[0]:
            with contextlib.suppress(RayActorError, RayTaskError, GetTimeoutError):
                member.machine = ray.get(member.asked, timeout=1.0)
        now, alive = time.monotonic(), [n["NodeID"] for n in ray.nodes() if n["Alive"]]
        if not self._machines.failed(member.machine, now, alive, weight=weight):
            return False
        log.warning("machine %s gets no more games for a while: they fail there", member.machine)
        return True

    def _replace(
        self,
        member: _Member,
        schedule: Schedule,
        reason: str,
        *,
        phase: Phase = "actor",
        blamed: bool = False,
        rest_s: float = 0.0,
    ) -> None:
        """Buries an actor; what it held is played again."""
        if not blamed:
            self._blame(member)
        handle, member.handle = member.handle, None
        member.pending.clear()
        if handle is not None:
            ray.kill(handle)
        again = self._take_back(member, schedule, reason, phase)
        log.warning("host %d died: %s; %d episodes are played again", member.number, reason, again)
        replaced = member.incarnation < self.options.restarts and rest_s < float("inf")
        self.news.hosts.bury(member.number, replaced=replaced)
        if replaced:
            member.incarnation += 1
            self.news.replaced += 1
            member.due = time.monotonic() + rest_s
            if not rest_s:
                self._relaunch()

    def _take_back(
        self, member: _Member, schedule: Schedule, reason: str, phase: Phase = "actor"
    ) -> int:
        """Returns how many of the episodes a host holds are played again."""
        held = list(member.ledger.held.values())
        again, abandoned = member.ledger.lose()
        schedule.give_back(again)
        self.news.abandoned += abandoned
        first = member.number * self.plan.instances
        self.news.losses += [Loss(s, first, 0, phase, reason, 0) for s in held]
        return len(again)

    def close(self) -> None:
        """Ends every game, politely while there is time, and every actor."""
        deadlines = self.plan.pool.deadlines or self.plan.bridge.spec.deadlines
        closing = {m.number: m.handle.close.remote() for m in self._members if m.handle}
        if closing:
            timeout = deadlines.close_s * self.plan.instances + 5.0
            ray.wait(list(closing.values()), num_returns=len(closing), timeout=timeout)
        for member in self._members:
            if member.handle is not None:
                ray.kill(member.handle)
                member.handle = None


def _ready(refs: list[Any]) -> list[Any]:
    """Returns those that are ready, at least one unless none is within ``_POLL_S``.

    All at once: what the driver spends on a fragment must not grow with the number of actors.
    """
    ready, _ = ray.wait(refs, num_returns=1, timeout=_POLL_S)
    if ready and len(refs) > 1:
        ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
    return list(ready)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


def _remote_host(
    plan: HostPlan, number: int, incarnation: int, placement: Mapping[str, Any]
) -> Any:
    """Returns the handle of a new actor that hosts player ``number``."""
    actor = ray.remote(
        **placement,
        max_restarts=0,  # the fleet replaces it, with what it held and within a budget
        max_task_retries=0,  # steps are not idempotent
        concurrency_groups={_WATCH: 1},
    )(_OneThreadHost)
    return actor.remote(plan, number, incarnation)


class _OneThreadHost(GameHost):
    """A host in an actor that keeps to its processor: many of many threads stall one another.

    Ray caps OpenMP by the processors of the actor; what it does not cap is capped here, before a
    bridge or a policy imports it.
    """

    def __init__(self, plan: HostPlan, number: int, incarnation: int) -> None:
        for name in ("OPENCV_FOR_THREADS_NUM", "NUMBA_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        super().__init__(plan, number, incarnation)

    def machine(self) -> str:
        """Returns the id of Ray's node it is on."""
        return str(ray.get_runtime_context().get_node_id())
