"""The algorithm `bc` and the configuration of its trainings; imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rollout.api import LearnsFrom, option
from rollout.config import PolicyConfig, RunConfig, key
from rollout.train.config import AlgorithmConfig


@dataclass(frozen=True)
class Bc:
    """Behaviour cloning: the negative log-likelihood of recorded actions is minimized."""

    learns_from: ClassVar[LearnsFrom] = "actions"

    epochs: int = option(10, "Passes over the demonstrations.", unit="epochs", gt=0)
    lr: float = option(1e-3, "Initial learning rate; it decays linearly to 0.", gt=0)
    minibatch: int = option(2048, "Steps of a minibatch.", unit="steps", gt=0)
    bptt: int = option(32, "Length of truncated backpropagation through time.", unit="steps", gt=0)


class ActionAlgorithmConfig(AlgorithmConfig):
    """An algorithm that learns from actions in a dataset, and its options."""

    learns_from: ClassVar[LearnsFrom] = "actions"

    name: str = key("bc", "Name of an installed plug-in.")


class CloneConfig(RunConfig):
    """Trains a policy to choose the actions of a dataset."""

    may_change: ClassVar[tuple[str, ...]] = (*RunConfig.may_change, "threads")
    renamed: ClassVar[Mapping[str, str]] = {
        name: f"algorithm.{name}" for name in ("epochs", "lr", "minibatch", "bptt")
    }

    dataset: str = key(..., "Dataset of the demonstrations, or the run directory that recorded it.")
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
    threads: int = key(1, "Torch threads; 0 for all.", unit="threads", ge=0)
