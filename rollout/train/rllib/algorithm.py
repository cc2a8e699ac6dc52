"""Trains any algorithm on columns: takes the first ready fragments, with bounded staleness."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)
from ray.tune import PlacementGroupFactory

from rollout.api import Columns, EpisodeResult, Loss, Progress, Start
from rollout.errors import BudgetExhausted
from rollout.host.hosting import tell_idle_failures
from rollout.observe.hosts import HostTable
from rollout.train.batch import env_steps, join
from rollout.train.episodes import Signals
from rollout.train.plan import TrainPlan
from rollout.train.rllib.learner import ColumnLearner
from rollout.train.rllib.module import NetworkModule
from rollout.train.rllib.remote import RemoteRunners
from rollout.train.rllib.runner import PLAN, FragmentRunner
from rollout.train.sampler import Sample


@dataclass
class Iteration:
    """The facts of one update.

    Attributes:
        update: number of updates so far, including this one.
        env_steps: steps played so far, in all updates.
        fresh_steps: steps of this update.
        staleness: number of updates by which the weights of its oldest steps were behind.
        dropped_steps: steps that were too old to learn from.
        figures: figures of the update, see ``rollout.api.Learner``.
        sample_s: seconds spent waiting for steps.
        update_s: seconds spent learning from them.
        results: episodes that ended.
        signals: last signals of each result.
        losses: episodes that were lost.
        abandoned: episodes that were lost in all their attempts.
        hosts: state of the games, as metrics.
    """

    update: int = 0
    env_steps: int = 0
    fresh_steps: int = 0
    staleness: int = 0
    dropped_steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    sample_s: float = 0.0
    update_s: float = 0.0
    results: list[EpisodeResult] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    hosts: dict[str, float] = field(default_factory=dict)


class ColumnAlgorithmConfig(AlgorithmConfig):  # type: ignore[misc] # RLlib is untyped
    """The configuration of ``ColumnAlgorithm``, made from a plan by ``config_of``."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or ColumnAlgorithm)

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Returns the module spec that wraps every network; see ``config_of``."""
        return RLModuleSpec(module_class=NetworkModule)

    def validate_train_batch_size_vs_rollout_fragment_length(self) -> None:
        """Allows every size: a batch consists of any number of whole fragments."""


def config_of(plan: TrainPlan) -> ColumnAlgorithmConfig:
    """Returns the RLlib configuration of a run."""
    c, spec = plan.config, plan.bridge.spec
    config = ColumnAlgorithmConfig()
    config.environment(
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        env_config={PLAN: plan},
        disable_env_checking=True,
    )
    share = _share(plan)
    config.env_runners(
        env_runner_cls=FragmentRunner,
        num_env_runners=0,  # the plan's runners are supervised by us
        rollout_fragment_length=c.fragment.steps,
    )
    config.learners(
        num_learners=c.learners.count,
        num_cpus_per_learner=share,
        num_gpus_per_learner=c.learners.gpus,
        custom_resources_per_learner=dict(c.learners.resources),
        learner_class=ColumnLearner,
    )
    config.rl_module(
        rl_module_spec=RLModuleSpec(
            module_class=NetworkModule,
            model_config={
                "policy": c.policy.name,
                "options": c.policy.options,
                "seed": c.seed,
            },
        )
    )
    config.resources(num_cpus_for_main_process=share)
    config._dont_auto_sync_env_runner_states = True  # weights are sent with every request
    # No seed here: the plan has the seeds, and RLlib's would make torch deterministic, which takes
    # seconds to import and slows code that is deterministic already.
    config.debugging(log_level="ERROR")
    return config


def _runner_options(plan: TrainPlan) -> dict[str, Any]:
    """Returns the Ray options of a runner's actor."""
    needs, instances = plan.needs, plan.config.instances
    return {
        "num_cpus": _share(plan) * needs.cpus,
        "num_gpus": needs.gpus * instances,
        "resources": {name: amount * instances for name, amount in needs.custom.items()},
    }


def _share(plan: TrainPlan) -> float:
    """Returns the fraction of a processor for each requested one, where Ray already runs.

    Actors share processors if there are fewer than requested: with whole ones, they would wait
    forever. One more is counted for the driver, which is also an actor under Tune.
    """
    if not ray.is_initialized():
        return 1.0
    cpus = plan.config.runners * plan.needs.cpus + plan.config.learners.count
    there = float(ray.cluster_resources().get("CPU", 1.0))
    return min(1.0, math.floor(1000 * there / (cpus + 1.0)) / 1000)


