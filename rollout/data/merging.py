"""Puts datasets of one task together by links to their shards, so that no step is copied."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rollout.data.card import write_card
from rollout.data.layout import Layout, full_disk_named, writer_of
from rollout.data.manifest import Manifest, differences, now, read_manifest, write_manifest
from rollout.data.reader import Dataset
from rollout.data.roll import collect, is_sealed, publish
from rollout.data.shard import ShardReader
from rollout.errors import DatasetError
from rollout.files import temporary

_MOST_NAMED = 5


def merge(sources: Sequence[Path], target: Path) -> int:
    """Makes a dataset of all steps of several, and returns the number of its shards.

    Shards are hard links where the file system allows it; else they are copied. The sources are
    not changed, and may be removed afterwards.

    Args:
        sources: the datasets, of one game and one task, with different numbers of episodes.
        target: the new dataset.

    Raises:
        DatasetError: the target exists; or a source is being written, is damaged, or holds
            something else than the first, or episodes of the same number.
        DiskFullError: the disk is full.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DatasetError(f"{target} exists; a merge overwrites nothing, name a new folder")
    layouts = [Layout.find(path) for path in sources]
    manifest = _joined(layouts)
    _require_closed(layouts)
    _require_different(layouts)
    new = Layout(temporary(target))
    if new.root.exists():
        shutil.rmtree(new.root)  # of a merge that was killed
    try:
        new.root.mkdir(parents=True)
        new.create()
        with full_disk_named(target, "writing"):
            write_manifest(new, manifest)
            write_card(new, manifest)
            count = 0
            for layout in layouts:
                for number in layout.numbers("data"):
                    _add(layout, number, new, count)
                    count += 1
        if target.exists():
            target.rmdir()
        new.root.rename(target)
    except BaseException:
        shutil.rmtree(new.root, ignore_errors=True)
        raise
    return count


def _joined(layouts: Sequence[Layout]) -> Manifest:
    """The description of the new dataset, which has every session of all."""
    if len({layout.root.resolve() for layout in layouts}) < len(layouts):
        raise DatasetError("expected different datasets, got one twice")
    first, *others = (read_manifest(layout) for layout in layouts)
    for layout, other in zip(layouts[1:], others, strict=True):
        if lines := differences(first, other):
            raise DatasetError(f"{layout.root} does not fit {layouts[0].root}: {'; '.join(lines)}")
    sessions = sum((other.sessions for other in others), first.sessions)
    damaged = sum((other.damaged for other in others), first.damaged)
    return replace(first, sessions=sessions, damaged=damaged, created=now())


def _require_closed(layouts: Sequence[Layout]) -> None:
    for layout in layouts:
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


def _require_different(layouts: Sequence[Layout]) -> None:
    """Checks that no episode is there twice: steps hold its number, and are not copied."""
    counts: Counter[int] = Counter()
    for layout in layouts:
        with Dataset(layout.root) as dataset:
            counts.update(set(dataset.table(["episode"])["episode"].to_pylist()))
    twice = sorted(number for number, count in counts.items() if count > 1)
    if twice:
        named = ", ".join(map(str, twice[:_MOST_NAMED]))
        more = f" and {len(twice) - _MOST_NAMED} more" if len(twice) > _MOST_NAMED else ""
        raise DatasetError(f"episodes of the same number are in two datasets: {named}{more}")


def _add(source: Layout, number: int, target: Layout, new: int) -> None:
    shard = target.data(new)
    try:
        os.link(source.data(number), temporary(shard))
    except OSError:
        shutil.copy2(source.data(number), temporary(shard))  # a file system without links
    reader = ShardReader(source.data(number))
    collector, losses = collect(reader, new), reader.losses
    reader.close()
    publish(target, new, collector, losses)
