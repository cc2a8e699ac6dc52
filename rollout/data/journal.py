"""The open shard: an Arrow IPC stream with one record batch per fragment, and lost episodes.

A stream needs no footer: everything that was passed to the operating system before a crash can be
read, and a partially written batch at the end is ignored.
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
from rollout.files import parse_json

LOSSES_KEY = "losses"
_OF_A_LOSS = {
    *("episode", "attempt", "state", "state_set", "seed", "task", "policy", "instance", "slot"),
    *("phase", "reason", "steps", "time"),
}
JournalCompression = Literal["lz4", "none"]
_MESSAGE_MARK = b"\xff\xff\xff\xff"  # the beginning of every message of a stream
_TORN_SLACK = 1 << 20  # bytes; a tail much longer than any batch is damage, not a torn write


def parse_losses(text: bytes) -> list[LossRecord]:
    """Returns the lost episodes that a journal or a shard tells of.

    A ValueError, TypeError or AttributeError means that the text tells of something else.
    """
    losses: list[LossRecord] = parse_json(text)
    if not all(loss.keys() >= _OF_A_LOSS for loss in losses):
        raise ValueError("what a loss must tell is missing")
    return losses


class JournalWriter:
    """Appends record batches to a new journal.

    Compression ``lz4`` writes about six times fewer bytes of game frames, ``none`` takes about half
    the time of the collecting thread.

    Attributes:
        nbytes: bytes of the whole batches.

    Raises:
        OSError: writing failed; everything appended before is intact.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, compression: JournalCompression = "lz4"
    ) -> None:
        self.nbytes = 0
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        self._sink = pa.OSFile(str(path), "wb")
        try:
            squeeze = None if compression == "none" else compression
            options = pa.ipc.IpcWriteOptions(compression=squeeze, use_threads=False)
            self._stream = pa.ipc.new_stream(self._sink, schema, options=options)
        except OSError:
            self.close()
            raise
        self.nbytes = int(self._sink.tell())

    def append(self, batch: pa.RecordBatch, losses: Sequence[LossRecord]) -> None:
        """Passes a batch to the operating system; after an OSError, call ``close``."""
        about = {LOSSES_KEY: json.dumps(list(losses))} if losses else None
        self._stream.write_batch(batch, custom_metadata=about)
        self.nbytes = int(self._sink.tell())

    def sync(self) -> None:
        """Forces everything appended to disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Closes the file, without a partially written batch. Idempotent.

        No end mark is written: it could itself be torn.
        """
        if self._handle >= 0:
            self._sink.close()
            os.ftruncate(self._handle, self.nbytes)
            os.close(self._handle)
            self._handle = -1


@dataclass
class JournalReader:
    """The complete batches of a journal, which may be growing. ``scan`` fills the attributes.

    Attributes:
        path: the file.
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
        """Yields every whole batch, all columns if None.

        Raises:
            FileNotFoundError: the journal is gone: it has become a shard.
            DatasetError: it cannot be opened.
        """
        self.starts, self.offsets, self.losses = [0], [], []
        longest = 0
        if self.path.is_dir():
            self.damaged = True
            return
        with self._source() as source:
            self.nbytes, self.whole = source.size(), 0
            try:
                stream = self._open(source, columns)
                self.whole = source.tell()
                while True:
                    batch, about = stream.read_next_batch_with_custom_metadata()
                    batch.validate(full=True)  # offsets that point elsewhere end the process
                    end = source.tell()
                    self.offsets.append(self.whole)
                    self.starts.append(self.rows + batch.num_rows)
                    if about is not None and LOSSES_KEY.encode() in about:
                        self.losses += parse_losses(about[LOSSES_KEY.encode()])
                    longest, self.whole = max(longest, end - self.whole), end
                    yield batch
            except StopIteration:
                pass
            except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError):
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
        with self._source() as source:
            stream = self._open(source, columns)
            for k in range(first, len(self.offsets)):
                if self.starts[k] >= stop:
                    break
                # The stream reads from the position of the file, so batches can be selected.
                source.seek(self.offsets[k])
                try:
                    batch = stream.read_next_batch()
                    batch.validate(full=True)
                except (StopIteration, pa.ArrowException, OSError) as error:
                    raise DatasetError(f"cannot read batch {k} of {self.path}: {error}") from error
                low = max(start - self.starts[k], 0)
                batches.append(batch.slice(low, min(stop - self.starts[k], batch.num_rows) - low))
        return pa.Table.from_batches(batches, stream.schema).select(list(columns))

    def _source(self) -> Any:
        try:
            return pa.OSFile(str(self.path), "rb")
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not self.path.is_symlink():
                raise
            raise DatasetError(f"cannot read the journal {self.path}: {error}") from error

    def _open(self, source: Any, columns: Sequence[str] | None) -> Any:
        if self.schema is None:
            self.schema = pa.ipc.open_stream(source).schema
            source.seek(0)
        fields = None
        if columns is not None:
            fields = sorted(self.schema.get_field_index(name) for name in columns)
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        return pa.ipc.open_stream(source, options=options)
