"""The sections that say what a job records and shows."""

from __future__ import annotations

from typing import Literal

from rollout.configuration.sections import Section, key


class RecordingConfig(Section):
    """What is recorded on disk, and how."""

    enabled: bool = key(True, "Whether to write a dataset.")
    codec: Literal["auto", "raw", "png", "webp", "jpeg"] = key(
        "auto",
        "Codec of image columns; jpeg is lossy; auto selects a lossless codec by image size.",
    )
    codecs: dict[str, Literal["auto", "raw", "png", "webp", "jpeg"]] = key(
        dict, "Codecs of individual columns, by observation key."
    )
    quality: int = key(95, "JPEG quality, from 1 to 100.", ge=1, le=100)
    details: bool = key(
        True, "Whether to record data without a fixed shape: text, structured state."
    )
    shard_mb: int = key(256, "Size at which a shard is closed.", unit="MB", gt=0)
    fsync: Literal["never", "episode", "shard"] = key(
        "shard", "When to call fsync: never, after every episode, or after every shard."
    )


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