class ColumnAlgorithm(Algorithm):  # type: ignore[misc] # RLlib is untyped
    """Trains with the algorithm of a plan, on columns.

    Each runner is asked for its next fragment as soon as the last one arrives, so games continue
    while the network learns. Fragments are taken in the order in which they are ready. Before an
    update that would leave a request more than ``max_staleness`` updates behind, that request is
    awaited.

    Attributes:
        last: facts of the newest update.
    """

    def setup(self, config: Any) -> None:
        """Builds runners and learners; see RLlib."""
        self.plan: TrainPlan = config.env_config[PLAN]
        self.last = Iteration()
        self._weights_ref: Any = None
        self._remote: RemoteRunners | None = None
        super().setup(config)
        if self.plan.config.runners:
            self._remote = RemoteRunners(self.plan, _runner_options(self.plan))
        self._hosts = HostTable() if self._remote is None else self._remote.hosts
        self._positions = self._positions_now()

    @classmethod
    def default_resource_request(cls, config: Any) -> PlacementGroupFactory:
        """Returns the resources of a Tune trial: of itself, its learners and its runners."""
        request = super().default_resource_request(config)
        plan: TrainPlan = config["env_config"][PLAN]
        options = _runner_options(plan)
        runner = {"CPU": options["num_cpus"], "GPU": options["num_gpus"], **options["resources"]}
        bundles = [*request.bundles, *[runner] * plan.config.runners]
        return PlacementGroupFactory(bundles, strategy=request.strategy)

    def cleanup(self) -> None:
        """Ends runners and learners; see RLlib."""
        if self._remote is not None:
            self._remote.close()
        super().cleanup()

    @classmethod
    def get_default_config(cls) -> ColumnAlgorithmConfig:
        """Returns an empty configuration."""
        return ColumnAlgorithmConfig()

    def training_step(self) -> None:
        """Makes one update."""
        before, began = self.last, time.monotonic()
        self.last = now = Iteration(before.update + 1, before.env_steps)
        try:
            samples = self._collect(now)
        except BudgetExhausted:
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
        self._positions = self._positions_now()
        self._show(now)

    def _update(self, batch: Columns, progress: Progress) -> dict[str, float]:
        steps = len(batch["version"])
        shared = MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(batch)}, steps)
        results = self.learner_group.update(batch=shared, progress=progress)
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        self._weights_ref = None
        figures: dict[str, list[float]] = {}
        for result in results:
            for key, value in result[DEFAULT_MODULE_ID].items():
                figures.setdefault(key, []).append(float(value.peek()))
        # A learner whose share of the batch was empty has no figures, or NaN.
        known = {key: [v for v in values if not math.isnan(v)] for key, values in figures.items()}
        return {key: sum(v) / len(v) if v else math.nan for key, v in known.items()}

    def _show(self, now: Iteration) -> None:
        """Reports the figures that Tune and its users know to RLlib's metrics."""
        lifetime = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        self.metrics.log_value(lifetime, now.fresh_steps, reduce="lifetime_sum")
        for result in now.results:
            self.metrics.log_value(
                (ENV_RUNNER_RESULTS, EPISODE_RETURN_MEAN), result.total_reward, window=100
            )

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
        version = now.update - 1
        try:
            if self._remote is None:
                self._collect_here(samples, version)
            else:
                self._remote.collect(samples, version, self._shared_weights)
        finally:
            for sample in samples:
                now.fresh_steps += sample.env_steps
                now.results += sample.results
                now.signals += sample.signals
                now.losses += sample.losses
                now.abandoned += sample.abandoned
                tell_idle_failures(sample.idle_failures)
        now.env_steps += now.fresh_steps
        now.hosts = self._hosts.values()
        return samples

    def _collect_here(self, samples: list[Sample], version: int) -> None:
        sampler = self.env_runner.sampler
        sampler.load(self.weights(), version)
        while sum(s.env_steps for s in samples) < self.plan.algorithm.batch:
            samples.append(sample := sampler.sample())
            self._hosts.note(0, sample.figures)

    def _shared_weights(self) -> Any:
        if self._weights_ref is None:
            self._weights_ref = ray.put(self.weights())
        return self._weights_ref

    def weights(self) -> dict[str, Any]:
        """Returns the network's weights, as arrays by name."""
        if self.learner_group.is_local:
            return dict(self.learner_group._learner.weights())
        return self._of_learner(lambda learner: learner.weights())

    def optimizer_state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return self._of_learner(lambda learner: learner.core.state())

    def _of_learner(self, function: Any) -> dict[str, Any]:
        answer = next(iter(self.learner_group.foreach_learner(function)))
        return dict(answer.get())

    def remember(
        self, weights: Mapping[str, Any], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Restores saved weights, and optionally the optimizer's state, in every learner."""
        for answer in self.learner_group.foreach_learner(
            lambda learner: learner.remember(weights, optimizer)
        ):
            answer.get()
        self._weights_ref = None

    def positions(self) -> dict[str, Any]:
        """Returns the position of every runner's schedule at the newest update.

        By number of the runner, JSON-able. Steps played since then belong to no update yet, and are
        played again when a run continues from here.
        """
        return self._positions

    def _positions_now(self) -> dict[str, Any]:
        if self._remote is None:
            return {"0": self.env_runner.sampler.position()}
        return self._remote.positions()

    def go_to(self, update: int, env_steps_: int, positions: Mapping[str, Any]) -> None:
        """Continues from saved counters and schedules, whatever its own state is."""
        self.last = Iteration(update, env_steps_)
        self._positions = dict(positions)
        if self._remote is not None:
            self._remote.go_to(positions)
        elif "0" in positions:
            self.env_runner.rewind()
            self.env_runner.sampler.schedule.restore(positions["0"])

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Adds counters and schedules to RLlib's state."""
        state = dict(super().get_state(*args, **kwargs))
        state["gamut"] = {
            "update": self.last.update,
            "env_steps": self.last.env_steps,
            "positions": self.positions(),
        }
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state of ``get_state``."""
        super().set_state(state)
        if "gamut" in state:
            own = state["gamut"]
            self.go_to(own["update"], own["env_steps"], own["positions"])
        self._weights_ref = None
