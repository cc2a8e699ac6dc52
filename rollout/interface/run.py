"""A run directory as an object: its summary, its tables, its dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.data import Dataset
from rollout.data.tables import read_table
from rollout.errors import DatasetError, RunDirectoryError
from rollout.files import read_lines
from rollout.observe.metrics import read_metrics
from rollout.observe.run_files import METRICS, RUN, SUMMARY, parse, read_json


@dataclass(frozen=True)
class Run:
    """A run, ended or in progress; its files are read whenever an attribute is.

    Attributes:
        path: its run directory.
        missing: sentence on what is missing, if the run ended early; None if everything was done.

    Raises:
        RunDirectoryError: there is no run at the path.
    """

    path: Path
    missing: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).expanduser().resolve())
        if not (self.path / RUN).is_file():
            raise RunDirectoryError(
                f"there is no run in {self.path}; expected a run directory, with a {RUN}"
            )

    @property
    def summary(self) -> dict[str, Any]:
        """The contents of ``summary.json``; empty before the run has ended."""
        return dict(read_json(self.path / SUMMARY))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of ``metrics.jsonl``, oldest first; ``polars.DataFrame(run.metrics)``."""
        return [dict(line) for line in read_metrics(self.path / METRICS)]

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """A row for each episode that has a result, as the job recorded it.

        Of an evaluation these are the rows of ``episodes.parquet``, of a sweep those of
        ``results.parquet``, of a training those of ``episodes.jsonl``, of a collection the results
        in the index of its dataset.

        Raises:
            RunDirectoryError: the run has recorded no episode.
            DatasetError: the file is damaged.
        """
        for name in ("episodes.parquet", "results.parquet"):
            if (self.path / name).exists():
                table = read_table(self.path / name)
                rows = zip(*(column.tolist() for column in table.values()), strict=True)
                return [dict(zip(table, row, strict=True)) for row in rows]
        if (lines := self.path / "episodes.jsonl").exists():
            return list(_rows(lines))
        if (self.path / "dataset").exists():
            with self.dataset as dataset:
                return [row for row in dataset.index.to_pylist() if row["end"] != "lost"]
        raise RunDirectoryError(f"the run in {self.path} has recorded no episode")

    @property
    def dataset(self) -> Dataset:
        """The dataset of a collection.

        Raises:
            DatasetError: the run has recorded none.
        """
        return Dataset(self.path / "dataset")

    def __repr__(self) -> str:
        state = "done" if self.missing is None else self.missing
        return f"Run({str(self.path)!r}, {json.dumps(self.summary.get('status', state))})"


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the episodes of a run that has not ended; an incomplete last line is left out."""
    for number, raw in enumerate(read_lines(path), start=1):
        if not raw.endswith(b"\n"):
            return
        row = parse(raw)
        if row is None:
            raise DatasetError(
                f"{path}:{number}: expected an episode, got {raw[:40]!r}; remove the line"
            )
        yield row
