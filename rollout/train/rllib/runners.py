"""Runners in this process or in Ray actors; fragments are taken in the order of their arrival."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ray
import torch

from rollout.api import Fragment, Loss, Start
from rollout.api.fragment import Phase
from rollout.host.actors import Actor, Pulse, Supervisor
from rollout.host.fleets import Fleet
from rollout.host.hosting import GameHost, HostPlan, HostReport
from rollout.host.ray_actors import RayLauncher, Watched, close_hosts, fetch
from rollout.host.ray_fleet import RayFleet
from rollout.host.ray_watch import lost, require_ray
from rollout.host.schedule import Schedule
from rollout.observe.hosts import HostTable
from rollout.threads import set_threads
from rollout.train.plan import TrainPlan
from rollout.train.sampler import Sample, enough
from rollout.train.updates import Weights

_FETCH_S = 120.0  # deadline to fetch a plan
_MARGIN_S = 5.0  # added to the deadline of the games for their actors to answer


class TrainingRunner(Watched):
    """Plays the share of the episodes that its number selects, in an actor."""

    def __init__(self, plan: TrainPlan, number: int) -> None:
        set_threads(1)  # many runners with many threads each slow one another down
        self._plan, self._number = plan, number
        self._sampler = plan.sampler(number)
        self._guest: GameHost | None = None  # plays other episodes than those of the training

    def fragment(
        self, weights: Mapping[str, Any], version: int, position: Mapping[str, Any] | None
    ) -> tuple[Sample, dict[str, Any]]:
        """Plays a fragment; returns it with the position of the schedule after it.

        ``position`` is that after the last fragment that was taken. A runner that has just been
        launched continues from there; others are further ahead and ignore it.

        Raises:
            BudgetExhausted: no game is left, and none may be launched.
        """
        if position is not None and self._sampler.untouched:
            self._sampler.schedule.restore(position)
        self._sampler.load(weights, version)
        return self._sampler.sample(), self._sampler.position()

    def rewind(self) -> None:
        """Relaunches the games if anything was played, so that another position can be restored."""
        if not self._sampler.untouched:
            self._sampler.close()
            self._sampler = self._plan.sampler(self._number)

    def play(
        self, plan: Sequence[Any], starts: Sequence[Start]
    ) -> tuple[HostReport, list[Fragment]]:
        """Plays other episodes than those of the training, with games of their own.

        Args:
            plan: reference to their plan, the only element; read if the games do not run yet.
            starts: further episodes to play.
        """
        if self._guest is None:
            self._guest = GameHost(fetch(plan[0], _FETCH_S), self._number)
        return self._guest.play(starts)

    def dismiss(self) -> None:
        """Ends the games of ``play``."""
        guest, self._guest = self._guest, None
        if guest is not None:
            guest.close()

    def pulse(self) -> Pulse:
        """Returns a sign of life; another thread may call it during play."""
        own, guest = self._sampler.pulse(), self._guest
        if guest is None:
            return own
        other = guest.pulse()
        deciding_s = max(own.deciding_s, other.deciding_s)
        return Pulse(own.progress + other.progress, deciding_s)

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self.dismiss()
        self._sampler.close()


def _as_arrays(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Returns weights as NumPy arrays where there are such: Ray reads these without copying."""
    return {k: v if v.dtype == torch.bfloat16 else v.numpy() for k, v in weights.items()}


@dataclass
class _Runner:
    """The algorithm's record of a runner."""

    actor: Actor
    version: int = 0  # of the weights that play the requested fragment
    weights: Mapping[str, Any] | None = None  # these weights, until the fragment is taken
    position: dict[str, Any] | None = None  # of its schedule, after the newest fragment taken

    @property
    def key(self) -> str:
        """Its number in saved positions, from 1; 0 is the trainer's own process."""
        return str(self.actor.number + 1)


class LentRunners(RayFleet):
    """A fleet of the actors of runners, which must have no requests.

    Each runner launches the games of the plan beside those of its training, with the first request,
    so they need no further room in the cluster. ``close`` ends these games and leaves the runners.

    Args:
        plan: plan of the games.
        supervisor: supervisor of the runners; it must report failures to ``failed``.
    """

    def __init__(self, plan: HostPlan, supervisor: Supervisor) -> None:
        super().__init__(plan, supervisor=supervisor)
        self._shared = [ray.put(plan)]  # in a list, so that a runner reads it only if it needs it

    def _request(self, actor: Actor, starts: Sequence[Start]) -> Any:
        return actor.handle.play.remote(self._shared, starts)

    def close(self) -> None:
        """Ends the games; requests that were not taken are dropped."""
        if lost():
            return
        self._relaunch_withdrawn()
        handles = []
        for actor in self.supervisor.actors:
            actor.requests.clear()
            if actor.handle is not None:
                handles.append(actor.handle.dismiss.remote())
        if handles:
            timeout_s = self.plan.deadlines.close_s * self.plan.instances + _MARGIN_S
            ray.wait(handles, num_returns=len(handles), timeout=timeout_s)


