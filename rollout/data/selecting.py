"""Makes datasets of some episodes of another: by links to whole shards, else row by row.

No step is decoded: rows keep their encoded values.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.data.expressions import FIELDS
from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, now
from rollout.data.merging import link_shard
from rollout.data.new_folder import new_dataset, new_folder, require_closed
from rollout.data.reader import Dataset
from rollout.data.refs import EpisodeRef
from rollout.data.roll import RunCollector, publish
from rollout.data.rows import LossRecord
from rollout.data.shard import ShardReader, ShardWriter
from rollout.errors import DatasetError, UnknownNameError
from rollout.files import temporary

_SHARD_BYTES = 64 << 20  # of a file of rows from several shards
_MOST_PARTS = 100

_Key = tuple[int, int]  # episode and attempt


@dataclass
class Selected:
    """What a selection made.

    Attributes:
        episodes: number of episodes, lost attempts included.
        steps: number of their steps.
        linked: number of shards that are links.
        written: number of shards that were written.
    """

    episodes: int = 0
    steps: int = 0
    linked: int = 0
    written: int = 0


def select(
    dataset: Dataset, parts: Mapping[str, Sequence[EpisodeRef]], target: Path
) -> list[Selected]:
    """Makes a dataset of each part of the episodes of a dataset.

    Args:
        dataset: the source, which is not changed, and may be removed afterwards.
        parts: the episodes of each new dataset, by its folder in ``target``; ``.`` is ``target``
            itself.
        target: the new folder.

    Raises:
        DatasetError: the target exists, a part is empty, or the source is being written or damaged.
        DiskFullError: the disk is full.
    """
    for name, refs in parts.items():
        if not refs:
            which = "" if name == "." else f" for {name}"
            raise DatasetError(f"expected at least one episode{which}, got none; nothing was made")
    root = dataset.layout.root.resolve()
    if root == target.resolve() or root in target.resolve().parents:
        raise DatasetError(f"expected a folder apart from the dataset {root}, got {target}")
    with new_folder(target) as folder:
        require_closed(dataset.layout)
        manifest = replace(dataset.manifest, damaged=(), created=now())
        return [
            _Selection(dataset.layout, manifest, new_dataset(folder / name, manifest)).make(refs)
            for name, refs in parts.items()
        ]


@dataclass
class _Selection:
    """Makes one dataset."""

    source: Layout
    manifest: Manifest
    target: Layout
    done: Selected = field(default_factory=Selected)
    writer: ShardWriter | None = None
    collector: RunCollector | None = None
    losses: list[LossRecord] = field(default_factory=list)

    def make(self, refs: Sequence[EpisodeRef]) -> Selected:
        keys = {(ref.episode, ref.attempt) for ref in refs}
        for number in self.source.numbers("data"):
            reader = ShardReader(self.source.data(number), expected=self.manifest.schema)
            losses = [loss for loss in reader.losses if _key(loss) in keys]
            keep = _rows_of(reader, keys)
            if keep.all() and len(losses) == len(reader.losses):
                self._finish()
                link_shard(self.source, number, self.target, self._number)
                self.done.linked += 1
            elif keep.any() or losses:
                self._write(reader, keep, losses)
            reader.close()
        self._finish()
        self.done.episodes, self.done.steps = len(refs), sum(ref.length for ref in refs)
        return self.done

    @property
    def _number(self) -> int:
        return self.done.linked + self.done.written

    def _write(
        self, reader: ShardReader, keep: NDArray[np.bool_], losses: Sequence[LossRecord]
    ) -> None:
        """Adds rows to the shard that is being written; an episode may continue in the next."""
        if self.writer is None or self.collector is None:
            self.writer = ShardWriter(self.target.data(self._number), self.manifest)
            self.collector = RunCollector(self._number)
        start = 0
        for table in reader.scan():
            chosen = keep[start : start + len(table)]
            start += len(table)
            if chosen.any():
                rows = table if chosen.all() else table.filter(pa.array(chosen))
                rows = rows.replace_schema_metadata(self.manifest.schema.metadata)
                self.collector.add(rows)
                for batch in rows.combine_chunks().to_batches():
                    self.writer.add(batch)
        self.losses += losses
        if temporary(self.writer.path).stat().st_size >= _SHARD_BYTES:
            self._finish()

    def _finish(self) -> None:
        if self.writer is not None and self.collector is not None:
            self.writer.finish(self.losses)
            publish(self.target, self._number, self.collector, self.losses)
            self.done.written += 1
        self.writer, self.collector, self.losses = None, None, []


def _key(loss: LossRecord) -> _Key:
    return int(loss["episode"]), int(loss["attempt"])


def _rows_of(reader: ShardReader, keys: Collection[_Key]) -> NDArray[np.bool_]:
    """Which rows of a shard are of these episodes."""
    tables = list(reader.scan(["episode", "attempt"]))
    if not tables:
        return np.zeros(0, bool)
    rows = pa.concat_tables(tables)
    episode, attempt = (rows[name].to_numpy() for name in ("episode", "attempt"))
    cut = (episode[1:] != episode[:-1]) | (attempt[1:] != attempt[:-1])
    first = np.concatenate([[0], np.flatnonzero(cut) + 1]).astype(np.int64)
    wanted = [
        pair in keys for pair in zip(episode[first].tolist(), attempt[first].tolist(), strict=True)
    ]
    return np.repeat(np.array(wanted, bool), np.diff(first, append=len(episode)))


def divide(
    refs: Sequence[EpisodeRef], by: str, shares: Mapping[str, float], seed: int = 0
) -> dict[str, list[EpisodeRef]]:
    """Returns the episodes by part, those with the same value of a field in the same part.

    Args:
        refs: the episodes.
        by: a name of the filter language, e.g. ``state``.
        shares: share of the values that each part gets, by the name of the part; the numbers of
            values are rounded such that all are used. Empty: a part for each value.
        seed: of the random order in which the values are dealt out.

    Raises:
        UnknownNameError: there is no such field.
        DatasetError: the shares are none, or a part would get no value.
    """
    if by not in FIELDS:
        raise UnknownNameError("field of an episode", by, tuple(FIELDS))
    groups: dict[Any, list[EpisodeRef]] = {}
    for ref in refs:
        groups.setdefault(FIELDS[by].value(ref), []).append(ref)
    if not shares:
        return _part_of_each(groups, by)
    wrong = [name for name in shares if not _is_name(name)]
    if wrong or any(not 0 < share < 1 for share in shares.values()):
        raise DatasetError(
            f"expected names of letters and digits with shares between 0 and 1, e.g. train=0.9 "
            f"validation=0.1, got {', '.join(f'{k}={v:g}' for k, v in shares.items())}"
        )
    if abs(math.fsum(shares.values()) - 1.0) > 1e-6:
        raise DatasetError(f"expected shares that sum to 1, got {math.fsum(shares.values()):g}")
    order = sorted(groups, key=lambda v: hashlib.sha256(f"{seed}:{v}".encode()).digest())
    counts = _rounded(shares, len(order))
    if empty := [name for name, count in counts.items() if count == 0]:
        raise DatasetError(
            f"{len(order)} different values of {by} are too few for a share of "
            f"{shares[empty[0]]:g}: {empty[0]} would get none"
        )
    parts, first = {}, 0
    for name, count in counts.items():
        chosen = set(order[first : first + count])
        parts[name] = [ref for ref in refs if FIELDS[by].value(ref) in chosen]
        first += count
    return parts


def _rounded(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Whole numbers that sum to the total, each less than 1 away from its share."""
    counts = {name: math.floor(share * total + 1e-9) for name, share in shares.items()}
    left = sorted(shares, key=lambda name: counts[name] - shares[name] * total)
    for name in left[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def _part_of_each(groups: Mapping[Any, list[EpisodeRef]], by: str) -> dict[str, list[EpisodeRef]]:
    if len(groups) > _MOST_PARTS:
        raise DatasetError(
            f"{by} has {len(groups)} different values; expected at most {_MOST_PARTS} parts, or "
            f"give shares, e.g. --shares train=0.9 validation=0.1"
        )
    parts = {}
    for value, refs in groups.items():
        name = str(value).lower() if isinstance(value, bool) else str(value)
        if not _is_name(name):
            raise DatasetError(
                f"{by} is {name!r} in {len(refs)} episodes, which is no name of a folder; choose "
                f"episodes by: gamut dataset filter"
            )
        parts[name] = refs
    return parts


def _is_name(name: str) -> bool:
    return bool(name) and name[0].isalnum() and all(c.isalnum() or c in "._-" for c in name)
