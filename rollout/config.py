"""Strict, typed configurations: YAML files become frozen models; unknown keys are errors.

A configuration is a tree of keys. Each class of the program is given only its own branch. The
options of a plug-in are next to its name, under ``bridge`` or ``policy``, and are the fields
of the plug-in's dataclass::

    bridge:
      name: crafter
      size: 64
    policy: random
    output: runs/first
    episodes: 100

The names here are the public interface; ``rollout.configuration`` is the implementation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from rollout.configuration.document import (
    chosen,
    load_config,
    make_config,
    parse_set,
    resolved,
    write_config,
)
from rollout.configuration.explain import help_text
from rollout.configuration.plugins import build_plugin
from rollout.configuration.sections import (
    BridgeConfig,
    FragmentConfig,
    HostConfig,
    InferenceConfig,
    PluginConfig,
    PolicyConfig,
    RayConfig,
    Section,
    StateSetConfig,
    key,
)
from rollout.files import store_address

__all__ = [
    "BridgeConfig",
    "CollectConfig",
    "FleetConfig",
    "FragmentConfig",
    "GameConfig",
    "HostConfig",
    "HostingConfig",
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
    "chosen",
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


def _text(path: Path) -> str:
    return store_address(path) or str(path)


Directory = Annotated[Path, BeforeValidator(_directory), PlainSerializer(_text, return_type=str)]
"""A path, or an address in a store, that is written as text."""


class RecordingConfig(Section):
    """Options of the recorded dataset."""

    enabled: bool = key(True, "Whether to write a dataset.")
    codec: Literal["auto", "raw", "png", "webp", "jpeg", "h264"] = key(
        "auto",
        "Codec of image columns; jpeg and h264 are lossy; auto selects a lossless codec.",
    )
    codecs: dict[str, Literal["auto", "raw", "png", "webp", "jpeg", "h264"]] = key(
        dict, "Codecs of individual columns, by observation key."
    )
    quality: int = key(95, "JPEG quality, from 1 to 100.", ge=1, le=100)
    crf: int = key(
        20, "Constant rate factor of h264, from 0, which is lossless, to 51.", ge=0, le=51
    )
    details: bool = key(
        True, "Whether to record data without a fixed shape: text, structured state."
    )
    shard_mb: int = key(256, "Size at which a shard is closed.", unit="MB", gt=0)
    fsync: Literal["never", "episode", "shard"] = key(
        "shard", "When to call fsync: never, after every episode, or after every shard."
    )
    disk_budget_gb: float | None = key(
        None,
        "Size of the dataset on disk at which the run ends; null for no limit.",
        unit="GB",
        gt=0,
    )

    upload: str | None = key(
        None,
        "Address of fsspec to which shards are copied, e.g. s3://bucket/name; null for none.",
    )

    @property
    def shard_bytes(self) -> int:
        """``shard_mb`` in bytes."""
        return self.shard_mb << 20

    @property
    def disk_budget(self) -> int | None:
        """``disk_budget_gb`` in bytes."""
        return None if self.disk_budget_gb is None else round(self.disk_budget_gb * 1e9)


class WandbConfig(Section):
    """Mirroring of the metrics to Weights & Biases; metrics.jsonl is authoritative."""

    mode: Literal["auto", "online", "offline", "disabled"] = key(
        "auto",
        "auto is online with an API key and offline without (upload later with `wandb sync`).",
    )
    project: str = key("gamut", "Project.")
    entity: str | None = key(None, "User or team; null for the owner of the API key.")
    group: str | None = key(None, "Group of related runs, e.g. one sweep.")
    name: str | None = key(None, "Display name of the run; null for the name of the run directory.")
    tags: tuple[str, ...] = key((), "Labels.", strict=False)


class LogConfig(Section):
    """Log output."""

    level: Literal["debug", "info", "warning", "error"] = key(
        "info", "Minimum level of log messages."
    )
    every_s: float = key(10.0, "Interval between progress lines.", unit="s", gt=0)
    tensorboard: bool = key(
        False, "Whether to write the metrics as event files of TensorBoard too, to tensorboard/."
    )


OF_MODELS = ("endpoint", "prices", "limits.calls", "limits.tokens", "limits.usd")
"""Options of a policy that asks a model, which may differ when a run is resumed."""


class RunConfig(Section):
    """Base of all configurations of runs, i.e. of jobs with a run directory.

    Attributes:
        may_change: keys, or sections, that may differ when a run is resumed: they affect how
            it is executed, not its results.
        may_grow: budgets, which may be increased; null is no limit.
        chosen: keys whose null leaves the choice to the program; a resumed run keeps its own.
        derives: keys, each with the keys or sections whose values it may decide.
        addresses: keys whose values may be addresses of stores; others are paths or names.
        estimates: whether the job can tell what its calls of models will cost, by ``--estimate``.
        spreads: whether parts of the run write its files on other machines of a cluster.
    """

    may_change: ClassVar[tuple[str, ...]] = (
        *("output", "host", "ray", "wandb", "log", "disk_budget_gb"),
    )
    may_grow: ClassVar[tuple[str, ...]] = ()
    chosen: ClassVar[tuple[str, ...]] = ()
    derives: ClassVar[Mapping[str, tuple[str, ...]]] = {"task": ("bridge",)}
    addresses: ClassVar[tuple[str, ...]] = ("output",)
    spreads: ClassVar[bool] = False
    estimates: ClassVar[bool] = False

    output: Directory = key(
        ...,
        "Run directory; relative to GAMUT_RUNS_DIR if set, else to the current directory; or an "
        "address in a store, e.g. s3://bucket/runs/first, to which the run is copied.",
    )
    wandb: WandbConfig = key(WandbConfig, "Mirroring of metrics.")
    log: LogConfig = key(LogConfig, "Log output.")
    disk_budget_gb: float | None = key(
        None, "Size of the run directory at which the run ends; null for no limit.", unit="GB", gt=0
    )

    @property
    def disk_budget(self) -> int | None:
        """``disk_budget_gb`` in bytes."""
        return None if self.disk_budget_gb is None else round(self.disk_budget_gb * 1e9)

    def left_open(self) -> list[str]:
        """Returns the keys whose values the program chooses; a resumed run keeps its own."""
        return [key for key in self.chosen if getattr(self, key) is None]


class HostingConfig(RunConfig):
    """Base of the configurations of runs that play games."""

    chosen: ClassVar[tuple[str, ...]] = ("width",)

    seed: int = key(0, "Seed of all random numbers of the run.", ge=0)
    instances: int = key(1, "Instances in each actor or runner.", unit="instances", gt=0)
    width: int | None = key(
        None,
        "Slots of each instance, which step together; null for the game's usual number.",
        unit="slots",
        gt=0,
    )
    host: HostConfig = key(HostConfig, "How games are hosted and restarted.")
    ray: RayConfig = key(RayConfig, "Which cluster.")


class GameConfig(HostingConfig):
    """Base of the configurations that name the game."""

    bridge: BridgeConfig = key(..., "The game.")
    task: str = key(
        "", "Task of the bridge, or path of a .yaml file; empty for the game's own reward."
    )


class FleetConfig(GameConfig):
    """Base of the configurations of runs whose actors play with one policy each."""

    may_change: ClassVar[tuple[str, ...]] = (
        *GameConfig.may_change,
        *("actors", "instances", "inference", "fragment"),
    )

    actors: int = key(
        1,
        "Actors that play, across the cluster; 0 plays in this process, without Ray.",
        unit="actors",
        ge=0,
    )
    fragment: FragmentConfig = key(FragmentConfig, "When actors send what they have played.")
    inference: InferenceConfig = key(InferenceConfig, "Inference actors.")


class CollectConfig(FleetConfig):
    """Runs episodes of a policy and records them as a dataset."""

    may_change: ClassVar[tuple[str, ...]] = (
        *FleetConfig.may_change,
        "recording.shard_mb",
        "recording.fsync",
        "recording.disk_budget_gb",
        "recording.upload",
        "quotas",
        *(f"policy.{name}" for name in OF_MODELS),
    )
    may_grow: ClassVar[tuple[str, ...]] = ("episodes", "env_steps")
    addresses: ClassVar[tuple[str, ...]] = (*FleetConfig.addresses, "recording.upload")
    estimates: ClassVar[bool] = True

    policy: PolicyConfig = key(..., "The policy.")
    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    episodes: int | None = key(
        None, "Episodes to play, not counting lost ones; null for no limit.", unit="episodes", gt=0
    )
    env_steps: int | None = key(
        None, "Steps to play; null for no limit.", unit="steps of single slots", gt=0
    )
    part: str = key(
        "1/1",
        "Part of the episodes that this run plays, e.g. 3/8 on the third of eight machines; their "
        "datasets are merged afterwards. Limits of steps and sizes are those of a part.",
        pattern=r"^[1-9]\d*/[1-9]\d*$",
    )
    quotas: dict[str, Annotated[int, Field(gt=0)]] = key(
        dict,
        "Episodes wanted by condition, e.g. {success: 100}; the run ends when all are there, and "
        "steps of other episodes are dropped.",
        unit="episodes",
    )
    explore: bool = key(
        True, "Whether the policy samples actions; false takes the most likely action."
    )
    recording: RecordingConfig = key(RecordingConfig, "What is recorded.")

    @model_validator(mode="after")
    def _bounded(self) -> CollectConfig:
        if self.episodes is None and self.env_steps is None:
            more = "; quotas may never be met" if self.quotas else ""
            raise ValueError(f"the run would never end; set episodes, env_steps, or both{more}")
        number, parts = self.place
        if number > parts:
            raise ValueError(f"part={self.part}: expected one of 1/{parts} to {parts}/{parts}")
        if self.own_episodes == 0:
            raise ValueError(
                f"part={self.part} of {self.episodes} episodes has none; expected at most "
                f"{self.episodes} parts"
            )
        if self.quotas and not self.recording.enabled:
            raise ValueError("quotas count recorded episodes; set recording.enabled=true")
        if self.recording.upload and not self.recording.enabled:
            raise ValueError("nothing is recorded to upload; set recording.enabled=true")
        return self

    @property
    def place(self) -> tuple[int, int]:
        """Number of this part, from 1, and number of parts."""
        number, _, parts = self.part.partition("/")
        return int(number), int(parts)

    @property
    def own_episodes(self) -> int | None:
        """How many of ``episodes`` this part plays; None for no limit."""
        number, parts = self.place
        # By arithmetic: the length of a range is at most 2**63 - 1.
        return None if self.episodes is None else max(0, (self.episodes - number) // parts + 1)
