"""Folders of datasets that appear when they are complete."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollout.data.card import write_card
from rollout.data.layout import Layout, full_disk_named, writer_of
from rollout.data.manifest import Manifest, write_manifest
from rollout.data.roll import is_sealed
from rollout.errors import DatasetError
from rollout.files import temporary


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Gives an empty folder that becomes ``target`` when the block ends without an error.

    Raises:
        DatasetError: the target exists.
        DiskFullError: the disk is full.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatasetError(f"{target} exists; this overwrites nothing, name a new folder")
    new = temporary(target)
    if new.exists():
        shutil.rmtree(new)  # of a process that was killed
    new.mkdir(parents=True)
    try:
        with full_disk_named(target, "writing"):
            yield new
        if target.exists():
            target.rmdir()
        new.rename(target)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def new_dataset(root: Path, manifest: Manifest) -> Layout:
    """Makes a dataset without shards, and returns its layout."""
    layout = Layout(root)
    layout.create()
    write_manifest(layout, manifest)
    write_card(layout, manifest)
    return layout


def require_closed(layout: Layout) -> None:
    """Checks that a dataset is not being written and that all of it is in shards.

    Raises:
        DatasetError: it is being written, was left by a run that was killed, or is damaged.
    """
    if writer := writer_of(layout):
        raise DatasetError(f"{layout.root} is being written by {writer}; wait until it is done")
    if layout.numbers("journal"):
        raise DatasetError(
            f"{layout.root} has journals of a run that was killed; first run: "
            f"gamut dataset repair {layout.root}"
        )
    for number in layout.numbers("data"):
        if not is_sealed(layout, number):
            raise DatasetError(
                f"{layout.data(number)} is damaged or not sealed; run: "
                f"gamut dataset doctor {layout.root}"
            )
