"""Data shards: Parquet files of steps, with row groups small enough for reading windows.

A row group ends where a chunk of an episode ends, unless the chunk alone is longer than a group
should be. Pages have checksums. The seal of a shard contains its digest and a copy of its footer,
without which a truncated Parquet file would be lost completely.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rollout.data.h264 import KEY_EVERY
from rollout.data.journal import parse_losses
from rollout.data.manifest import Manifest
from rollout.data.rows import LossRecord
from rollout.data.schema import Column
from rollout.errors import DatasetError
from rollout.files import (
    MOST_BYTES,
    open_file,
    parse_json,
    read_document,
    require_file,
    temporary,
    write_atomically,
)

LOSSES_KEY = "gamut.losses"
UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError)
"""Errors raised by reading a damaged file."""

# A window should decompress little; a group costs about 20 us and 130 bytes of footer per column.
# 2 MiB is 170 steps of 64x64x3 frames and 10,000 steps of 200 bytes; groups of 64 such frames take
# 7 % more bytes and are read no faster, since readers keep decoded groups (see ``windows``).
_GROUP_BYTES = 2 << 20
_GROUP_ROWS = (16, 16_384)
_ZSTD_ROWS = 2048
_DICTIONARY_STEP_COLUMNS = ("state", "state_set", "task", "policy")


class ShardWriter:
    """Writes the data shard ``path`` under its temporary name."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.rows = 0
        columns = manifest.stored
        fits = _GROUP_BYTES // max(sum(c.row_bytes for c in columns if not c.nullable), 1)
        # A video is decoded from a key frame on, so groups begin with one where they can.
        least = KEY_EVERY if any(c.codec.is_video for c in columns) else _GROUP_ROWS[0]
        self._target = max(least, min(_GROUP_ROWS[1], fits))
        self._schema = manifest.schema
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._writer = pq.ParquetWriter(
            temporary(path),
            manifest.schema,
            compression={_leaf(c): self._compression(c, manifest.compression) for c in columns},
            use_dictionary=list(_DICTIONARY_STEP_COLUMNS),
            write_statistics=[_leaf(c) for c in columns if c.is_narrow],
            write_page_checksum=True,
        )

    def _compression(self, column: Column, asked: str) -> str:
        """The compression of a column. Images too: their headers repeat from frame to frame."""
        # Setting up zstd costs more than it saves on a page with few numbers.
        tiny = column.codec.name == "plain" and self._target < _ZSTD_ROWS
        return "lz4" if tiny and asked == "zstd" else asked

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows. A row group is written whenever enough have come."""
        ends = chunk_ends(batch)
        start = 0
        while start < batch.num_rows:
            need = self._target - self._waiting_rows
            stop = _cut(ends, start, need, self._target)
            self._waiting.append(batch.slice(start, stop - start))
            self._waiting_rows += stop - start
            start = stop
            if self._waiting_rows >= self._target:
                self._write_group()

    def finish(self, losses: Sequence[LossRecord]) -> None:
        """Writes the footer."""
        if self._waiting_rows:
            self._write_group()
        self._writer.add_key_value_metadata({LOSSES_KEY: json.dumps(list(losses))})
        self._writer.close()

    def abandon(self) -> None:
        """Removes the temporary file. Idempotent; does nothing after a publish."""
        # Closing writes a footer, which fails again if the disk is full.
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._writer.is_open = False
        temporary(self.path).unlink(missing_ok=True)

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        self._writer.write_table(table, row_group_size=self._waiting_rows)
        self.rows += self._waiting_rows
        self._waiting, self._waiting_rows = [], 0


def _leaf(column: Column) -> str:
    """Path of the column's values in Parquet."""
    return f"{column.name}.list.element" if column.codec.name == "list" else column.name


