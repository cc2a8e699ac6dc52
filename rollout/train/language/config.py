"""The configurations of trainings of language models; imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import field_validator, model_validator

from rollout.api import LearnsFrom
from rollout.config import (
    GameConfig,
    HostingConfig,
    InferenceConfig,
    PolicyConfig,
    Section,
    StateSetConfig,
    key,
)
from rollout.train.config import AlgorithmConfig, LearnersConfig, SaveConfig, SeededConfig

NEW = "new"
"""Name of a local model that is built for the run."""


class NewModelConfig(Section):
    """A small vision-language model with new weights; for policy.local.model=new."""

    image: int = key(112, "Side of its pictures.", unit="pixels", ge=8)
    patch: int = key(16, "Side of the patches, each of which is a token.", unit="pixels", ge=2)
    hidden: int = key(192, "Width of its layers.", ge=16)
    layers: int = key(4, "Layers of the language model.", ge=1)
    vision_layers: int = key(1, "Layers of the vision tower.", ge=1)
    heads: int = key(4, "Heads of attention.", ge=1)
    vocabulary: int = key(512, "Most tokens; 256 are bytes.", ge=300)


class LanguageValidation(Section):
    """Play on validation states during training."""

    every: int | None = key(
        None, "Epochs or updates between validations; null for none but the last.", gt=0
    )
    states: int = key(
        0, "Validation states, from which one episode each is played.", unit="states", ge=0
    )


class AnswerAlgorithmConfig(AlgorithmConfig):
    """An algorithm that learns from answers in a dataset, and its options."""

    learns_from: ClassVar[LearnsFrom] = "answers"

    name: str = key("sft", "Name of an installed plug-in.")


class GroupAlgorithmConfig(AlgorithmConfig):
    """An algorithm that learns from groups of episodes, and its options."""

    learns_from: ClassVar[LearnsFrom] = "groups"

    name: str = key("grpo", "Name of an installed plug-in.")


class LanguageConfig(HostingConfig, SeededConfig):
    """Configuration shared by trainings of language models."""

    may_change: ClassVar[tuple[str, ...]] = (*HostingConfig.may_change, "checkpoint", "validation")

    policy: PolicyConfig = key(..., "The policy to train: vlm with local.model.")
    validation: LanguageValidation = key(LanguageValidation, "Play on validation states.")
    actors: int = key(0, "Actors that play; 0 plays in the trainer's process.", ge=0)
    learners: LearnersConfig = key(LearnersConfig, "Where it learns; workers of Ray Train.")
    checkpoint: SaveConfig = key(SaveConfig, "When checkpoints are written.")


class FineTuneConfig(LanguageConfig):
    """Trains a language model to answer as recorded episodes do."""

    dataset: str = key(..., "Dataset to learn from, or the run directory that recorded it.")
    task: str = key(
        "", "Path of the task's file, for a dataset of a task that is not one of its game's."
    )
    only: Literal["success", "all"] = key("success", "Which episodes are learned from.")
    filter: str = key(
        "",
        "Of these, the episodes to learn from, e.g. return > 5 (docs/dataset.md); empty for all.",
    )
    held_out: float = key(
        0.1, "Share of the episodes, the last ones, on which the loss is measured.", gt=0, lt=1
    )
    algorithm: AnswerAlgorithmConfig = key(
        lambda: AnswerAlgorithmConfig(name="sft"), "How it learns."
    )
    new_model: NewModelConfig | None = key(None, "Sizes, for policy.local.model=new.")
    state_set: StateSetConfig = key(
        StateSetConfig, "How states are divided, for validation; as where they were recorded."
    )

    @model_validator(mode="after")
    def _new(self) -> FineTuneConfig:
        local = self.policy.options.get("local")
        wants = isinstance(local, dict) and local.get("model") == NEW
        if wants != (self.new_model is not None):
            raise ValueError(
                "new_model: expected with policy.local.model=new, and only then; set both or "
                "neither"
            )
        return self


class PlayGroupsConfig(LanguageConfig, GameConfig):
    """Trains a language model by playing."""

    may_grow: ClassVar[tuple[str, ...]] = (*SeededConfig.may_grow, "updates")
    removed: ClassVar[Mapping[str, object]] = {"record": True}

    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    updates: int = key(..., "Updates to make.", unit="updates", gt=0)
    algorithm: GroupAlgorithmConfig = key(
        lambda: GroupAlgorithmConfig(name="grpo"), "How it learns."
    )
    inference: InferenceConfig = key(InferenceConfig, "Where the model answers.")

    @field_validator("state_set")
    @classmethod
    def _train_part(cls, states: StateSetConfig) -> StateSetConfig:
        if states.states is None and states.split != "train":
            raise ValueError(f"split: expected train, got {states.split}")
        return states
