"""Algorithms that learn from steps of older weights: ``appo``, ``dqn``, ``sac`` and ``dagger``.

Imports no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rollout.api import BridgeSpec, Columns, Fragment, Learner, option
from rollout.data import Dataset
from rollout.errors import ConfigError
from rollout.train.batch import from_fragment
from rollout.train.ppo import Ppo

_EXPERT = "privileged_oracle/"


@dataclass(frozen=True)
class OffPolicy:
    """What algorithms have in common that learn from the newest steps played.

    A checkpoint contains these steps, so that a resumed training continues as it would have.
    """

    extras: ClassVar[frozenset[str]] = frozenset()
    name: ClassVar[str]

    batch: int = option(256, "Steps played for each update.", unit="steps", gt=0)
    minibatch: int = option(256, "Steps of a minibatch.", unit="steps", gt=0)
    passes: float = option(
        32.0, "Steps learned from in an update, as a multiple of the steps played.", gt=0
    )
    memory: int = option(100_000, "Newest steps that are learned from.", unit="steps", gt=0)
    warmup: int = option(1000, "Steps played before it learns.", unit="steps", ge=0)
    lr: float = option(3e-4, "Learning rate.", gt=0)
    max_staleness: int = option(
        32, "Maximum age, in updates, of the weights that played a batch.", ge=0
    )

    def __post_init__(self) -> None:
        for key in ("minibatch", "warmup"):
            if getattr(self, key) > self.memory:
                raise ConfigError(
                    f"{key}={getattr(self, key)} is larger than memory={self.memory}, the number "
                    f"of steps that are kept; make it at most as large"
                )

    def check(self, fragment_steps: int) -> None:
        """Accepts every length; see ``rollout.api.Algorithm``."""

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks that single steps are enough; see ``rollout.api.ChecksFit``.

        Raises:
            ConfigError: the network has a memory.
        """
        if network.memory_keys:
            raise ConfigError(
                f"algorithm {self.name} learns from single steps, and the policy has a memory; use "
                f"policy.memory=none, or ppo, appo or dagger, which learn from sequences"
            )

    def references(self) -> Mapping[str, str]:
        """Returns none."""
        return {}

    def gather(
        self, fragment: Fragment, network: Any, *, reads: Sequence[str], steps: int
    ) -> Columns:
        """Returns a fragment as a batch of transitions; see ``rollout.train.replay``."""
        from rollout.train.replay import transitions  # noqa: PLC0415 - imports torch

        return transitions(fragment, reads=reads, steps=steps)