class RemoteRunners:
    """The runners of an algorithm; each has one request for a fragment at a time.

    Args:
        plan: plan of the run.
        options: Ray options of each actor.

    Attributes:
        hosts: state of their games.
    """

    def __init__(self, plan: TrainPlan, options: Mapping[str, Any]) -> None:
        self._algorithm, self._config, self.hosts = plan.algorithm, plan.config, HostTable()
        self._hosting = plan.hosting()
        self.supervisor = Supervisor(
            RayLauncher(TrainingRunner, lambda number, _: (plan, number), options),
            plan.config.runners,
            plan.config.host,
            restarts=plan.config.host.actor_restarts,
            stall_s=self._hosting.stall_s,
            policy_s=plan.config.host.policy_s,
            name="runner",
            failed=self._failed,
        )
        # Only to know which episodes a failed runner had; the runners decide who plays what.
        self._episodes = Schedule(plan.states, seed=plan.config.seed, episodes=None)
        self._runners = [_Runner(actor) for actor in self.supervisor.actors]
        # Not yet returned by ``collect``: losses of failed runners, and fragments that were awaited
        # before the runners were lent.
        self._early: list[Sample] = []
        self._lent: LentRunners | None = None

    def collect(self, samples: list[Sample], version: int, weights: Weights) -> None:
        """Appends fragments to ``samples`` until they make a batch, also if it raises then.

        When it returns, no pending fragment can be too old after the next update.

        Raises:
            BudgetExhausted: no runner is left.
        """
        batch, most = self._algorithm.batch, self._algorithm.max_staleness
        newest = functools.cache(weights)  # asked for once, when they are first needed
        stored: dict[int, Any] = {}  # references to weights in the object store, by version
        while True:
            self.supervisor.poll()
            samples += self._early
            self._early.clear()
            full = enough(samples, batch)
            requested = [runner for runner in self._runners if runner.actor.requests]
            # After this update the newest version is version + 1.
            late = any(version + 1 - runner.version > most for runner in requested)
            if not full or (most and not late):
                for runner in self._runners:
                    actor = runner.actor
                    if actor.handle is not None and not actor.requests:
                        require_ray()
                        if runner.weights is None:
                            runner.weights, runner.version = newest(), version
                        # Otherwise it repeats a fragment that was in flight at the checkpoint.
                        if (played_by := runner.version) not in stored:
                            stored[played_by] = ray.put(_as_arrays(runner.weights))
                        given = (stored[played_by], played_by, runner.position)
                        actor.requests.append(actor.handle.fragment.remote(*given))
            requested = [runner for runner in self._runners if runner.actor.requests]
            if full and not late:
                self.hosts.queue("in_flight", len(requested))
                return
            if not requested:
                self.supervisor.require_available()
            for actor in self.supervisor.wait()[:1]:  # a second one may no longer be needed
                samples += self._take(actor)

    def _take(self, actor: Actor) -> list[Sample]:
        taken = self.supervisor.take(actor)
        if taken is None:
            return []
        runner = self._runners[actor.number]
        sample, runner.position = taken
        runner.weights = None
        self.hosts.note(actor.number, sample.figures)
        return [sample]

    @contextlib.contextmanager
    def open_fleet(self, plan: HostPlan) -> Iterator[Fleet]:
        """Launches the games of another plan in the runners, and ends them at the end.

        Fragments that were requested are awaited first, and are part of the next batch.
        """
        while any(actor.requests for actor in self.supervisor.actors):
            self.supervisor.poll()
            for actor in self.supervisor.wait():
                self._early += self._take(actor)
        self._lent = fleet = LentRunners(plan, self.supervisor)
        try:
            yield fleet
        finally:
            fleet.close()
            self._lent = None

    def _failed(self, actor: Actor, reason: str, phase: Phase) -> None:
        """Records the episodes of a failed runner: they are retried while attempts are left."""
        if self._lent is not None:
            self._lent.failed(actor, reason, phase)
        runner, retries = self._runners[actor.number], self._config.host.retries
        runner.weights = None
        self.hosts.lose(actor.number, replaced=actor.due is not None)
        held = (runner.position or {}).get("playing", [])
        starts = [replace(self._episodes.start(e), attempt=attempt) for e, attempt in held]
        first = actor.number * self._config.instances
        losses = [Loss(start, first, 0, phase, reason, 0) for start in starts]
        if runner.position is not None:
            # Its replacement continues from here, and so does the next one, one attempt higher.
            again = [[s.episode, s.attempt + 1] for s in starts if s.attempt < retries]
            again += runner.position["again"]
            runner.position = {**runner.position, "again": again, "playing": []}
        abandoned = [start for start in starts if start.attempt >= retries]
        self._early.append(Sample({}, 0, runner.version, losses=losses, abandoned=abandoned))

    def positions(self) -> dict[str, Any]:
        """Returns the position of every runner's schedule, by number, JSON-able."""
        return {r.key: r.position for r in self._runners if r.position is not None}

    def in_flight(self) -> dict[str, Any]:
        """Returns the weights that play each requested fragment, by number of the runner."""
        pending = [runner for runner in self._runners if runner.weights is not None]
        return {r.key: {"version": r.version, "weights": r.weights} for r in pending}

    def go_to(self, positions: Mapping[str, Any], in_flight: Mapping[str, Any]) -> None:
        """Continues from saved positions; pending requests are dropped.

        The first fragment of each runner is played by the weights in ``in_flight``.
        """
        self._early.clear()
        for runner in self._runners:
            runner.actor.requests.clear()
            runner.position = positions.get(runner.key)
            first = in_flight.get(runner.key, {"version": 0, "weights": None})
            runner.version, runner.weights = first["version"], first["weights"]
            if runner.actor.handle is not None:
                runner.actor.handle.rewind.remote()

    def close(self) -> None:
        """Ends every game and every actor."""
        close_hosts(self.supervisor, self._hosting)
