"""Fields of RLlib's configuration: those that are used, and those that are refused.

The plan of a run is the one source of truth: ``config_of`` writes its values into RLlib's fields.
A field that is changed afterwards changes the plan, and one that nothing here reads is an error.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.core.learner import learner_group
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rollout.config import make_config, resolved
from rollout.configuration.document import Document
from rollout.errors import ConfigError
from rollout.train.config import TrainConfig
from rollout.train.learner_processes import RllibLearnerConfig
from rollout.train.plan import TrainPlan
from rollout.train.rllib.learner import PLAN
from rollout.train.rllib.module import NetworkModule

TRAINING = {
    "lr": "algorithm.lr",
    "gamma": "algorithm.gamma",
    "lambda_": "algorithm.gae_lambda",
    "clip_param": "algorithm.clip",
    "vf_loss_coeff": "algorithm.value_coef",
    "entropy_coeff": "algorithm.entropy",
    "grad_clip": "algorithm.max_grad_norm",
    "num_epochs": "algorithm.epochs",
    "minibatch_size": "algorithm.minibatch",
    "train_batch_size_per_learner": "algorithm.batch",
}
"""Arguments of ``training()`` that are used, and the key of the plan that each one sets."""

_RUNNERS = {
    "num_env_runners": "runners",
    "num_envs_per_env_runner": "width",
    "rollout_fragment_length": "fragment.steps",
}
_LEARNERS = {"num_learners": "learners.count", "num_gpus_per_learner": "learners.gpus"}
_DOUBLED = "vf_loss_coeff"  # RLlib's value loss has no factor 0.5
_PER_LEARNER = ("minibatch_size", "train_batch_size_per_learner")
_SCHEDULES = {"lr": "schedule", "entropy_coeff": "entropy_schedule"}

_USED_BY_RLLIB = {
    *("callbacks", "callbacks_on_algorithm_init", "callbacks_on_train_result"),
    *("callbacks_on_evaluate_start", "callbacks_on_evaluate_end", "callbacks_on_checkpoint_loaded"),
    *("evaluation_interval", "evaluation_duration", "metrics_num_episodes_for_smoothing"),
    *("min_time_s_per_iteration", "min_sample_timesteps_per_iteration", "log_level"),
    *("num_cpus_per_learner", "num_cpus_for_main_process", "custom_resources_per_learner"),
    *("placement_strategy", "env_config", "changes"),
    *("class", "simple_optimizer"),  # set by RLlib itself
}
"""Fields that RLlib itself reads, in code that runs here too."""

_CALLED = {
    *("on_algorithm_init", "on_train_result", "on_evaluate_start", "on_evaluate_end"),
    "on_checkpoint_loaded",
}
"""Methods of callbacks that are called here."""


class ColumnAlgorithmConfig(AlgorithmConfig):  # type: ignore[misc] # RLlib is untyped
    """The configuration of ``ColumnAlgorithm``, made from a plan by ``config_of``.

    ``docs/algorithm.md`` lists which of RLlib's fields are used. All others are refused when the
    algorithm is built, so nothing that is set is ignored.

    Attributes:
        changes: keys of the plan that the methods have set, dotted.
    """

    def __init__(self, algo_class: Any = None) -> None:
        super().__init__(algo_class)
        self.changes: dict[str, Any] = {}
        self.lambda_: Any = None
        self.clip_param: Any = None
        self.vf_loss_coeff: Any = None
        self.entropy_coeff: Any = None

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Returns the module that wraps the network of the plan."""
        plan: TrainPlan = self.env_config[PLAN]
        policy, seed = plan.decided_policy, plan.config.seed
        chosen = {"policy": policy.name, "options": policy.options, "seed": seed}
        return RLModuleSpec(module_class=NetworkModule, model_config=chosen)

    def build_learner_group(self, **given: Any) -> learner_group.LearnerGroup:
        """Returns the learners; see RLlib, whose own choice has a port that is open to all."""
        before = learner_group._get_backend_config
        learner_group._get_backend_config = lambda _: RllibLearnerConfig()
        try:
            return super().build_learner_group(**given)
        finally:
            learner_group._get_backend_config = before

    def training(self, **given: Any) -> ColumnAlgorithmConfig:
        """Sets fields of the algorithm, see ``TRAINING``.

        Raises:
            ConfigError: an argument that does not exist.
        """
        for name in TRAINING.keys() & given.keys():
            setattr(self, name, given.pop(name))
        _require_known(super().training, given, TRAINING)
        super().training(**given)  # refused when the algorithm is built, if it changes anything
        return self

    def env_runners(self, **given: Any) -> ColumnAlgorithmConfig:
        """Sets the number of runners, of slots of each, and of the steps of a fragment.

        Raises:
            ConfigError: an argument that does not exist.
        """
        for name in _RUNNERS.keys() & given.keys():
            self.changes[_RUNNERS[name]] = given.pop(name)
        _require_known(super().env_runners, given, _RUNNERS)
        super().env_runners(**given)  # likewise
        return self

    def debugging(self, **given: Any) -> ColumnAlgorithmConfig:
        """Sets the seed of the run and the level of RLlib's log.

        Raises:
            ConfigError: an argument that does not exist.
        """
        if "seed" in given:
            # RLlib's own would make torch deterministic, which takes seconds to import and slows
            # code that is deterministic already.
            self.changes["seed"] = given.pop("seed")
        _require_known(super().debugging, given, ("seed", "log_level"))
        super().debugging(**given)
        return self


