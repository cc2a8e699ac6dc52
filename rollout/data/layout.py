"""The files of a dataset: their paths, how they are written atomically, and the writer's lock.

::

    dataset.json                    what the dataset holds (see manifest)
    README.md                       the same for people and for Hugging Face (see card)
    dataset.lock                    held by the one process that writes
    data/shard-000000.parquet       steps, one row each
    episodes/shard-000000.parquet   one row per episode that finished in the data shard
    seals/shard-000000.json         digest of the data shard and a copy of its footer
    journal/shard-000007.arrows     the open shard, an Arrow IPC stream
    quarantine/                     files that ``repair`` could not keep

A journal and the data shard it becomes have the same number and the same rows in the same order,
so a row is identified by (shard number, row) as soon as it is in the journal. A file that is being
written starts with a dot and ends in ``.tmp``; readers of Parquet folders ignore such files.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partialmethod
from pathlib import Path

from rollout.errors import DatasetError, DatasetLockedError, DiskFullError, is_disk_full
from rollout.files import live_holder_of, locked

_SUFFIXES = {"data": "parquet", "episodes": "parquet", "seals": "json", "journal": "arrows"}
_NUMBERED = re.compile(r"shard-(\d{6,9})\.(parquet|json|arrows)")  # 32 bits in the index
_LOCK_WAIT_S = 0.5  # longer than a process holds the lock just to find out who the writer is


@contextmanager
def full_disk_named(path: Path, doing: str) -> Iterator[None]:
    """Turns "no space" errors of the block into a ``DiskFullError`` that says what to do."""
    try:
        yield
    except OSError as error:
        if isinstance(error, DiskFullError) or not is_disk_full(error):
            raise
        raise DiskFullError(
            f"no room on disk while {doing} {path}: {error}. Everything recorded before is "
            f"kept and readable; free some space and open the dataset again to continue"
        ) from error


class Layout:
    """Paths of one dataset directory, which need not exist.

    The files of a shard are found by its number: ``data``, ``episodes``, ``seal``, ``journal``.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.manifest = self.root / "dataset.json"
        self.card = self.root / "README.md"
        self.lock = self.root / "dataset.lock"
        self.folders = {name: self.root / name for name in _SUFFIXES}
        self.quarantine = self.root / "quarantine"

    @classmethod
    def find(cls, path: Path | str) -> Layout:
        """Returns the dataset in a directory, or in ``dataset/`` of a run directory."""
        own, inner = cls(path), cls(Path(path) / "dataset")
        return inner if inner.exists() and not own.exists() else own

    def exists(self) -> bool:
        """Returns True if the directory contains a dataset, or the remains of one."""
        return self.manifest.is_file() or any(map(self.numbers, self.folders))

    def create(self) -> None:
        """Makes the folders."""
        for folder in self.folders.values():
            folder.mkdir(parents=True, exist_ok=True)

    def file(self, folder: str, number: int) -> Path:
        """Returns the path of a file in a folder (a key of ``folders``)."""
        return self.folders[folder] / f"shard-{number:06d}.{_SUFFIXES[folder]}"

    data = partialmethod(file, "data")
    episodes = partialmethod(file, "episodes")
    seal = partialmethod(file, "seals")
    journal = partialmethod(file, "journal")

    def fetch(self, number: int) -> None:
        """Makes sure that a data shard is here, if it is kept elsewhere."""

    def close(self) -> None:
        """Removes what was fetched, if anything was. Idempotent."""

    def numbers(self, folder: str) -> list[int]:
        """Returns the numbers of the files in a folder, ascending."""
        try:
            names = [path.name for path in self.folders[folder].iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise DatasetError(
                f"cannot list the folder {self.folders[folder]}: {error.strerror}; restore it"
            ) from error
        return numbers_in(names)

    def last_number(self) -> int:
        """Returns the highest shard number that a file has; -1 if there is none."""
        return max((n for folder in self.folders for n in self.numbers(folder)[-1:]), default=-1)

    def strays(self) -> list[Path]:
        """Returns the temporary files that an interrupted write left."""
        folders = (self.root, *self.folders.values())
        return sorted(p for f in folders if f.is_dir() for p in f.glob(".*.tmp"))

    def orphans(self) -> list[Path]:
        """Returns the indexes and seals whose shard is missing."""
        made = [(folder, n) for folder in ("episodes", "seals") for n in self.numbers(folder)]
        # In this order: an index is made before its journal is removed, which has a shard then.
        held = {*self.numbers("journal"), *self.numbers("data")}
        return [self.file(folder, n) for folder, n in made if n not in held]

    def name(self, path: Path) -> str:
        """Returns the path of a file within the dataset."""
        return str(path.relative_to(self.root))

    def set_aside(self, path: Path) -> Path:
        """Moves a file into ``quarantine/`` under an unused name, and returns that name."""
        return path.rename(self._quarantine_name(path))

    def keep_copy(self, path: Path) -> Path:
        """Copies a file into ``quarantine/``, and returns its name there."""
        target = self._quarantine_name(path)
        try:
            os.link(path, target)
        except OSError:
            shutil.copy2(path, target)  # a file system without links
        return target

    def _quarantine_name(self, path: Path) -> Path:
        self.quarantine.mkdir(exist_ok=True)
        parent = "" if path.parent == self.root else f"{path.parent.name}-"
        base = f"{parent}{path.name.lstrip('.')}"
        names = (base if n == 1 else f"{base}.{n}" for n in itertools.count(1))
        return next(t for name in names if not (t := self.quarantine / name).exists())


def numbers_in(names: Iterable[str]) -> list[int]:
    """Returns the shard numbers in names of files, ascending; other files have none."""
    return sorted(int(match[1]) for match in map(_NUMBERED.fullmatch, names) if match)


@contextmanager
def writing(layout: Layout, purpose: str) -> Iterator[None]:
    """Holds the right to write a dataset; it is given back when the process dies, too.

    The purpose is shown to other processes that try to write.

    Raises:
        DatasetLockedError: another live process has it; the message says which.
    """
    layout.root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(layout.lock, _LOCK_WAIT_S, purpose))
        except BlockingIOError as error:
            raise DatasetLockedError(
                f"dataset {layout.root} is being written by {error.strerror}; stop that process, "
                f"or write to another directory"
            ) from None
        yield


def writer_of(layout: Layout) -> str | None:
    """Returns the process that is writing the dataset right now, or None."""
    return live_holder_of(layout.lock)