def chunk_ends(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Returns one past the last row of every stretch of rows of one episode, in a batch of rows."""
    episode, attempt = (batch.column(name).to_numpy() for name in ("episode", "attempt"))
    changes = (episode[1:] != episode[:-1]) | (attempt[1:] != attempt[:-1])
    return np.concatenate([np.flatnonzero(changes) + 1, [batch.num_rows]])


def _cut(ends: NDArray[np.int64], start: int, need: int, target: int) -> int:
    """The end of a row group with at least ``need`` rows from ``start`` on."""
    at = int(np.searchsorted(ends, start + need))
    if at == len(ends):
        return int(ends[-1])
    end = int(ends[at])
    return end if end - start <= need + target else start + need


@dataclass(frozen=True)
class Seal:
    """The digest of a data shard, and a copy of its footer.

    Attributes:
        nbytes: size of the file.
        sha256: its digest.
        footer: its last bytes: footer, footer length and magic number.
    """

    nbytes: int
    sha256: str
    footer: bytes

    @classmethod
    def of(cls, path: Path) -> Seal:
        """Returns the seal of an intact Parquet file."""
        with open_file(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            nbytes = file.seek(0, 2)
            file.seek(-8, 2)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-8 - length, 2)
            return cls(nbytes, digest, file.read())

    def write(self, path: Path, *, fsync: bool) -> None:
        """Writes the seal to its own file, with a checksum."""
        packed = pa.Codec("zstd", 1).compress(self.footer, asbytes=True)
        body = {
            "bytes": self.nbytes,
            "sha256": self.sha256,
            "footer_bytes": len(self.footer),
            "footer_zstd_base64": base64.b64encode(packed).decode(),
        }
        text = json.dumps(body)
        own = hashlib.sha256(text.encode()).hexdigest()
        write_atomically(path, json.dumps({"seal": text, "seal_sha256": own}), fsync=fsync)

    @classmethod
    def read(cls, path: Path) -> Seal:
        """Returns the seal in a file; a DatasetError if it is missing or damaged."""
        try:
            data = parse_json(read_document(path))
            if hashlib.sha256(data["seal"].encode()).hexdigest() != data["seal_sha256"]:
                raise ValueError("its checksum differs")
            body = parse_json(data["seal"])
            packed = base64.b64decode(body["footer_zstd_base64"])
            nbytes, sha256, size = body["bytes"], str(body["sha256"]), body["footer_bytes"]
            if type(nbytes) is not int or not 0 <= size <= min(nbytes, MOST_BYTES):
                raise ValueError(f"a footer of {size} bytes of {nbytes}")
            return cls(nbytes, sha256, pa.Codec("zstd").decompress(packed, size, asbytes=True))
        except (*UNREADABLE, AttributeError) as error:
            raise DatasetError(f"cannot read the seal {path}: {error!r}") from error

    def fits(self, path: Path) -> bool:
        """Returns True if the file is exactly the one that was sealed."""
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size != self.nbytes:
                return False
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


class ShardReader:
    """Reads rows of a data shard, or of ``source`` in its place, as when a footer was put back.

    Args:
        path: the file.
        source: its bytes; None to read the file.
        expected: columns that it must have; None for any.

    Raises:
        FileNotFoundError: there is no such file.
        DatasetError: it cannot be read as Parquet, or has other columns.
    """

    def __init__(
        self, path: Path, source: pa.Buffer | None = None, *, expected: pa.Schema | None = None
    ) -> None:
        self.path = path
        try:
            if source is None:
                require_file(path)
            self._file = pq.ParquetFile(
                str(path) if source is None else pa.BufferReader(source),
                pre_buffer=False,
                page_checksum_verification=True,
            )
        except FileNotFoundError:
            raise
        except UNREADABLE as error:
            raise DatasetError(f"cannot read shard {path}: {error}") from error
        about = self._file.metadata
        sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        self.starts: list[int] = [0, *accumulate(sizes)]
        self.schema = self._file.schema_arrow
        if expected is not None and not self.schema.equals(expected):
            raise DatasetError(f"the columns of {path} are not those of dataset.json")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.starts[-1]

    @property
    def losses(self) -> list[LossRecord]:
        """Lost episodes; a DatasetError if the footer is damaged."""
        text = (self._file.metadata.metadata or {}).get(LOSSES_KEY.encode(), b"[]")
        try:
            return parse_losses(text)
        except (ValueError, TypeError, AttributeError) as error:
            raise DatasetError(f"cannot read the losses of {self.path}: {error}") from error

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Returns rows ``start`` to ``stop`` (exclusive), decompressing only their row groups.

        Raises:
            DatasetError: the rows are damaged.
        """
        if not 0 <= start <= stop <= self.rows:
            raise DatasetError(
                f"{self.path} has {self.rows} rows, and {start} to {stop} are asked for; run: "
                f"gamut dataset doctor {self.path.parent.parent}"
            )
        first = bisect_right(self.starts, start) - 1
        last = max(bisect_left(self.starts, stop), first + 1)
        try:
            table = self._file.read_row_groups(
                list(range(first, last)), columns=list(columns), use_threads=False
            )
        except UNREADABLE as error:
            raise DatasetError(
                f"cannot read rows {start} to {stop} of {self.path}: {error}; run: "
                f"gamut dataset doctor {self.path.parent.parent}"
            ) from error
        return table.slice(start - self.starts[first], stop - start).select(list(columns))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        *,
        bad_groups: Sequence[int] = (),
        bad_rows: Sequence[int] | NDArray[np.int64] = (),
    ) -> Iterator[pa.Table]:
        """Yields every row group as a table, without some groups and rows of the file.

        Raises:
            DatasetError: a row group is damaged.
        """
        names, bad = self.schema.names if columns is None else columns, np.asarray(bad_rows)
        for group, (start, stop) in enumerate(pairwise(self.starts)):
            if group not in bad_groups:
                rows = self.read(names, start, stop)
                inside = bad[(bad >= start) & (bad < stop)] - start
                yield rows.take(np.delete(np.arange(len(rows)), inside)) if len(inside) else rows

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def fixed_bytes(path: Path, seal: Seal) -> pa.Buffer:
    """Returns the bytes of a damaged shard with its footer restored.

    Row groups before the damage can be read from them: their places count from the beginning.
    """
    with open_file(path) as file:
        body = min(os.fstat(file.fileno()).st_size, seal.nbytes - len(seal.footer))
        return pa.py_buffer(file.read(max(0, body)) + seal.footer)
