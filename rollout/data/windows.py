"""Random windows: decoded row groups in bounded memory, and the order in which windows are drawn.

Reading one window from a shard decompresses its whole row groups. Groups therefore stay decoded
in a ``GroupCache``. Where a dataset does not fit into it, ``grouped_starts`` draws windows from
the groups of a random part that fits, then from those of the next part.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.codec import decode
from rollout.data.refs import EpisodeRef
from rollout.data.schema import Column
from rollout.errors import DatasetError

_REUSE = 8  # windows that use a step while its group is in memory

_Key = tuple[int, int, int, str]  # shard, first row, row after the last, column
Rows = Callable[[int, Sequence[str], int, int], pa.Table]
"""Reads columns of a shard, by its number, from one row to another (exclusive)."""
Bounds = Callable[[int], Sequence[int]]
"""Returns the first row of each row group of a shard, and the number of its rows."""


class GroupCache:
    """Columns of row groups; the least recently used are dropped beyond a bound.

    Numbers and images are held decoded; texts are held as Arrow arrays, because objects in
    Python take many times their space.

    Args:
        most_bytes: the bound; a group that is larger is held alone.
        rows: reads rows of a shard.
        bounds: returns the row groups of a shard.
    """

    def __init__(self, most_bytes: int, rows: Rows, bounds: Bounds) -> None:
        self.most_bytes, self.nbytes = most_bytes, 0
        self._rows, self._bounds = rows, bounds
        self._held: OrderedDict[_Key, Array | pa.ChunkedArray] = OrderedDict()

    def read(
        self, ref: EpisodeRef, start: int, stop: int, columns: Sequence[Column]
    ) -> dict[str, Array]:
        """Returns copies of decoded columns of steps ``start`` to ``stop`` (exclusive)."""
        parts: dict[str, list[Array]] = {column.name: [] for column in columns}
        for shard, low, high in ref.rows(start, stop):
            edges = self._bounds(shard)
            groups = pairwise(edges[bisect_right(edges, low) - 1 : bisect_left(edges, high) + 1])
            for begin, end in groups:
                rows = slice(max(low - begin, 0), min(high, end) - begin)
                group = self._group(shard, begin, end, columns)
                for column, values in zip(columns, group, strict=True):
                    part = values[rows]
                    if not isinstance(part, np.ndarray):
                        part = decode_column(column, [part])
                    parts[column.name].append(part)
        return {
            column.name: np.concatenate(found) if found else decode_column(column, [])
            for column, found in zip(columns, parts.values(), strict=True)
        }

    def clear(self) -> None:
        """Drops everything."""
        self._held.clear()
        self.nbytes = 0

    def _group(
        self, shard: int, begin: int, end: int, columns: Sequence[Column]
    ) -> list[Array | pa.ChunkedArray]:
        """The columns of a row group, which must not be changed."""
        held = self._held
        keys = [(shard, begin, end, column.name) for column in columns]
        missing = [c for c, key in zip(columns, keys, strict=True) if key not in held]
        if missing:
            table = self._rows(shard, [c.name for c in missing], begin, end)
            for column in missing:
                stored = table.column(column.name)
                values = stored if column.dtype == "string" else decode_column(column, [stored])
                held[shard, begin, end, column.name] = values
                self.nbytes += values.nbytes
        for key in keys:
            held.move_to_end(key)
        while missing and self.nbytes > self.most_bytes and len(held) > len(keys):
            self.nbytes -= held.popitem(last=False)[1].nbytes
        return [held[key] for key in keys]


def decode_column(column: Column, parts: Sequence[pa.ChunkedArray]) -> Array:
    """Returns a copy of the values of a column, ``(n, ...)``.

    Raises:
        DatasetError: a value is damaged.
    """
    chunks = [chunk for part in parts for chunk in part.chunks if len(chunk)]
    if not chunks:
        chunks = [pa.array([], column.arrow_type)]
    arrays = [decode(column.codec, column.dtype, column.shape, chunk) for chunk in chunks]
    return np.concatenate(arrays)


def random_starts(
    refs: Sequence[EpisodeRef], length: int, stride: int, seed: int
) -> Iterator[tuple[EpisodeRef, int]]:
    """Yields random windows endlessly; every start on the stride is equally likely.

    Raises:
        DatasetError: no episode is long enough.
    """
    ends = np.cumsum(_counts(refs, length, stride))
    rng = np.random.default_rng(seed)
    while True:
        # Sampled in blocks: one call of the generator per window would cost as much as the look-up.
        drawn = rng.integers(ends[-1], size=1024)
        for at, start in zip(*_places(drawn, ends), strict=True):
            yield refs[at], start * stride


def grouped_starts(
    refs: Sequence[EpisodeRef],
    length: int,
    stride: int,
    seed: int,
    *,
    bounds: Bounds,
    rows: int,
) -> Iterator[tuple[EpisodeRef, int]]:
    """Yields random windows endlessly, of a part of the row groups at a time.

    In each pass over the dataset the groups are put in random order and cut into parts. Of the
    windows that start in a part, a random share is yielded in random order, without repetition:
    as many that a step is used about eight times, or once if the windows do not overlap. Every
    start on the stride is equally likely.

    Args:
        refs: the episodes.
        length: steps of a window.
        stride: steps between possible starts of an episode.
        seed: decides the order.
        bounds: returns the row groups of a shard.
        rows: rows that fit in memory; a part has at least one group.

    Raises:
        DatasetError: no episode is long enough.
    """
    _counts(refs, length, stride)
    spans = _spans(refs, length, stride, bounds)
    first, count, shard, group, size = (spans[:, k] for k in (1, 2, 3, 4, 5))
    _, block = np.unique(np.stack([shard, group]), axis=1, return_inverse=True)
    order = np.argsort(block, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(block))])
    sizes = size[order][edges[:-1]]
    # A window that begins in a group needs the next ones, too.
    rows = int(rows / (1.0 + math.ceil((length - 1) / sizes.mean())))
    share = min(1.0, _REUSE * stride / length)
    rng = np.random.default_rng(seed)
    while True:
        shuffled = rng.permutation(len(sizes))
        part = np.cumsum(sizes[shuffled]) // max(rows, 1)
        for number in np.unique(part).tolist():
            own = shuffled[part == number]
            chosen = order[np.concatenate([np.arange(edges[b], edges[b + 1]) for b in own])]
            ends = np.cumsum(count[chosen])
            drawn = rng.permutation(ends[-1])[: max(1, round(share * float(ends[-1])))]
            for at, start in zip(*_places(drawn, ends), strict=True):
                span = chosen[at]
                yield refs[int(spans[span, 0])], int(first[span]) + start * stride


def _counts(refs: Sequence[EpisodeRef], length: int, stride: int) -> NDArray[np.int64]:
    """The number of windows of each episode, not all 0."""
    lengths = np.array([ref.length for ref in refs], np.int64)
    counts = np.maximum(0, (lengths - length) // stride + 1)
    if not counts.any():
        raise DatasetError(
            f"none of the {len(refs)} episodes has {length} steps (the longest has "
            f"{max(lengths.tolist(), default=0)}); ask for shorter windows"
        )
    return counts


def _places(drawn: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """The entry of each number in cumulative counts, and its place in the entry."""
    at = np.searchsorted(ends, drawn, side="right")
    before = np.where(at > 0, ends[at - 1], 0)
    return at.tolist(), (drawn - before).tolist()


def _spans(
    refs: Sequence[EpisodeRef],
    length: int,
    stride: int,
    bounds: Bounds,
) -> NDArray[np.int64]:
    """The starts of windows by episode and row group.

    Returns:
        ``(K, 6)``: episode, first start, number of starts on the stride, shard, first row of the
        group, rows of the group.
    """
    found = []
    for number, ref in enumerate(refs):
        past = ref.length - length + 1
        for offset, piece in zip(ref.offsets.tolist(), ref.pieces, strict=False):
            if offset >= past:
                break
            edges = bounds(piece.shard)
            begin, end = piece.row_start, piece.row_start + min(piece.rows, past - offset)
            low = int(np.searchsorted(edges, begin, side="right")) - 1
            while begin < end:
                stop = min(end, int(edges[low + 1]))
                # Steps ``offset + row - row_start`` on the stride, of the rows of this group.
                start = -(-(offset + begin - piece.row_start) // stride) * stride
                count = -(-(offset + stop - piece.row_start - start) // stride)
                if count > 0:
                    group = int(edges[low])
                    found.append(
                        (number, start, count, piece.shard, group, int(edges[low + 1]) - group)
                    )
                begin, low = stop, low + 1
    return np.array(found, np.int64).reshape(-1, 6)
