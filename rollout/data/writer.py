"""The writer of a dataset: a recorder that loses nothing when it is killed."""

from __future__ import annotations

import logging
import math
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from rollout.api import Fragment, Recorder
from rollout.data.card import write_card
from rollout.data.journal import JournalCompression, JournalWriter, finished_in
from rollout.data.layout import Layout, full_disk_named, writing
from rollout.data.manifest import Manifest, differences, now, read_manifest, write_manifest
from rollout.data.roll import Roller, adopt, roll
from rollout.data.rows import LossRecord, RowEncoder
from rollout.data.sizes import dataset_bytes
from rollout.errors import DatasetError, OutOfTurnError
from rollout.files import sync_file

Fsync = Literal["never", "episode", "shard"]
SHARD_BYTES = 64 << 20
_GROWTH = 8  # game frames become 6 to 60 times smaller in a shard
_FULL = 0.95  # share of a budget; with more, the last shards would have a few rows each
_BATCH_BYTES = 256 << 20  # decoded; a larger fragment is journalled in several batches

_log = logging.getLogger(__name__)


class DatasetWriter(AbstractContextManager["DatasetWriter"]):
    """Records fragments into one dataset directory, new or existing.

    Memory is bounded however slow the disk is: ``append`` writes in the calling thread, at most two
    journals wait to become shards, and a third waits for one of them.

    Once ``append`` has returned, every step of the fragment survives a crash of this process; once
    ``flush`` has, also a crash of the machine. A writer that failed refuses to continue, because an
    episode would miss steps: open the dataset again, and repeat unfinished episodes.

    Args:
        path: the directory.
        manifest: what will be recorded, see ``describe_dataset``.
        fsync: when data is forced onto the disk: ``shard``: when a shard is complete;
            ``episode``: also whenever an episode ends; ``never``: not before ``flush``.
        shard_bytes: size of the compressed journal at which it becomes a shard; an uncompressed
            journal may become eight times larger.
        shard_s: age in seconds at which a journal becomes a shard, where it may be lost with the
            machine; None for any age.
        journal: ``lz4``, or ``none`` for less time in the collecting thread but more disk space.

    Attributes:
        manifest: the description of the dataset.
        rolled: called in another thread whenever a journal has become a shard; may be set.

    Raises:
        DatasetLockedError: another live process is writing it.
        DatasetError: it has other contents; every difference is listed.
        DiskFullError: the disk is full.
    """

    def __init__(
        self,
        path: Path | str,
        manifest: Manifest,
        *,
        fsync: Fsync = "shard",
        shard_bytes: int = SHARD_BYTES,
        shard_s: float | None = None,
        journal: JournalCompression = "lz4",
    ) -> None:
        known = fsync in ("never", "episode", "shard") and journal in ("lz4", "none")
        if not known or shard_bytes < 1:
            raise DatasetError(
                f"expected fsync never, episode or shard, journal lz4 or none, and shard_bytes of "
                f"at least 1, got {fsync!r}, {journal!r} and {shard_bytes}"
            )
        self.layout = Layout(path)
        self.rolled: Callable[[], object] = lambda: None
        self._fsync, self._compression = fsync, journal
        self._journal_bytes = shard_bytes * (1 if journal == "lz4" else _GROWTH)
        self._journal: JournalWriter | None = None
        self._shard_s = math.inf if shard_s is None else shard_s
        self._opened = 0.0  # when the journal was
        self._failed: BaseException | None = None
        self._closed = False
        _require_dataset_or_empty(self.layout)
        self._lock = ExitStack()
        purpose = f"writing, run {manifest.run or 'unnamed'}"
        self._lock.enter_context(writing(self.layout, purpose))
        try:
            with full_disk_named(self.layout.root, "opening"):
                self.manifest = _create_or_resume(self.layout, manifest)
                adopted = adopt(self.layout, self.manifest)
            self._number = self.layout.last_number()
        except BaseException:
            self._lock.close()
            raise
        for name, codec in self.manifest.lossy.items():
            _log.warning(
                "%s: %s is stored with loss, as %s; raw, png, webp and h264:0 are lossless",
                *(self.layout.root, name, codec),
            )
        if adopted:
            _log.info("%s: recovered %d journals of a crash", self.layout.root, len(adopted))
        self._encoder = RowEncoder(self.manifest, manifest.policy)
        fsynced = fsync != "never"

        def work(number: int) -> None:
            roll(self.layout, self.manifest, number, fsync=fsynced)
            self.rolled()

        self._roller = Roller(work)
        self._append_s = 0.0
        self._counted = 0  # bytes of all files but the open journal
        self._count()

    @property
    def nbytes(self) -> int:
        """Bytes of the shards and journals."""
        return self._counted + (0 if self._journal is None else self._journal.nbytes)

    def figures(self) -> dict[str, float]:
        """Returns what the recording takes.

        Returns:
            ``bytes`` of the dataset; ``write_s``, seconds that ``append`` took in this process;
            ``wait_s``, those of them in which it waited for the shards of earlier journals, and
            ``waits``, how often it did. Collection stands still meanwhile.
        """
        return {
            "bytes": float(self.nbytes),
            "write_s": self._append_s,
            "wait_s": self._roller.waited_s,
            "waits": float(self._roller.waits),
        }

    def fills(self, budget: int) -> bool:
        """Returns True if the dataset takes nearly all of ``budget`` bytes.

        Journals become shards before that, because shards are smaller.

        Raises:
            DiskFullError: the disk is full.
            OutOfTurnError: the writer was closed, or has failed before.
        """
        if self.nbytes < _FULL * budget:
            return False
        self._require_open()
        with self._guarded("writing shards of"):
            self._submit()
            self._roller.wait(0)
            self._count()
        return self.nbytes >= _FULL * budget

    def append(self, fragment: Fragment) -> None:
        """Journals the steps of a fragment.

        Raises:
            DatasetError: its columns are not those of the dataset; nothing was recorded.
            DiskFullError: the disk is full; the fragment was not recorded, everything before it is.
            OutOfTurnError: the writer was closed, or has failed before.
        """
        self.append_rows(*self.encode(fragment))

    def encode(self, fragment: Fragment) -> tuple[pa.RecordBatch, list[LossRecord]]:
        """Returns the steps of a fragment and its lost episodes; raises like ``append``."""
        self._require_open()
        with self._timed():
            return self._encoder.encode(fragment), self._encoder.losses(fragment)

    def append_rows(self, batch: pa.RecordBatch, losses: Sequence[LossRecord]) -> None:
        """Journals steps and lost episodes as ``encode`` returns them; raises like ``append``."""
        self._require_open()
        if batch.num_rows == 0 and not losses:
            return
        with self._timed(), self._guarded("journalling into"):
            if self._journal is None:
                # Counted, not listed: while a roll moves its files from folder to folder, a list
                # of one folder after another may miss them all, and the number would be used twice.
                self._number += 1
                path = self.layout.journal(self._number)
                self._journal = JournalWriter(path, self.manifest.schema, self._compression)
                self._opened = time.monotonic()
            for part, is_last in _parts(batch, self.manifest.row_bytes):
                self._journal.append(part, losses if is_last else ())
            if self._fsync == "episode" and (finished_in(batch) or losses):
                self._journal.sync()
            aged = time.monotonic() - self._opened >= self._shard_s
            if aged or self._journal.nbytes >= self._journal_bytes:
                self._submit()

    def flush(self) -> None:
        """Forces everything recorded to disk.

        Raises:
            DiskFullError: there is no room.
            OutOfTurnError: the writer was closed, or has failed before.
        """
        self._require_open()
        with self._guarded("flushing"):
            for number in self._roller.numbers:
                # Rolled in the meantime: then the shard itself was forced onto the disk.
                with suppress(FileNotFoundError):
                    sync_file(self.layout.journal(number))
            if self._journal is not None:
                self._journal.sync()
            if self._fsync == "never":
                self._roller.wait(0)
                for number in self.layout.numbers("data"):
                    sync_file(self.layout.data(number))
            for folder in self.layout.folders.values():
                sync_file(folder)

    def close(self) -> None:
        """Rolls the journal, waits for the shards, and releases the dataset. Idempotent.

        Raises:
            DiskFullError: the disk is full; the journal is kept, the next writer recovers it.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._failed is None:
                self._submit()
                self._roller.wait(0)
                self._count()
        finally:
            self._roller.close()
            if self._journal is not None:
                self._journal.close()
            self._lock.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self) -> None:
        """Closes the journal, if there is one, and hands it to the roller."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
            self._roller.submit(self._number)
            self._count()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._append_s += time.monotonic() - began

    def _count(self) -> None:
        self._counted = dataset_bytes(self.layout)

    def _require_open(self) -> None:
        if self._closed:
            raise OutOfTurnError(f"the writer of {self.layout.root} was closed; open a new one")
        if self._failed is not None:
            raise OutOfTurnError(
                f"the writer of {self.layout.root} failed before ({self._failed}); close it and "
                f"open a new one, which continues from what was recorded"
            ) from self._failed

    @contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        """Notes that the writer has failed if a roll failed before, or the block does."""
        try:
            self._roller.wait(2)
            with full_disk_named(self.layout.root, doing):
                yield
        except (OSError, DatasetError) as error:
            self._failed = error
            if self._journal is not None:
                self._journal.close()
            raise


