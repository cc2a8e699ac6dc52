"""The conformance suite of exporters, and an exporter that comes with it."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Columns, Exporter, ReadsBack
from rollout.errors import DatasetError
from rollout.files import read_lines
from rollout.testing.report import Report, Skipped, Suite, require

_REWARD = "reward"


@dataclass(frozen=True)
class FakeExporter:
    """Writes the rewards of each episode as a line of JSON, and reads them back."""

    def check(self, dataset: Any, episodes: Sequence[Any], out: Path) -> None:
        """Checks the name of the file."""
        if out.suffix != ".jsonl":
            raise DatasetError(f"expected a file .jsonl, got {out}")

    def write(self, dataset: Any, episodes: Sequence[Any], out: Path) -> int:
        """Writes a line for each episode."""
        self.check(dataset, episodes, out)
        rewards = [dataset.read(ref, [_REWARD]).columns[_REWARD].tolist() for ref in episodes]
        out.write_text("".join(json.dumps(each) + "\n" for each in rewards), "utf-8")
        return len(rewards)

    def read(self, path: Path) -> Iterator[Columns]:
        """Yields the rewards of each episode."""
        for line in read_lines(path):
            yield {_REWARD: np.array(json.loads(line), np.float32)}


@dataclass
class _Case:
    """An exporter, and what it is to write."""

    exporter: Exporter
    dataset: Any
    episodes: Sequence[Any]
    out: Path

    def written(self) -> int:
        return self.exporter.write(self.dataset, self.episodes, self.out)


def check_exporter(
    exporter: Exporter,
    dataset: Any,
    episodes: Sequence[Any],
    name: str,
    *,
    timeout_s: float = 60.0,
) -> Report:
    """Returns whether an exporter keeps its contract.

    Args:
        exporter: the exporter.
        dataset: an open ``rollout.data.Dataset``.
        episodes: episodes of it that the exporter can write, all of them.
        name: name of the file or folder to write, e.g. ``actions.npz``.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "writes": _writes,
        "replaces": _replaces,
        "leaves the dataset alone": _leaves,
        "reads back": _reads_back,
    }
    with tempfile.TemporaryDirectory(prefix="gamut-exporter-") as folder:
        case = _Case(exporter, dataset, episodes, Path(folder) / name)
        suite = Suite(f"exporter {type(exporter).__name__}", timeout_s)
        return suite.run(checks, case, required="writes")


def _writes(case: _Case) -> str:
    require(dataclasses.is_dataclass(case.exporter), f"{case.exporter!r} is not a dataclass")
    case.exporter.check(case.dataset, case.episodes, case.out)
    require(not case.out.exists(), f"check: it has written {case.out.name}")
    count = case.written()
    require(count > 0, f"expected the number of what was written, got {count!r}")
    there = sorted(path.name for path in case.out.parent.iterdir())
    require(there == [case.out.name], f"expected {case.out.name} alone, got {there}")
    return f"{count}"


def _replaces(case: _Case) -> str:
    before, after = case.written(), case.written()
    require(before == after, f"it wrote {before} the first time and {after} the second")
    return f"{after}, twice"


def _leaves(case: _Case) -> str:
    root = case.dataset.layout.root
    before, _, after = _files(root), case.written(), _files(root)
    changed = sorted({path for path, *_ in before ^ after})
    require(not changed, f"it changed {', '.join(changed)}")
    return f"{len(after)} files"


def _files(root: Path) -> set[tuple[str, int, int]]:
    files = [(path, path.stat()) for path in root.rglob("*") if path.is_file()]
    return {(str(path), stat.st_size, stat.st_mtime_ns) for path, stat in files}


def _reads_back(case: _Case) -> str:
    if not isinstance(case.exporter, ReadsBack):
        raise Skipped("its files are not read back")
    case.written()
    found = list(case.exporter.read(case.out))
    count = len(case.episodes)
    require(len(found) == count, f"of {count} episodes, {len(found)} were read")
    for ref, columns in zip(case.episodes, found, strict=True):
        want = case.dataset.read(ref, list(columns)).columns
        wrong = [
            name
            for name, got in columns.items()
            if not np.array_equal(got, want[name].astype(got.dtype))
        ]
        require(not wrong, f"episode {ref.episode}: other values of {', '.join(wrong)}")
    return ", ".join(found[0])
