"""Runners in Ray actors: whichever fragment is ready first is taken first.

Ray restarts an actor that died, and while it does so any call may fail, more than once. A runner
that died is therefore asked for a sign of life until it gives one, and only then for a fragment, so
that one death counts once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ray
from ray.exceptions import (
    ActorUnavailableError,
    GetTimeoutError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
)

from rollout.api import Loss
from rollout.errors import BudgetExhausted, GamutError
from rollout.host.schedule import Schedule
from rollout.observe.hosts import HostTable
from rollout.train.plan import TrainPlan
from rollout.train.sampler import Sample

log = logging.getLogger(__name__)

_POLL_S = 2.0  # how often runners that are silent are looked after
_FETCH_S = 120.0  # most time to fetch a fragment that is ready
_ARRIVAL_S = 900.0  # most time for a runner to appear: a cluster may have to start a machine first


@dataclass
class _Runner:
    """A remote runner, as the algorithm knows it.

    Attributes:
        pending: the fragment that was asked for.
        sign: the sign of life that was asked for, of a runner that died.
        version: of the weights that the pending fragment is played with.
        asked: when something was last asked for.
        heard: whether it gave a fragment since it was launched.
        failures: how often it died.
        due: when its games are launched anew, after a rest; None while it plays.
        position: of its schedule, after the newest fragment that was taken.
    """

    number: int
    handle: Any
    pending: Any = None
    sign: Any = None
    version: int = 0
    asked: float = 0.0
    heard: bool = False
    failures: int = 0
    due: float | None = None
    position: dict[str, Any] | None = None


class RemoteRunners:
    """The remote runners of an algorithm, each asked for one fragment at a time.

    Args:
        plan: of the run.
        handles: actors of ``FragmentRunner``, by number.

    Attributes:
        hosts: how their games fare.
    """

    def __init__(self, plan: TrainPlan, handles: Mapping[int, Any]) -> None:
        self._config, self._instances = plan.config, plan.config.instances
        host = plan.config.host
        self._restarts, self._retries = host.restarts, host.retries
        self._quarantine_s = host.quarantine_s
        self.stall_s, self.hosts = plan.stall_s(), HostTable()
        # Only to say which episodes a dead runner held; who plays what is the runners' business.
        self._episodes = Schedule(plan.states, seed=plan.config.seed, episodes=None)
        self._runners = [_Runner(number, handle) for number, handle in handles.items()]

    def __len__(self) -> int:
        return len(self._runners)

    def collect(self, samples: list[Sample], version: int, weights: Callable[[], Any]) -> None:
        """Appends fragments to ``samples`` until they make a batch.

        Before it returns, no fragment is under way that would be too old after the next update.

        Args:
            samples: what was collected; also when it raises.
            version: number of the weights.
            weights: gives a reference to them.

        Raises:
            BudgetExhausted: no runner is left.
        """
        batch, most = self._config.ppo.batch, self._config.ppo.max_staleness
        while True:
            have = sum(s.env_steps for s in samples)
            # After this update the newest weights are number version + 1.
            late = any(
                r.pending is not None and version + 1 - r.version > most for r in self._runners
            )
            if have >= batch and not late:
                if most:
                    self._ask(version, weights)
                pending = sum(r.pending is not None for r in self._runners)
                self.hosts.queue("in_flight", pending)
                return
            if have < batch:
                self._ask(version, weights)
            waiting = {r.pending: r for r in self._runners if r.pending is not None}
            signs = {r.sign: r for r in self._runners if r.sign is not None}
            if not waiting and all(self._is_away(r) for r in self._runners):
                raise BudgetExhausted(
                    f"all {len(self._runners)} runners failed, or died more than "
                    f"{self._restarts} times; see the log for each death"
                )
            ready, _ = ray.wait([*waiting, *signs], num_returns=1, timeout=_POLL_S)
            for ref in ready:
                if ref in signs:
                    self._take_sign(signs[ref])
                else:
                    samples.append(self._take(waiting[ref], version))
            self._look_after()

    def _is_away(self, runner: _Runner) -> bool:
        return runner.failures > self._restarts or runner.due is not None

    def _ask(self, version: int, weights: Callable[[], Any]) -> None:
        """Asks every runner that lives and plays nothing for a fragment."""
        for runner in self._runners:
            if runner.due is not None and runner.due <= time.monotonic():
                runner.due = None
                runner.handle.rewind.remote()
            busy = runner.pending is not None or runner.sign is not None
            if not busy and not self._is_away(runner):
                runner.pending = runner.handle.fragment.remote(weights(), version, runner.position)
                runner.version, runner.asked = version, time.monotonic()

    def _take(self, runner: _Runner, version: int) -> Sample:
        ref, runner.pending = runner.pending, None
        try:
            sample, runner.position = ray.get(ref, timeout=_FETCH_S)
        except RayTaskError as error:
            cause = error.as_instanceof_cause()
            if not isinstance(cause, BudgetExhausted):
                raise cause from None if isinstance(cause, GamutError) else error
            return self._exhausted(runner, version, cause)
        except (RayActorError, ObjectLostError, GetTimeoutError) as error:
            return self._died(runner, version, _first_line(error))
        runner.heard = True
        self.hosts.note(runner.number, sample.figures)
        return sample  # type: ignore[no-any-return] # untyped ray

    def _exhausted(self, runner: _Runner, version: int, cause: BudgetExhausted) -> Sample:
        """All its games rest: so does it, while others play."""
        rest = self._quarantine_s
        runner.failures = self._restarts + 1 if rest is None else runner.failures + 1
        runner.heard = False
        given_up = rest is None or runner.failures > self._restarts
        self.hosts.bury(runner.number, replaced=not given_up)
        if rest is None or given_up:
            log.warning("runner %d is given up: %s", runner.number, _first_line(cause))
        else:
            log.warning("runner %d rests for %g s: %s", runner.number, rest, _first_line(cause))
            runner.due = time.monotonic() + rest
        return self._lost(runner, version, str(cause))

    def _died(self, runner: _Runner, version: int, reason: str) -> Sample:
        runner.failures += 1
        runner.heard = False
        self.hosts.bury(runner.number, replaced=runner.failures <= self._restarts)
        if runner.failures > self._restarts:
            log.warning("runner %d died and is given up: %s", runner.number, reason)
        else:
            log.warning("runner %d died and is replaced: %s", runner.number, reason)
            runner.sign, runner.asked = runner.handle.ping.remote(), time.monotonic()
        return self._lost(runner, version, reason)

    def _take_sign(self, runner: _Runner) -> None:
        sign, runner.sign = runner.sign, None
        try:
            ray.get(sign, timeout=_FETCH_S)
        except (ActorUnavailableError, GetTimeoutError):
            runner.sign = runner.handle.ping.remote()  # Ray is still at it; see the limit below
        except (RayActorError, RayTaskError) as error:
            runner.failures = self._restarts + 1
            log.warning("runner %d did not come back: %s", runner.number, _first_line(error))

    def _lost(self, runner: _Runner, version: int, reason: str) -> Sample:
        """What a runner held when it died: it is played again as often as it may be."""
        held = (runner.position or {}).get("playing", [])
        starts = [replace(self._episodes.start(e), attempt=attempt) for e, attempt in held]
        first = (runner.number - 1) * self._instances
        losses = [Loss(start, first, 0, "actor", reason, 0) for start in starts]
        if runner.position is not None:
            # It goes on from here once it is back, and should it die again, one attempt further.
            again = [[s.episode, s.attempt + 1] for s in starts if s.attempt < self._retries]
            again += runner.position["again"]
            runner.position = {**runner.position, "again": again, "playing": []}
        abandoned = [start for start in starts if start.attempt >= self._retries]
        return Sample({}, 0, version, losses=losses, abandoned=abandoned)

    def _look_after(self) -> None:
        """Has runners replaced that have hung, and gives up those that do not come back."""
        now = time.monotonic()
        for runner in self._runners:
            silent = now - runner.asked
            limit = self.stall_s if runner.heard else max(self.stall_s, _ARRIVAL_S)
            if runner.pending is not None and silent > limit:
                log.warning("runner %d gave nothing for %.0f s, killed", runner.number, limit)
                ray.kill(runner.handle, no_restart=False)
                runner.asked = now
            if runner.sign is not None and silent > _ARRIVAL_S:
                log.warning("runner %d did not come back in %.0f s", runner.number, _ARRIVAL_S)
                runner.sign, runner.failures = None, self._restarts + 1

    def positions(self) -> dict[str, Any]:
        """Returns where every runner's schedule stands, by number, as JSON-able data."""
        return {str(r.number): r.position for r in self._runners if r.position is not None}

    def go_to(self, positions: Mapping[str, Any]) -> None:
        """Goes on from saved positions, whatever is under way."""
        for runner in self._runners:
            runner.pending = None
            runner.position = positions.get(str(runner.number))
            runner.handle.rewind.remote()


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
