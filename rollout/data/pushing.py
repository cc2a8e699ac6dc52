"""Copies a dataset or an export to a folder or to an address of fsspec."""

from __future__ import annotations

from pathlib import Path

from rollout.data.layout import Layout, writer_of
from rollout.data.remote import open_system
from rollout.errors import DatasetError

_LEFT_OUT = ("dataset.lock",)
_LAST = ("dataset.json", "gamut.json")
"""Copied last: without them, a folder that is incomplete is not taken for a dataset."""


def push(source: Path, address: str) -> int:
    """Copies every file of a folder, and returns their number.

    Args:
        source: a dataset, its run directory, or the folder of an export.
        address: a new or empty folder: a path, or an address such as ``s3://bucket/name``.

    Raises:
        DatasetError: there is no such folder, it is being written, the address holds files, or
            cannot be written.
    """
    layout = Layout.find(source)
    root = layout.root if layout.exists() else source
    if not root.is_dir() or not any(root.iterdir()):
        raise DatasetError(f"expected a dataset or the folder of an export, got {source}")
    if writer := writer_of(layout):
        raise DatasetError(f"{root} is being written by {writer}; wait until it is done")
    files = sorted(p for p in root.rglob("*") if p.is_file() and p.name not in _LEFT_OUT)
    files.sort(key=lambda path: path.name in _LAST)
    system, base = open_system(address)
    # Libraries of stores raise errors of their own, of every kind.
    try:
        if system.exists(base) and system.find(base):
            raise DatasetError(f"{address} holds files; a push overwrites nothing, name another")
        for path in files:
            place = f"{base}/{path.relative_to(root).as_posix()}"
            system.makedirs(place.rpartition("/")[0], exist_ok=True)
            system.put_file(str(path), place)
            size = system.size(place)
            if size != path.stat().st_size:
                raise DatasetError(f"{place}: expected {path.stat().st_size} bytes, got {size}")
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(f"cannot write to {address}: {error!r}") from error
    return len(files)
