"""A player with its games, the plan that builds it, and the fleet in this process. No Ray here."""

from __future__ import annotations

import functools
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from rollout.api import (
    MASK,
    Bridge,
    ColumnSpec,
    Deadlines,
    Fragment,
    Loss,
    Policy,
    PolicyRecipe,
    Resources,
    Start,
    Task,
    Trainable,
    waits_for_person,
)
from rollout.api.masks import mask_like
from rollout.configuration.sections import HostConfig
from rollout.errors import BudgetExhausted
from rollout.host.actors import STALL_MARGIN_S, Pulse
from rollout.host.instances import Event
from rollout.host.player import Player, PlayOptions
from rollout.host.policy_calls import POLICY_CODE, policy_name
from rollout.host.pool import Pool
from rollout.host.processes import owned_workdir, remove_workdir, sweep_orphans
from rollout.host.schedule import Schedule
from rollout.observe.hosts import HostFigures, HostTable
from rollout.observe.logs import about, kind_of, log_trace

log = logging.getLogger(__name__)

_SIGNAL = signal.SIGURG  # ignored by default, so one that comes late does no harm
_WARN = 0.1  # fraction of the deadline after which a warning comes
_AGAIN_S = 1.0  # between signals: code of the policy may catch the exception
_GRACE_S = 10.0  # after which the code of the policy counts as uninterruptible
_STOPPED_S = 10.0  # if the watch itself comes later than this, the process was stopped


@dataclass(frozen=True)
class HostPlan:
    """Everything from which a player is built; picklable.

    Attributes:
        bridge: recipe of the game.
        task: the task.
        policy: recipe of the policy.
        seed: seed of the run, from which every player's policy gets its own seed.
        instances: instances per player.
        width: slots of each instance.
        host: how games are supervised.
        play: how episodes are played.
    """

    bridge: Bridge
    task: Task
    policy: PolicyRecipe
    seed: int = 0
    instances: int = 1
    width: int = 1
    host: HostConfig = field(default_factory=HostConfig)
    play: PlayOptions = field(default_factory=PlayOptions)

    @property
    def slots(self) -> int:
        """Number of episodes that one player plays at the same time."""
        return self.instances * self.width

    @property
    def in_process(self) -> bool:
        """True if games run in the process of their player."""
        return self.host.plays_in_process(self.bridge.spec.process)

    @property
    def needs(self) -> Resources:
        """Resources that one instance needs."""
        return self.host.needs(self.bridge.spec.resources)

    @property
    def deadlines(self) -> Deadlines:
        """Timeouts of a game, in seconds, by phase."""
        return self.host.deadlines(self.bridge.spec.deadlines)

    @property
    def stall_s(self) -> float:
        """Seconds without progress after which an actor that plays it counts as hung."""
        limits = self.deadlines
        return max(limits.start_s, limits.reset_s, limits.step_s) + STALL_MARGIN_S

    def policy_seed(self, number: int, incarnation: int) -> int:
        """Returns the seed of a player's policy."""
        # Spawn keys of players are longer than those of episodes, so they never coincide.
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number, incarnation, 0))
        return int(sequence.generate_state(1, np.uint64)[0] >> 1)

    def build(self, number: int, incarnation: int, workdir: Path) -> Player:
        """Returns the player with this number; its games are launching."""
        seed = self.policy_seed(number, incarnation)
        with POLICY_CODE:
            policy = self.policy.build(self.bridge.spec, self.task, seed=seed)
        pool = Pool(self.bridge, workdir, self.instances, self.width, self.host)
        return Player(pool, self.task, policy, self.play, first_instance=number * self.instances)


@dataclass(frozen=True, slots=True)
class HostReport:
    """Information sent with a fragment.

    Attributes:
        waiting: episodes in the queue that no slot has taken.
        abandoned: episodes abandoned since the last report.
        figures: state of its games.
        idle_failures: instance and event of games that failed with no episode in them.
    """

    waiting: int
    abandoned: tuple[Start, ...]
    figures: HostFigures
    idle_failures: tuple[tuple[int, Event], ...] = ()


def log_launch(plan: HostPlan, hosts: int) -> None:
    """Logs which games are about to be launched, in Ray actors if there are ``hosts``."""
    count, where = plan.instances * max(hosts, 1), f"{hosts} actors" if hosts else "this process"
    log.info(
        "launching %d x %s in %s, %d slots each; the first results may take a minute",
        count,
        plan.bridge.spec.name,
        where,
        plan.width,
    )
    spec = plan.bridge.spec
    for key, action in mask_like(spec.observation_space, spec.action_space).items():
        _warn_of_mask(spec.name, key, f"{MASK}{action}")


@functools.cache
def _warn_of_mask(game: str, key: str, name: str) -> None:
    """Warns of an observation that may be meant as a mask; once, however often games launch."""
    log.warning(
        "the observation %r of %s looks like a mask of legal actions and masks nothing; name it "
        "%r, as a MultiBinary, if policies are to keep to it (docs/masks.md)",
        *(key, game, name),
    )


def pulse_of(player: Player) -> Pulse:
    """Returns the sign of life of a player; another thread may call it during play."""
    since = player.deciding_since
    return Pulse(player.progress, 0.0 if since is None else time.monotonic() - since)


