"""The options of PPO; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rollout.api import Progress, option
from rollout.errors import ConfigError

REPAID = 100_000
"""Minibatches that repay compilation: it takes about a minute, and saves about 1 ms of each."""


@dataclass(frozen=True)
class Rates:
    """Rates that change from one update to the next.

    Attributes:
        lr: learning rate.
        entropy: weight of the entropy bonus.
        reference_coef: weight of the KL to the reference.
    """

    lr: float
    entropy: float
    reference_coef: float = 0.0


@dataclass(frozen=True)
class PpoOptions:
    """Options of PPO; see ``Ppo``."""

    batch: int = option(
        8192, "Steps per update: the number of whole fragments nearest to it.", unit="steps", gt=0
    )
    minibatch: int = option(1024, "Steps of a minibatch.", unit="steps", gt=0)
    epochs: int = option(4, "Passes over each batch.", unit="epochs", gt=0)
    accumulate: int = option(
        1, "Minibatches whose gradients are accumulated for one optimizer step.", gt=0
    )
    lr: float = option(5e-4, "Initial learning rate.", gt=0)
    schedule: Literal["linear", "constant"] = option(
        "linear", "Schedule of the learning rate: linear decay to 0 over the budget, or constant."
    )
    gamma: float = option(0.99, "Discount factor per step.", ge=0, le=1)
    gae_lambda: float = option(0.95, "Lambda of generalised advantage estimation.", ge=0, le=1)
    clip: float = option(0.2, "Clipping range of the probability ratio.", gt=0)
    value_coef: float = option(0.5, "Weight of the value loss.", ge=0)
    value_clip: float | None = option(
        None, "Clipping range of the value in an update; null for none.", unit="reward", gt=0
    )
    entropy: float = option(0.01, "Initial weight of the entropy bonus.", ge=0)
    entropy_schedule: Literal["linear", "constant"] = option(
        "constant", "Schedule of that weight: constant, or linear decay to 0 over the budget."
    )
    max_grad_norm: float | None = option(0.5, "Maximum gradient norm; null for no clipping.", gt=0)
    normalize_advantages: bool = option(
        True, "Whether advantages are normalized to mean 0, std 1 in each batch."
    )
    adam_eps: float = option(1e-5, "Epsilon of Adam.", gt=0)
    weight_decay: float = option(0.0, "Decoupled weight decay, as in AdamW.", ge=0)
    log_ratio_cap: float = option(
        20.0, "Maximum logarithm of a probability ratio.", unit="nats", gt=0
    )
    logp_floor: float | None = option(
        None,
        "Where an action was bad, its log-probability is not pushed below this.",
        unit="nats",
        le=0,
    )
    bptt: int = option(64, "Length of truncated backpropagation through time.", unit="steps", gt=0)
    precision: Literal["auto", "float32", "bfloat16"] = option(
        "auto",
        "Number format in which the network learns. bfloat16 is faster for pictures on hardware "
        "that supports it, and many times slower on other hardware; auto chooses it for networks "
        "with convolutions on such hardware.",
    )
    compile: bool | Literal["auto"] = option(
        "auto",
        "Whether torch.compile compiles the loss. auto compiles on the processor for networks "
        "without convolutions and memory, if the run has 100,000 minibatches left.",
    )
    reward_scale: float = option(1.0, "Factor for rewards.", gt=0)
    reward_clip: float | None = option(
        None, "Maximum absolute value of a reward; null for no clipping.", gt=0
    )
    max_staleness: int = option(
        1, "Maximum age, in updates, of the weights that played a batch.", ge=0
    )
    reference: str | None = option(None, "Checkpoint of a frozen reference policy; null for none.")
    reference_coef: float = option(
        0.3, "Weight of KL(policy || reference) in the first update.", ge=0
    )
    reference_decay: float = option(
        0.995, "Factor by which that weight is multiplied in each update.", gt=0, le=1
    )

    def __post_init__(self) -> None:
        if self.minibatch > self.batch:
            raise ConfigError(
                f"minibatch={self.minibatch} is larger than batch={self.batch}; make it at most "
                f"as large"
            )
        taken = self.epochs * self.minibatches
        if taken % self.accumulate:
            raise ConfigError(
                f"accumulate={self.accumulate} does not divide the {taken} minibatches of an "
                f"update ({self.minibatches} in each of {self.epochs} epochs); choose one that does"
            )

    @property
    def minibatches(self) -> int:
        """Number of minibatches per epoch."""
        return max(1, round(self.batch / self.minibatch))

    def minibatches_left(self, progress: Progress) -> float:
        """Returns the number of minibatches that a run will still learn from."""
        updates = (progress.budget - progress.env_steps) / self.batch
        return updates * self.epochs * self.minibatches

    def rates(self, progress: Progress) -> Rates:
        """Returns the learning rate and the weights of the loss for an update."""
        left = 1.0 - progress.share
        return Rates(
            self.lr if self.schedule == "constant" else self.lr * left,
            self.entropy if self.entropy_schedule == "constant" else self.entropy * left,
            self.reference_coef * self.reference_decay**progress.update if self.reference else 0.0,
        )
