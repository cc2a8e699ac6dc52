"""The configuration of training runs; imports neither torch nor Ray."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from rollout.api import Resources
from rollout.config import (
    BridgeConfig,
    Directory,
    FragmentConfig,
    HostConfig,
    LogConfig,
    PolicyConfig,
    RayConfig,
    RunConfig,
    Section,
    StateSetConfig,
    WandbConfig,
    key,
)


class ReferenceConfig(Section):
    """A frozen policy that the trained one is kept near to."""

    checkpoint: str | None = key(None, "Folder of its checkpoint; null for no reference.")
    coef: float = key(0.3, "Weight of KL(policy || reference) in the first update.", ge=0)
    decay: float = key(0.995, "Factor on that weight from one update to the next.", gt=0, le=1)


class PpoConfig(Section):
    """How PPO learns. The loss is L_clip + value_coef * half the mean square error - entropy."""

    batch: int = key(8192, "Steps that are played for each update.", unit="steps", gt=0)
    minibatch: int = key(1024, "Steps of a minibatch.", unit="steps", gt=0)
    epochs: int = key(4, "Passes over each batch.", unit="epochs", gt=0)
    accumulate: int = key(1, "Minibatches whose gradients are added for one step.", gt=0)
    lr: float = key(5e-4, "Learning rate at the start.", gt=0)
    schedule: Literal["linear", "constant"] = key(
        "linear", "The learning rate falls to 0 over the budget, or stays."
    )
    gamma: float = key(0.99, "Discount of a step.", ge=0, le=1)
    gae_lambda: float = key(0.95, "Lambda of generalised advantage estimation.", ge=0, le=1)
    clip: float = key(0.2, "Most that a probability ratio may gain, as a fraction.", gt=0)
    value_coef: float = key(0.5, "Weight of the value loss.", ge=0)
    value_clip: float | None = key(
        None, "Most that a value may move in an update; null for any.", unit="reward", gt=0
    )
    entropy: float = key(0.01, "Weight of the entropy bonus at the start.", ge=0)
    entropy_schedule: Literal["linear", "constant"] = key(
        "constant", "That weight stays, or falls to 0 over the budget."
    )
    max_grad_norm: float | None = key(0.5, "Largest norm of a gradient; null for any.", gt=0)
    normalize_advantages: bool = key(True, "Whether advantages of a batch get mean 0, std 1.")
    adam_eps: float = key(1e-5, "Epsilon of Adam.", gt=0)
    weight_decay: float = key(0.0, "Decoupled weight decay, as of AdamW.", ge=0)
    log_ratio_cap: float = key(20.0, "Largest logarithm of a probability ratio.", unit="nats", gt=0)
    logp_floor: float | None = key(
        None, "Where an action was bad, its log-probability is not pushed below this.", unit="nats"
    )
    bptt: int = key(64, "Steps through which gradients of a memory flow.", unit="steps", gt=0)
    precision: Literal["float32", "bfloat16"] = key(
        "float32", "Of the network while it learns; bfloat16 pays for large pictures."
    )
    reward_scale: float = key(1.0, "Factor on rewards before they are learned from.", gt=0)
    reward_clip: float | None = key(
        None, "Largest size of a reward that is learned from; null for any.", gt=0
    )
    max_staleness: int = key(
        1, "Updates that weights may be behind when what they played is learned from.", ge=0
    )
    reference: ReferenceConfig = key(ReferenceConfig, "A policy to stay near to.")


class LearnersConfig(Section):
    """Where the network learns."""

    count: int = key(0, "Processes that share each update; 0 learns in the trainer's own.", ge=0)
    gpus: float = key(0.0, "GPUs of each; 0 learns on processors.", ge=0)
    resources: dict[str, Annotated[float, Field(gt=0)]] = key(
        dict,
        "What each process needs of its machine beside, by the names of Ray's resources: "
        "{gamut_learner: 1} places it on a machine that was started with any.",
    )
    threads: int = key(
        1,
        "Threads of torch in each; 0 for all. More than one pays for convolutions on an otherwise "
        "idle machine, and costs dearly elsewhere.",
        ge=0,
    )

    @model_validator(mode="after")
    def _placed(self) -> LearnersConfig:
        if self.resources and not self.count:
            raise ValueError(
                "resources: with count=0 the trainer's own process learns, wherever that is; set "
                "count to 1 or more"
            )
        return self

    @property
    def needs(self) -> Resources:
        """What each process needs that no other can share."""
        return Resources(cpus=0.0, memory_mb=0, gpus=self.gpus, custom=dict(self.resources))


class CheckpointConfig(Section):
    """When the state of the training is written down."""

    every: int = key(100, "Updates between checkpoints; there is one at the end.", gt=0)
    keep: int = key(2, "Newest checkpoints that are kept; the last one always is.", gt=0)


class EpisodesConfig(Section):
    """What is written down of every episode that ended."""

    write: bool = key(True, "Whether episodes.jsonl gets a line for each.")
    signals: tuple[str, ...] = key(
        (),
        "Signals whose last values stand in it: names, or patterns such as achievement/*.",
        strict=False,
    )


class TrainConfig(RunConfig):
    """Trains a policy by PPO."""

    may_change: ClassVar[tuple[str, ...]] = (*RunConfig.may_change, "checkpoint", "episodes")
    may_grow: ClassVar[tuple[str, ...]] = ()

    output: Directory = key(
        ..., "Run directory; relative to GAMUT_RUNS_DIR if that is set, else to where you are."
    )
    bridge: BridgeConfig = key(..., "The game.")
    policy: PolicyConfig = key(
        lambda: PolicyConfig(name="actor_critic"), "What is trained; actor_critic and its options."
    )
    task: str = key("", "Task of the bridge, or path of a .yaml; empty for the game's own reward.")
    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    seed: int = key(0, "Seed of everything random in the run.", ge=0)
    env_steps: int = key(..., "Steps to train for.", unit="steps of single slots", gt=0)
    runners: int = key(0, "Processes that play; 0 plays in the trainer's own.", unit="actors", ge=0)
    instances: int = key(1, "Running games in each runner.", unit="instances", gt=0)
    width: int = key(1, "Slots in each game that step together.", unit="slots", gt=0)
    fragment: FragmentConfig = key(FragmentConfig, "How long the pieces are that runners hand on.")
    ppo: PpoConfig = key(PpoConfig, "How it learns.")
    learners: LearnersConfig = key(LearnersConfig, "Where it learns.")
    initialize_from: str | None = key(
        None, "Checkpoint whose weights training begins with; null for new ones."
    )
    checkpoint: CheckpointConfig = key(CheckpointConfig, "When its state is written down.")
    episodes: EpisodesConfig = key(EpisodesConfig, "What is written down of its episodes.")
    host: HostConfig = key(HostConfig, "How games are kept alive.")
    ray: RayConfig = key(RayConfig, "Which cluster.")
    wandb: WandbConfig = key(WandbConfig, "Mirroring of metrics.")
    log: LogConfig = key(LogConfig, "What is said meanwhile.")

    @field_validator("state_set")
    @classmethod
    def _train_part(cls, states: StateSetConfig) -> StateSetConfig:
        if states.states is None and states.split != "train":
            raise ValueError(
                f"split: expected train, got {states.split}; states of other parts are for "
                f"evaluation and must not be trained on"
            )
        return states

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        ppo, steps = self.ppo, self.fragment.steps
        if ppo.minibatch > ppo.batch:
            raise ValueError(
                f"ppo.minibatch={ppo.minibatch} is larger than ppo.batch={ppo.batch}; make it at "
                f"most as large"
            )
        taken = ppo.epochs * self.minibatches
        if taken % ppo.accumulate:
            raise ValueError(
                f"ppo.accumulate={ppo.accumulate} does not divide the {taken} minibatches of an "
                f"update ({self.minibatches} in each of {ppo.epochs} epochs); choose one that does"
            )
        if steps % min(ppo.bptt, steps):
            raise ValueError(
                f"fragment.steps={steps} is no multiple of ppo.bptt={ppo.bptt}; choose one that is"
            )
        return self

    @property
    def minibatches(self) -> int:
        """Number of minibatches of an epoch."""
        return max(1, round(self.ppo.batch / self.ppo.minibatch))


def progress(config: TrainConfig, env_steps: int) -> float:
    """Returns the share of the budget that is used up, 0 to 1."""
    return min(1.0, env_steps / config.env_steps)


def learning_rate(config: TrainConfig, env_steps: int) -> float:
    """Returns the learning rate after so many steps."""
    if config.ppo.schedule == "constant":
        return config.ppo.lr
    return config.ppo.lr * (1.0 - progress(config, env_steps))


def entropy_coef(config: TrainConfig, env_steps: int) -> float:
    """Returns the weight of the entropy bonus after so many steps."""
    if config.ppo.entropy_schedule == "constant":
        return config.ppo.entropy
    return config.ppo.entropy * (1.0 - progress(config, env_steps))


def reference_coef(config: TrainConfig, update: int) -> float:
    """Returns the weight of the KL to the reference in update number ``update``."""
    reference = config.ppo.reference
    return reference.coef * reference.decay**update if reference.checkpoint else 0.0


def plain(config: TrainConfig) -> dict[str, Any]:
    """Returns the configuration as JSON-able data."""
    return config.model_dump(mode="json")
