"""The open shard: an Arrow IPC stream with one record batch per fragment, and lost episodes.

A stream needs no footer: everything that was passed to the operating system before a crash can be
read, and a partially written batch at the end is ignored. Every batch has a checksum (see
``message``); damaged batches are left out and listed as gaps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollout.data.message import (
    NOTE_KEY,
    Note,
    candidates,
    has_notes,
    is_torn,
    message_at,
    notes_in,
    seal,
)
from rollout.data.rows import LossRecord
from rollout.errors import DatasetError
from rollout.files import open_file, parse_json

LOSSES_KEY = "losses"
_LOSS_KEYS = {
    *("episode", "attempt", "state", "state_set", "seed", "task", "policy", "instance", "slot"),
    *("phase", "reason", "steps", "time"),
}
JournalCompression = Literal["lz4", "none"]
_BUFFER, _ROOM = 1 << 20, 1 << 16  # bytes of several messages, and of the metadata of one
_UNREADABLE = (
    *(pa.ArrowException, OSError, StopIteration),
    *(ValueError, TypeError, AttributeError, LookupError),
)


def parse_losses(text: bytes) -> list[LossRecord]:
    """Returns the lost episodes in the metadata of a journal or a shard.

    Raises:
        ValueError, TypeError, AttributeError: the text is no list of lost episodes.
    """
    losses: list[LossRecord] = parse_json(text)
    if not all(loss.keys() >= _LOSS_KEYS for loss in losses):
        raise ValueError(f"a lost episode needs {sorted(_LOSS_KEYS)}")
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
        self.nbytes = self._rows = self._ends = 0
        codec = None if compression == "none" else compression
        self._options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
        self._bare = _without_metadata(schema)
        self._buffer: pa.Buffer = None
        self._sink: pa.FixedSizeBufferWriter = None
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        note = Note(0, 0, 0, 0, 0)
        noted = schema.with_metadata({**(schema.metadata or {}), NOTE_KEY: note.text()})
        try:
            self._write(memoryview(bytearray(noted.serialize())), note)
        except OSError:
            self.close()
            raise

    def append(self, batch: pa.RecordBatch, losses: Sequence[LossRecord]) -> None:
        """Passes a batch to the operating system; after an OSError, call ``close``."""
        ends = self._ends + finished_in(batch)
        note = Note(0, self._rows, self._rows + batch.num_rows, self._ends, ends)
        about = {NOTE_KEY: note.text()}
        if losses:
            about[LOSSES_KEY] = json.dumps(list(losses)).encode()
        begin = self._reserve(batch, sum(map(len, about.values())))
        self._stream.write_batch(batch, custom_metadata=about)
        self._write(memoryview(self._buffer).cast("B")[begin : self._sink.tell()], note)
        self._rows, self._ends = note.next_row, note.next_end

    def _reserve(self, batch: pa.RecordBatch, extra: int) -> int:
        """Makes room for a batch in the buffer; returns the offset of its message."""
        need = pa.ipc.get_record_batch_size(batch) + extra
        need += need // 64 + _ROOM  # what cannot be compressed grows a little
        begin = self._sink.tell() if self._buffer is not None else 0
        if self._buffer is None or begin + need > self._buffer.size:
            self._buffer = pa.allocate_buffer(max(2 * need, _BUFFER))
            self._sink = pa.FixedSizeBufferWriter(self._buffer)
            self._stream = pa.ipc.new_stream(self._sink, self._bare, options=self._options)
            # Arrow writes the schema with the first batch; the file has it already, with a note.
            self._stream.write_batch(pa.RecordBatch.from_pylist([], self._bare))
            begin = self._sink.tell()
        return begin

    def _write(self, message: memoryview, note: Note) -> None:
        """Completes the note of a message and writes it."""
        seal(message, note)
        left = message
        while left:
            left = left[os.write(self._handle, left) :]
        self.nbytes += len(message)

    def sync(self) -> None:
        """Forces everything appended to disk."""
        os.fsync(self._handle)

    def close(self) -> None:
        """Closes the file, without a partially written batch. Idempotent.

        No end mark is written: it could itself be torn.
        """
        if self._handle >= 0:
            os.ftruncate(self._handle, self.nbytes)
            os.close(self._handle)
            self._handle = -1


def _without_metadata(schema: pa.Schema) -> pa.Schema:
    return pa.schema([each.remove_metadata() for each in schema])


def finished_in(batch: pa.RecordBatch) -> int:
    """Returns the number of episodes that are finished in a batch."""
    names = {"terminated", "truncated"} & set(batch.schema.names)
    return sum(int(pc.sum(batch.column(name)).as_py() or 0) for name in names)


@dataclass(frozen=True)
class Gap:
    """A part of a journal that cannot be read.

    Attributes:
        offset: where it begins in the file.
        nbytes: its bytes.
        steps: the steps in it; None if unknown.
        ends: episodes that finished in it; None if unknown.
    """

    offset: int
    nbytes: int
    steps: int | None = None
    ends: int | None = None

    def __str__(self) -> str:
        lost = "an unknown number of steps"
        if self.steps is not None:
            lost = f"{self.steps} steps, in which {self.ends} episodes finished"
        return f"{self.nbytes} bytes from byte {self.offset} on are damaged: lost are {lost}"


@dataclass
class JournalReader:
    """The complete batches of a journal, which may be growing. ``scan`` fills the attributes.

    Attributes:
        path: the file.
        expected: schema of the batches, in case the journal's own is damaged.
        schema: schema of the batches.
        starts: first row of each batch, and the number of rows at the end.
        offsets: where each batch begins in the file.
        losses: lost episodes, in order.
        whole: bytes up to the end of the last whole batch.
        nbytes: bytes of the file.
        torn: the bytes after ``whole`` are a batch that was being written.
        gaps: damaged parts, in order.
    """

    path: Path
    expected: pa.Schema = None
    schema: pa.Schema = None
    starts: list[int] = field(default_factory=lambda: [0])
    offsets: list[int] = field(default_factory=list)
    losses: list[LossRecord] = field(default_factory=list)
    whole: int = 0
    nbytes: int = 0
    torn: bool = False
    gaps: list[Gap] = field(default_factory=list)
    _noted: bool = False
    _head: bytes = b""

    @property
    def rows(self) -> int:
        """Number of rows in whole batches."""
        return self.starts[-1]

    @property
    def damaged(self) -> bool:
        """True if a part cannot be read, other than a batch that was being written."""
        return bool(self.gaps)

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yields every whole batch, all columns if None.

        Raises:
            FileNotFoundError: the journal is gone: it has become a shard.
            DatasetError: it cannot be opened.
        """
        self.starts, self.offsets, self.losses, self.gaps = [0], [], [], []
        self.torn, last = False, Note(0, 0, 0, 0, 0)
        if self.path.is_dir():
            self.gaps = [Gap(0, 0)]
            return
        with self._open() as file:
            self.nbytes = os.fstat(file.fileno()).st_size
            self.whole = at = self._read_schema(file)
            places = candidates(file, 0, self.nbytes)
            while at < self.nbytes and self._head:
                message = message_at(file, at, self.nbytes, noted=self._noted)
                read = None if message is None else self._decode(message.raw, columns)
                if message is None or read is None:
                    at = next((place for place in places if place > at), self.nbytes)
                    continue
                batch, losses = read
                note = message.note
                self._note_gap(at, note and (note.row - last.next_row, note.end - last.next_end))
                last = note or last
                self.offsets.append(at)
                self.starts.append(self.rows + batch.num_rows)
                self.losses += losses
                self.whole = at = at + len(message.raw)
                yield batch
            self._end(file, last)

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """Returns rows ``start`` to ``stop`` (exclusive) of a scanned journal.

        Raises:
            DatasetError: the journal was cut or damaged since it was scanned.
            FileNotFoundError: the journal is gone: it has become a shard.
        """
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        batches = []
        with self._open() as file:
            size = os.fstat(file.fileno()).st_size
            for k in range(first, len(self.offsets)):
                if self.starts[k] >= stop:
                    break
                message = message_at(file, self.offsets[k], size, noted=self._noted)
                read = None if message is None else self._decode(message.raw, columns)
                if read is None:
                    raise DatasetError(f"cannot read batch {k} of {self.path}: it is damaged")
                batch = read[0]
                low = max(start - self.starts[k], 0)
                batches.append(batch.slice(low, min(stop - self.starts[k], batch.num_rows) - low))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches([batch.select(columns) for batch in batches], schema)

    def read_schema(self) -> pa.Schema:
        """Returns the schema of the batches; None if it is damaged and none is expected.

        Raises:
            FileNotFoundError: the journal is gone: it has become a shard.
            DatasetError: it cannot be opened.
        """
        with self._open() as file:
            self._read_schema(file)
        return self.schema

    def _open(self) -> BinaryIO:
        try:
            return open_file(self.path)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not self.path.is_symlink():
                raise
            raise DatasetError(f"cannot read the journal {self.path}: {error}") from error

    def _read_schema(self, file: BinaryIO) -> int:
        """Reads the first message, and returns where it ends; 0 if it is damaged."""
        size = os.fstat(file.fileno()).st_size
        self._noted = has_notes(file)
        message = message_at(file, 0, size, noted=self._noted)
        end, self.schema = 0, self.expected
        if message is not None:
            try:
                schema = pa.ipc.open_stream(pa.py_buffer(message.raw)).schema
                about = schema.metadata or {}
                about.pop(NOTE_KEY.encode(), None)
                self.schema, end = schema.with_metadata(about), len(message.raw)
            except _UNREADABLE:
                pass
        if self.schema is None:
            self._head = b""
        else:  # without the metadata, which take longer to read than a batch
            self._head = _without_metadata(self.schema).serialize().to_pybytes()
        return end

    def _decode(
        self, raw: bytes, columns: Sequence[str] | None
    ) -> tuple[pa.RecordBatch, list[LossRecord]] | None:
        """The batch in a message, and the losses; None if it is damaged."""
        fields = None
        if columns is not None and self._noted:  # else every column shows whether it is damaged
            fields = sorted(self.schema.get_field_index(name) for name in columns)
        options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        try:
            stream = pa.ipc.open_stream(pa.py_buffer(self._head + raw), options=options)
            batch, about = stream.read_next_batch_with_custom_metadata()
            batch.validate(full=True)  # offsets that point elsewhere end the process
            losses = (about or {}).get(LOSSES_KEY.encode())
            if columns is not None and fields is None:
                batch = batch.select(list(columns))
            return batch, [] if losses is None else parse_losses(losses)
        except _UNREADABLE:
            return None

    def _end(self, file: BinaryIO, last: Note) -> None:
        """Classifies the bytes after the last whole batch, whose note is ``last``."""
        self.torn = self.whole < self.nbytes and is_torn(file, self.whole, self.nbytes)
        if not self.torn:
            notes = notes_in(file, self.whole, self.nbytes)
            lost = [(n.next_row - last.next_row, n.next_end - last.next_end) for n in notes]
            self._note_gap(self.nbytes, max(lost, default=None))

    def _note_gap(self, end: int, lost: tuple[int, int] | None) -> None:
        """Notes that the bytes from ``whole`` to ``end`` are damaged, if there are any."""
        if end > self.whole:
            self.gaps.append(Gap(self.whole, end - self.whole, *(lost or (None, None))))
