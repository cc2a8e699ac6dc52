"""PPO in columns: fragments first ready, bounded staleness, whole-batch updates."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
)

from rollout.api import Columns, EpisodeResult, Loss, Start
from rollout.errors import BudgetExhausted
from rollout.host.hosting import tell_idle_failures
from rollout.observe.hosts import HostTable
from rollout.train.batch import env_steps, join
from rollout.train.config import entropy_coef, learning_rate, reference_coef
from rollout.train.episodes import Signals
from rollout.train.plan import TrainPlan
from rollout.train.ppo import Update
from rollout.train.rllib.learner import ColumnLearner
from rollout.train.rllib.module import NetworkModule
from rollout.train.rllib.remote import RemoteRunners
from rollout.train.rllib.runner import PLAN, FragmentRunner
from rollout.train.sampler import Sample


@dataclass
class Iteration:
    """What one update was made of.

    Attributes:
        update: number of updates made, this one included.
        env_steps: steps played so far, of all updates.
        fresh_steps: steps of this one.
        staleness: updates that the weights of its oldest steps were behind.
        dropped_steps: steps that were too old to learn from.
        figures: of the update, see ``PpoLearner.update``.
        lr: its learning rate.
        reference_coef: its weight of the KL to the reference.
        sample_s: seconds spent waiting for steps.
        update_s: seconds spent learning from them.
        results: episodes that ended.
        signals: last signals of each of them.
        losses: episodes that were lost.
        abandoned: episodes that were lost more often than they are tried again.
        hosts: how the games fare, as metrics.
    """

    update: int = 0
    env_steps: int = 0
    fresh_steps: int = 0
    staleness: int = 0
    dropped_steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    lr: float = 0.0
    reference_coef: float = 0.0
    sample_s: float = 0.0
    update_s: float = 0.0
    results: list[EpisodeResult] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    hosts: dict[str, float] = field(default_factory=dict)


class ColumnPPOConfig(PPOConfig):  # type: ignore[misc] # RLlib is untyped
    """The configuration of ``ColumnPPO``, made from a plan by ``config_of``."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or ColumnPPO)

    def validate_train_batch_size_vs_rollout_fragment_length(self) -> None:
        """Allows every size: batches are made of whole fragments, however many those are."""


