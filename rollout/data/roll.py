"""Rolls journals into shards, recovers from a crash while rolling, writes the episode index.

The order of a roll makes it safe: shard under a temporary name, seal, index, rename of the shard,
and only then the journal is removed. Until the shard has its final name the journal is valid; from
then on it is a leftover. Both have the same rows under the same number, so at no moment is a row
missing or duplicated.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rollout.data.episodes import (
    INDEX_SCHEMA,
    RUN_COLUMNS,
    Problem,
    Runs,
    check_index,
    find_runs,
    put_together,
)
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, full_disk_named
from rollout.data.manifest import Manifest
from rollout.data.rows import LossRecord
from rollout.data.shard import UNREADABLE, Seal, ShardReader, ShardWriter
from rollout.errors import DatasetError
from rollout.files import put_in_place, replacing, require_file, temporary

OPEN_KEY = "gamut.open"
_RUN_ROWS = 4096
_ROLL_DEADLINE_S = 600.0  # a shard takes about a second; a disk this slow counts as hung

_log = logging.getLogger(__name__)


class RunCollector:
    """Collects the runs of a shard, by its number, while its rows are written."""

    def __init__(self, shard: int) -> None:
        self.rows = 0
        self._shard = shard
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._runs: list[Runs] = []

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Adds the next rows."""
        narrow = rows.select(list(RUN_COLUMNS))
        self._waiting += narrow.to_batches() if isinstance(narrow, pa.Table) else [narrow]
        self._waiting_rows += rows.num_rows
        self.rows += rows.num_rows
        # Several hundred microseconds per call, whatever the rows: small fragments are combined.
        if self._waiting_rows >= _RUN_ROWS:
            self._find()

    def _find(self) -> None:
        if self._waiting:
            rows = pa.Table.from_batches(self._waiting)
            self._runs.append(find_runs(rows, self._shard, self.rows - self._waiting_rows))
            self._waiting, self._waiting_rows = [], 0

    @property
    def runs(self) -> Runs:
        """The runs in the order of the rows."""
        self._find()
        return Runs.join(self._runs)

    def put_together(
        self, before: Runs, losses: Sequence[LossRecord]
    ) -> tuple[pa.Table, Runs, list[Problem]]:
        """Returns the index of the shard, the episodes it leaves open, and the problems."""
        return put_together(before, self.runs, losses)


def collect(source: ShardReader | JournalReader, number: int) -> RunCollector:
    """Returns the runs of a shard or journal, or raises like ``scan``."""
    collector = RunCollector(number)
    for rows in source.scan(RUN_COLUMNS):
        collector.add(rows)
    return collector


def roll(layout: Layout, manifest: Manifest, number: int, *, fsync: bool = True) -> Path | None:
    """Converts a journal to a shard of the same number and removes it.

    A journal without rows and losses is removed. One that is damaged is set aside, with a warning
    that counts the lost steps, and its new path is returned.

    Raises:
        DiskFullError: the disk is full; the journal is unchanged.
        DatasetError: the journal holds other columns than the dataset.
    """
    journal = JournalReader(layout.journal(number), manifest.schema)
    collector, writer = RunCollector(number), ShardWriter(layout.data(number), manifest)
    try:
        with full_disk_named(layout.data(number), "writing"):
            for batch in journal.scan():
                if not batch.schema.equals(manifest.schema):
                    raise DatasetError(
                        f"{journal.path} holds other columns than {layout.manifest}; "
                        f"move it elsewhere, or restore the dataset.json it was written with"
                    )
                collector.add(batch)
                writer.add(batch)
            if collector.rows or journal.losses:
                writer.finish(journal.losses)
                publish(layout, number, collector, journal.losses, fsync=fsync)
    except (OSError, DatasetError):
        writer.abandon()
        raise
    writer.abandon()
    return _settle(layout, journal)


def publish(
    layout: Layout,
    number: int,
    collector: RunCollector,
    losses: Sequence[LossRecord],
    *,
    fsync: bool = True,
) -> None:
    """Publishes a finished shard, after its seal and index."""
    table, left, _ = collector.put_together(open_before(layout, number), losses)
    Seal.of(temporary(layout.data(number))).write(layout.seal(number), fsync=fsync)
    write_index(layout, number, table, left, fsync=fsync)
    put_in_place(layout.data(number), fsync=fsync)


def _settle(layout: Layout, journal: JournalReader) -> Path | None:
    """Removes a journal whose whole batches are in a shard, or sets it aside."""
    if not journal.damaged:
        journal.path.unlink()
        return None
    aside = layout.set_aside(journal.path)
    for gap in journal.gaps:
        _log.warning(
            "%s: %s; its other %d steps are kept, and the file is %s",
            journal.path, gap, journal.rows, aside,
        )  # fmt: skip
    return aside


