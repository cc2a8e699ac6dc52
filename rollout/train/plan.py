"""A training configuration, built and checked; what runners and learners are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollout.api import Bridge, PolicyRecipe, Resources, StateSet, Task
from rollout.errors import ConfigError
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan, pool_options
from rollout.host.schedule import Schedule
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig
from rollout.train.episodes import chosen_signals
from rollout.train.network import TrainableRecipe
from rollout.train.ppo import PpoSettings
from rollout.train.sampler import Sampler


@dataclass(frozen=True)
class TrainPlan:
    """Everything a run needs; travels to wherever its parts are built.

    Attributes:
        config: the configuration.
        bridge: the game.
        task: what is trained on.
        states: the states that episodes start from.
        recipe: of the policy; it offers ``TrainableRecipe`` too.
        reads: the observation columns that its networks read.
        signals: those whose last values are written down with each episode.
    """

    config: TrainConfig
    bridge: Bridge
    task: Task
    states: StateSet
    recipe: Any
    reads: tuple[str, ...]
    signals: tuple[str, ...] = ()

    @classmethod
    def make(cls, config: TrainConfig) -> TrainPlan:
        """Returns the plan of a configuration; launches nothing.

        Raises:
            InputError: something in it does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        config = config.model_copy(update={"bridge": bridge_config})
        spec = bridge.spec
        spec.require_width(config.width)
        states = config.state_set.take(task.state_space)
        states.require_trainable()
        recipe: PolicyRecipe = config.policy.build()
        if not isinstance(recipe, TrainableRecipe):
            raise ConfigError(
                f"policy {config.policy.name} has no network that could be trained; use "
                f"actor_critic, or a policy that offers network() and reads()"
            )
        # Built once here, so that a network that does not fit is told before anything is launched.
        recipe.network(spec.observation_space, spec.action_space, seed=config.seed)
        reads = tuple(recipe.reads(spec.observation_space))
        signals = chosen_signals(config.episodes.signals, list(spec.signals))
        return cls(config, bridge, task, states, recipe, reads, signals)

    @property
    def needs(self) -> Resources:
        """What one game needs of the machine it runs on."""
        return self.config.host.needs(self.bridge.spec.resources)

    def network(self) -> Any:
        """Returns the network as training begins with it, a ``torch.nn.Module``."""
        spec = self.bridge.spec
        return self.recipe.network(spec.observation_space, spec.action_space, seed=self.config.seed)

    def sampler(self, number: int, incarnation: int = 0) -> Sampler:
        """Returns a player with its games, and its share of the episodes."""
        c = self.config
        hosting = HostPlan(
            self.bridge,
            self.task,
            self.recipe,
            seed=c.seed,
            instances=c.instances,
            width=c.width,
            pool=pool_options(c.host, self.bridge.spec),
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, True, c.host.retries, False),
        )
        schedule = Schedule(
            self.states,
            seed=c.seed,
            episodes=None,
            stride=max(1, c.runners),
            offset=number,
        )
        return Sampler(
            hosting,
            schedule,
            self.reads,
            number=number,
            incarnation=incarnation,
            reward_scale=c.ppo.reward_scale,
            reward_clip=c.ppo.reward_clip,
            signals=self.signals,
        )

    def settings(self) -> PpoSettings:
        """Returns how an update is made."""
        p = self.config.ppo
        return PpoSettings(
            minibatches=self.config.minibatches,
            epochs=p.epochs,
            gamma=p.gamma,
            gae_lambda=p.gae_lambda,
            clip=p.clip,
            value_coef=p.value_coef,
            value_clip=p.value_clip,
            entropy=p.entropy,
            max_grad_norm=p.max_grad_norm,
            normalize_advantages=p.normalize_advantages,
            accumulate=p.accumulate,
            log_ratio_cap=p.log_ratio_cap,
            logp_floor=p.logp_floor,
            bptt=p.bptt,
            bfloat16=p.precision == "bfloat16",
        )

    def stall_s(self) -> float:
        """Returns how long a runner may take for a fragment before it counts as hung."""
        c = self.config
        d = c.host.deadlines(self.bridge.spec.deadlines)
        steps = c.fragment.steps * d.step_s
        return d.start_s + d.reset_s + min(steps, (c.fragment.seconds or steps) + d.step_s) + 60.0
