"""The configuration of runs that learn from demonstrations; imports neither torch nor Ray."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pydantic import model_validator

from rollout.config import (
    CollectConfig,
    PolicyConfig,
    Section,
    key,
    make_config,
    resolved,
)
from rollout.train.config import TrainConfig
from rollout.train.offline_config import ActionAlgorithmConfig, OfflineConfig

DEMONSTRATIONS = "demonstrations"
"""Folder of a sweep: a run directory of demonstrations for each run."""

CLONES = "clones"
"""Folder of a sweep: the run directory of each policy that is cloned from demonstrations."""

_OF_PLAYING = ("runners", "measure", "initialize_from", "validation", "callbacks")


class DemonstrationsConfig(Section):
    """Episodes of a policy, from the training states of a run, which the run learns from."""

    policy: PolicyConfig = key(
        ..., "The policy that plays them, e.g. oracle, or checkpoint with its path."
    )
    bridge: dict[str, Any] = key(
        dict, "Options of the bridge that only this policy needs, e.g. {oracle: hunt_sheep}."
    )
    episodes: int = key(
        ...,
        "Episodes that every run learns from, whatever its N: its training states in turn. A tenth "
        "more are played, to measure the loss on.",
        unit="episodes",
        gt=0,
    )
    explore: bool = key(
        True, "Whether the policy samples actions; false takes the most likely action."
    )
    clone: ActionAlgorithmConfig | None = key(
        None,
        "How a policy is cloned from them with which the run begins to play, e.g. {name: bc}; null "
        "if algorithm learns from them.",
    )

    @property
    def held_out(self) -> int:
        """Number of further episodes that the loss is measured on."""
        return max(1, self.episodes // 10)


class ImitationConfig(TrainConfig):
    """Trains a policy on demonstrations from its training states; the evaluation is as ever."""

    algorithm: ActionAlgorithmConfig = key(
        lambda: ActionAlgorithmConfig(name="bc"), "How it learns."
    )
    env_steps: int = key(0, "Not used.", unit="steps of single slots", ge=0)
    demonstrations: DemonstrationsConfig = key(..., "What it learns from.")

    @model_validator(mode="after")
    def _plays_nothing(self) -> ImitationConfig:
        default = {k: f.get_default(call_default_factory=True) for k, f in _FIELDS.items()}
        given = [name for name in _OF_PLAYING if getattr(self, name) != default[name]]
        learners = default["learners"].model_copy(update={"threads": self.learners.threads})
        given += [] if self.learners == learners else ["learners"]
        if given:
            raise ValueError(
                f"{', '.join(given)}: are for runs that learn from what they play, and algorithm "
                f"{self.algorithm.name} learns from demonstrations; leave them out"
            )
        return self

    @property
    def collection(self) -> CollectConfig:
        """The job that records the demonstrations of the run.

        Raises:
            ConfigError: the game has no such options.
        """
        shown = self.demonstrations
        shared = ("seed", "instances", "width", "task", "host", "ray", "log", "fragment")
        data = resolved(self)
        return make_config(
            CollectConfig,
            {
                **{name: data[name] for name in shared},
                "output": str(self.output.parent.parent / DEMONSTRATIONS / self.output.name),
                "bridge": {**data["bridge"], **shown.bridge},
                "policy": resolved(shown.policy),
                "state_set": data["state_set"],
                "episodes": shown.episodes + shown.held_out,
                "explore": shown.explore,
                "actors": 0,
                "wandb": {"mode": "disabled"},
            },
            source="demonstrations",
        )

    @property
    def learning(self) -> OfflineConfig:
        """The job that learns from them, in the run directory of the run."""
        shown = self.demonstrations
        data = resolved(self)
        return make_config(
            OfflineConfig,
            {
                **{name: data[name] for name in ("seed", "policy", "algorithm", "wandb", "log")},
                "output": str(self.output),
                "dataset": str(self.collection.output),
                "held_out": shown.held_out / (shown.episodes + shown.held_out),
                "threads": self.learners.threads,
            },
        )


class ClonedConfig(TrainConfig):
    """Clones a policy from demonstrations, and trains it on what it plays."""

    demonstrations: DemonstrationsConfig = key(..., "What it is cloned from.")

    @property
    def imitation(self) -> ImitationConfig:
        """The job that clones the policy, in a run directory of its own."""
        data = resolved(self)
        shown = data["demonstrations"]
        return make_config(
            ImitationConfig,
            {
                **{name: data[name] for name in data if name not in _OF_PLAYING},
                "output": str(self.output.parent.parent / CLONES / self.output.name),
                "env_steps": 0,
                "learners": {"threads": self.learners.threads},
                "algorithm": shown["clone"],
                "demonstrations": {**shown, "clone": None},
                "wandb": {"mode": "disabled"},
            },
            source="demonstrations.clone",
        )

    def training(self, clone: str | None) -> TrainConfig:
        """Returns the training of the policy, which the clone begins and, if it can, holds.

        Args:
            clone: run directory of the clone; None for a configuration to be checked before there
                is one.
        """
        data = {name: value for name, value in resolved(self).items() if name != "demonstrations"}
        data["initialize_from"] = clone
        own = {field.name for field in fields(self.algorithm.build())}
        if "reference" in own and not self.algorithm.options.get("reference"):
            data["algorithm"] = {**data["algorithm"], "reference": clone}
        return make_config(TrainConfig, data)


_FIELDS = TrainConfig.model_fields
