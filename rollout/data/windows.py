"""Random windows: decoded row groups in bounded memory, and the order in which windows are drawn.

Reading one window from a shard decompresses its whole row groups. Groups therefore stay decoded
in a ``GroupCache``. Where a dataset does not fit into it, ``grouped_starts`` draws windows from
the groups of a random part that fits, then from those of the next part.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.codec import decode
from rollout.data.h264 import decode_frames, from_key
from rollout.data.refs import EpisodeRef
from rollout.data.schema import Column
from rollout.data.stacks import FrameStack
from rollout.errors import DatasetError

_REUSE = 8  # windows that use a step while its group is in memory
_LONGEST_RUN = 8  # groups

_Group = tuple[int, int, int]  # shard, first row, row after the last
_Key = tuple[int, int, int, str]  # shard, first row, row after the last, column
Rows = Callable[[int, Sequence[str], int, int], pa.Table]
"""Reads columns of a shard, by its number, from one row to another (exclusive)."""
Parts = Callable[[EpisodeRef, int, int, Sequence[Column]], list[list[Any]]]
"""Returns columns of some steps of an episode in parts, see ``GroupCache.parts``."""
Bounds = Callable[[int], Sequence[int]]
"""Returns the first row of each row group of a shard, and the number of its rows."""


class GroupCache:
    """Columns of row groups; the least recently used are dropped beyond a bound.

    Numbers and images are held decoded; texts and columns that may have no value are held as Arrow
    arrays, because objects in Python take many times their space.

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
        """Returns copies of decoded columns of steps ``start`` to ``stop`` (exclusive).

        Raises:
            DatasetError: the dataset does not have them all, or a value is damaged.
        """
        parts = self.parts(ref, start, stop, columns)
        return {
            column.name: np.concatenate(own) if own else decode_column(column, [])
            for column, own in zip(columns, parts, strict=True)
        }

    def parts(
        self, ref: EpisodeRef, start: int, stop: int, columns: Sequence[Column]
    ) -> list[list[Any]]:
        """Returns each column of steps ``start`` to ``stop`` (exclusive) in parts.

        They are arrays, which must not be changed, or as stored if a column may have no value.
        Raises like ``read``.
        """
        parts: list[list[Any]] = [[] for _ in columns]
        found = 0
        for shard, low, high in ref.rows(start, stop):
            for begin, end in _groups_of(self._bounds(shard), low, high):
                found += min(high, end) - max(low, begin)
                rows = slice(max(low - begin, 0), min(high, end) - begin)
                group = self._group(shard, begin, end, columns)
                for column, values, own in zip(columns, group, parts, strict=True):
                    part = values[rows]
                    if column.dtype == "string":
                        part = decode_column(column, [part])
                    own.append(part)
        if columns and found != stop - start:
            raise DatasetError(
                f"episode {ref.episode} has {ref.length} steps by its index, and of steps {start} "
                f"to {stop} the dataset has {found}; run: gamut dataset doctor"
            )
        return parts

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
                whole = column.dtype == "string" or column.nullable
                values = stored if whole else self._decoded(column, stored, shard, begin)
                held[shard, begin, end, column.name] = values
                self.nbytes += values.nbytes
        for key in keys:
            held.move_to_end(key)
        while missing and self.nbytes > self.most_bytes and len(held) > len(keys):
            self.nbytes -= held.popitem(last=False)[1].nbytes
        return [held[key] for key in keys]

    def _decoded(self, column: Column, stored: pa.ChunkedArray, shard: int, begin: int) -> Array:
        """The values of rows of a shard from ``begin`` on."""
        if not column.codec.is_video:
            return decode_column(column, [stored])
        data, ahead = from_key(
            stored, begin, lambda *rows: self._rows(shard, [column.name], *rows).column(0)
        )
        return decode_frames(column.shape, data)[ahead:]


def read_stack(
    stack: FrameStack, ref: EpisodeRef, start: int, stop: int, *, parts: Parts, bounds: Bounds
) -> Array:
    """Returns the stacks of frames of steps ``start`` to ``stop`` (exclusive), ``(n, ...)``.

    Raises:
        DatasetError: a value is damaged, or older frames are missing.
    """
    begin = _first_frame(stack, ref, start, parts, bounds)
    newest, older = parts(ref, begin, stop, [stack.newest, stack.older])
    frames = [
        part if isinstance(part, np.ndarray) else decode_column(stack.newest, [part])
        for part in newest
    ] or [decode_column(stack.newest, [])]
    return stack.join(
        frames[0] if len(frames) == 1 else np.concatenate(frames), older, start - begin
    )


