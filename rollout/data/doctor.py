"""``doctor``: reads a whole dataset and reports everything that is wrong. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.codec import decode
from rollout.data.episodes import Problem, Runs, same_index
from rollout.data.h264 import buffers, from_key, undecodable
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, writer_of
from rollout.data.manifest import METADATA_KEY, Manifest, read_manifest
from rollout.data.roll import RunCollector, derive_index, read_index
from rollout.data.rows import LossRecord
from rollout.data.schema import Column
from rollout.data.shard import UNREADABLE, Seal, ShardReader, fixed_bytes
from rollout.errors import DatasetError

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a dataset.

    Attributes:
        file: the file, relative to the dataset.
        severity: ``error`` when recorded data is affected, ``warning`` when it is not.
        what: what is wrong.
        do: what to do about it.
    """

    file: str
    severity: Severity
    what: str
    do: str = "run repair"

    def __str__(self) -> str:
        return f"{self.severity}: {self.file}: {self.what}; {self.do}"


@dataclass(frozen=True)
class DatasetReport:
    """The result of ``doctor``.

    Attributes:
        path: the dataset.
        findings: everything that is wrong.
        writer: the process that is writing it right now, or None.
        shards: data shards that were read.
        steps: steps that can be read, in shards.
        episodes: complete episodes that ended, lost ones included.
    """

    path: Path
    findings: tuple[Finding, ...]
    writer: str | None
    shards: int
    steps: int
    episodes: int

    @property
    def clean(self) -> bool:
        """True if nothing is wrong."""
        return not self.findings


def doctor(path: Path | str) -> DatasetReport:
    """Reads a whole dataset and returns everything that is wrong with it.

    A live writer is allowed; its journal is not a finding then.

    Args:
        path: its directory, or the run directory that contains it.

    Raises:
        DatasetError: there is no dataset.
    """
    layout = Layout.find(path)
    return _Doctor(layout).report()


def require_dataset(layout: Layout) -> None:
    """Raises a DatasetError unless a directory contains a dataset, or the remains of one."""
    if not layout.exists():
        raise DatasetError(f"{layout.root} holds no dataset (no dataset.json, no shards)")


