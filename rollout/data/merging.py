"""Puts datasets of one task together by links to their shards, so that no step is copied."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, differences, now, read_manifest
from rollout.data.new_folder import new_dataset, new_folder, require_closed
from rollout.data.reader import Dataset
from rollout.data.roll import collect, publish
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
    layouts = [Layout.find(path) for path in sources]
    with new_folder(target) as root:
        manifest = _joined(layouts)
        for layout in layouts:
            require_closed(layout)
        _require_different(layouts)
        new, count = new_dataset(root, manifest), 0
        for layout in layouts:
            for number in layout.numbers("data"):
                link_shard(layout, number, new, count)
                count += 1
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
        raise DatasetError(
            f"episodes of the same number are in two datasets: {named}{more}; runs that are to be "
            f"merged play parts of the same episodes: gamut collect ... --set part=1/2"
        )


def link_shard(source: Layout, number: int, target: Layout, new: int) -> None:
    """Adds a shard to another dataset under a new number, by a link where there can be one."""
    shard = target.data(new)
    try:
        os.link(source.data(number), temporary(shard))
    except OSError:
        shutil.copy2(source.data(number), temporary(shard))  # a file system without links
    reader = ShardReader(source.data(number))
    collector, losses = collect(reader, new), reader.losses
    reader.close()
    publish(target, new, collector, losses)
