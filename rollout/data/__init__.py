"""The trajectory store: episodes as Arrow datasets that can be read without Gamut.

A dataset is a directory of Parquet shards with one row per step (``layout`` draws it).
``describe_dataset`` describes what will be recorded, ``DatasetWriter`` records fragments and can be
killed at any moment without losing them, ``Dataset`` reads episodes and windows, also while they
are being written, ``doctor`` finds damage and ``repair`` keeps everything that is intact.

The folder has a dataset card, so that ``datasets.load_dataset(path)`` of Hugging Face returns its
steps, and ``load_dataset(path, "episodes")`` its index of episodes. Images come as encoded bytes;
the card has an example that decodes them.

*Journal*: the open shard, an Arrow stream. *Roll*: a journal becomes a Parquet shard. *Adopt*: a
writer rolls the journals a crash left. *Unfinished* episodes have steps but no end, *lost* ones
were lost to a failure of the infrastructure, *damaged* ones miss steps: none of these is a result.
"""

from rollout.data.calls import Calls, CallSample
from rollout.data.doctor import DatasetReport, Finding, doctor
from rollout.data.filters import EpisodeFilter, StepWeight, returns_to_go
from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, describe_dataset, read_manifest
from rollout.data.reader import Dataset
from rollout.data.refs import (
    Counts,
    Episode,
    EpisodeRef,
    FinishedEpisodes,
    Piece,
    Window,
    part_of_set,
)
from rollout.data.repair import RepairReport, repair
from rollout.data.replay import Actions, Mp4, play_text
from rollout.data.writer import DatasetWriter
from rollout.errors import DiskFullError

__all__ = [
    "Actions",
    "CallSample",
    "Calls",
    "Counts",
    "Dataset",
    "DatasetReport",
    "DatasetWriter",
    "DiskFullError",
    "Episode",
    "EpisodeFilter",
    "EpisodeRef",
    "Finding",
    "FinishedEpisodes",
    "Layout",
    "Manifest",
    "Mp4",
    "Piece",
    "RepairReport",
    "StepWeight",
    "Window",
    "describe_dataset",
    "doctor",
    "part_of_set",
    "play_text",
    "read_manifest",
    "repair",
    "returns_to_go",
]
