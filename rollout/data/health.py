"""The health of one data shard: its readable rows, and its damage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.codec import decode
from rollout.data.layout import Layout
from rollout.data.manifest import METADATA_KEY, Manifest
from rollout.data.roll import RunCollector
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


@dataclass
class Health:
    """What is known of a shard.

    Attributes:
        number: its number.
        reader: reads it; None when nothing of it can be read.
        sealed: the file is exactly the one that was written.
        findings: what is wrong.
        bad_groups: row groups that cannot be read.
        bad_rows: rows, as they are numbered in the file, whose values do not decode.
        collector: runs of the rows that can be read.
        losses: lost episodes it tells of.
    """

    number: int
    reader: ShardReader | None = None
    sealed: bool = False
    findings: list[Finding] = field(default_factory=list)
    bad_groups: list[int] = field(default_factory=list)
    bad_rows: list[int] = field(default_factory=list)
    collector: RunCollector | None = None
    losses: list[LossRecord] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether every row can be read from the file."""
        return self.reader is not None and not (
            self.bad_groups or self.bad_rows or any(f.severity == "error" for f in self.findings)
        )


def examine(layout: Layout, manifest: Manifest, number: int) -> Health:
    """Reads a whole data shard and returns its health.

    Raises:
        FileNotFoundError: there is no such shard.
    """
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
    rows = health.collector.rows if health.collector is not None else -1
    return rows - len(health.bad_rows)


def _try(seal: Seal | None, layout: Layout, manifest: Manifest, number: int) -> Health:
    """The health of the file as it is, or with the footer of its seal."""
    path, health = layout.data(number), Health(number)
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
    health.collector = RunCollector(number)
    starts = reader.starts.tolist()
    for group, (start, stop) in enumerate(pairwise(starts)):
        try:
            rows = reader.read(reader.schema.names, start, stop)
        except DatasetError:
            health.bad_groups.append(group)
            what = f"rows {start} to {stop - 1} cannot be read"
            health.findings.append(Finding(name, "error", what))
            continue
        health.collector.add(rows)
        for row, what in _undecodable(manifest.columns, rows):
            health.bad_rows.append(start + row)
            health.findings.append(Finding(name, "error", f"row {start + row}: {what}"))
    return health


def _undecodable(columns: tuple[Column, ...], rows: pa.Table) -> Iterator[tuple[int, str]]:
    """Rows with a value that is not an image, not JSON, or of another shape."""
    seen: set[int] = set()
    for column in columns:
        if column.codec.name in ("plain", "list") and not column.nullable:
            continue
        values = rows.column(column.name).combine_chunks()
        present: NDArray[np.int64] = np.flatnonzero(values.is_valid().to_numpy(False))
        array = values.drop_null()
        if _decodes(column, array) is None:
            continue
        for k, row in enumerate(present.tolist()):
            problem = _decodes(column, array.slice(k, 1))
            if problem is not None and row not in seen:
                seen.add(row)
                yield row, f"{column.name}: {problem}"


def _decodes(column: Column, array: pa.Array) -> str | None:
    try:
        values: Array = decode(column.codec, column.dtype, column.shape, array)
    except (DatasetError, ValueError) as error:
        return str(error)
    return None if len(values) == len(array) else "has another shape"


def manifest_of_shards(layout: Layout) -> Manifest:
    """Returns the manifest stored in the shards and journals.

    Raises:
        DatasetError: none of them can be read.
    """
    shards, journals = (reversed(layout.numbers(folder)) for folder in ("data", "journal"))
    for path in (*map(layout.data, shards), *map(layout.journal, journals)):
        try:
            if path.suffix == ".parquet":
                schema = ShardReader(path).schema
            else:
                with pa.OSFile(str(path), "rb") as source:
                    schema = pa.ipc.open_stream(source).schema
            return Manifest.from_json((schema.metadata or {})[METADATA_KEY.encode()].decode())
        except (*UNREADABLE, DatasetError):
            continue
    raise DatasetError(
        f"{layout.root} has no dataset.json that can be read, and no shard to make it from again"
    )