def config_of(plan: TrainPlan) -> ColumnPPOConfig:
    """Returns the RLlib configuration of a run."""
    c, spec, needs = plan.config, plan.bridge.spec, plan.needs
    config = ColumnPPOConfig()
    config.environment(
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        env_config={PLAN: plan},
        disable_env_checking=True,
    )
    share = _share(c.runners * needs.cpus + c.learners.count)
    config.env_runners(
        env_runner_cls=FragmentRunner,
        num_env_runners=c.runners,
        num_cpus_per_env_runner=share * needs.cpus,
        num_gpus_per_env_runner=needs.gpus * c.instances,
        custom_resources_per_env_runner={
            name: amount * c.instances for name, amount in needs.custom.items()
        },
        rollout_fragment_length=c.fragment.steps,
    )
    config.learners(
        num_learners=c.learners.count,
        num_cpus_per_learner=share,
        num_gpus_per_learner=c.learners.gpus,
        custom_resources_per_learner=dict(c.learners.resources),
        learner_class=ColumnLearner,
    )
    config.training(
        train_batch_size_per_learner=max(1, c.ppo.batch // max(1, c.learners.count)),
        minibatch_size=None,
        lr=c.ppo.lr,
        gamma=c.ppo.gamma,
        lambda_=c.ppo.gae_lambda,
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
    config.fault_tolerance(
        restart_failed_env_runners=True,
        max_num_env_runner_restarts=c.host.restarts,
        delay_between_env_runner_restarts_s=1.0,
    )
    config.resources(num_cpus_for_main_process=share)
    config._dont_auto_sync_env_runner_states = True  # weights travel with every request
    # No seed here: ours come with the plan, and RLlib's would make torch deterministic, which takes
    # seconds to import and slows what is deterministic already.
    config.debugging(log_level="ERROR")
    return config


def _share(cpus: float) -> float:
    """Returns how much of a processor each that is asked for gets, where Ray runs already.

    Actors beyond the processors there are share them: asked for whole ones, they would wait for
    ever. One more is counted for the process that leads, which under Tune is an actor too.
    """
    if not ray.is_initialized():
        return 1.0
    there = float(ray.cluster_resources().get("CPU", 1.0))
    return min(1.0, math.floor(1000 * there / (cpus + 1.0)) / 1000)


class ColumnPPO(PPO):  # type: ignore[misc] # RLlib is untyped
    """PPO whose steps travel as columns.

    Every runner is asked for its next fragment as soon as the last one came, so the games go on
    while the network learns; whichever is ready first is taken first. Before an update that would
    leave a request further behind than ``max_staleness`` updates, that request is waited for.

    Attributes:
        last: what the newest update was made of.
    """

    def setup(self, config: Any) -> None:
        """Builds runners and learners; see RLlib."""
        self.plan: TrainPlan = config.env_config[PLAN]
        self.last = Iteration()
        self._weights_ref: Any = None
        super().setup(config)
        actors = self.env_runner_group._worker_manager.actors()
        self._remote = RemoteRunners(self.plan, actors) if actors else None
        self._hosts = HostTable() if self._remote is None else self._remote.hosts
        self._positions = self._positions_now()

    @classmethod
    def get_default_config(cls) -> ColumnPPOConfig:
        """Returns an empty configuration."""
        return ColumnPPOConfig()

    def training_step(self) -> None:
        """Makes one update."""
        before, began = self.last, time.monotonic()
        self.last = now = Iteration(before.update + 1, before.env_steps)
        try:
            samples = self._collect(now)
        except BudgetExhausted:
            # There is no update to speak of; what was lost on the way must be told all the same.
            self.last = Iteration(before.update, before.env_steps)
            self.last.losses, self.last.abandoned = now.losses, now.abandoned
            raise
        batch = self._batch(samples, now)
        now.sample_s = time.monotonic() - began
        how = Update(
            before.update,
            self.plan.config.seed,
            learning_rate(self.plan.config, before.env_steps),
            reference_coef(self.plan.config, before.update),
            entropy_coef(self.plan.config, before.env_steps),
        )
        now.lr, now.reference_coef = how.lr, how.reference_coef
        began = time.monotonic()
        if batch is not None:
            now.figures = self._update(batch, how)
        now.update_s = time.monotonic() - began
        self._positions = self._positions_now()
        self._show(now)

    def _update(self, batch: Columns, how: Update) -> dict[str, float]:
        steps = len(batch["end"])
        shared = MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(batch)}, steps)
        results = self.learner_group.update(batch=shared, how=how)
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        self._weights_ref = None
        figures: dict[str, list[float]] = {}
        for result in results:
            for key, value in result[DEFAULT_MODULE_ID].items():
                figures.setdefault(key, []).append(float(value.peek()))
        # A learner whose share of the batch was empty has no figures, or none that are numbers.
        known = {key: [v for v in values if not math.isnan(v)] for key, values in figures.items()}
        return {key: sum(v) / len(v) if v else math.nan for key, v in known.items()}

    def _show(self, now: Iteration) -> None:
        """Tells RLlib's metrics the figures that Tune and its users know by name."""
        lifetime = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        self.metrics.log_value(lifetime, now.fresh_steps, reduce="lifetime_sum")
        for result in now.results:
            self.metrics.log_value(
                (ENV_RUNNER_RESULTS, EPISODE_RETURN_MEAN), result.total_reward, window=100
            )

    def _batch(self, samples: list[Sample], now: Iteration) -> Columns | None:
        most = self.plan.config.ppo.max_staleness
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
        """Takes fragments until they make a batch; notes what happened even if they never do."""
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
        while sum(s.env_steps for s in samples) < self.plan.config.ppo.batch:
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
        return self._of_learner(lambda learner: learner.memory())

    def _of_learner(self, function: Any) -> dict[str, Any]:
        answer = next(iter(self.learner_group.foreach_learner(function)))
        return dict(answer.get())

    def remember(
        self, weights: Mapping[str, Any], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Puts saved weights, and the optimizer's state, into every learner."""
        for answer in self.learner_group.foreach_learner(
            lambda learner: learner.remember(weights, optimizer)
        ):
            answer.get()
        self._weights_ref = None

    def positions(self) -> dict[str, Any]:
        """Returns where every runner's schedule stood when the newest update was made.

        By number of the runner, as JSON-able data. What was played since belongs to no update yet
        and is played again by whoever goes on from here.
        """
        return self._positions

    def _positions_now(self) -> dict[str, Any]:
        if self._remote is None:
            return {"0": self.env_runner.sampler.position()}
        return self._remote.positions()

    def go_to(self, update: int, env_steps_: int, positions: Mapping[str, Any]) -> None:
        """Goes on from saved counters and schedules, however far it has come itself."""
        self.last = Iteration(update, env_steps_)
        self._positions = dict(positions)
        if self._remote is not None:
            self._remote.go_to(positions)
        elif "0" in positions:
            self.env_runner.rewind()
            self.env_runner.sampler.schedule.restore(positions["0"])

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Adds counters and schedules to what RLlib keeps."""
        state = dict(super().get_state(*args, **kwargs))
        state["gamut"] = {
            "update": self.last.update,
            "env_steps": self.last.env_steps,
            "positions": self.positions(),
        }
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes them back; see ``get_state``."""
        super().set_state(state)
        if "gamut" in state:
            own = state["gamut"]
            self.go_to(own["update"], own["env_steps"], own["positions"])
        self._weights_ref = None