@dataclass(frozen=True)
class FromRewards(OffPolicy):
    """What algorithms have in common that learn from the newest steps and their rewards."""

    dataset: str | None = option(
        None, "Dataset whose last steps are in the memory from the beginning; null for none."
    )

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks that the dataset is one of the game; see ``OffPolicy``.

        Raises:
            ConfigError: its observations or actions are not those of the game.
        """
        super().check_fit(network, spec)
        if self.dataset is None:
            return
        with Dataset(self.dataset) as dataset:
            manifest = dataset.manifest
        pairs = [("action", manifest.action_space, spec.action_space)]
        pairs += [("observation", manifest.observation_space, spec.observation_space)]
        for what, recorded, own in pairs:
            for key, leaf in own.spaces.items():
                if not key.startswith(_EXPERT) and recorded.spaces.get(key) != leaf:
                    raise ConfigError(
                        f"algorithm.dataset={self.dataset}: expected the {what} {key!r} of "
                        f"{spec.name} as it is configured, {leaf}, got "
                        f"{recorded.spaces.get(key, 'none of this name')}; give the game the "
                        f"options with which it was recorded"
                    )


@dataclass(frozen=True)
class Dqn(FromRewards):
    """Double DQN (van Hasselt et al., 2016) for the policy ``q_network``.

    The value of several choices is the sum of their values (Sunehag et al., 2018).
    """

    name: ClassVar[str] = "dqn"

    gamma: float = option(0.99, "Discount factor per step.", ge=0, le=1)
    target_rate: float = option(
        0.01, "Share by which the target network approaches the network in a step.", gt=0, le=1
    )
    epsilon: float = option(
        0.05, "Final probability of a random action; it begins at 1.", ge=0, le=1
    )
    epsilon_share: float = option(
        0.2, "Share of the budget in which that probability falls to its final value.", ge=0, le=1
    )

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks that the policy is a ``q_network``; see ``OffPolicy``."""
        super().check_fit(network, spec)
        if not hasattr(network, "action_values"):
            raise ConfigError(
                "algorithm dqn trains the values of actions, and the policy has none; use "
                "policy.name=q_network, or another algorithm, e.g. ppo"
            )

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner; see ``rollout.api.Algorithm``."""
        from rollout.train.off_policy_learners import DqnLearner  # noqa: PLC0415 - imports torch

        return DqnLearner(network, self, reduce_gradients)


@dataclass(frozen=True)
class Sac(FromRewards):
    """Soft actor-critic (Haarnoja et al., 2018) for continuous actions, with two critics.

    The weight of the entropy is adjusted so that the entropy of each number is ``target_entropy``.
    The policy needs ``continuous: squashed``.
    """

    name: ClassVar[str] = "sac"

    lr: float = option(1e-3, "Learning rate.", gt=0)
    gamma: float = option(0.99, "Discount factor per step.", ge=0, le=1)
    target_rate: float = option(
        0.005, "Share by which the target critics approach the critics in a step.", gt=0, le=1
    )
    target_entropy: float = option(
        -1.0,
        "Entropy that is kept, for each number of an action whose bounds are -1 and 1.",
        unit="nats",
    )

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks that the actions are continuous and squashed; see ``OffPolicy``."""
        super().check_fit(network, spec)
        if network.layout.logits or not network.layout.squashed:
            raise ConfigError(
                "algorithm sac is for continuous actions with bounds, and needs "
                "policy.continuous=squashed; use dqn or ppo for choices"
            )

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner; see ``rollout.api.Algorithm``."""
        from rollout.train.off_policy_learners import SacLearner  # noqa: PLC0415 - imports torch

        return SacLearner(network, self, reduce_gradients)


@dataclass(frozen=True)
class Dagger(OffPolicy):
    """DAgger (Ross et al., 2011): the policy plays, and learns what a teacher would have done.

    The policy acts from the first step on; with ``initialize_from`` it begins as a clone of the
    teacher. The teacher is a checkpoint with the same kind of network, whose distribution over
    actions is learned, or the expert of the game, whose actions are the observations
    ``privileged_oracle/<action>``. A recurrent network learns from sequences of
    ``fragment.steps``, with the memory that it had before them when they were played.
    """

    name: ClassVar[str] = "dagger"

    batch: int = option(4096, "Steps played for each update.", unit="steps", gt=0)
    minibatch: int = option(1024, "Steps of a minibatch.", unit="steps", gt=0)
    passes: float = option(
        4.0, "Steps learned from in an update, as a multiple of the steps played.", gt=0
    )
    warmup: int = option(0, "Steps played before it learns.", unit="steps", ge=0)
    teacher: str | None = option(
        None, "Checkpoint of the teacher; null for the expert of the game."
    )

    def references(self) -> Mapping[str, str]:
        """Returns the checkpoint of the teacher, if it is one."""
        return {} if self.teacher is None else {"teacher": self.teacher}

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks that there is a teacher; see ``OffPolicy``.

        Raises:
            ConfigError: the game gives no actions of an expert.
        """
        wanted = [_EXPERT + key for key in spec.action_space.spaces]
        missing = [key for key in wanted if key not in spec.observation_space.spaces]
        if self.teacher is None and missing:
            raise ConfigError(
                f"algorithm dagger learns from the observations {', '.join(missing)}, and "
                f"{spec.name} as it is configured does not have them; set bridge.oracle to a "
                f"skill, if it has experts, or name a checkpoint in algorithm.teacher"
            )

    def gather(
        self, fragment: Fragment, network: Any, *, reads: Sequence[str], steps: int
    ) -> Columns:
        """Returns a fragment as a batch, in which an expert's actions replace those played."""
        if self.teacher is None:
            labels = {k: fragment.observations[_EXPERT + k] for k in fragment.actions}
            fragment = replace(fragment, actions=labels)
        return from_fragment(
            fragment, {}, reads=reads, memory_keys=network.memory_keys, steps=steps
        )

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner; see ``rollout.api.Algorithm``."""
        from rollout.train.off_policy_learners import DaggerLearner  # noqa: PLC0415 - imports torch

        return DaggerLearner(network, self, references.get("teacher"), reduce_gradients)


@dataclass(frozen=True)
class Appo(Ppo):
    """Asynchronous PPO: no game waits for another one, and steps of old weights are corrected.

    Before each update, the log-probabilities and values of the steps are computed again with the
    network that learns. V-trace (Espeholt et al., 2018) corrects advantages and value targets for
    the weights that acted, and the loss of PPO limits the update from there, as in APPO of RLlib.
    """

    epochs: int = option(2, "Passes over each batch.", unit="epochs", gt=0)
    gae_lambda: float = option(1.0, "Factor of the traces of V-trace.", ge=0, le=1)
    max_staleness: int = option(
        32, "Maximum age, in updates, of the weights that played a batch.", ge=0
    )

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner; see ``rollout.api.Algorithm``."""
        from rollout.train.off_policy_learners import AppoLearner  # noqa: PLC0415 - imports torch

        reference = references.get("reference")
        return AppoLearner(network, self, reference=reference, reduce_gradients=reduce_gradients)
