"""The updates of a training: fragments are collected, joined to a batch and learned from.

``Trainer`` plays and learns in this process. ``rollout.train.rllib`` does the same with runners and
learners in Ray actors.
"""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from rollout.api import Columns, Learner, Progress
from rollout.errors import BudgetExhausted, ConfigError, NothingLegalError, no_exit
from rollout.host.actors import Pulse
from rollout.host.fleets import Fleet, open_fleet
from rollout.host.hosting import HostPlan, PolicyWatch, log_idle_failures
from rollout.observe.hosts import HostTable
from rollout.threads import set_threads
from rollout.train.batch import env_steps, join
from rollout.train.plan import TrainPlan
from rollout.train.sampler import Iteration, Sample, enough

Weights = Callable[[], Mapping[str, Any]]
"""Returns the newest weights of the network."""

ALGORITHM = "the algorithm"  # in messages


class Updates(ABC):
    """Makes updates, whatever plays and learns.

    Attributes:
        plan: plan of the run.
        last: facts of the newest update.
    """

    plan: TrainPlan
    last: Iteration
    _runners: Any

    def _begin(self, runners: Any) -> None:
        """Takes runners, ``LocalRunner`` or others with its methods, whose games are launched."""
        self._runners = runners
        self._positions: dict[str, Any] = runners.positions()
        self._in_flight: dict[str, Any] = runners.in_flight()

    def advance(self) -> None:
        """Makes one update.

        Raises:
            BudgetExhausted: no game is left, and none may be launched.
            NothingLegalError: a mask of a game allows nothing.
        """
        before, began = self.last, time.monotonic()
        self.last = now = Iteration(before.update + 1, before.env_steps)
        try:
            samples = self._collect(now)
        except (BudgetExhausted, NothingLegalError):
            # There is no update, but losses must be reported all the same.
            self.last = Iteration(before.update, before.env_steps)
            self.last.losses, self.last.abandoned = now.losses, now.abandoned
            raise
        batch = self._batch(samples, now)
        now.sample_s = time.monotonic() - began
        c = self.plan.config
        progress = Progress(before.update, before.env_steps, c.env_steps, c.seed)
        began = time.monotonic()
        if batch is not None:
            now.figures = self._update(batch, progress)
        now.update_s = time.monotonic() - began
        self._positions, self._in_flight = self._runners.positions(), self._runners.in_flight()

    @abstractmethod
    def _update(self, batch: Columns, progress: Progress) -> dict[str, float]:
        """Learns from a batch; returns the figures of the update."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """Returns copies of the network's tensors on the CPU, by name."""

    def _batch(self, samples: list[Sample], now: Iteration) -> Columns | None:
        most = self.plan.algorithm.max_staleness
        batches = []
        for sample in samples:
            if not sample.env_steps:
                continue
            lag = (now.update - 1) - sample.batch["version"]
            fresh = lag <= most
            if not fresh.all():
                kept = {key: array[fresh] for key, array in sample.batch.items()}
                now.dropped_steps += sample.env_steps - env_steps(kept)
                sample.batch = kept
            if fresh.any():
                now.staleness = max(now.staleness, int(lag[fresh].max()))
                batches.append(sample.batch)
        return join(batches) if batches else None

    def _collect(self, now: Iteration) -> list[Sample]:
        """Takes fragments until they make a batch; records what happened even if they do not."""
        samples: list[Sample] = []
        try:
            self._runners.collect(samples, now.update - 1, self.weights)
        finally:
            for sample in samples:
                now.fresh_steps += sample.env_steps
                now.extend(sample)
                log_idle_failures(sample.idle_failures)
        now.env_steps += now.fresh_steps
        now.hosts = self._runners.hosts.values()
        return samples

    def open_fleet(self, plan: HostPlan) -> AbstractContextManager[Fleet]:
        """Returns a context in which the runners play another plan, with games of their own.

        No update may be made in it. Training then continues as if nothing had happened.
        """
        opened: AbstractContextManager[Fleet] = self._runners.open_fleet(plan)
        return opened

    def positions(self) -> dict[str, Any]:
        """Returns the position of every runner's schedule at the newest update.

        By number of the runner, JSON-able. Steps played since then belong to no update yet, and are
        played again when a run continues from here.
        """
        return self._positions

    def in_flight(self) -> dict[str, Any]:
        """Returns the weights that played during the newest update, with their version.

        By number of the runner. They play the same fragments again when a run continues from here.
        """
        return self._in_flight

    def go_to(
        self, update: int, env_steps_: int, positions: dict[str, Any], in_flight: dict[str, Any]
    ) -> None:
        """Continues from saved counters, schedules and weights, whatever its own state is."""
        self.last = Iteration(update, env_steps_)
        self._positions, self._in_flight = positions, in_flight
        self._runners.go_to(positions, in_flight)


