"""The open shard: an Arrow IPC stream, one record batch per fragment, lost episodes beside it.

A stream needs no footer: whatever was handed to the operating system before a crash is read
back, and a batch that was being written is a torn tail that ends the reading.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollout.data.rows import LossRecord
from rollout.errors import DatasetError

LOSSES_KEY = "losses"
JournalCompression = Literal["lz4", "none"]
_MESSAGE_MARK = b"\xff\xff\xff\xff"  # every message of a stream begins with it
_TORN_SLACK = 1 << 20  # bytes; a tail much longer than any batch is damage, not a torn write


class JournalWriter:
    """Appends record batches to a new journal.

    Args:
        path: the file; must not exist.
        schema: schema of the batches.
        compression: ``lz4`` writes some six times fewer bytes of game frames, ``none`` takes
            about half the time of the collecting thread.

    Raises:
        OSError: the disk refused; whatever was appended before is still whole.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, compression: JournalCompression = "lz4"
    ) -> None:
        self.path = path
        self.rows = 0
        self.batches = 0
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._whole = 0
        self._sink = pa.OSFile(str(path), "wb")
        try:
            squeeze = None if compression == "none" else compression
            options = pa.ipc.IpcWriteOptions(compression=squeeze, use_threads=False)
            self._stream = pa.ipc.new_stream(self._sink, schema, options=options)
        except OSError:
            self.abandon()
            raise
        self._whole = int(self._sink.tell())

    @property
    def nbytes(self) -> int:
        """Bytes of the whole batches."""
        return self._whole

    def append(self, batch: pa.RecordBatch, losses: Sequence[LossRecord]) -> None:
        """Hands a batch to the operating system.

        Raises:
            OSError: the disk refused; call ``abandon``.
        """
        about = {LOSSES_KEY: json.dumps(list(losses))} if losses else None
        self._stream.write_batch(batch, custom_metadata=about)
        self._whole = int(self._sink.tell())
        self.rows += batch.num_rows
        self.batches += 1

    def sync(self) -> None:
        """Forces everything appended onto the disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Closes the file. No end mark is written: it could itself be torn. Idempotent."""
        if self._handle >= 0:
            self._sink.close()
            os.close(self._handle)
            self._handle = -1

    def abandon(self) -> None:
        """Cuts off a batch that was written in part, and closes the file. Idempotent."""
        if self._handle >= 0:
            self._sink.close()
            os.ftruncate(self._handle, self._whole)
            os.close(self._handle)
            self._handle = -1


@dataclass
class JournalReader:
    """The whole batches of a journal, which may be growing. Scanned once, when made.

    Attributes:
        path: the file.
        columns: columns that ``scan`` hands out.
        schema: schema of the batches.
        starts: first row of each batch, and the number of rows at the end.
        offsets: where each batch begins in the file.
        losses: lost episodes, in order.
        whole: bytes up to the end of the last whole batch.
        nbytes: bytes of the file.
        torn: the bytes after ``whole`` are a batch that was being written.
        damaged: the bytes after ``whole`` are something else.
    """

    path: Path
    schema: pa.Schema = None
    starts: list[int] = field(default_factory=lambda: [0])
    offsets: list[int] = field(default_factory=list)
    losses: list[LossRecord] = field(default_factory=list)
    whole: int = 0
    nbytes: int = 0
    torn: bool = False
    damaged: bool = False

    @property
    def rows(self) -> int:
        """Number of rows in whole batches."""
        return self.starts[-1]

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yields every whole batch, and fills the attributes on the way.

        Args:
            columns: names of the columns wanted; None for all.

        Raises:
            FileNotFoundError: the journal is gone: it has become a shard.
        """
        self.starts, self.offsets, self.losses = [0], [], []
        longest = 0
        with pa.OSFile(str(self.path), "rb") as source:
            self.nbytes, self.whole = source.size(), 0
            try:
                stream = self._open(source, columns)
                self.whole = source.tell()
                while True:
                    batch, about = stream.read_next_batch_with_custom_metadata()
                    end = source.tell()
                    self.offsets.append(self.whole)
                    self.starts.append(self.rows + batch.num_rows)
                    if about is not None and LOSSES_KEY.encode() in about:
                        self.losses += json.loads(about[LOSSES_KEY.encode()])
                    longest, self.whole = max(longest, end - self.whole), end
                    yield batch
            except StopIteration:
                pass
            except (pa.ArrowException, OSError):
                # A torn write ends with the file; anything else that cannot be read is damage.
                self.torn = source.tell() >= self.nbytes
                source.seek(self.whole)
                self.torn &= _MESSAGE_MARK.startswith(source.read(4))
        tail = self.nbytes - self.whole
        self.torn = self.torn and tail <= 2 * longest + _TORN_SLACK
        self.damaged = tail > 0 and not self.torn

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Returns rows ``start`` to ``stop`` (exclusive) of a scanned journal.

        Raises:
            DatasetError: the journal was cut since it was scanned.
            FileNotFoundError: the journal is gone: it has become a shard.
        """
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        batches = []
        with pa.OSFile(str(self.path), "rb") as source:
            stream = self._open(source, columns)
            for k in range(first, len(self.offsets)):
                if self.starts[k] >= stop:
                    break
                # The stream reads from where the file stands, so batches can be picked.
                source.seek(self.offsets[k])
                try:
                    batch = stream.read_next_batch()
                except (StopIteration, pa.ArrowException, OSError) as error:
                    raise DatasetError(f"cannot read batch {k} of {self.path}: {error}") from error
                low = max(start - self.starts[k], 0)
                batches.append(batch.slice(low, min(stop - self.starts[k], batch.num_rows) - low))
        wanted = pa.schema([self.schema.field(name) for name in columns])
        return (
            pa.Table.from_batches(batches).select(list(columns))
            if batches
            else wanted.empty_table()
        )

    def _open(self, source: Any, columns: Sequence[str] | None) -> Any:
        if self.schema is None:
            self.schema = pa.ipc.open_stream(source).schema
            source.seek(0)
        fields = None
        if columns is not None:
            fields = sorted(self.schema.get_field_index(name) for name in columns)
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return pa.ipc.open_stream(source, options=options)
