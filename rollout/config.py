"""Strict, typed configurations: YAML in, frozen models out, nothing unknown, nothing guessed.

A configuration is a tree of keys. Each class of the program is given only its own branch. The
options of a plug-in lie beside its name, under ``bridge`` or ``policy``, and are the fields of
the plug-in's dataclass::

    bridge:
      name: crafter
      size: 64
    policy: random
    output: runs/first
    episodes: 100

The names here are the whole public interface; ``rollout.configuration`` is how it works.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, PlainSerializer, model_validator

from rollout.configuration.document import parse_set
from rollout.configuration.explain import help_text
from rollout.configuration.inference_section import InferenceConfig
from rollout.configuration.load import load_config, make_config, resolved, write_config
from rollout.configuration.plugins import build_plugin
from rollout.configuration.sections import (
    BridgeConfig,
    FragmentConfig,
    HostConfig,
    LogConfig,
    PluginConfig,
    PolicyConfig,
    RayConfig,
    RecordingConfig,
    Section,
    StateSetConfig,
    WandbConfig,
    key,
)

__all__ = [
    "BridgeConfig",
    "CollectConfig",
    "FragmentConfig",
    "HostConfig",
    "InferenceConfig",
    "LogConfig",
    "PluginConfig",
    "PolicyConfig",
    "RayConfig",
    "RecordingConfig",
    "RunConfig",
    "Section",
    "StateSetConfig",
    "WandbConfig",
    "build_plugin",
    "help_text",
    "key",
    "load_config",
    "make_config",
    "parse_set",
    "resolved",
    "write_config",
]


def _directory(path: Any) -> Any:
    if isinstance(path, str) and not path.strip():
        raise ValueError("expected a directory, got an empty text; name one, e.g. runs/first")
    return Path(path) if isinstance(path, str) else path


Directory = Annotated[Path, BeforeValidator(_directory), PlainSerializer(str, return_type=str)]
"""A path that is written as text."""


class RunConfig(Section):
    """Base of the configuration of a run, i.e. of whatever owns a run directory.

    Attributes:
        may_change: keys, or sections, that may differ when a run is resumed: they decide how
            it is carried out, not what comes out of it.
        may_grow: budgets, which may be raised; null is no bound.
    """

    may_change: ClassVar[tuple[str, ...]] = ("output", "host", "ray", "wandb", "log")
    may_grow: ClassVar[tuple[str, ...]] = ()

    output: Directory


class CollectConfig(RunConfig):
    """Plays a policy in a game and records what happens."""

    may_change: ClassVar[tuple[str, ...]] = (
        *RunConfig.may_change,
        "actors",
        "instances",
        "inference",
        "fragment",
        "recording.shard_mb",
        "recording.fsync",
    )
    may_grow: ClassVar[tuple[str, ...]] = ("episodes", "env_steps")

    output: Directory = key(
        ..., "Run directory; relative to GAMUT_RUNS_DIR if that is set, else to where you are."
    )
    bridge: BridgeConfig = key(..., "The game.")
    policy: PolicyConfig = key(..., "Who plays.")
    task: str = key("", "Task of the bridge, or path of a .yaml; empty for the game's own reward.")
    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    seed: int = key(0, "Seed of everything random in the run.", ge=0)
    episodes: int | None = key(
        None, "Episodes to play, lost ones not counted; null for no bound.", unit="episodes", gt=0
    )
    env_steps: int | None = key(
        None, "Steps to play; null for no bound.", unit="steps of single slots", gt=0
    )
    actors: int = key(
        1, "Processes that play, over the cluster; 0 plays here, without Ray.", unit="actors", ge=0
    )
    instances: int = key(1, "Running games in each actor.", unit="instances", gt=0)
    width: int = key(1, "Slots in each game that step together.", unit="slots", gt=0)
    explore: bool = key(True, "Whether the policy samples; false takes its best action.")
    fragment: FragmentConfig = key(FragmentConfig, "When actors hand on what they have played.")
    host: HostConfig = key(HostConfig, "How games are kept alive.")
    inference: InferenceConfig = key(InferenceConfig, "Where the policy decides.")
    ray: RayConfig = key(RayConfig, "Which cluster.")
    recording: RecordingConfig = key(RecordingConfig, "What is kept.")
    wandb: WandbConfig = key(WandbConfig, "Mirroring of metrics.")
    log: LogConfig = key(LogConfig, "What is said meanwhile.")

    @model_validator(mode="after")
    def _bounded(self) -> CollectConfig:
        if self.episodes is None and self.env_steps is None:
            raise ValueError("the run would never end; give episodes, env_steps, or both")
        return self