class Trainer(Updates):
    """Plays and learns in this process, without Ray.

    Args:
        plan: plan of the run, without runners and learners of their own.

    Raises:
        ConfigError: it is to learn on a GPU, and there is none; no game was launched.
    """

    def __init__(self, plan: TrainPlan) -> None:
        config = plan.config
        self.plan, self.last = plan, Iteration()
        set_threads(config.learners.threads)
        device = "cuda" if config.learners.gpus else "cpu"
        if config.learners.gpus and not torch.cuda.is_available():
            raise ConfigError(
                f"learners.gpus={config.learners.gpus:g}: torch finds no GPU on this machine; set "
                f"it to 0"
            )
        self._network = plan.network().to(device)
        with no_exit(ALGORITHM):
            self._learner: Learner = plan.algorithm.learner(
                self._network, references=plan.references(device), reduce_gradients=None
            )
        self._begin(LocalRunner(plan))

    def train(self) -> None:
        """Makes one update; see ``advance``."""
        self.advance()

    def _update(self, batch: Columns, progress: Progress) -> dict[str, float]:
        with no_exit(ALGORITHM):
            return self._learner.update(batch, progress)

    def weights(self) -> dict[str, Tensor]:
        """Returns copies of the network's tensors on the CPU, by name."""
        return tensors_of(self._network)

    def optimizer_state(self) -> dict[str, Any]:
        """Returns the state of the learner beside the weights."""
        return self._learner.state()

    def remember(
        self, weights: Mapping[str, Any], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Restores saved weights, and optionally the learner's state."""
        self._network.load_state_dict(weights)
        if optimizer is not None:
            self._learner.restore(optimizer)

    def stop(self) -> None:
        """Ends every game."""
        self._runners.close()


def tensors_of(network: Any) -> dict[str, Tensor]:
    """Returns copies of a network's tensors on the CPU, by name."""
    return {k: v.detach().cpu().clone() for k, v in network.state_dict().items()}


class LocalRunner:
    """Plays one ``Sampler`` in the process of the algorithm; methods as in ``RemoteRunners``."""

    def __init__(self, plan: TrainPlan) -> None:
        self._plan, self.hosts = plan, HostTable()
        self._sampler = plan.sampler(0)
        self._watch = PolicyWatch(self._sampler.policy, self.pulse, plan.config.host.policy_s)

    def collect(self, samples: list[Sample], version: int, weights: Weights) -> None:
        """Appends fragments to ``samples`` until they make a batch."""
        self._sampler.load(weights(), version)
        while not enough(samples, self._plan.algorithm.batch):
            samples.append(sample := self._sampler.sample())
            self.hosts.note(0, sample.figures)

    def pulse(self) -> Pulse:
        """Returns a sign of life; another thread may call it during play."""
        return self._sampler.pulse()

    def positions(self) -> dict[str, Any]:
        """Returns the position of the schedule, under 0."""
        return {"0": self._sampler.position()}

    def in_flight(self) -> dict[str, Any]:
        """Returns nothing: no fragment is played during an update."""
        return {}

    def go_to(self, positions: Mapping[str, Any], in_flight: Mapping[str, Any]) -> None:
        """Continues from a saved position, if there is one."""
        del in_flight
        if "0" in positions:
            if not self._sampler.untouched:
                self._sampler.close()
                self._sampler = self._plan.sampler(0)
            self._sampler.schedule.restore(positions["0"])

    @contextlib.contextmanager
    def open_fleet(self, plan: HostPlan) -> Iterator[Fleet]:
        """Launches the games of another plan in this process, and ends them at the end."""
        with open_fleet(plan) as (fleet, _):
            yield fleet

    def close(self) -> None:
        """Ends every game."""
        self._watch.close()
        self._sampler.close()
