"""Algorithms that learn from the steps of a dataset, and the configuration of their trainings.

Imports neither torch nor Ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from rollout.api import LearnsFrom, StepLearner, option
from rollout.config import PolicyConfig, RayConfig, key
from rollout.data import Dataset, EpisodeRef, StepWeight
from rollout.errors import ConfigError
from rollout.train.config import AlgorithmConfig, SeededConfig

Reduce: TypeAlias = Callable[[list[Any]], None] | None


@dataclass(frozen=True)
class OfflineOptions:
    """What algorithms have in common that learn from a dataset.

    Attributes:
        needs: what a step must have beside observation and action, see
            ``rollout.api.StepAlgorithm``.
    """

    learns_from: ClassVar[LearnsFrom] = "actions"
    needs: ClassVar[frozenset[str]] = frozenset()

    epochs: int = option(10, "Passes over the demonstrations.", unit="epochs", gt=0)
    lr: float = option(1e-3, "Initial learning rate; it decays linearly to 0.", gt=0)
    minibatch: int = option(2048, "Steps of a minibatch.", unit="steps", gt=0)
    bptt: int = option(32, "Length of truncated backpropagation through time.", unit="steps", gt=0)


@dataclass(frozen=True)
class Bc(OfflineOptions):
    """Behaviour cloning: the negative log-likelihood of recorded actions is minimized."""

    def learner(self, network: Any, *, reduce_gradients: Reduce = None) -> StepLearner:
        """Returns a learner; see ``rollout.api.StepAlgorithm``."""
        from rollout.train.offline_learners import BcLearner  # noqa: PLC0415 - imports torch

        return BcLearner(network, self, reduce_gradients)


@dataclass(frozen=True)
class Marwil(OfflineOptions):
    """MARWIL (Wang et al., 2018): actions that were followed by more reward weigh more.

    The weight of an action is ``exp(beta * advantage / c)``: the advantage is the discounted sum of
    the rewards that followed, less the value of the network, and ``c`` the root of its mean square.
    With ``beta`` 0 the policy is a clone. The rest of an episode that a limit cut counts as 0.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"return"})

    beta: float = option(1.0, "How much more better actions weigh.", ge=0)
    gamma: float = option(0.99, "Discount factor per step.", ge=0, le=1)
    value_coef: float = option(1.0, "Weight of the value loss.", ge=0)
    max_weight: float = option(20.0, "Maximum weight of an action.", gt=0)

    def learner(self, network: Any, *, reduce_gradients: Reduce = None) -> StepLearner:
        """Returns a learner; see ``rollout.api.StepAlgorithm``."""
        from rollout.train.offline_learners import MarwilLearner  # noqa: PLC0415 - imports torch

        return MarwilLearner(network, self, reduce_gradients)


