"""``repair``: keeps all intact data, moves the rest into ``quarantine/``, deletes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rollout.data.doctor import examine, manifest_of_shards, require_dataset
from rollout.data.episodes import RUN_COLUMNS, Runs, same_index
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, full_disk_named, writing
from rollout.data.manifest import Manifest, read_manifest, write_manifest
from rollout.data.roll import adopt, collect, derive_index, is_sealed, read_index, write_index
from rollout.data.rows import LossRecord
from rollout.data.shard import Seal, ShardReader, ShardWriter
from rollout.errors import DatasetError
from rollout.files import put_in_place

Drops = dict[int, list[tuple[int, int]]]
"""Rows to leave out: shard number -> (first row, rows)."""


@dataclass(frozen=True)
class RepairReport:
    """The result of ``repair``.

    Attributes:
        path: the dataset.
        steps: steps it contains now.
        episodes: complete episodes that ended, lost ones included.
        damaged: ``(episode, attempt)`` of episodes that miss steps; their other steps were kept.
        moved: files now in ``quarantine/``, by their names there.
        done: descriptions of the changes.
    """

    path: Path
    steps: int
    episodes: int
    damaged: tuple[tuple[int, int], ...]
    moved: tuple[str, ...]
    done: tuple[str, ...]


def repair(path: Path | str) -> RepairReport:
    """Repairs a dataset as far as possible. Repeating it changes nothing more.

    Args:
        path: its directory, or the run directory that contains it.

    Raises:
        DatasetLockedError: a live process is writing it.
        DatasetError: there is no dataset, or nothing of it can be read.
        DiskFullError: the disk is full; nothing was lost.
    """
    layout = Layout.find(path)
    require_dataset(layout)
    with writing(layout, "repairing"), full_disk_named(layout.root, "repairing"):
        return _Repair(layout).run()


class _Repair:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._moved: list[str] = []
        self._done: list[str] = []
        layout.create()
        self._manifest = self._read_manifest()

    def run(self) -> RepairReport:
        layout = self._layout
        for stray in layout.strays():
            self._move(stray)
        for number in layout.numbers("data"):
            self._rescue(number)
        self._rebuild()
        self._adopt()
        for number, drops in self._duplicates().items():
            self._leave_out(number, drops)
        episodes, left = self._rebuild()
        for orphan in layout.orphans():
            self._move(orphan)
        runs = left.columns
        bad = ~runs["whole"]
        keys = zip(runs["episode"][bad].tolist(), runs["attempt"][bad].tolist(), strict=True)
        damaged = tuple(sorted(keys))
        if damaged != tuple(sorted(self._manifest.damaged)):
            write_manifest(layout, replace(self._manifest, damaged=damaged))
            self._done.append(f"noted {len(damaged)} episodes that miss steps")
        steps = sum(ShardReader(layout.data(n)).rows for n in layout.numbers("data"))
        return RepairReport(
            layout.root, steps, episodes, damaged, tuple(self._moved), tuple(self._done)
        )

    def _move(self, path: Path) -> None:
        self._note_moved(path, self._layout.set_aside(path))

    def _note_moved(self, path: Path, target: Path) -> None:
        name = self._layout.name(target)
        self._moved.append(name)
        self._done.append(f"moved {self._layout.name(path)} to {name}")

    def _read_manifest(self) -> Manifest:
        try:
            return read_manifest(self._layout)
        except DatasetError:
            manifest = manifest_of_shards(self._layout)
        if os.path.lexists(self._layout.manifest):
            self._move(self._layout.manifest)
        write_manifest(self._layout, manifest)
        self._done.append("wrote dataset.json again from a shard")
        return manifest

    def _rescue(self, number: int) -> None:
        """Replaces a damaged shard by what can be read of it."""
        layout = self._layout
        path = layout.data(number)
        if layout.journal(number).exists():
            # The journal has the same rows; if the shard is damaged, the journal is rolled again.
            if not is_sealed(layout, number):
                self._move(path)
            return
        health = examine(layout, self._manifest, number)
        if health.whole:
            if not health.sealed:
                self._seal(number)
            return
        if health.reader is None or not health.collector.rows:
            self._move(path)
            return
        intact = health.reader.scan(bad_groups=health.bad_groups, bad_rows=health.bad_rows)
        self._rewrite(number, intact, health.losses)

    def _rewrite(
        self, number: int, tables: Iterable[pa.Table], losses: Sequence[LossRecord]
    ) -> None:
        """Rewrites a shard; the old one is moved to quarantine first."""
        path = self._layout.data(number)
        writer = ShardWriter(path, self._manifest)
        try:
            for table in tables:
                for batch in table.combine_chunks().to_batches():
                    writer.add(batch)
            writer.finish(losses)
        except (OSError, DatasetError):
            writer.abandon()
            raise
        self._note_moved(path, self._layout.keep_copy(path))
        put_in_place(path)
        self._seal(number)
        self._done.append(f"kept {writer.rows} rows of {self._layout.name(path)}")

    def _seal(self, number: int) -> None:
        place = self._layout.seal(number)
        if place.is_symlink() or (place.exists() and not place.is_file()):
            self._move(place)
        # After the shard: writing the seal first would replace the only footer of a damaged shard.
        Seal.of(self._layout.data(number)).write(self._layout.seal(number), fsync=True)
        self._done.append(f"sealed shard {number}")

    def _adopt(self) -> None:
        layout, found = self._layout, dict[int, JournalReader]()
        for number in layout.numbers("journal"):
            journal = JournalReader(layout.journal(number), self._manifest.schema)
            for _ in journal.scan(RUN_COLUMNS):
                pass
            fits = journal.schema is not None and journal.schema.equals(self._manifest.schema)
            if not fits and journal.rows:
                self._move(journal.path)
                continue
            found[number] = journal
            if journal.torn and not journal.damaged and journal.rows:
                copy = layout.keep_copy(journal.path)  # the roll drops a torn tail
                self._note_moved(journal.path, copy)
        for number, aside in adopt(layout, self._manifest).items():
            journal = found[number]
            self._done.append(f"adopted journal {number}: {journal.rows} steps")
            self._done += (f"{layout.name(journal.path)}: {gap}" for gap in journal.gaps)
            if aside is not None:
                self._note_moved(journal.path, aside)

    def _duplicates(self) -> Drops:
        """Rows of duplicated episodes, except the first complete copy."""
        found: dict[tuple[int, int], list[_Run]] = {}
        for number in self._layout.numbers("data"):
            runs = collect(ShardReader(self._layout.data(number)), number).runs
            about = (runs.places, runs.columns["first_step"], runs.columns["end"] != 0)
            for place, first, ends in zip(*(column.tolist() for column in about), strict=True):
                episode, attempt, *rows = place
                found.setdefault((episode, attempt), []).append(_Run._make([*rows, first, ends]))
        drops: Drops = {}
        for each in found.values():
            copies = (copy for copy in _split(each) if copy[0].first_step == 0 and copy[-1].ends)
            whole = next(copies, each)
            for run in each:
                if run not in whole:
                    drops.setdefault(run.shard, []).append((run.row, run.rows))
        return drops

    def _leave_out(self, number: int, drops: list[tuple[int, int]]) -> None:
        reader = ShardReader(self._layout.data(number))
        gone = np.concatenate([np.arange(row, row + rows) for row, rows in drops])
        if len(gone) == reader.rows and not reader.losses:
            self._move(self._layout.data(number))
            return
        self._rewrite(number, reader.scan(bad_rows=gone), reader.losses)

    def _rebuild(self) -> tuple[int, Runs]:
        """Rebuilds the index of every shard; returns the number of episodes and the open ones."""
        left, episodes = Runs(), 0
        for number in self._layout.numbers("data"):
            table, left, _ = derive_index(ShardReader(self._layout.data(number)), number, left)
            episodes += table.num_rows
            try:
                old, old_left = read_index(self._layout, number)
                same = same_index(old, table) and old_left.to_json() == left.to_json()
            except DatasetError:
                same = False
                if os.path.lexists(self._layout.episodes(number)):
                    self._move(self._layout.episodes(number))
            if not same:
                write_index(self._layout, number, table, left)
                self._done.append(f"rebuilt the index of shard {number}")
        return episodes, left


class _Run(NamedTuple):
    """Rows of a shard with steps of one episode; ``ends`` if the episode ends with them."""

    shard: int
    row: int
    rows: int
    first_step: int
    ends: bool


def _split(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Cuts the runs of an episode where one does not follow the previous one."""
    takes: list[list[_Run]] = []
    for run in runs:
        last = takes[-1][-1] if takes else None
        if last and run.first_step == last.first_step + last.rows and not last.ends:
            takes[-1].append(run)
        else:
            takes.append([run])
    return takes
