"""The working directory of a job: the files that Ray sends, and their size."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rollout.errors import ConfigError
from rollout.files import write_atomically

LIMIT_BYTES = 100 << 20  # from which the dashboard refuses a working directory (Ray 2.60)
RAYIGNORE = ".rayignore"  # file of patterns, as in .gitignore, of what is not sent

# The patterns of a new .rayignore: what may be large and is of no use to a job. Anchored where a
# package of ours might have the name.
PATTERNS = (
    *("/runs", "/wandb", "/videos", "/checkpoints", "/datasets", "/build", "/dist"),
    *(".venv", ".env", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
    *("*.egg-info", "*.mp4", "*.ckpt", "*.parquet", "*.arrow", "core.[0-9]*"),
)

_NO_GITIGNORE = "RAY_RUNTIME_ENV_IGNORE_GITIGNORE"
_SILENT = logging.getLogger(f"{__name__}.ray")
_SILENT.setLevel(logging.CRITICAL)  # Ray names every ignore file it reads

# Ray stores files in a zip, not compressed: two headers with the name for each, and an end.
_ENTRY_BYTES, _END_BYTES = 30 + 46, 22


@dataclass(frozen=True)
class Package:
    """The files of a working directory that are sent.

    Attributes:
        folder: the working directory, absolute.
        files: path in it and size in bytes of everything that is sent, largest first; empty folders
            count as files of size 0.
        left_out: names right in the folder that are not sent at all.
        excludes: patterns beyond those of the ignore files in it.
    """

    folder: Path
    files: tuple[tuple[str, int], ...]
    left_out: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes that are sent."""
        entries = (size + 2 * len(path.encode()) + _ENTRY_BYTES for path, size in self.files)
        return sum(entries) + _END_BYTES

    def folders(self) -> list[tuple[str, int]]:
        """Returns the folders right in the working directory, and their bytes, largest first."""
        sizes: Counter[str] = Counter()
        for path, size in self.files:
            top, below, _ = path.partition("/")
            if below:
                sizes[f"{top}/"] += size
        return sizes.most_common()

    def require_sendable(self) -> None:
        """Raises a ConfigError if the dashboard refuses it, naming what makes it too large."""
        if self.size < LIMIT_BYTES:
            return
        largest = sorted([*self.folders()[:3], *self.files[:3]], key=lambda each: -each[1])[:3]
        named = ", ".join(f"{path} ({mib(size)})" for path, size in largest)
        raise ConfigError(
            f"working directory {self.folder} is {mib(self.size)}, and Ray takes less than "
            f"{mib(LIMIT_BYTES)}; largest: {named}; name what the job does not need in "
            f"{self.folder / RAYIGNORE}, and have it read the rest from shared storage"
        )


def mib(size: int) -> str:
    """Returns a size in bytes for people."""
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 // 10 else f"{size / 2**10:.1f} KiB"


def ignored_by_default(folder: Path) -> tuple[str, ...]:
    """Returns the patterns of a new ``.rayignore`` of a folder; none if it has one."""
    return () if (folder / RAYIGNORE).exists() else PATTERNS


def write_rayignore(folder: Path) -> bool:
    """Writes a ``.rayignore`` if there is none; returns whether it did."""
    patterns = ignored_by_default(folder)
    if not patterns:
        return False
    text = "# Not sent with `ray job submit`; .gitignore counts too.\n" + "\n".join(patterns) + "\n"
    try:
        write_atomically(folder / RAYIGNORE, text)
    except OSError as error:
        raise ConfigError(
            f"{folder / RAYIGNORE} cannot be written: {error.strerror}; choose a --working-dir "
            f"that is yours"
        ) from error
    return True


def _require_ending(path: Path, places: dict[Path, tuple[int, int]]) -> None:
    """Checks that Ray can read a path to its end; Ray opens every file and follows every link.

    ``places`` are device and inode of the folders that the path is in; its own are added.
    """
    reason = ""
    if path.is_fifo() or path.is_char_device() or path.is_block_device():
        reason = "is a pipe or a device, which Ray would read forever"
    elif path.is_dir():
        at = path.stat()
        places[path] = (at.st_dev, at.st_ino)
        if any(places.get(above) == places[path] for above in path.parents):
            reason = "leads back to a folder that it is in, which Ray would send again and again"
    if reason:
        raise ConfigError(f"{path} {reason}; name it in {RAYIGNORE}, or move it")


def read_package(folder: Path, excludes: Sequence[str] = ()) -> Package:
    """Returns the files of a folder that Ray would send, by Ray's own rules.

    These are its default excludes, and every ``.gitignore`` and ``.rayignore`` in the folder.

    Args:
        folder: the working directory.
        excludes: further patterns.

    Raises:
        ConfigError: it is not a folder, or a file in it cannot be read to its end.
    """
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"working directory {folder}: there is no such folder; give another")
    # Ray has no public name for this. It is pinned, and a test compares with a package of Ray's.
    from ray._private.ray_constants import (  # noqa: PLC0415 - takes a second
        get_runtime_env_default_excludes,
    )
    from ray._private.runtime_env import packaging  # noqa: PLC0415

    found: list[tuple[str, int]] = []
    places: dict[Path, tuple[int, int]] = {}

    def note(path: Path) -> None:
        _require_ending(path, places)
        if path.is_file() or (path.is_dir() and next(path.iterdir(), None) is None):
            size = path.stat().st_size if path.is_file() else 0
            found.append((path.relative_to(folder).as_posix(), size))

    patterns = [*get_runtime_env_default_excludes(), *excludes]
    try:
        packaging._dir_travel(
            folder,
            [packaging._get_excludes(folder, patterns)],
            note,
            include_gitignore=os.environ.get(_NO_GITIGNORE, "0") != "1",
            logger=_SILENT,
        )
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise ConfigError(
            f"{error.filename} cannot be read: {error.strerror}; name it in {folder / RAYIGNORE}, "
            f"or make it readable"
        ) from error
    found.sort(key=lambda each: (-each[1], each[0]))
    sent = {path.partition("/")[0] for path, _ in found}
    left_out = tuple(name for name in names if name not in sent)
    return Package(folder, tuple(found), left_out, tuple(excludes))
