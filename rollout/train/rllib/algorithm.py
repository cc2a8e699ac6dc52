"""An RLlib algorithm that updates on columns, from fragments with bounded staleness."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES, INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from ray.rllib.utils import force_list
from ray.rllib.utils.checkpoints import Checkpointable
from ray.rllib.utils.metrics import (
    ENV_RUNNER_RESULTS,
    EPISODE_RETURN_MEAN,
    LEARNER_RESULTS,
    NUM_ENV_STEPS_SAMPLED_LIFETIME,
    NUM_EPISODES,
)
from ray.tune import PlacementGroupFactory, Trainable

from rollout.api import Columns, Progress
from rollout.api.sets import VALIDATION
from rollout.errors import ConfigError
from rollout.evaluate.legs import Leg
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.ray_watch import lost
from rollout.train.plan import TrainPlan
from rollout.train.rllib.fields import ColumnAlgorithmConfig, apply_fields, write_fields
from rollout.train.rllib.learner import (
    PLAN,
    ColumnLearner,
    first_answer,
    learner_calls,
    quieten,
)
from rollout.train.rllib.module import NetworkModule
from rollout.train.rllib.runners import RemoteRunners
from rollout.train.sampler import Iteration
from rollout.train.updates import LocalRunner, Updates
from rollout.train.validation import FixedWeightsPolicy, play_leg


class _NoRunner(EnvRunner, Checkpointable):  # type: ignore[misc] # RLlib is untyped
    """An EnvRunner that plays nothing; RLlib requires one, and ``ColumnAlgorithm`` has its own."""

    def get_spaces(self) -> dict[str, Any]:
        pair = (self.config.observation_space, self.config.action_space)
        return dict.fromkeys((INPUT_ENV_SPACES, INPUT_ENV_SINGLE_SPACES, DEFAULT_MODULE_ID), pair)

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        pass

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (), {"config": self.config}

    def sample(self, **kwargs: Any) -> None:
        raise NotImplementedError

    def assert_healthy(self) -> None:
        pass


def config_of(plan: TrainPlan) -> ColumnAlgorithmConfig:
    """Returns the RLlib configuration of a run."""
    c, spec = plan.config, plan.bridge.spec
    config = ColumnAlgorithmConfig(ColumnAlgorithm)
    config.environment(
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        env_config={PLAN: plan},
        disable_env_checking=True,
    )
    write_fields(config, plan)
    share = _share(plan)
    AlgorithmConfig.env_runners(config, env_runner_cls=_NoRunner, num_env_runners=0)
    config.learners(
        num_learners=c.learners.count,
        num_cpus_per_learner=share,
        num_gpus_per_learner=c.learners.gpus,
        custom_resources_per_learner=dict(c.learners.resources),
        learner_class=ColumnLearner,
    )
    config.resources(num_cpus_for_main_process=share)
    config._dont_auto_sync_env_runner_states = True  # weights are sent with every request
    config.debugging(log_level="ERROR")
    return config


def plan_of(config: ColumnAlgorithmConfig | Mapping[str, Any]) -> TrainPlan:
    """Returns the plan of a configuration, with the fields that were changed since it was made.

    Raises:
        ConfigError: a field was changed that nothing here reads, or to an invalid value.
    """
    if isinstance(config, ColumnAlgorithmConfig):
        return apply_fields(config, config_of(config.env_config[PLAN]))
    return plan_of(ColumnAlgorithm.get_default_config().update_from_dict(config))


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


class ColumnAlgorithm(Updates, Algorithm):  # type: ignore[misc] # RLlib is untyped
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
        self.plan = plan_of(config)
        self.config.env_config[PLAN] = self.plan  # for the learners
        self.last = Iteration()
        super().setup(config)
        self._begin(
            RemoteRunners(self.plan, _runner_options(self.plan))
            if self.plan.config.runners
            else LocalRunner(self.plan)
        )

    @classmethod
    def default_resource_request(cls, config: Any) -> PlacementGroupFactory:
        """Returns the resources of a Tune trial: of itself, its learners and its runners."""
        request = super().default_resource_request(config)
        plan = plan_of(config)
        options = _runner_options(plan)
        runner = {"CPU": options["num_cpus"], "GPU": options["num_gpus"], **options["resources"]}
        bundles = [*request.bundles, *[runner] * plan.config.runners]
        return PlacementGroupFactory(bundles, strategy=request.strategy)

    def cleanup(self) -> None:
        """Ends runners and learners; see RLlib."""
        self._runners.close()
        if not lost():
            super().cleanup()

    @classmethod
    def get_default_config(cls) -> ColumnAlgorithmConfig:
        """Returns an empty configuration; see RLlib."""
        return ColumnAlgorithmConfig(cls)

    @classmethod
    def _should_create_evaluation_env_runners(cls, eval_config: Any) -> bool:
        return False

    def evaluate(self, parallel_train_future: Any = None) -> dict[str, Any]:
        """Plays ``evaluation_duration`` validation states, an episode each; see RLlib.

        Returns:
            mean return and number of episodes under ``env_runners``; ``train`` has them under
            ``evaluation``.

        Raises:
            StateError: the validation part has fewer states.
        """
        if self.config.evaluation_duration == "auto":
            raise ConfigError("evaluation_duration='auto': expected a number of episodes")
        states = self.plan.config.state_set.splits(self.plan.task.state_space).take(
            VALIDATION, int(self.config.evaluation_duration)
        )
        self._call("on_evaluate_start")
        recipe = FixedWeightsPolicy(self.plan.recipe, self.weights(), self.last.update)
        board = play_leg(self.plan, Leg("trained", recipe, VALIDATION, states), self.open_fleet)
        returns = board.table("return")["score"]
        found = {EPISODE_RETURN_MEAN: float(np.nanmean(returns)), NUM_EPISODES: len(returns)}
        results: dict[str, Any] = {ENV_RUNNER_RESULTS: found}
        self._call("on_evaluate_end", evaluation_metrics=results)
        return results

    def _call(self, name: str, **more: Any) -> None:
        """Calls a method of RLlib's callbacks."""
        more |= {"algorithm": self, "metrics_logger": self.metrics}
        functions = getattr(self.config, f"callbacks_{name}")
        make_callback(name, force_list(self.callbacks), functions, kwargs=more)

    def get_module(self, module_id: str = DEFAULT_MODULE_ID) -> NetworkModule | None:
        """Returns a module with the newest weights; None for another id."""
        if module_id != DEFAULT_MODULE_ID:
            return None
        module = self.config.get_default_rl_module_spec()
        module.observation_space = self.config.observation_space
        module.action_space = self.config.action_space
        built: NetworkModule = module.build()
        built.network.load_state_dict(self.weights())
        return built

    def training_step(self) -> None:
        """Makes one update, and reports its figures to RLlib's metrics."""
        self.advance()
        self._show(self.last)

    def _update(self, batch: Columns, progress: Progress) -> dict[str, float]:
        steps = len(batch["version"])
        shared = MultiAgentBatch({DEFAULT_MODULE_ID: SampleBatch(batch)}, steps)
        with learner_calls(self.learner_group):
            results = self.learner_group.update(batch=shared, progress=progress)
        known: dict[str, list[float]] = {}
        for result in results:
            for key, value in result.items():
                # A learner whose share of the batch was empty has no figures, or NaN.
                known.setdefault(key, []).extend([] if math.isnan(value) else [value])
        figures = {key: sum(v) / len(v) if v else math.nan for key, v in known.items()}
        self.metrics.log_dict(figures, key=(LEARNER_RESULTS, DEFAULT_MODULE_ID), window=1)
        return figures

    def _show(self, now: Iteration) -> None:
        """Reports the figures that Tune and its users know to RLlib's metrics."""
        lifetime = (ENV_RUNNER_RESULTS, NUM_ENV_STEPS_SAMPLED_LIFETIME)
        self.metrics.log_value(lifetime, now.fresh_steps, reduce="lifetime_sum")
        for result in now.results:
            self.metrics.log_value(
                (ENV_RUNNER_RESULTS, EPISODE_RETURN_MEAN),
                result.total_reward,
                window=self.config.metrics_num_episodes_for_smoothing,
            )

    def weights(self) -> dict[str, Any]:
        """Returns the network's weights, by name."""
        return self._of_learner(lambda learner: learner.weights())

    def optimizer_state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return self._of_learner(lambda learner: learner.core.state())

    def _of_learner(self, function: Any) -> dict[str, Any]:
        with learner_calls(self.learner_group):
            return dict(first_answer(self.learner_group.foreach_learner(function)))

    def remember(
        self, weights: Mapping[str, Any], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Restores saved weights, and optionally the optimizer's state, in every learner."""
        for answer in self.learner_group.foreach_learner(
            lambda learner: learner.remember(weights, optimizer)
        ):
            answer.get()

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Adds counters and schedules to RLlib's state."""
        state = dict(super().get_state(*args, **kwargs))
        state["gamut"] = {
            "update": self.last.update,
            "env_steps": self.last.env_steps,
            "positions": self.positions(),
            "in_flight": self.in_flight(),
        }
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restores the state of ``get_state``."""
        super().set_state(state)
        if "gamut" in state:
            own = state["gamut"]
            in_flight = own.get("in_flight", {})  # states of version 0.1 lack it
            self.go_to(own["update"], own["env_steps"], own["positions"], in_flight)


def build(plan: TrainPlan) -> ColumnAlgorithm:
    """Returns the algorithm of a plan, with its games launching; ``stop`` ends them."""
    quieten()
    return _OutsideTune(config=config_of(plan))


class _OutsideTune(ColumnAlgorithm):
    """Removes its folder at the end, because the run directory has everything."""

    def _setup_logdir(self) -> None:
        self._logdir = str(owned_workdir("gamut-train-"))
        self._remove = weakref.finalize(self, remove_workdir, Path(self._logdir))

    def log_result(self, result: Any) -> None:
        """Writes no RLlib files, which took longer than a small update."""

    def get_auto_filled_metrics(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Leaves the configuration as it is: RLlib copies it deeply after every update."""
        return dict(Trainable.get_auto_filled_metrics(self, *args, **kwargs))

    def cleanup(self) -> Any:
        super().cleanup()
        self._remove()
