"""Runs: consecutive rows of a shard with steps of one episode.

They are found in a few narrow columns of the steps, without Python per row. ``episodes`` puts
them together into the episode index.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.files import parse_json

ENDS = ("", "terminated", "truncated", "lost")

RUN_COLUMNS = (
    *("episode", "attempt", "step", "instance", "slot"),
    *("state", "state_set", "task", "policy", "seed", "version"),
    *("reward", "progress", "outcome", "terminated", "truncated", "lost", "wall_time", "latency"),
)
"""Columns of the data that the index is made from."""

TEXTS = ("state", "state_set", "task", "policy")
DTYPES: Mapping[str, str] = {
    "episode": "int64",
    "attempt": "int16",
    "first_step": "int64",
    "length": "int64",
    "instance": "int32",
    "slot": "int32",
    "seed": "int64",
    "version_first": "int64",
    "version_last": "int64",
    "total_reward": "float64",
    "progress": "float32",
    "outcome": "int8",
    "end": "int8",
    "started": "int64",  # us
    "ended": "int64",  # us
    "whole": "bool",
    **dict.fromkeys(TEXTS, "object"),
}
Runs = dict[str, Array]
"""Runs as columns, keys of ``DTYPES``."""


@dataclass
class Open:
    """Episodes that have steps and have not ended.

    Attributes:
        runs: one per episode, from its first step on.
        places: ``(K, 5)`` int64: episode, attempt, shard, first row, rows of each run.
    """

    runs: Runs
    places: NDArray[np.int64]

    @classmethod
    def none(cls) -> Open:
        """Returns no episodes."""
        return cls(no_runs(), np.zeros((0, 5), np.int64))

    def to_json(self) -> str:
        """Returns the episodes as text."""
        runs = {k: [None if x != x else x for x in v.tolist()] for k, v in self.runs.items()}  # noqa: PLR0124
        return json.dumps({"runs": runs, "places": self.places.tolist()})

    @classmethod
    def from_json(cls, text: str) -> Open:
        """Returns the episodes of a text that ``to_json`` made."""
        data = parse_json(text)
        runs = {}
        for name, dtype in DTYPES.items():
            values = data["runs"][name]
            nan = [np.nan if x is None else x for x in values] if dtype[0] == "f" else values
            runs[name] = np.array(nan, dtype)
        return cls(runs, np.array(data["places"], np.int64).reshape(-1, 5))


def no_runs() -> Runs:
    """Returns zero runs."""
    return {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}


def join_runs(parts: Sequence[Runs]) -> Runs:
    """Returns the runs of several lists, in order."""
    return {name: np.concatenate([p[name] for p in (no_runs(), *parts)]) for name in DTYPES}


def join_places(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Returns the places of several lists, in order."""
    return np.concatenate([np.zeros((0, 5), np.int64), *parts])


def find_runs(
    rows: pa.RecordBatch | pa.Table, shard: int, row_start: int
) -> tuple[Runs, NDArray[np.int64]]:
    """Returns the runs in some rows, and their places.

    Args:
        rows: with at least ``RUN_COLUMNS``.
        shard: number of the shard.
        row_start: number of the first of these rows in the shard.
    """

    def values(name: str) -> Array:
        column = rows.column(name)
        column = column.cast(pa.int64()) if name == "wall_time" else column
        out: Array = column.to_numpy(zero_copy_only=False)
        return out

    count = rows.num_rows
    if count == 0:
        return no_runs(), join_places([])
    episode, attempt, step = values("episode"), values("attempt"), values("step")
    end = values("terminated") + 2 * values("truncated").astype(np.int8) + 3 * values("lost")
    cut = (episode[1:] != episode[:-1]) | (attempt[1:] != attempt[:-1])
    cut |= (step[1:] != step[:-1] + 1) | (end[:-1] != 0)
    first = np.concatenate([[0], np.flatnonzero(cut) + 1])
    last = np.concatenate([first[1:], [count]]) - 1
    length = last - first + 1
    wall, version, at = values("wall_time"), values("version"), pa.array(first)
    latency = np.rint(values("latency")[first].astype(np.float64) * 1e6)
    runs: Runs = {
        "episode": episode[first],
        "attempt": attempt[first],
        "first_step": step[first],
        "length": length,
        "version_first": version[first],
        "version_last": version[last],
        "total_reward": np.add.reduceat(values("reward").astype(np.float64), first),
        "end": end[last],
        "started": wall[first] - np.nan_to_num(latency).astype(np.int64),
        "ended": wall[last],
        "whole": np.ones(len(first), bool),
    }
    for name in ("instance", "slot", "seed"):
        runs[name] = values(name)[first]
    for name in ("progress", "outcome"):
        runs[name] = values(name)[last]
    for name in TEXTS:
        runs[name] = np.array(rows.column(name).take(at).to_pylist(), dtype=object)
    runs = {name: runs[name].astype(dtype) for name, dtype in DTYPES.items()}
    spot = (np.full(len(first), shard), first + row_start, length)
    return runs, np.stack([runs["episode"], runs["attempt"], *spot], axis=1).astype(np.int64)
