"""``doctor``: reads a whole dataset and reports everything that is wrong. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rollout.data.episodes import Problem, same_index
from rollout.data.health import Finding, Severity, examine, manifest_of_shards
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, writer_of
from rollout.data.manifest import Manifest, read_manifest
from rollout.data.roll import derive_index, read_index
from rollout.data.runs import Open
from rollout.errors import DatasetError


@dataclass(frozen=True)
class Report:
    """What ``doctor`` found.

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
        """Whether nothing is wrong."""
        return not self.findings


def doctor(path: Path | str) -> Report:
    """Reads a whole dataset and returns everything that is wrong with it.

    A live writer is allowed; its journal is not a finding then.

    Raises:
        DatasetError: there is no dataset.
    """
    layout = Layout(path)
    return _Doctor(layout).report()


def require_dataset(layout: Layout) -> None:
    """Checks that a directory contains a dataset, or the remains of one.

    Raises:
        DatasetError: it does not.
    """
    traces = any(layout.numbers(folder) for folder in layout.folders)
    if not layout.root.is_dir() or not (layout.manifest.exists() or traces):
        raise DatasetError(f"{layout.root} holds no dataset (no dataset.json, no shards)")


class _Doctor:
    def __init__(self, layout: Layout) -> None:
        require_dataset(layout)
        self._layout = layout
        self._findings: list[Finding] = []
        self._writer = writer_of(layout)
        self._left = Open.none()
        self._seen: set[tuple[int, int]] = set()
        self._damaged: set[tuple[int, int]] = set()
        self._shards = self._steps = self._episodes = 0
        # After a damaged shard an index may correctly name episodes that cannot be found.
        self._trusted = True

    def report(self) -> Report:
        # Journals first: one that has disappeared in the meantime has become a shard.
        waiting, data = (self._layout.numbers(folder) for folder in ("journal", "data"))
        manifest = self._manifest()
        if manifest is not None:
            self._damaged = set(manifest.damaged)
            for number in sorted({*waiting, *data}):
                if number in data or not self._journal(number):
                    self._shard(manifest, number)
                    self._shards += 1
        if self._writer is None:
            for number in sorted({*waiting} & {*data}):
                what = "is left over: it has become a shard"
                self._add(self._layout.journal(number), "warning", what)
            for stray in self._layout.strays():
                self._add(stray, "warning", "is a half-written file of an interrupted write")
            for orphan in self._layout.orphans():
                self._add(orphan, "error", "its data shard is missing")
        counts = (self._shards, self._steps, self._episodes)
        return Report(self._layout.root, tuple(self._findings), self._writer, *counts)

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
        if health.collector is not None:
            self._steps += health.collector.rows
            table = self._note(health.collector.put_together(self._left, health.losses))
            self._check_index(number, table)

    def _note(self, found: tuple[pa.Table, Open, list[Problem]]) -> pa.Table:
        """Notes the episodes of a shard or journal and what is wrong with them."""
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

    def _check_index(self, number: int, table: pa.Table) -> None:
        path = self._layout.episodes(number)
        try:
            index, _ = read_index(self._layout, number)
        except DatasetError as error:
            self._add(path, "warning", str(error))
            return
        if self._trusted and not same_index(index, table):
            what = (
                f"does not agree with its steps ({index.num_rows} episodes, {table.num_rows} there)"
            )
            self._add(path, "warning", what)

    def _journal(self, number: int) -> bool:
        """Checks a journal; returns False if its writer has rolled it in the meantime."""
        journal = JournalReader(self._layout.journal(number))
        try:
            self._note(derive_index(journal, number, self._left))
        except FileNotFoundError:
            return False
        tail = journal.nbytes - journal.whole
        if self._writer is None and journal.damaged:
            what = f"is damaged after {journal.rows} rows: {tail} bytes cannot be read"
            self._add(journal.path, "error", what)
        elif self._writer is None:
            torn = f", and {tail} bytes of an unfinished write" if tail else ""
            what = f"was left by a writer that was killed: {journal.rows} rows{torn}"
            self._add(journal.path, "warning", what, "run repair, or open it with a writer")
        return True
