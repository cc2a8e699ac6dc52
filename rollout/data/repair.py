"""``repair``: keeps all intact data, moves the rest into ``quarantine/``, deletes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from rollout.data.doctor import examine, manifest_of_shards, require_dataset
from rollout.data.episodes import RUN_COLUMNS, Runs, find_runs, same_index
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, full_disk_named, writing
from rollout.data.manifest import Manifest, read_manifest, write_manifest
from rollout.data.roll import adopt, derive_index, is_sealed, read_index, write_index
from rollout.data.rows import LossRecord
from rollout.data.shard import Seal, ShardReader, ShardWriter
from rollout.errors import DatasetError
from rollout.files import put_in_place

Drops = dict[int, list[tuple[int, int]]]
"""Rows to leave out: shard number -> (first row, rows)."""


@dataclass(frozen=True)
class Repaired:
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


def repair(path: Path | str) -> Repaired:
    """Repairs a dataset as far as possible. Repeating it changes nothing more.

    Raises:
        DatasetLockedError: a live process is writing it.
        DatasetError: there is no dataset, or nothing of it can be read.
        DiskFullError: the disk is full; nothing was lost.
    """
    layout = Layout(path)
    require_dataset(layout)
    with writing(layout, "repairing"), full_disk_named(layout.root, "repairing"):
        return _Repair(layout).run()


class _Repair:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._moved: list[str] = []
        self._done: list[str] = []

    def run(self) -> Repaired:
        layout = self._layout
        layout.create()
        manifest = self._manifest()
        for stray in layout.strays():
            self._move(stray)
        for number in layout.numbers("data"):
            self._rescue(manifest, number)
        self._rebuild()
        self._adopt(manifest)
        for number, drops in self._duplicates().items():
            self._leave_out(manifest, number, drops)
        episodes, left = self._rebuild()
        for orphan in layout.orphans():
            self._move(orphan)
        runs = left.columns
        bad = ~runs["whole"]
        keys = zip(runs["episode"][bad].tolist(), runs["attempt"][bad].tolist(), strict=True)
        damaged = tuple(sorted(keys))
        if damaged != tuple(sorted(manifest.damaged)):
            write_manifest(layout, replace(manifest, damaged=damaged))
            self._done.append(f"noted {len(damaged)} episodes that miss steps")
        steps = sum(ShardReader(layout.data(n)).rows for n in layout.numbers("data"))
        return Repaired(
            layout.root, steps, episodes, damaged, tuple(self._moved), tuple(self._done)
        )

    def _move(self, path: Path) -> None:
        self._note_moved(path, self._layout.set_aside(path))

    def _note_moved(self, path: Path, target: Path) -> None:
        name = self._layout.name(target)
        self._moved.append(name)
        self._done.append(f"moved {self._layout.name(path)} to {name}")

    def _manifest(self) -> Manifest:
        try:
            return read_manifest(self._layout)
        except DatasetError:
            manifest = manifest_of_shards(self._layout)
        if self._layout.manifest.exists():
            self._move(self._layout.manifest)
        write_manifest(self._layout, manifest)
        self._done.append("wrote dataset.json again from a shard")
        return manifest

    def _rescue(self, manifest: Manifest, number: int) -> None:
        """Replaces a damaged shard by what can be read of it."""
        layout = self._layout
        path = layout.data(number)
        if layout.journal(number).exists():
            # The journal has the same rows; if the shard is damaged, the journal is rolled again.
            if not is_sealed(layout, number):
                self._move(path)
            return
        health = examine(layout, manifest, number)
        if health.whole:
            if not health.sealed:
                self._seal(number)
            return
        if health.reader is None or not health.collector.rows:
            self._move(path)
            return
        intact = health.reader.scan(bad_groups=health.bad_groups, bad_rows=health.bad_rows)
        self._rewrite(manifest, number, intact, health.losses)

    def _rewrite(
        self,
        manifest: Manifest,
        number: int,
        tables: Iterable[pa.Table],
        losses: Sequence[LossRecord],
    ) -> None:
        """Rewrites a shard; the old one is moved to quarantine first."""
        path = self._layout.data(number)
        writer = ShardWriter(path, manifest)
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
        # After the shard: writing the seal first would replace the only footer of a damaged shard.
        Seal.of(self._layout.data(number)).write(self._layout.seal(number), fsync=True)
        self._done.append(f"sealed shard {number}")

    def _adopt(self, manifest: Manifest) -> None:
        layout = self._layout
        for number in layout.numbers("journal"):
            journal = JournalReader(layout.journal(number))
            for _ in journal.scan(RUN_COLUMNS):
                pass
            fits = journal.schema is not None and journal.schema.equals(manifest.schema)
            if not fits and journal.rows:
                self._move(journal.path)
            elif journal.nbytes > journal.whole and not journal.damaged and journal.rows:
                copy = layout.keep_copy(journal.path)  # the roll drops a torn tail
                self._note_moved(journal.path, copy)
        for number in adopt(layout, manifest):
            self._done.append(f"adopted journal {number}")

    def _duplicates(self) -> Drops:
        """Rows of duplicated episodes, except the first complete copy."""
        takes = _takes(self._layout)
        drops: Drops = {}
        for runs in takes.values():
            whole = [take for take in _split(runs) if take[0][2] == 0 and take[-1][4]]
            if not whole:
                continue
            kept = whole[0]
            for shard, row, _, rows, _ in runs:
                if not any(shard == k[0] and row == k[1] for k in kept):
                    drops.setdefault(shard, []).append((row, rows))
        return drops

    def _leave_out(self, manifest: Manifest, number: int, drops: list[tuple[int, int]]) -> None:
        reader = ShardReader(self._layout.data(number))
        gone = np.concatenate([np.arange(row, row + rows) for row, rows in drops])
        if len(gone) == reader.rows and not reader.losses:
            self._move(self._layout.data(number))
            return
        self._rewrite(manifest, number, reader.scan(bad_rows=gone), reader.losses)

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
                if self._layout.episodes(number).exists():
                    self._move(self._layout.episodes(number))
            if not same:
                write_index(self._layout, number, table, left)
                self._done.append(f"rebuilt the index of shard {number}")
        return episodes, left


_Run = tuple[int, int, int, int, bool]
"""Shard, first row, first step, rows, and whether the episode ends with it."""


def _takes(layout: Layout) -> Mapping[tuple[int, int], list[_Run]]:
    """The runs of every episode, in the order of the rows."""
    found: dict[tuple[int, int], list[_Run]] = {}
    for number in layout.numbers("data"):
        start = 0
        for rows in ShardReader(layout.data(number)).scan(RUN_COLUMNS):
            runs = find_runs(rows, number, start)
            start += rows.num_rows
            about = runs.columns
            columns = (runs.places, about["first_step"], about["length"], about["end"] != 0)
            for place, *rest in zip(*(c.tolist() for c in columns), strict=True):
                run = (place[2], place[3], rest[0], rest[1], rest[2])
                found.setdefault((place[0], place[1]), []).append(run)
    return found


def _split(runs: Sequence[_Run]) -> list[list[_Run]]:
    """Cuts the runs of an episode where one does not follow the previous one."""
    takes: list[list[_Run]] = []
    for run in runs:
        last = takes[-1][-1] if takes else None
        if last is not None and run[2] == last[2] + last[3] and not last[4]:
            takes[-1].append(run)
        else:
            takes.append([run])
    return takes