@dataclass(frozen=True)
class Iql(OfflineOptions):
    """Implicit Q-learning (Kostrikov et al., 2022), for any action space.

    The value of an observation is an expectile of the values of the recorded actions, so no action
    is evaluated that was not recorded. The policy imitates actions with the weight
    ``exp(advantage * temperature)``.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"reward", "next"})

    lr: float = option(3e-4, "Initial learning rate; it decays linearly to 0.", gt=0)
    minibatch: int = option(256, "Steps of a minibatch.", unit="steps", gt=0)
    gamma: float = option(0.99, "Discount factor per step.", ge=0, le=1)
    expectile: float = option(0.7, "Expectile that the values are, 0.5 to 1.", ge=0.5, le=0.999)
    temperature: float = option(3.0, "How much more better actions weigh, per reward.", ge=0)
    max_weight: float = option(100.0, "Maximum weight of an action.", gt=0)
    target_rate: float = option(
        0.005, "Share by which the target critics approach the critics in a step.", gt=0, le=1
    )

    def learner(self, network: Any, *, reduce_gradients: Reduce = None) -> StepLearner:
        """Returns a learner; see ``rollout.api.StepAlgorithm``.

        Raises:
            ConfigError: the network has a memory.
        """
        from rollout.train.offline_learners import IqlLearner  # noqa: PLC0415 - imports torch

        if network.memory_keys:
            raise ConfigError(
                "algorithm iql learns from single steps, and the policy has a memory; use "
                "policy.memory=none, or bc or marwil, which learn from sequences"
            )
        return IqlLearner(network, self, reduce_gradients)


class ActionAlgorithmConfig(AlgorithmConfig):
    """An algorithm that learns from actions in a dataset, and its options."""

    learns_from: ClassVar[LearnsFrom] = "actions"

    name: str = key("bc", "Name of an installed plug-in.")


class OfflineConfig(SeededConfig):
    """Trains a policy on the steps of a dataset."""

    may_change: ClassVar[tuple[str, ...]] = (*SeededConfig.may_change, "threads")
    renamed: ClassVar[Mapping[str, str]] = {
        name: f"algorithm.{name}" for name in ("epochs", "lr", "minibatch", "bptt")
    }

    dataset: str = key(..., "Dataset of the demonstrations, or the run directory that recorded it.")
    filter: str = key(
        "", "Episodes to learn from, e.g. success and return > 5 (docs/dataset.md); empty for all."
    )
    weight: str = key(
        "",
        "Weight of each step, e.g. exp(return / 10), or success or return_to_go > 0 "
        "(docs/dataset.md); empty for equal ones.",
    )
    policy: PolicyConfig = key(
        lambda: PolicyConfig(name="actor_critic"), "The policy to train; actor_critic."
    )
    algorithm: ActionAlgorithmConfig = key(
        lambda: ActionAlgorithmConfig(name="bc"), "How it learns."
    )
    seed: int = key(0, "Seed of the initial weights and the order of the steps.", ge=0)
    held_out: float = key(
        0.1,
        "Share of the episodes, the last ones, that are not learned from: the loss on them is "
        "measured after every epoch.",
        gt=0,
        lt=1,
    )
    memory_mb: float = key(
        2048.0,
        "Memory for the steps that are learned from. More are read in parts in each epoch, each "
        "with episodes at random; the order of steps is random within a part.",
        unit="MiB",
        gt=0,
    )
    learners: int = key(
        0,
        "Processes that share each minibatch; 0 learns in this one.",
        unit="processes",
        ge=0,
    )
    threads: int = key(1, "Torch threads of each; 0 for all.", unit="threads", ge=0)
    ray: RayConfig = key(RayConfig, "Which cluster the learners are in.")


def divided(
    config: OfflineConfig, refs: Sequence[EpisodeRef]
) -> tuple[list[EpisodeRef], list[EpisodeRef]]:
    """Returns the episodes to learn from, and the others, in the order of their numbers.

    Raises:
        ConfigError: there are fewer than two.
    """
    refs = sorted((ref for ref in refs if ref.length), key=lambda ref: ref.episode)
    if len(refs) < 2:
        filtered = f" of filter={config.filter!r}" if config.filter else ""
        raise ConfigError(
            f"dataset: {config.dataset} has {len(refs)} finished episodes{filtered}, and at least "
            f"2 are needed, one of them to measure the loss on; record more with gamut collect"
        )
    count = min(max(1, round(config.held_out * len(refs))), len(refs) - 1)
    return refs[:-count], refs[-count:]


def weight_of(
    config: OfflineConfig, dataset: Dataset, refs: Sequence[EpisodeRef]
) -> StepWeight | None:
    """Returns the weights of the steps of some episodes; None if they are equal."""
    evaluator = dataset.manifest.task.get("evaluator") or {}
    parts = evaluator["options"]["parts"] if evaluator.get("type") == "Then" else [None]
    return StepWeight(config.weight, refs, parts=len(parts)) if config.weight else None