def _first_frame(
    stack: FrameStack, ref: EpisodeRef, start: int, parts: Parts, bounds: Bounds
) -> int:
    """The first step to read for the stack of step ``start``."""
    begin = max(0, start - stack.count + 1)
    if start >= ref.length:
        return start
    at = int(np.searchsorted(ref.offsets, start, side="right")) - 1
    piece, offset = ref.pieces[at], int(ref.offsets[at])
    edges = bounds(piece.shard)
    edge = edges[bisect_right(edges, piece.row_start + start - offset) - 1]
    # Not in the row group before, which need not be decoded, if this one has older frames.
    edge = max(edge - piece.row_start + offset, offset)
    if begin < edge and parts(ref, edge, edge + 1, [stack.older])[0][0].null_count == 0:
        return edge
    return begin


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
    blocks = _blocks(_spans(refs, length, stride, bounds), rows)
    share = min(1.0, _REUSE * stride / length)
    rng = np.random.default_rng(seed)
    while True:
        for part in _parts([blocks[k] for k in rng.permutation(len(blocks))], rows):
            ends = np.cumsum([span.starts for span in part])
            drawn = rng.permutation(ends[-1])[: max(1, round(share * float(ends[-1])))]
            for at, start in zip(*_places(drawn, ends), strict=True):
                yield refs[part[at].episode], part[at].first + start * stride


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


class _Span(NamedTuple):
    """Starts of windows in one episode and one row group.

    Attributes:
        episode: place of the episode.
        first: first start.
        starts: number of starts on the stride.
        group: the group: shard, first row, row after the last.
        needed: all groups that the windows need.
    """

    episode: int
    first: int
    starts: int
    group: _Group
    needed: frozenset[_Group]


def _spans(refs: Sequence[EpisodeRef], length: int, stride: int, bounds: Bounds) -> Iterator[_Span]:
    """Yields the starts of all windows."""
    for number, ref in enumerate(refs):
        step, past = 0, ref.length - length + 1
        for group, rows in _groups(ref, 0, max(past, 0), bounds):
            first = -(-step // stride) * stride
            step += rows
            count = -(-(step - first) // stride)
            if count > 0:
                last = first + (count - 1) * stride + length
                needed = frozenset(each for each, _ in _groups(ref, first, last, bounds))
                yield _Span(number, first, count, group, needed)


def _groups(ref: EpisodeRef, start: int, stop: int, bounds: Bounds) -> Iterator[tuple[_Group, int]]:
    """Yields the row groups of consecutive steps, and the number of these steps in each."""
    for shard, low, high in ref.rows(start, stop):
        for begin, end in _groups_of(bounds(shard), low, high):
            if end > begin:
                yield (shard, begin, end), min(high, end) - max(low, begin)


def _groups_of(edges: Sequence[int], low: int, high: int) -> Iterable[tuple[int, int]]:
    """First row and row after the last of the groups with rows ``low`` to ``high``."""
    return pairwise(edges[bisect_right(edges, low) - 1 : bisect_left(edges, high) + 1])


def _blocks(spans: Iterable[_Span], rows: int) -> list[list[_Span]]:
    """The spans of a few groups that follow each other: windows need the next groups, too."""
    by_group: dict[_Group, list[_Span]] = {}
    for span in spans:
        by_group.setdefault(span.group, []).append(span)
    size = sum(end - begin for _, begin, end in by_group) / len(by_group)
    run = max(1, min(_LONGEST_RUN, int(rows / size / 4)))
    ordered = [by_group[group] for group in sorted(by_group)]
    return [list(chain(*ordered[k : k + run])) for k in range(0, len(ordered), run)]


def _parts(blocks: Iterable[list[_Span]], rows: int) -> Iterator[list[_Span]]:
    """Yields the spans of as many blocks at a time as fit in memory."""
    part, held = list[_Span](), frozenset[_Group]()
    for block in blocks:
        more = held.union(*(span.needed for span in block))
        if part and sum(end - begin for _, begin, end in more) > rows:
            yield part
            part, more = [], frozenset().union(*(span.needed for span in block))
        part, held = part + block, more
    yield part