class _Doctor:
    def __init__(self, layout: Layout) -> None:
        require_dataset(layout)
        self._layout = layout
        self._findings: list[Finding] = []
        self._writer = writer_of(layout)
        self._left = Runs()
        self._seen: set[tuple[int, int]] = set()
        self._damaged: set[tuple[int, int]] = set()
        self._shards = self._steps = self._episodes = 0
        # After a damaged shard an index may correctly name episodes that cannot be found.
        self._trusted = True

    def report(self) -> DatasetReport:
        # Journals first: one that has disappeared in the meantime has become a shard.
        waiting, data = (self._layout.numbers(folder) for folder in ("journal", "data"))
        manifest = self._manifest()
        if manifest is not None:
            self._damaged = set(manifest.damaged)
            for number in sorted({*waiting, *data}):
                if number in data or not self._journal(manifest, number):
                    self._shard(manifest, number)
                    self._shards += 1
        if self._writer is None:
            for number in sorted({*waiting} & {*data}):
                what = "is left over: it has become a shard"
                self._add(self._layout.journal(number), "warning", what)
            for stray in self._layout.strays():
                self._add(stray, "warning", "is a half-written file of an interrupted write")
            for orphan in self._layout.orphans():
                self._add(orphan, "error", f"its data shard is missing{self._listed(orphan)}")
        counts = (self._shards, self._steps, self._episodes)
        return DatasetReport(self._layout.root, tuple(self._findings), self._writer, *counts)

    def _listed(self, orphan: Path) -> str:
        """The contents of a missing shard, from its index."""
        if orphan.parent != self._layout.folders["episodes"]:
            return ""
        try:
            table = read_index(self._layout, int(orphan.stem.rpartition("-")[2]))[0]
        except DatasetError:
            return ""
        steps = sum(table.column("length").to_pylist())
        return f", with {table.num_rows} episodes of {steps} steps"

    def _add(self, path: Path, severity: Severity, what: str, do: str = "run repair") -> None:
        self._findings.append(Finding(self._layout.name(path), severity, what, do))

    def _manifest(self) -> Manifest | None:
        try:
            return read_manifest(self._layout)
        except DatasetError as error:
            self._add(self._layout.manifest, "error", str(error))
        try:
            return manifest_of_shards(self._layout)
        except DatasetError as error:
            self._add(self._layout.manifest, "error", str(error), "restore it from a copy")
            return None

    def _shard(self, manifest: Manifest, number: int) -> None:
        health = examine(self._layout, manifest, number)
        self._findings += health.findings
        if not health.whole:
            self._trusted = False
        if health.reader is not None:
            self._steps += health.collector.rows
            table = self._note(health.collector.put_together(self._left, health.losses))
            path = self._layout.episodes(number)
            try:
                index, _ = read_index(self._layout, number)
            except DatasetError as error:
                self._add(path, "warning", str(error))
            else:
                if self._trusted and not same_index(index, table):
                    counts = f"{index.num_rows} episodes, {table.num_rows} there"
                    self._add(path, "warning", f"does not agree with its steps ({counts})")

    def _note(self, found: tuple[pa.Table, Runs, list[Problem]]) -> pa.Table:
        """Adds the episodes of a shard or journal to the report, and their problems."""
        table, self._left, problems = found
        for each in problems:
            if (each.episode, each.attempt) not in self._damaged:
                what = f"row {each.row}: episode {each.episode}, attempt {each.attempt}"
                self._add(self._layout.data(each.shard), "error", f"{what}: {each.what}")
        held = table.filter(pc.greater(table.column("length"), 0))
        keys = list(zip(*(held.column(n).to_pylist() for n in ("episode", "attempt")), strict=True))
        for key in keys:
            if key in self._seen and key not in self._damaged:
                what = f"episode {key[0]}, attempt {key[1]} exists twice"
                self._add(self._layout.folders["data"], "error", what)
        self._seen.update(keys)
        self._episodes += table.num_rows
        return table

    def _journal(self, manifest: Manifest, number: int) -> bool:
        """Checks a journal; returns False if its writer has rolled it in the meantime."""
        journal = JournalReader(self._layout.journal(number), manifest.schema)
        try:
            self._note(derive_index(journal, number, self._left))
        except FileNotFoundError:
            return False
        for gap in journal.gaps:
            # A batch that a live writer has not finished is not damaged.
            if self._writer is None or gap.offset + gap.nbytes < journal.nbytes:
                self._add(journal.path, "error", str(gap))
        if self._writer is None:
            tail = journal.nbytes - journal.whole
            torn = f", and {tail} bytes of an unfinished write" if journal.torn else ""
            what = f"was left by a writer that was killed: {journal.rows} rows{torn}"
            self._add(journal.path, "warning", what, "run repair, or open it with a writer")
        return True


@dataclass
class Health:
    """The condition of a data shard.

    Attributes:
        collector: runs of the rows that can be read.
        reader: reads it; None when nothing of it can be read.
        sealed: the file is exactly the one that was written.
        findings: what is wrong.
        bad_groups: row groups that cannot be read.
        bad_rows: rows, as they are numbered in the file, whose values do not decode.
        losses: its lost episodes.
    """

    collector: RunCollector
    reader: ShardReader | None = None
    sealed: bool = False
    findings: list[Finding] = field(default_factory=list)
    bad_groups: list[int] = field(default_factory=list)
    bad_rows: list[int] = field(default_factory=list)
    losses: list[LossRecord] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """True if every row can be read from the file."""
        return self.reader is not None and all(f.severity != "error" for f in self.findings)


def examine(layout: Layout, manifest: Manifest, number: int) -> Health:
    """Reads a whole data shard and returns its health; a FileNotFoundError if there is none."""
    path = layout.data(number)
    name = layout.name(path)
    seal, findings = None, []
    try:
        seal = Seal.read(layout.seal(number))
    except DatasetError as error:
        findings.append(Finding(name, "warning", f"is not sealed: {error}"))
    sealed = seal is not None and seal.fits(path)
    if seal is not None and not sealed:
        what = f"differs from its seal ({path.stat().st_size} bytes, {seal.nbytes} when written)"
        findings.append(Finding(name, "error", what))
    sources = [None] if sealed or seal is None else [None, seal]
    tried = [_try(source, layout, manifest, number) for source in sources]
    health = max(tried, key=_readable_rows)
    health.sealed, health.findings = sealed, findings + health.findings
    return health