def write_fields(config: ColumnAlgorithmConfig, plan: TrainPlan) -> None:
    """Sets RLlib's fields to the values of a plan, as far as its algorithm has such options."""
    options, learners = plan.config.algorithm.options, max(1, plan.config.learners.count)
    for name, key in TRAINING.items():
        value = options.get(key.removeprefix("algorithm."))
        if value is not None and name in _PER_LEARNER:
            value = value // learners
        if value is not None and options.get(_SCHEDULES.get(name, "")) == "linear":
            value = [[0, value], [plan.config.env_steps, 0.0]]
        setattr(config, name, value / 2 if value is not None and name == _DOUBLED else value)


def apply_fields(config: ColumnAlgorithmConfig, base: ColumnAlgorithmConfig) -> TrainPlan:
    """Returns the plan with the values of the fields that were changed.

    Args:
        config: the configuration.
        base: the configuration as ``config_of`` made it from its plan.

    Raises:
        ConfigError: a field was changed that nothing here reads, or to an invalid value.
    """
    plan: TrainPlan = config.env_config[PLAN]
    _check_callbacks(config)
    changes, unused = dict(config.changes), []
    now, before = _fields(config), _fields(base)
    learners = max(1, int(config.num_learners))
    moved = learners != max(1, plan.config.learners.count)
    for name, value in now.items():
        if name in _USED_BY_RLLIB:
            continue
        # The same size of each learner is another size of all of them if their number changes.
        rescaled = moved and name in _PER_LEARNER and value is not None
        if _same(value, before.get(name)) and not rescaled:
            continue
        key = TRAINING.get(name) or _LEARNERS.get(name)
        if key is None:
            unused.append(f"{name}={value!r}")
            continue
        option = key.removeprefix("algorithm.")
        if key != option and option not in plan.config.algorithm.options:
            raise ConfigError(
                f"{name}={value!r}: the algorithm {plan.config.algorithm.name} has no {option}"
            )
        if name in _SCHEDULES:
            changes |= _schedule(name, value, plan.config)
        else:
            factor = learners if name in _PER_LEARNER else 2 if name == _DOUBLED else 1
            changes[key] = None if value is None else value * factor
    unused += [f"env_config[{k!r}]={v!r}" for k, v in config.env_config.items() if k != PLAN]
    if unused:
        raise ConfigError(
            f"RLlib's {', '.join(unused)}: not used by Gamut; remove it, or see docs/algorithm.md "
            f"for what takes its place"
        )
    if not changes:
        return plan
    decided = plan.config.model_copy(update={"policy": plan.decided_policy})
    data = Document(resolved(decided)).override(changes.items()).data
    return TrainPlan.make(make_config(TrainConfig, data))


def _fields(config: ColumnAlgorithmConfig) -> dict[str, Any]:
    found = dict(config.to_dict())
    found["lambda_"] = found.pop("lambda", found.get("lambda_"))
    found["train_batch_size_per_learner"] = found.pop("_train_batch_size_per_learner", None)
    return found


def _same(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except ValueError:  # arrays
        return False


def _schedule(name: str, value: Any, config: TrainConfig) -> dict[str, Any]:
    """A number is constant, as in RLlib; of the lists, a linear decay to 0 is supported."""
    key, kind, steps = TRAINING[name], "constant", config.env_steps
    if isinstance(value, list | tuple):
        points = [list(point) for point in value]
        if len(points) != 2 or points[0][0] != 0 or points[1] != [steps, 0]:
            raise ConfigError(
                f"{name}={value!r}: expected a number, or [[0, {name}], [{steps}, 0.0]] for a "
                f"linear decay over the budget"
            )
        value, kind = points[0][1], "linear"
    changes = {key: value}
    if _SCHEDULES[name] in config.algorithm.options:
        changes[f"algorithm.{_SCHEDULES[name]}"] = kind
    return changes


def _require_known(method: Any, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuses arguments that a method of RLlib does not have; RLlib ignores some of them."""
    for name, value in given.items():
        if name not in inspect.signature(method).parameters:
            near = difflib.get_close_matches(name, known, 1)
            nearest = f" Nearest: {near[0]}." if near else ""
            raise ConfigError(
                f"{method.__name__}({name}={value!r}): there is no such field.{nearest} Used are "
                f"{', '.join(known)}; see docs/algorithm.md"
            )


def _check_callbacks(config: ColumnAlgorithmConfig) -> None:
    given = config.callbacks_class
    for own in given if isinstance(given, list | tuple) else [given]:
        names = [name for name in dir(RLlibCallback) if name.startswith("on_")]
        changed = [n for n in names if getattr(own, n, None) is not getattr(RLlibCallback, n)]
        if wrong := [name for name in changed if name not in _CALLED]:
            raise ConfigError(
                f"{getattr(own, '__name__', own)}.{wrong[0]} would never be called: games are "
                f"hosted by Gamut, not by RLlib's EnvRunners; called are "
                f"{', '.join(sorted(_CALLED))}"
            )
