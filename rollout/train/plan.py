"""A training configuration, built and checked; runners and learners are built from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout.api import Algorithm, ChecksFit, PolicyRecipe, Resources, StateSet, Task
from rollout.api.sets import VALIDATION
from rollout.config import PolicyConfig
from rollout.errors import ConfigError, named
from rollout.evaluate.scoreboard import check_metric
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.tasks import bridge_and_task
from rollout.train.callbacks import load_callbacks
from rollout.train.checkpoint import Checkpoint, find_checkpoint
from rollout.train.config import TrainConfig
from rollout.train.curriculum import NEEDS, ScoredSchedule
from rollout.train.episodes import chosen_signals
from rollout.train.network import TrainableRecipe
from rollout.train.reading import decided
from rollout.train.rounds import GamePlan
from rollout.train.sampler import Sampler


@dataclass(frozen=True, kw_only=True)
class TrainPlan(GamePlan):
    """Everything that a run needs; picklable, so that its parts can be built elsewhere.

    The recipe is also a ``TrainableRecipe``.

    Attributes:
        config: the configuration.
        states: the states from which episodes start.
        decided_policy: the policy, whose options say how it reads every column.
        reads: the observation columns that its networks read.
        signals: the signals whose last values are recorded with each episode.
    """

    config: TrainConfig
    states: StateSet
    decided_policy: PolicyConfig
    reads: tuple[str, ...]
    signals: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        config: TrainConfig,
        *,
        begun: Checkpoint | None = None,
        first: Checkpoint | None = None,
    ) -> TrainPlan:
        """Returns the plan of a configuration; launches nothing.

        Args:
            config: the configuration.
            begun: a checkpoint of the run, if it is resumed.
            first: the checkpoint with whose weights it begins.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        _require_one_seed(config)
        load_callbacks(config.callbacks)
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        spec = bridge.spec
        width = spec.choose_width(config.width)
        config = config.model_copy(update={"bridge": bridge_config, "width": width})
        states = config.state_set.take(task.state_space)
        states.require_trainable()
        validation = _validation(config, task)
        reading = decided(config.policy, spec.observation_space, begun=begun, first=first)
        recipe: PolicyRecipe = reading.build()
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
        _check_curriculum(config, algorithm)
        if isinstance(algorithm, ChecksFit):
            network = recipe.network(spec.observation_space, spec.action_space, seed=config.seed)
            algorithm.check_fit(network, spec)
        return cls(
            config=config,
            bridge=bridge,
            task=task,
            states=states,
            algorithm=algorithm,
            decided_policy=reading,
            recipe=recipe,
            reads=tuple(recipe.reads(spec.observation_space)),
            signals=chosen_signals(config.episodes.signals, list(spec.signals)),
            validation=validation,
        )

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
        return Sampler(
            self.hosting(),
            self._schedule(number),
            self.algorithm,
            self.reads,
            number=number,
            signals=self.signals,
        )

    def _schedule(self, number: int) -> Schedule:
        """Returns the share of a runner of the episodes."""
        c, stride = self.config, max(1, self.config.runners)
        if c.curriculum.sampler == "cycle":
            return Schedule(self.states, seed=c.seed, episodes=None, stride=stride, offset=number)
        algorithm: Any = self.algorithm
        return ScoredSchedule(
            self.states,
            seed=c.seed,
            temperature=c.curriculum.temperature,
            staleness=c.curriculum.staleness,
            gamma=algorithm.gamma,
            lambda_=algorithm.gae_lambda,
            stride=stride,
            offset=number,
        )


def _check_curriculum(config: TrainConfig, algorithm: Algorithm) -> None:
    """Checks that states can be scored, if they are to be."""
    if config.curriculum.sampler == "score" and not all(hasattr(algorithm, n) for n in NEEDS):
        raise ConfigError(
            f"curriculum.sampler=score needs an algorithm that learns values while it plays, and "
            f"{config.algorithm.name} does not; use ppo or appo, or sampler=cycle"
        )


def _require_one_seed(config: TrainConfig) -> None:
    if config.seeds is not None:
        raise ConfigError(
            f"seeds={list(config.seeds)}: only gamut train makes a run for each of several seeds; "
            f"set seed instead, and space.seed=[0, 1, 2] in a search"
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


def others_of(config: TrainConfig) -> dict[str, str]:
    """Returns the initial and the reference checkpoints by their keys."""
    references = config.algorithm.build().references()
    named = {"initialize_from": config.initialize_from}
    named |= {f"algorithm.{key}": path for key, path in references.items()}
    return {key: str(path) for key, path in named.items() if path is not None}


def check_others(plan: TrainPlan) -> None:
    """Opens the initial and the reference checkpoints, and checks that they fit.

    Raises:
        CheckpointError: a checkpoint does not exist, or is damaged.
        ConfigError: it has other spaces or another architecture; the message names both sides.
    """
    for key, path in others_of(plan.config).items():
        found = find_checkpoint(path)
        found.require_spaces(plan.bridge.spec)
        ours, theirs = (
            {key: tuple(tensor.shape) for key, tensor in tensors.items()}
            for tensors in (plan.network().state_dict(), found.weights())
        )
        different = sorted(k for k in {*ours, *theirs} if ours.get(k) != theirs.get(k))
        if different:
            first, (name, options), own = different[0], found.policy, plan.decided_policy
            raise ConfigError(
                f"{key}={path} is a network of another architecture: {len(different)} tensors "
                f"differ, e.g. {first}: {theirs.get(first, 'none')} there and "
                f"{ours.get(first, 'none')} here; it is {name} with {options}, and this run's "
                f"policy is {own.name} with {own.options}; make them the same"
            )


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
        "policy_options": plan.decided_policy.options,
        "seed": c.seed,
        "state_set": plan.states.describe(),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(episode,))",
    }