class GameHost:
    """A player with its games; the contents of a Ray actor of the fleet."""

    def __init__(self, plan: HostPlan, number: int, incarnation: int = 0) -> None:
        sweep_orphans()
        self._workdir = owned_workdir(f"gamut-host-{number}-")
        self._player = plan.build(number, incarnation, self._workdir)
        self._loaded = 0

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights of a trainable policy, unless it has this version."""
        policy = self._player.policy
        if version != self._loaded and isinstance(policy, Trainable):
            policy.load(weights, version)
            self._loaded = version

    def play(
        self,
        starts: Sequence[Start],
        weights: Mapping[str, Any] | None = None,
        version: int = 0,
    ) -> tuple[HostReport, list[Fragment]]:
        """Plays until fragments are complete.

        Args:
            starts: further episodes to play.
            weights: new weights of a trainable policy.
            version: version of these weights.

        Returns:
            the fragments; none if every episode in the queue has ended.
        """
        player = self._player
        if weights is not None:
            self.load(weights, version)
        player.offer(starts)
        fragments = player.next_fragments()
        abandoned, player.abandoned = tuple(player.abandoned), []
        failures, player.idle_failures = tuple(player.idle_failures), []
        waiting = len(player.starts)
        return HostReport(waiting, abandoned, player.figures, failures), fragments

    @property
    def extras(self) -> Mapping[str, ColumnSpec]:
        """Extras of the policy."""
        return self._player.policy.extras

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self._player.policy

    def pulse(self) -> Pulse:
        """Returns a sign of life; another thread may call it during play."""
        return pulse_of(self._player)

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self._player.close()
        remove_workdir(self._workdir)


@dataclass
class FleetEvents:
    """Events outside the fragments.

    Attributes:
        losses: episodes that were lost with their host.
        abandoned: episodes that were lost in all their attempts.
        replaced: number of hosts that were replaced.
        hosts: state of their games.
    """

    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    replaced: int = 0
    hosts: HostTable = field(default_factory=HostTable)

    def read(self, report: HostReport) -> None:
        """Adds the events of a report; logs failures that lost no episode."""
        self.abandoned += report.abandoned
        log_idle_failures(report.idle_failures)


def log_idle_failures(failures: Iterable[tuple[int, Event]]) -> None:
    """Logs games that failed without an episode, which appear in no loss.

    Args:
        failures: instance and event of each.
    """
    for instance, event in failures:
        with about(instance=instance):
            kind = kind_of("idle", event.phase, event.reason)
            message = "a game failed in %s, with no episode in it: %s"
            log.warning(message, event.phase, event.reason, extra=kind)
            log_trace(log, event.trace)


class LocalFleet:
    """One player in this process; the plain loop, for debugging and tests."""

    def __init__(self, plan: HostPlan) -> None:
        self.plan, self.news = plan, FleetEvents()
        self._host = GameHost(plan, 0)
        self._watch = PolicyWatch(self._host.policy, self._host.pulse, plan.host.policy_s)

    @property
    def extras(self) -> Mapping[str, ColumnSpec]:
        """Extras of the policy."""
        return self._host.extras

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Plays with the given weights from now on."""
        self._host.load(weights, version)

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
        self._watch.close()
        self._host.close()


class PolicyWatch:
    """Enforces the deadline of the policy's calls in the main thread of this process.

    After a tenth of the deadline a warning names the policy. After the whole deadline a signal
    raises ``BudgetExhausted`` in the code of the policy. In other threads, it only warns. In
    actors, the supervisor does the same from outside; see ``rollout.host.actors``. After a time in
    which the process was stopped, as by SIGSTOP, the deadline begins again.

    Args:
        policy: the policy; one that waits for a person is not watched.
        pulse: returns how long the policy has been deciding.
        limit_s: deadline of a decision, in seconds.
    """

    def __init__(self, policy: Policy, pulse: Callable[[], Pulse], limit_s: float) -> None:
        self._what = f"the policy {policy_name(policy)} has not decided"
        self._pulse, self._limit_s = pulse, limit_s
        self._warned = self._stuck = False
        self._closed = threading.Event()
        self._runs_since = time.monotonic()
        self._previous: Any = None
        self._ends = threading.current_thread() is threading.main_thread()
        if waits_for_person(policy):
            return
        if self._ends:
            self._previous = signal.signal(_SIGNAL, self._interrupt)
        threading.Thread(target=self._run, name="policy-watch", daemon=True).start()

    def _run(self) -> None:
        pause_s = min(_AGAIN_S, _WARN * self._limit_s)
        looked = self._runs_since
        while not self._closed.wait(pause_s):
            now = time.monotonic()
            if now - looked > pause_s + _STOPPED_S:
                self._runs_since = now
            looked, taken_s = now, self._taken_s()
            if taken_s >= _WARN * self._limit_s and not self._warned:
                self._warned = True
                message = "%s for %.3g s; its deadline is %g s (host.policy_s)"
                log.warning(message, self._what, taken_s, self._limit_s)
            if self._ends and taken_s >= self._limit_s:
                signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)
                if taken_s > self._limit_s + _GRACE_S and not self._stuck:
                    self._stuck = True
                    log.error(
                        "%s for %.0f s and its code cannot be interrupted; end this process with "
                        "kill -9: finished episodes are saved, continue with --resume",
                        self._what,
                        taken_s,
                    )

    def _taken_s(self) -> float:
        return min(self._pulse().deciding_s, time.monotonic() - self._runs_since)

    def _interrupt(self, _signum: int, _frame: FrameType | None) -> None:
        if not self._closed.is_set() and self._taken_s() >= self._limit_s:
            raise BudgetExhausted(
                f"{self._what} for {self._limit_s:g} s (host.policy_s); look for what it waits "
                f"for, then continue with --resume"
            )

    def close(self) -> None:
        """Ends the watch. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._previous is not None:
            signal.signal(_SIGNAL, self._previous)
