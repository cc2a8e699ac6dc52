"""``doctor``: reads a whole dataset and reports everything that is wrong. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rollout.data.episodes import Problem, same_index
from rollout.data.health import Finding, Health, examine, manifest_of_shards
from rollout.data.journal import JournalReader
from rollout.data.layout import Layout, writer_of
from rollout.data.manifest import Manifest, read_manifest
from rollout.data.roll import RunCollector, read_index
from rollout.data.rows import LossRecord
from rollout.data.runs import RUN_COLUMNS, Open
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
            self._orphans()
        counts = (self._shards, self._steps, self._episodes)
        return Report(self._layout.root, tuple(self._findings), self._writer, *counts)

    def _add(self, path: Path, severity: str, what: str, do: str = "run repair") -> None:
        name = str(path.relative_to(self._layout.root))
        self._findings.append(
            Finding(name, "error" if severity == "error" else "warning", what, do)
        )

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
            table = self._put_together(health.collector, health.losses)
            self._check_index(health, table)

    def _put_together(self, collector: RunCollector, losses: Sequence[LossRecord]) -> pa.Table:
        table, self._left, problems = collector.put_together(self._left, losses)
        for problem in problems:
            self._name(problem)
        held = table.filter(pc.greater(table.column("length"), 0))
        keys = list(zip(*(held.column(n).to_pylist() for n in ("episode", "attempt")), strict=True))
        for key in keys:
            if key in self._seen and key not in self._damaged:
                episode, attempt = key
                what = f"episode {episode}, attempt {attempt} exists twice"
                self._add(self._layout.folders["data"], "error", what)
        self._seen.update(keys)
        self._episodes += table.num_rows
        return table

    def _name(self, problem: Problem) -> None:
        if (problem.episode, problem.attempt) not in self._damaged:
            who = f"episode {problem.episode}, attempt {problem.attempt}"
            where = f"row {problem.row}" if problem.row >= 0 else "its end"
            path = self._layout.data(problem.shard)
            self._add(path, "error", f"{where}: {who}: {problem.what}")

    def _check_index(self, health: Health, table: pa.Table) -> None:
        path = self._layout.episodes(health.number)
        try:
            index, _ = read_index(self._layout, health.number)
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
        journal, collector = JournalReader(self._layout.journal(number)), RunCollector(number)
        try:
            for batch in journal.scan(RUN_COLUMNS):
                collector.add(batch)
        except FileNotFoundError:
            return False
        self._put_together(collector, journal.losses)
        tail = journal.nbytes - journal.whole
        if self._writer is None and journal.damaged:
            what = f"is damaged after {journal.rows} rows: {tail} bytes cannot be read"
            self._add(journal.path, "error", what)
        elif self._writer is None:
            torn = f", and {tail} bytes of an unfinished write" if tail else ""
            what = f"was left by a writer that was killed: {journal.rows} rows{torn}"
            self._add(journal.path, "warning", what, "run repair, or open it with a writer")
        return True

    def _orphans(self) -> None:
        held = {*self._layout.numbers("data"), *self._layout.numbers("journal")}
        for folder, path in (("episodes", self._layout.episodes), ("seals", self._layout.seal)):
            for number in self._layout.numbers(folder):
                if number not in held:
                    self._add(path(number), "error", "its data shard is missing")
