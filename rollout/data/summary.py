"""Statistics of a dataset: of its columns, and of its episodes by task and split."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollout.api import Array, Outcome
from rollout.data.formats.common import pieces_of, step_columns
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef, part_of_set
from rollout.data.schema import Column
from rollout.data.statistics import QUANTILES, Levels, Running

_MOST_NUMBERS = 32  # of a row that are described one by one


class Spread(NamedTuple):
    """How numbers are spread.

    Attributes:
        low: minimum.
        high: maximum.
        mean: mean.
        std: standard deviation.
        quantiles: at ``QUANTILES``.
    """

    low: float
    high: float
    mean: float
    std: float
    quantiles: tuple[float, ...]

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Returns the spread of numbers, of which there is at least one."""
        (spread,) = _spreads(Running.of(np.array(numbers, np.float64)[:, None]))
        return spread

    def to_json(self) -> dict[str, float | None]:
        """Returns JSON-able data: ``min``, ``max``, ``mean``, ``std``, ``q01`` to ``q99``."""
        named = dict(zip(QUANTILE_NAMES, self.quantiles, strict=True))
        named |= {"min": self.low, "max": self.high, "mean": self.mean, "std": self.std}
        return {name: v if math.isfinite(v) else None for name, v in named.items()}


QUANTILE_NAMES = tuple(f"q{round(share * 100):02d}" for share in QUANTILES)


class ColumnSummary(NamedTuple):
    """Statistics of a column.

    Attributes:
        column: the column.
        steps: number of its values.
        spreads: of each number of a value apart; of all together if a value has over 32 numbers,
            and of each channel of an image.
    """

    column: Column
    steps: int
    spreads: tuple[Spread, ...]


class GroupSummary(NamedTuple):
    """The episodes of one task and split that have a result.

    Attributes:
        task: name of the task.
        split: part of the states, e.g. ``train``.
        states: number of different start states.
        episodes: number of episodes.
        steps: number of their steps.
        successes: episodes that ended in success; None if no evaluator decided any.
        returns: spread of their sums of rewards.
        lengths: spread of their steps.
    """

    task: str
    split: str
    states: int
    episodes: int
    steps: int
    successes: int | None
    returns: Spread
    lengths: Spread


def summarize_columns(dataset: Dataset, refs: Sequence[EpisodeRef]) -> list[ColumnSummary]:
    """Returns the statistics of every column of numbers, decoding each step once.

    Quantiles of columns that take over 4 MiB are those of a random sample. NaN is left out.

    Raises:
        DatasetError: the steps are damaged.
    """
    columns = [c for c in step_columns(dataset.manifest) if c.dtype not in ("string", "timestamp")]
    found: dict[str, Any] = {}
    for ref in refs:
        for window in pieces_of(dataset, ref, [c.name for c in columns]):
            for column in columns:
                each, known = _of(column, window.columns[column.name]), found.get(column.name)
                found[column.name] = each if known is None else known.joined(each)
    steps = sum(ref.length for ref in refs)
    return [ColumnSummary(c, steps, _spreads(found[c.name])) for c in columns if c.name in found]


def _of(column: Column, values: Array) -> Running | Levels:
    flat = values.reshape(len(values), -1)
    if column.dtype == "uint8" and flat.shape[1] > _MOST_NUMBERS:
        is_color = len(column.shape) == 3 and column.shape[-1] in (3, 4)
        return Levels.of(values if is_color else flat[:, :, None, None])
    return Running.of(flat.reshape(-1, 1) if flat.shape[1] > _MOST_NUMBERS else flat)


def _spreads(found: Running | Levels) -> tuple[Spread, ...]:
    parts: list[NDArray[np.float64]] = [found.low, found.high, found.mean, found.std]
    rows = np.stack([*parts, *found.quantiles()]).T.tolist()
    return tuple(Spread(row[0], row[1], row[2], row[3], tuple(row[4:])) for row in rows)


def summarize_episodes(refs: Sequence[EpisodeRef]) -> list[GroupSummary]:
    """Returns the episodes by task and split, lost attempts apart."""
    groups: dict[tuple[str, str], list[EpisodeRef]] = {}
    for ref in refs:
        if ref.end != "lost":
            groups.setdefault((ref.task, part_of_set(ref.state_set)), []).append(ref)
    return [_group(task, split, each) for (task, split), each in sorted(groups.items())]


def _group(task: str, split: str, refs: Sequence[EpisodeRef]) -> GroupSummary:
    decided = any(ref.outcome != Outcome.RUNNING for ref in refs)
    won = sum(ref.outcome == Outcome.SUCCESS for ref in refs)
    lengths = [ref.length for ref in refs]
    return GroupSummary(
        *(task, split, len({ref.state for ref in refs}), len(refs), sum(lengths)),
        *(won if decided else None, Spread.of([ref.total_reward for ref in refs])),
        Spread.of(lengths),
    )