def adopt(layout: Layout, manifest: Manifest) -> dict[int, Path | None]:
    """Rolls the journals that a crash left, and removes partially written files.

    Only for the holder of the lock; raises like ``roll``.

    Returns:
        the new path of each journal by its number; None if it was whole, and was removed.
    """
    for stray in layout.strays():
        stray.unlink()
    adopted: dict[int, Path | None] = {}
    for number in layout.numbers("journal"):
        if is_sealed(layout, number):
            journal = JournalReader(layout.journal(number), manifest.schema)
            for _ in journal.scan([]):
                pass
            adopted[number] = _settle(layout, journal)
        else:
            adopted[number] = roll(layout, manifest, number)
    return adopted


def is_sealed(layout: Layout, number: int) -> bool:
    """Returns True if a data shard exists and matches its seal."""
    try:
        return Seal.read(layout.seal(number)).fits(layout.data(number))
    except (DatasetError, FileNotFoundError):
        return False


def write_index(
    layout: Layout, number: int, table: pa.Table, left: Runs, *, fsync: bool = True
) -> None:
    """Puts the index of a shard in place."""
    with (
        replacing(layout.episodes(number), fsync=fsync) as new,
        pq.ParquetWriter(new, INDEX_SCHEMA, compression="zstd", write_page_checksum=True) as writer,
    ):
        if table.num_rows:  # Hugging Face's reader fails on a row group without rows
            writer.write_table(table)
        writer.add_key_value_metadata({OPEN_KEY: left.to_json()})


def read_index(layout: Layout, number: int) -> tuple[pa.Table, Runs]:
    """Returns the index of a shard and the episodes left open; a DatasetError if it is damaged."""
    path = layout.episodes(number)
    try:
        require_file(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = file.schema_arrow
            if not found.equals(INDEX_SCHEMA):
                raise ValueError(f"it has other columns: {found.names}")
            table = file.read(use_threads=False)
            check_index(table)
            left = Runs.from_json(file.metadata.metadata[OPEN_KEY.encode()].decode())
    except UNREADABLE as error:
        raise DatasetError(f"cannot read the index {path}: {error!r}") from error
    return table.replace_schema_metadata(None), left


def derive_index(
    source: ShardReader | JournalReader, number: int, before: Runs
) -> tuple[pa.Table, Runs, list[Problem]]:
    """Returns the index of a shard or journal, made from its rows, or raises like ``scan``."""
    return collect(source, number).put_together(before, source.losses)


def open_before(layout: Layout, number: int) -> Runs:
    """Returns the episodes that the shards before ``number`` left open.

    Raises:
        DatasetError: an index is damaged, and so is the shard it could be rebuilt from.
    """
    missing = []
    left = Runs()
    for earlier in reversed([n for n in layout.numbers("data") if n < number]):
        try:
            left = read_index(layout, earlier)[1]
            break
        except DatasetError:
            missing.append(earlier)
    for earlier in reversed(missing):
        left = derive_index(ShardReader(layout.data(earlier)), earlier, left)[1]
    return left


class Roller:
    """Rolls journals by ``work``, in its own thread, with at most one waiting.

    Attributes:
        waits: how often ``submit`` had to wait, since the disk is slower than what is recorded.
        waited_s: for how long, in all.
    """

    def __init__(self, work: Callable[[int], object]) -> None:
        self._work = work
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dataset-roll")
        self._pending: dict[int, Future[object]] = {}
        self.waits, self.waited_s = 0, 0.0

    @property
    def numbers(self) -> list[int]:
        """Journals that are not shards yet."""
        return list(self._pending)

    def submit(self, number: int) -> None:
        """Queues a closed journal; waits while two are queued, and raises like ``wait``."""
        began = time.monotonic()
        self.waits += sum(not future.done() for future in self._pending.values()) > 1
        self.wait(1)
        self.waited_s += time.monotonic() - began
        self._pending[number] = self._thread.submit(self._work, number)

    def wait(self, most: int) -> None:
        """Waits until at most ``most`` rolls are not finished.

        Raises:
            DiskFullError: a finished roll failed; likewise whatever else it raised.
        """
        while self._pending:
            number, future = next(iter(self._pending.items()))
            if len(self._pending) <= most and not future.done():
                return
            try:
                future.result(timeout=_ROLL_DEADLINE_S)
            except TimeoutError as error:
                self._pending.clear()
                raise DatasetError(
                    f"journal {number} is not rolled after {_ROLL_DEADLINE_S:.0f} s: the disk hangs"
                ) from error
            del self._pending[number]

    def close(self) -> None:
        """Ends the thread; rolls that have not begun are left to the next writer."""
        self._thread.shutdown(wait=True, cancel_futures=True)
