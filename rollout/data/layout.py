"""Where the files of a dataset lie, how they are put in place, and who may write them.

::

    dataset.json                    what the dataset holds (see manifest)
    dataset.lock                    held by the one process that writes
    data/shard-000000.parquet       steps, one row each
    episodes/shard-000000.parquet   one row per episode that finished in the data shard
    seals/shard-000000.json         digest of the data shard and a copy of its footer
    journal/shard-000007.arrows     the open shard, an Arrow IPC stream
    quarantine/                     what ``repair`` could not keep

A journal and the data shard it becomes have the same number and the same rows in the same order,
so a row is named by (shard number, row) from the moment it is journalled. A file that is being
written starts with a dot and ends in ``.tmp``; no reader of Parquet folders looks at those.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollout.errors import DatasetLockedError, DiskFullError, is_disk_full

_NUMBERED = re.compile(r"shard-(\d{6,})\.(parquet|json|arrows)")
_LOCK_WAIT_S = 0.5  # longer than anyone holds the lock just to ask who has it


@contextmanager
def full_disk_named(path: Path, doing: str) -> Iterator[None]:
    """Turns "no space" errors of the block into ``DiskFullError``; other errors pass.

    Raises:
        DiskFullError: names the file and what to do.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, DiskFullError) or not is_disk_full(error):
            raise
        raise DiskFullError(
            f"no room on the disk while {doing} {path}: {error}. Everything recorded before is "
            f"kept and readable; free some space and open the dataset again to go on"
        ) from error


class Layout:
    """Paths of one dataset directory.

    Args:
        root: the directory; it need not exist.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.manifest = self.root / "dataset.json"
        self.lock = self.root / "dataset.lock"
        self.folders = {
            "data": self.root / "data",
            "episodes": self.root / "episodes",
            "seals": self.root / "seals",
            "journal": self.root / "journal",
        }
        self.quarantine = self.root / "quarantine"

    def create(self) -> None:
        """Makes the folders."""
        for folder in self.folders.values():
            folder.mkdir(parents=True, exist_ok=True)

    def data(self, number: int) -> Path:
        """Returns the path of a data shard."""
        return self.folders["data"] / f"shard-{number:06d}.parquet"

    def episodes(self, number: int) -> Path:
        """Returns the path of the episode index of a data shard."""
        return self.folders["episodes"] / f"shard-{number:06d}.parquet"

    def seal(self, number: int) -> Path:
        """Returns the path of the seal of a data shard."""
        return self.folders["seals"] / f"shard-{number:06d}.json"

    def journal(self, number: int) -> Path:
        """Returns the path of a journal."""
        return self.folders["journal"] / f"shard-{number:06d}.arrows"

    def numbers(self, folder: str) -> list[int]:
        """Returns the numbers of the files in a folder (a key of ``folders``), ascending."""
        try:
            names = [path.name for path in self.folders[folder].iterdir()]
        except FileNotFoundError:
            return []
        found = map(_NUMBERED.fullmatch, names)
        return sorted(int(match[1]) for match in found if match)

    def next_number(self) -> int:
        """Returns a shard number that no file has."""
        taken = [n for folder in self.folders for n in self.numbers(folder)[-1:]]
        return max(taken, default=-1) + 1

    def strays(self) -> list[Path]:
        """Returns the temporary files that an interrupted write left."""
        folders = (self.root, *self.folders.values())
        return sorted(p for f in folders if f.is_dir() for p in f.glob(".*.tmp"))

    def set_aside(self, path: Path) -> Path:
        """Moves a file into ``quarantine/`` under a name that is free, and returns that name."""
        return path.rename(self._quarantine_name(path))

    def keep_copy(self, path: Path) -> Path:
        """Puts a file into ``quarantine/`` too, and returns its name there."""
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


def sync_file(path: Path) -> None:
    """Forces a file, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary(path: Path) -> Path:
    """Returns the name that a file has until it is complete."""
    return path.with_name(f".{path.name}.tmp")


def put_in_place(path: Path, *, fsync: bool = True) -> None:
    """Gives a complete temporary file its name; a crash leaves the old file or the new one."""
    if fsync:
        sync_file(temporary(path))
    temporary(path).replace(path)
    if fsync:
        sync_file(path.parent)


def write_text(path: Path, text: str, *, fsync: bool = True) -> None:
    """Writes a small file: whole, or not at all."""
    temporary(path).write_text(text, encoding="utf-8")
    put_in_place(path, fsync=fsync)


class WriterLock:
    """The right to write a dataset; given back when released or when the process dies.

    Args:
        layout: the dataset.
        purpose: what it is taken for, told to whoever is refused.

    Raises:
        DatasetLockedError: another live process has it; the message says which.
    """

    def __init__(self, layout: Layout, purpose: str) -> None:
        layout.root.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(layout.lock, os.O_RDWR | os.O_CREAT, 0o644)
        if not _flock(self._handle, wait_s=_LOCK_WAIT_S):
            os.close(self._handle)
            raise DatasetLockedError(
                f"dataset {layout.root} is being written by {_holder(layout)}; stop that "
                f"process, or write to another directory"
            )
        who = {"pid": os.getpid(), "host": socket.gethostname(), "purpose": purpose}
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, json.dumps(who).encode(), 0)

    def release(self) -> None:
        """Gives the right back. Idempotent."""
        if self._handle >= 0:
            # The file stays: removing it would let two writers lock two files of one name.
            os.close(self._handle)
            self._handle = -1


def writer_of(layout: Layout) -> str | None:
    """Returns who is writing the dataset right now, None if nobody is."""
    try:
        handle = os.open(layout.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(layout)
    finally:
        os.close(handle)
    return None


def _flock(handle: int, *, wait_s: float) -> bool:
    """Tries to lock, again for a moment: ``writer_of`` holds the lock while it asks."""
    pause = threading.Event()
    for _ in range(10):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pause.wait(wait_s / 10)
        else:
            return True
    return False


def _holder(layout: Layout) -> str:
    try:
        who = json.loads(layout.lock.read_text(encoding="utf-8"))
        return f"process {who['pid']} on {who['host']} ({who['purpose']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that has not written its name yet"
