"""PPO in columns: fragments first ready, bounded staleness, whole-batch updates."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
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
from rollout.errors import BudgetExhausted, GamutError
from rollout.train.batch import env_steps, join
from rollout.train.config import learning_rate, reference_coef
from rollout.train.plan import TrainPlan
from rollout.train.ppo import Update
from rollout.train.rllib.learner import ColumnLearner
from rollout.train.rllib.module import NetworkModule
from rollout.train.rllib.runner import PLAN, FragmentRunner
from rollout.train.sampler import Sample

log = logging.getLogger(__name__)

_POLL_S = 2.0  # how often runners that are silent are looked after
_FETCH_S = 120.0  # most time to fetch a fragment that is ready
_ARRIVAL_S = 900.0  # most time for a runner to appear: a cluster may have to start a machine first


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
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)


class ColumnPPOConfig(PPOConfig):  # type: ignore[misc] # RLlib is untyped
    """The configuration of ``ColumnPPO``, made from a plan by ``config_of``."""

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class or ColumnPPO)


def config_of(plan: TrainPlan) -> ColumnPPOConfig:
    """Returns the RLlib configuration of a run."""
    c, spec = plan.config, plan.bridge.spec
    config = ColumnPPOConfig()
    config.environment(
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        env_config={PLAN: plan},
        disable_env_checking=True,
    )
    config.env_runners(
        env_runner_cls=FragmentRunner,
        num_env_runners=c.runners,
        num_cpus_per_env_runner=spec.resources.cpus,
        num_gpus_per_env_runner=spec.resources.gpus,
        rollout_fragment_length=c.fragment.steps,
    )
    config.learners(
        num_learners=c.learners.count,
        num_gpus_per_learner=c.learners.gpus,
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
    config.debugging(seed=c.seed, log_level="WARN")
    return config


@dataclass
class _Runner:
    """A remote runner, as the algorithm knows it."""

    number: int
    handle: Any
    pending: Any = None
    version: int = 0  # of the weights that the pending request plays with
    asked: float = 0.0
    heard: bool = False
    failures: int = 0
    position: dict[str, Any] | None = None


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
        self._positions: dict[int, dict[str, Any]] = {}
        self._leftover: list[Sample] = []
        super().setup(config)
        group = self.env_runner_group
        self._runners = [
            _Runner(number, handle) for number, handle in group._worker_manager.actors().items()
        ]
        self._weights_ref: Any = None

    @classmethod
    def get_default_config(cls) -> ColumnPPOConfig:
        """Returns an empty configuration."""
        return ColumnPPOConfig()

    def training_step(self) -> None:
        """Makes one update."""
        before, began = self.last, time.monotonic()
        self.last = now = Iteration(before.update + 1, before.env_steps)
        samples = self._collect(now)
        batch = self._batch(samples, now)
        now.sample_s = time.monotonic() - began
        how = Update(
            before.update,
            self.plan.config.seed,
            learning_rate(self.plan.config, before.env_steps),
            reference_coef(self.plan.config, before.update),
        )
        now.lr, now.reference_coef = how.lr, how.reference_coef
        began = time.monotonic()
        if batch is not None:
            now.figures = self._update(batch, how)
        now.update_s = time.monotonic() - began
        self._show(now)

    def _update(self, batch: Columns, how: Update) -> dict[str, float]:
        steps = len(batch["end"])
        shared = MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(batch)}, steps)
        results = self.learner_group.update(batch=shared, how=how)
        self.metrics.aggregate(results, key=LEARNER_RESULTS)
        own = results[0][DEFAULT_MODULE_ID]
        self._weights_ref = None
        return {key: float(value.peek()) for key, value in own.items()}

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
        """Takes fragments until they make a batch."""
        samples = self._collect_here() if not self._runners else self._collect_there(now)
        for sample in samples:
            now.fresh_steps += sample.env_steps
            now.results += sample.results
            now.losses += sample.losses
            now.abandoned += sample.abandoned
        now.env_steps += now.fresh_steps
        return samples

    def _collect_here(self) -> list[Sample]:
        sampler = self.env_runner.sampler
        sampler.load(self.weights(), self.last.update - 1)
        samples: list[Sample] = []
        while sum(s.env_steps for s in samples) < self.plan.config.ppo.batch:
            samples.append(sampler.sample())
        return samples

    def _collect_there(self, now: Iteration) -> list[Sample]:
        c = self.plan.config
        samples, self._leftover = self._leftover, []
        version = now.update - 1
        while True:
            have = sum(s.env_steps for s in samples)
            # After this update the newest weights are number version + 1.
            late = [
                r
                for r in self._runners
                if r.pending is not None and version + 1 - r.version > c.ppo.max_staleness
            ]
            if have >= c.ppo.batch and not late:
                if c.ppo.max_staleness:
                    self._ask(version)
                return samples
            if have < c.ppo.batch:
                self._ask(version)
            waiting = {r.pending: r for r in self._runners if r.pending is not None}
            if not waiting:
                raise BudgetExhausted(
                    f"all {len(self._runners)} runners failed more than {c.host.restarts} times; "
                    f"see the log for each death"
                )
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=_POLL_S)
            for ref in ready:
                sample = self._take(waiting[ref])
                if sample is not None:
                    samples.append(sample)
            self._look_after()

    def _ask(self, version: int) -> None:
        """Asks every runner that plays nothing for a fragment."""
        for runner in self._runners:
            if runner.pending is None and runner.failures <= self.plan.config.host.restarts:
                if self._weights_ref is None:
                    self._weights_ref = ray.put(self.weights())
                runner.pending = runner.handle.fragment.remote(
                    self._weights_ref, version, runner.position
                )
                runner.version, runner.asked = version, time.monotonic()

    def _take(self, runner: _Runner) -> Sample | None:
        ref, runner.pending = runner.pending, None
        try:
            sample, runner.position = ray.get(ref, timeout=_FETCH_S)
        except RayTaskError as error:
            cause = error.as_instanceof_cause()
            if not isinstance(cause, BudgetExhausted):
                raise cause from None if isinstance(cause, GamutError) else error
            runner.failures = self.plan.config.host.restarts + 1  # its games do not come up
            log.warning("runner %d is given up: %s", runner.number, cause)
            return None
        except (RayActorError, GetTimeoutError) as error:
            runner.failures += 1
            log.warning("runner %d died and is replaced: %s", runner.number, _first_line(error))
            return None
        runner.heard = True
        return sample  # type: ignore[no-any-return] # untyped ray

    def _look_after(self) -> None:
        """Replaces runners that have hung."""
        now, limit = time.monotonic(), self.plan.stall_s()
        for runner in self._runners:
            most = limit if runner.heard else max(limit, _ARRIVAL_S)
            if runner.pending is not None and now - runner.asked > most:
                log.warning("runner %d gave nothing for %.0f s and is killed", runner.number, most)
                ray.kill(runner.handle, no_restart=False)
                runner.asked = now

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
        """Returns where every runner's schedule stands, by number, as JSON-able data."""
        if not self._runners:
            return {"0": self.env_runner.sampler.position()}
        return {str(r.number): r.position for r in self._runners if r.position is not None}

    def go_to(self, update: int, env_steps_: int, positions: Mapping[str, Any]) -> None:
        """Goes on from saved counters and schedules; nothing may have been played yet."""
        self.last = Iteration(update, env_steps_)
        if not self._runners and "0" in positions:
            self.env_runner.sampler.schedule.restore(positions["0"])
        for runner in self._runners:
            runner.position = positions.get(str(runner.number))

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


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
