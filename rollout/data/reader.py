"""The reader of a dataset: episodes, windows and tables, also while it is being written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cached_property, lru_cache, partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollout.api import Array, Outcome
from rollout.api.fragment import End
from rollout.data.episodes import INDEX_SCHEMA, Runs, open_table
from rollout.data.filters import EpisodeFilter
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, read_manifest
from rollout.data.refs import (
    Counts,
    Episode,
    EpisodeRef,
    FinishedEpisodes,
    Window,
    part_of_set,
    ref_of,
)
from rollout.data.remote import RemoteLayout, is_address
from rollout.data.roll import derive_index, read_index
from rollout.data.schema import FINAL, Column
from rollout.data.shard import UNREADABLE, Seal, ShardReader
from rollout.data.windows import (
    GroupCache,
    decode_column,
    grouped_starts,
    random_starts,
    read_stack,
)
from rollout.errors import DatasetError, UnknownNameError

CACHE_BYTES = 256 << 20  # 20,000 steps of 64x64 rgb
_OPEN_SHARDS = 32  # a footer takes about a megabyte
_log = logging.getLogger(__name__)
_TRIES = 10  # retries if a journal becomes a shard during the scan


class Dataset(AbstractContextManager["Dataset"]):
    """A dataset directory at the time when it was opened. Read-only.

    A live writer is allowed: a row has the same number in a journal and in the shard it becomes,
    so a journal that is rolled in the meantime is read from its shard.

    Args:
        path: the directory, or the run directory that contains it; or an address of fsspec, e.g.
            ``s3://bucket/name``, whose shards are fetched into a temporary folder when they are
            read, the last 32 of them.
        cache_bytes: most bytes of decoded rows that are kept in memory for the next reads.

    Raises:
        DatasetError: there is no dataset, it is damaged, or a shard is missing.
    """

    def __init__(self, path: Path | str, *, cache_bytes: int = CACHE_BYTES) -> None:
        if cache_bytes < 1:
            raise DatasetError(f"expected cache_bytes of at least 1, got {cache_bytes}")
        self.layout = RemoteLayout(str(path)) if is_address(path) else Layout.find(path)
        self.manifest: Manifest = read_manifest(self.layout)
        self._columns = {c.name: c for c in self.manifest.columns}
        # Episodes that ended (``INDEX_SCHEMA``), each attempt once; those that have not; and the
        # numbers of the shards and journals.
        self._index, self._open, self._numbers = INDEX_SCHEMA.empty_table(), Runs(), list[int]()
        self._journals: dict[int, JournalReader] = {}
        self._shard = lru_cache(_OPEN_SHARDS)(
            partial(_open_shard, self.layout, self.manifest.schema)
        )
        self._cache = GroupCache(cache_bytes, self._rows, self._bounds)
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                self._take()
                return
        raise DatasetError(f"the files of {self.layout.root} disappear while they are being read")

    def _take(self) -> None:
        self._require_shards()
        # Journals first: one that has disappeared in the meantime has become a shard.
        waiting, data = self.layout.numbers("journal"), self.layout.numbers("data")
        tables, left = [INDEX_SCHEMA.empty_table()], Runs()
        self._journals, self._numbers = {}, sorted({*waiting, *data})
        for number in self._numbers:
            if number in data:
                try:
                    table, left = read_index(self.layout, number)
                except DatasetError:
                    self.layout.fetch(number)
                    path = self.layout.data(number)
                    shard = ShardReader(path, expected=self.manifest.schema)
                    table, left, _ = derive_index(shard, number, left)
            else:
                journal = JournalReader(self.layout.journal(number), self.manifest.schema)
                self._journals[number] = journal
                table, left, _ = derive_index(journal, number, left)
                for gap in journal.gaps:
                    _log.warning("%s: %s", journal.path, gap)
            tables.append(table)
        self._index, self._open = _first_of_each(pa.concat_tables(tables)), left

    def _require_shards(self) -> None:
        """Raises a DatasetError if an index or a seal has no shard."""
        layout = self.layout
        missing = sorted({layout.folders["data"] / f"{p.stem}.parquet" for p in layout.orphans()})
        if missing:
            raise DatasetError(
                f"{', '.join(map(str, missing[:5]))}: missing, {len(missing)} shards in all, "
                f"although their indexes or seals are there; restore them from a copy, or continue "
                f"without their episodes after: gamut dataset repair {layout.root}"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that can be read step by step."""
        return tuple(n for n, c in self._columns.items() if not _is_final(c))

    @property
    def index(self) -> pa.Table:
        """A row for every episode that ended, lost attempts included, as in ``episodes/``."""
        return self._index

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents, made from the digests of the shards; no row is read."""
        alone = replace(self.manifest, sessions=(), damaged=())
        digest = hashlib.sha256(alone.to_json(indent=None).encode())
        for number in self._numbers:
            digest.update(f"\n{number} {self._digest_of(number)}".encode())
        return digest.hexdigest()

    def _digest_of(self, number: int) -> str:
        journal = self._journals.get(number)
        if journal is not None:
            return f"{journal.rows} rows"
        try:
            return Seal.read(self.layout.seal(number)).sha256
        except DatasetError:  # doctor reports it
            return f"{self.layout.data(number).stat().st_size} bytes"

    @property
    def counts(self) -> Counts:
        """Number of episodes of each kind."""
        ends = self.index.column("end").to_pylist()
        whole = self._open.columns["whole"]
        steps = sum(self.index.column("length").to_pylist()) + int(
            self._open.columns["length"].sum()
        )
        kinds = {kind: ends.count(kind) for kind in ("terminated", "truncated", "lost")}
        return Counts(
            **kinds, unfinished=int(whole.sum()), damaged=int((~whole).sum()), steps=steps
        )

    def finished(self) -> FinishedEpisodes:
        """Returns the finished episodes and the highest attempt of every episode."""
        lost = np.array(self.index.column("end").to_pylist(), object) == "lost"
        episodes, attempts = (self.index.column(n).to_numpy() for n in ("episode", "attempt"))
        done = frozenset(episodes[~lost].tolist())
        highest: dict[int, int] = {}
        runs = self._open.columns
        for group in ((episodes, attempts), (runs["episode"], runs["attempt"])):
            for episode, attempt in zip(*(g.tolist() for g in group), strict=True):
                highest[episode] = max(highest.get(episode, 0), attempt)
        return FinishedEpisodes(done, highest)

    def episodes(
        self,
        *,
        episode: int | None = None,
        task: str | None = None,
        part: str | None = None,
        state_set: str | None = None,
        policy: str | None = None,
        outcome: Outcome | int | None = None,
        end: End | None = None,
        include_lost: bool = False,
        filter: str = "",  # noqa: A002
    ) -> list[EpisodeRef]:
        """Returns the episodes that ended, by shard, and by number within a shard.

        Args:
            episode: this number only.
            task: of this task only.
            part: whose state was drawn from this part: ``train``, ``validation``, ``test``, ...
            state_set: whose state was drawn from this set.
            policy: of this policy.
            outcome: with this outcome.
            end: with this end; ``"lost"`` implies ``include_lost``.
            include_lost: True to return lost attempts, too, which are not results.
            filter: condition such as ``success and return > 5``, see ``EpisodeFilter``.
        """
        condition = EpisodeFilter(filter)
        table = self.index
        equal = {"episode": episode, "task": task, "state_set": state_set, "policy": policy}
        equal |= {"outcome": None if outcome is None else int(outcome), "end": end}
        keep = [pc.equal(table[name], v) for name, v in equal.items() if v is not None]
        if not include_lost and end != "lost":
            keep.append(pc.not_equal(table["end"], "lost"))
        if part is not None:
            sets = pc.unique(table["state_set"]).to_pylist()
            wanted = pa.array([s for s in sets if part_of_set(s) == part], pa.string())
            keep.append(pc.is_in(table["state_set"], value_set=wanted))
        chosen = table.filter(reduce(pc.and_, keep)) if keep else table
        return condition.select([ref_of(row) for row in chosen.to_pylist()])

    def unfinished(self, filter: str = "") -> list[EpisodeRef]:  # noqa: A002
        """Returns the episodes that have steps and no end; they are no results.

        Args:
            filter: condition, as of ``episodes``.

        Returns:
            their ``end`` is ``unfinished``, or ``damaged`` if steps are missing.
        """
        refs = [ref_of(row) for row in open_table(self._open).to_pylist()]
        return EpisodeFilter(filter).select(refs)

    def read(self, ref: EpisodeRef, columns: Sequence[str] | None = None) -> Episode:
        """Returns the steps of an episode and its final observation.

        Args:
            ref: the episode.
            columns: names of the columns wanted; all when None.

        Raises:
            UnknownNameError: there is no such column.
            DatasetError: the steps are damaged.
        """
        wanted = self._wanted(columns)
        final, details = self._final(ref)
        return Episode(ref, self._steps(ref, 0, ref.length, wanted), final, details)

    def stream(
        self, ref: EpisodeRef, columns: Sequence[str] | None = None, *, length: int = 256
    ) -> Iterator[Window]:
        """Yields an episode in pieces, so that episodes of any length fit in memory.

        Args:
            ref: the episode.
            columns: names of the columns wanted; all when None.
            length: most steps in a piece; only the last has fewer.
        """
        wanted = self._wanted(columns)
        for start in range(0, ref.length, length):
            stop = min(start + length, ref.length)
            yield Window(ref, start, self._steps(ref, start, stop, wanted))

    def stored(self, ref: EpisodeRef, column: str, start: int, stop: int) -> pa.Array:
        """Returns values of a column as they are stored, e.g. PNG files, without decoding them.

        Args:
            ref: the episode.
            column: name of the column.
            start: number of the first step.
            stop: number after that of the last.

        Raises:
            UnknownNameError: there is no such column.
            DatasetError: the steps are damaged.
        """
        (wanted,) = self._wanted([column])
        tables = [self._rows(n, [column], low, high) for n, low, high in ref.rows(start, stop)]
        chunks = [chunk for table in tables for chunk in table.column(column).chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], wanted.arrow_type)

    def windows(
        self,
        length: int,
        *,
        columns: Sequence[str] | None = None,
        episodes: Sequence[EpisodeRef] | None = None,
        stride: int | None = None,
        seed: int | None = None,
    ) -> Iterator[Window]:
        """Yields windows of ``length`` steps, each within one episode.

        Args:
            length: steps of a window; shorter episodes have none.
            columns: names of the columns wanted; all when None.
            episodes: where to take them from, as ``episodes`` returns; all when None.
            stride: steps between possible starts; when None, ``length`` in order and 1 at random.
            seed: without it, every window in order, once; with it, an endless sample in which
                every start in every episode is equally likely: uniform if the decoded columns fit
                in ``cache_bytes``, otherwise from a random part of the dataset at a time, see
                ``rollout.data.windows.grouped_starts``.

        Raises:
            DatasetError: no episode is long enough to draw from, or the steps are damaged.
        """
        if length < 1 or (stride is not None and stride < 1):
            raise DatasetError(f"expected length and stride of at least 1, got {length}, {stride}")
        refs = self.episodes() if episodes is None else list(episodes)
        wanted = self._wanted(columns)
        step = stride or (length if seed is None else 1)
        if seed is None:
            starts = _starts_in_order(refs, length, step)
        else:
            starts = self._drawn(refs, length, step, seed, sum(map(self._row_bytes, wanted)))
        for ref, start in starts:
            yield Window(ref, start, self._held(ref, start, start + length, wanted))

    def _drawn(
        self, refs: Sequence[EpisodeRef], length: int, stride: int, seed: int, row_bytes: int
    ) -> Iterator[tuple[EpisodeRef, int]]:
        """Random windows of episodes, whose wanted columns have ``row_bytes`` a step."""
        room = self._cache.most_bytes // max(row_bytes, 1)  # in rows
        if sum(ref.length for ref in refs) <= room:
            bounds = [self._bounds(n) for n in {p.shard for ref in refs for p in ref.pieces}]
            # Row groups have steps of other episodes, too.
            if sum(int(edges[-1]) for edges in bounds) <= room:
                return random_starts(refs, length, stride, seed)
        return grouped_starts(refs, length, stride, seed, bounds=self._bounds, rows=room)

    def table(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.Table:
        """Returns steps as they are stored, including those of unfinished and lost episodes.

        Args:
            columns: names of the columns wanted; all when None.
            filter: rows wanted, an expression over columns that are not large values.
        """
        valid = self.manifest.schema.names
        names = valid if columns is None else list(columns)
        self._require(names, valid)
        schema = pa.schema([self.manifest.schema.field(n) for n in names])
        narrow = [c.name for c in self.manifest.columns if c.is_narrow and filter is not None]
        tables = [self._table(number, names, narrow, filter) for number in self._numbers]
        return pa.concat_tables([t.cast(schema) for t in (schema.empty_table(), *tables)])

    def close(self) -> None:
        """Closes the files. Idempotent."""
        self._shard.cache_clear()
        self._cache.clear()
        self.layout.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wanted(self, columns: Sequence[str] | None) -> list[Column]:
        if columns is None:
            columns = self.columns
        self._require(columns, self.columns)
        return [self._columns[name] for name in columns]

    def _require(self, names: Sequence[str], valid: Sequence[str]) -> None:
        for name in names:
            if name not in valid:
                raise UnknownNameError(f"column of {self.layout.root}", name, valid)

    def _table(
        self, number: int, columns: Sequence[str], narrow: Sequence[str], where: pc.Expression
    ) -> pa.Table:
        """Rows of a shard or journal; ``where``, None for all, may use the columns ``narrow``."""
        import pyarrow.dataset as pads  # noqa: PLC0415 - loads pandas, a third of a script's start

        journal = self._journals.get(number)
        if journal is not None:
            try:
                read = list(dict.fromkeys([*columns, *narrow]))
                rows = journal.read(read, 0, journal.rows)
                return pads.dataset(rows).to_table(columns=list(columns), filter=where)
            except FileNotFoundError:
                del self._journals[number]
        self._shard(number)  # has the columns of the dataset
        self.layout.fetch(number)
        try:
            source = pads.dataset(str(self.layout.data(number)), format="parquet")
            return source.to_table(columns=list(columns), filter=where)
        except UNREADABLE as error:
            raise DatasetError(f"cannot read {self.layout.data(number)}: {error}") from error

    def _rows(self, number: int, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Rows ``start`` to ``stop`` (exclusive) of a shard or journal."""
        journal = self._journals.get(number)
        if journal is not None:
            try:
                return journal.read(columns, start, stop)
            except FileNotFoundError:
                del self._journals[number]
        return self._shard(number).read(columns, start, stop)

    def _bounds(self, number: int) -> Sequence[int]:
        """The first row of each row group of a shard or batch of a journal, and its rows."""
        journal = self._journals.get(number)
        return self._shard(number).starts if journal is None else journal.starts

    def _steps(
        self, ref: EpisodeRef, start: int, stop: int, columns: Sequence[Column]
    ) -> dict[str, Array]:
        """Decoded columns of steps ``start`` to ``stop`` (exclusive)."""
        # Slots of a game alternate in a row group, so its next episode needs the group, too. But
        # images of that episode would be decoded for nothing if it is not read next.
        images = [c for c in columns if c.codec.is_image]
        found = {}
        for column in images:
            stack = self.manifest.frame_stacks.get(column.name)
            if stack is not None:
                found[column.name] = read_stack(
                    stack, ref, start, stop, parts=self._direct, bounds=self._bounds
                )
            else:
                stored = self._direct(ref, start, stop, [column])[0]
                found[column.name] = decode_column(column, stored)
        found |= self._held(ref, start, stop, [c for c in columns if not c.codec.is_image])
        return {c.name: found[c.name] for c in columns}

    def _held(
        self, ref: EpisodeRef, start: int, stop: int, columns: Sequence[Column]
    ) -> dict[str, Array]:
        """The same, of which the decoded row groups are held for the next reads."""
        stacks = self.manifest.frame_stacks
        alone = [c for c in columns if c.name not in stacks]
        found = self._cache.read(ref, start, stop, alone)
        for stack in (stacks[c.name] for c in columns if c.name in stacks):
            found[stack.whole.name] = read_stack(
                stack, ref, start, stop, parts=self._cache.parts, bounds=self._bounds
            )
        return {c.name: found[c.name] for c in columns}

    def _direct(
        self, ref: EpisodeRef, start: int, stop: int, columns: Sequence[Column]
    ) -> list[list[pa.ChunkedArray]]:
        """Each column of steps ``start`` to ``stop`` (exclusive) in parts, as stored."""
        names = [c.name for c in columns]
        tables = [self._rows(shard, names, low, high) for shard, low, high in ref.rows(start, stop)]
        return [[table.column(name) for table in tables] for name in names]

    def _row_bytes(self, column: Column) -> int:
        """Bytes of a value while it is held."""
        stack = self.manifest.frame_stacks.get(column.name)
        return column.row_bytes if stack is None else stack.newest.row_bytes

    def _final(self, ref: EpisodeRef) -> tuple[dict[str, Array], Any]:
        finals = [c for c in self.manifest.columns if _is_final(c)]
        if not ref.pieces or not finals:
            return {}, None
        piece = ref.pieces[-1]
        last = piece.row_start + piece.rows - 1
        row = self._rows(piece.shard, [c.name for c in finals], last, last + 1)
        found = [(c, decode_column(c, [row.column(c.name).drop_null()])) for c in finals]
        seen = {c.key: values[0] for c, values in found if len(values) and c.role == FINAL}
        details = [v[0] for c, v in found if len(v) and c.role != FINAL]
        return seen, details[0] if details else None


def _open_shard(layout: Layout, schema: pa.Schema, number: int) -> ShardReader:
    try:
        layout.fetch(number)
        return ShardReader(layout.data(number), expected=schema)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{layout.data(number)} is gone; if it was not removed on purpose, run: "
            f"gamut dataset doctor {layout.root}"
        ) from error


def _starts_in_order(
    refs: Sequence[EpisodeRef], length: int, stride: int
) -> Iterator[tuple[EpisodeRef, int]]:
    for ref in refs:
        for start in range(0, ref.length - length + 1, stride):
            yield ref, start


def _is_final(column: Column) -> bool:
    return column.role == FINAL or column.name == "final_details"


def _first_of_each(index: pa.Table) -> pa.Table:
    """The index without duplicates: a shard may have been copied by hand."""
    keys = [index.column(name).to_numpy().astype(np.int64) for name in ("episode", "attempt")]
    _, first = np.unique(np.stack(keys), axis=1, return_index=True)
    if len(first) == index.num_rows:
        return index.combine_chunks()
    return index.take(pa.array(np.sort(first))).combine_chunks()
