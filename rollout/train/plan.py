"""A training configuration, built and checked; runners and learners are built from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout.api import Algorithm, Bridge, PolicyRecipe, Resources, StateSet, Task
from rollout.api.sets import VALIDATION
from rollout.errors import ConfigError, named
from rollout.evaluate.scoreboard import check_metric
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.tasks import bridge_and_task
from rollout.train.callbacks import load_callbacks
from rollout.train.checkpoint import find_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.episodes import chosen_signals
from rollout.train.network import TrainableRecipe
from rollout.train.sampler import Sampler


@dataclass(frozen=True)
class TrainPlan:
    """Everything that a run needs; picklable, so that its parts can be built elsewhere.

    Attributes:
        config: the configuration.
        bridge: the game.
        task: the task.
        states: the states from which episodes start.
        algorithm: the algorithm.
        recipe: recipe of the policy, which is also a ``TrainableRecipe``.
        reads: the observation columns that its networks read.
        signals: the signals whose last values are recorded with each episode.
        validation: the states on which the training is validated; None if it is not.
    """

    config: TrainConfig
    bridge: Bridge
    task: Task
    states: StateSet
    algorithm: Algorithm
    recipe: Any
    reads: tuple[str, ...]
    signals: tuple[str, ...] = ()
    validation: StateSet | None = None

    @classmethod
    def make(cls, config: TrainConfig) -> TrainPlan:
        """Returns the plan of a configuration; launches nothing.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        load_callbacks(config.callbacks)
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        spec = bridge.spec
        width = spec.choose_width(config.width)
        config = config.model_copy(update={"bridge": bridge_config, "width": width})
        states = config.state_set.take(task.state_space)
        states.require_trainable()
        validation = _validation(config, task)
        recipe: PolicyRecipe = config.policy.build()
        if not isinstance(recipe, TrainableRecipe):
            raise ConfigError(
                f"policy {config.policy.name} has no network that could be trained; use "
                f"actor_critic, or a policy that offers network() and reads()"
            )
        # Built once here, so that a network that does not fit is refused before anything is
        # launched.
        policy = recipe.build(spec, task, seed=config.seed)
        algorithm: Algorithm = config.algorithm.build()
        missing = sorted(algorithm.extras - set(policy.extras))
        if missing:
            raise ConfigError(
                f"algorithm {config.algorithm.name} learns from {', '.join(missing)}, and policy "
                f"{config.policy.name} records {', '.join(policy.extras) or 'nothing'} beside its "
                f"actions; use actor_critic, or a policy that records it"
            )
        reads = tuple(recipe.reads(spec.observation_space))
        signals = chosen_signals(config.episodes.signals, list(spec.signals))
        return cls(config, bridge, task, states, algorithm, recipe, reads, signals, validation)

    @property
    def needs(self) -> Resources:
        """Resources that one instance needs."""
        return self.config.host.needs(self.bridge.spec.resources)

    def network(self) -> Any:
        """Returns a new network with its initial weights, a ``torch.nn.Module``."""
        spec = self.bridge.spec
        return self.recipe.network(spec.observation_space, spec.action_space, seed=self.config.seed)

    def references(self, device: Any) -> dict[str, Any]:
        """Returns the frozen networks that the algorithm needs, on a device, by option."""
        networks = {}
        for name, path in self.algorithm.references().items():
            network = self.network()
            network.load_state_dict(find_checkpoint(path).weights())
            networks[name] = network.requires_grad_(False).eval().to(device)
        return networks

    def hosting(self) -> HostPlan:
        """Returns how each runner plays episodes."""
        c = self.config
        return HostPlan(
            self.bridge,
            self.task,
            self.recipe,
            seed=c.seed,
            instances=c.instances,
            width=self.bridge.spec.choose_width(c.width),
            host=c.host,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, True, c.host.retries, False),
        )

    def sampler(self, number: int) -> Sampler:
        """Returns the sampler of a runner, which plays its share of the episodes."""
        c = self.config
        schedule = Schedule(
            self.states,
            seed=c.seed,
            episodes=None,
            stride=max(1, c.runners),
            offset=number,
        )
        return Sampler(
            self.hosting(),
            schedule,
            self.algorithm,
            self.reads,
            number=number,
            signals=self.signals,
        )


def _validation(config: TrainConfig, task: Task) -> StateSet | None:
    """Returns the validation states, divided from the others as the training states are."""
    c = config.validation
    if c.every is None:
        return None
    with named("validation"):
        check_metric(c.metric, task)
    with named("validation.states"):
        return config.state_set.of_part(VALIDATION, c.states).take(task.state_space)


def protocol(plan: TrainPlan) -> dict[str, Any]:
    """Everything needed to reproduce the figures."""
    c = plan.config
    return {
        "algorithm": c.algorithm.name,
        "algorithm_options": c.algorithm.options,
        "bridge": c.bridge.name,
        "bridge_version": plan.bridge.spec.version,
        "bridge_options": c.bridge.options,
        "task": plan.task.name,
        "limit_steps": plan.task.limits.steps,
        "policy": c.policy.name,
        "policy_options": c.policy.options,
        "seed": c.seed,
        "state_set": plan.states.describe(),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(episode,))",
    }