def _parts(batch: pa.RecordBatch, row_bytes: int) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The batch in parts of limited size; True with the last of them."""
    step = max(1, _BATCH_BYTES // max(row_bytes, 1))
    for start in range(0, max(batch.num_rows, 1), step):
        yield batch.slice(start, step), start + step >= batch.num_rows


def _require_dataset_or_empty(layout: Layout) -> None:
    """Refuses a directory with other contents, before anything is written to it."""
    if layout.root.exists() and not layout.root.is_dir():
        raise DatasetError(f"{layout.root} is a file; a dataset is a directory")
    known = [layout.manifest, layout.card, layout.lock, *layout.folders.values(), layout.quarantine]
    if layout.root.is_dir() and not layout.manifest.exists():
        others = sorted({p.name for p in layout.root.iterdir()} - {p.name for p in known})
        others = [name for name in others if not name.startswith(".dataset.json")]
        if others:
            raise DatasetError(
                f"{layout.root} contains other files than a dataset's ({', '.join(others[:5])}); "
                f"choose another directory"
            )


def _create_or_resume(layout: Layout, manifest: Manifest) -> Manifest:
    """Returns the manifest of the dataset with this session in it, having written it."""
    session: Mapping[str, Any] = {
        "run": manifest.run,
        "opened": now(),
        "host": socket.gethostname(),
        "code_version": manifest.code_version,
        "bridge_version": manifest.bridge_version,
        "policy": manifest.policy,
        "policy_options": manifest.policy_options,
    }
    layout.create()
    known = manifest
    if layout.manifest.exists() or any(layout.numbers(folder) for folder in layout.folders):
        known = read_manifest(layout)
        # A dataset of an earlier version goes on with whole stacks of frames.
        lines = differences(known, replace(manifest, stack_axes=known.stack_axes))
        if lines:
            raise DatasetError(
                f"dataset {layout.root} holds something else: " + "; ".join(lines) + ". "
                "Record into another directory, or with the original settings"
            )
    known = replace(known, sessions=(*known.sessions, session))
    write_manifest(layout, known)
    write_card(layout, known)
    return known


_conforms: type[Recorder] = DatasetWriter