def _readable_rows(health: Health) -> int:
    return -1 if health.reader is None else health.collector.rows - len(health.bad_rows)


def _try(seal: Seal | None, layout: Layout, manifest: Manifest, number: int) -> Health:
    """The health of the file as it is, or with the footer of its seal."""
    path, health = layout.data(number), Health(RunCollector(number))
    name = layout.name(path)
    try:
        reader = ShardReader(path, None if seal is None else fixed_bytes(path, seal))
    except DatasetError as error:
        health.findings.append(Finding(name, "error", str(error)))
        return health
    if not reader.schema.equals(manifest.schema):
        other = [f.name for f in reader.schema if f not in list(manifest.schema)]
        what = f"has other columns than dataset.json: {other or reader.schema.names}"
        health.findings.append(Finding(name, "error", what))
        return health
    health.reader, health.losses = reader, reader.losses
    for group, (start, stop) in enumerate(pairwise(reader.starts)):
        try:
            rows = reader.read(reader.schema.names, start, stop)
        except DatasetError:
            health.bad_groups.append(group)
            what = f"rows {start} to {stop - 1} cannot be read"
            health.findings.append(Finding(name, "error", what))
            continue
        health.collector.add(rows)
        found = {**_damaged_frames(manifest.stored, rows, reader, start)}
        found |= _undecodable(manifest.stored, rows)
        for row, what in sorted(found.items()):
            health.bad_rows.append(start + row)
            health.findings.append(Finding(name, "error", f"row {start + row}: {what}"))
    return health


def _damaged_frames(
    columns: tuple[Column, ...], rows: pa.Table, reader: ShardReader, start: int
) -> dict[int, str]:
    """Rows from ``start`` on with a frame of a video that does not decode."""
    found: dict[int, str] = {}
    for column in (c for c in columns if c.codec.is_video):
        try:
            data, ahead = from_key(
                rows.column(column.name),
                start,
                lambda *low_high, name=column.name: reader.read([name], *low_high).column(0),
            )
        except DatasetError:  # of the rows before, which are reported on their own
            data, ahead = buffers(rows.column(column.name)), 0
        for row, what in undecodable(column.shape, data).items():
            if row >= ahead:
                found[row - ahead] = f"{column.name}: {what}"
    return found


def _undecodable(columns: tuple[Column, ...], rows: pa.Table) -> dict[int, str]:
    """Rows with a value that is not an image, not JSON, or of another shape."""
    seen: dict[int, str] = {}
    for column in columns:
        plain = column.codec.name in ("plain", "list") and not column.nullable
        if plain or column.codec.is_video:
            continue
        values = rows.column(column.name).combine_chunks()
        present: NDArray[np.int64] = np.flatnonzero(values.is_valid().to_numpy(False))
        array = values.drop_null()
        if _decodes(column, array) is None:
            continue
        for k, row in enumerate(present.tolist()):
            problem = _decodes(column, array.slice(k, 1))
            if problem is not None:
                seen.setdefault(row, f"{column.name}: {problem}")
    return seen


def _decodes(column: Column, array: pa.Array) -> str | None:
    try:
        values: Array = decode(column.codec, column.dtype, column.shape, array)
    except (DatasetError, ValueError) as error:
        return str(error)
    return None if len(values) == len(array) else "has another shape"


def manifest_of_shards(layout: Layout) -> Manifest:
    """Returns the manifest stored in the shards and journals; a DatasetError if in none."""
    shards, journals = (reversed(layout.numbers(folder)) for folder in ("data", "journal"))
    for path in (*map(layout.data, shards), *map(layout.journal, journals)):
        try:
            if path.suffix == ".parquet":
                schema = ShardReader(path).schema
            else:
                schema = JournalReader(path).read_schema()
            return Manifest.from_json((schema.metadata or {})[METADATA_KEY.encode()].decode())
        except (*UNREADABLE, AttributeError, DatasetError):  # or there is no schema
            continue
    raise DatasetError(
        f"{layout.root} has no dataset.json that can be read, and no shard to make it from again"
    )
