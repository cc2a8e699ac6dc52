"""How much a recording will take on disk, estimated before it begins, and whether that fits."""

from __future__ import annotations

import logging
import math
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rollout.data.layout import Layout
from rollout.data.manifest import Manifest
from rollout.data.reader import Dataset
from rollout.data.schema import STEP, Column
from rollout.errors import ConfigError

# Bytes in memory to bytes on disk, measured on Crafter, Blockworld, Pendulum and the fake game.
_SMALLER_STEP, _SMALLER_IMAGE, _SMALLER = 8, 6, 4
_IMAGE = 64  # values of uint8 above which a column counts as an image
_ROLLING = 3  # journals that may exist while their shards are written
_MEASURED = 4 << 20  # bytes; in smaller datasets footers, or a journal, take most
_log = logging.getLogger(__name__)
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


@dataclass(frozen=True)
class SizeEstimate:
    """How much a recording will take. An estimate: games differ in how well they compress.

    Attributes:
        bytes_per_step: of a step on disk.
        measured: True if that was measured on what is recorded (4 MiB at least), False if it
            follows from the columns.
        raw_bytes_per_step: of a step that is not compressed, without texts.
        steps: most steps still to be recorded, final observations included; None if unknown.
        expected_bytes: of these steps, and at most the rest of the disk budget; None if unknown.
        free_bytes: of the disk.
    """

    bytes_per_step: float
    measured: bool
    raw_bytes_per_step: int
    steps: int | None
    expected_bytes: int | None
    free_bytes: int

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        folder: Path,
        *,
        episodes: int | None,
        env_steps: int | None,
        limit_steps: int | None,
        budget_bytes: int | None = None,
    ) -> SizeEstimate:
        """Returns the estimate of a recording that begins or continues.

        Args:
            manifest: what will be recorded.
            folder: the dataset; it need not exist.
            episodes: episodes of the whole recording; None for no limit.
            env_steps: steps of the whole recording; None for no limit.
            limit_steps: most steps of an episode; None if unknown.
            budget_bytes: most bytes of the dataset; None for no limit.
        """
        per_step, measured = sum(map(_expected, manifest.columns)), False
        ended, recorded, there = 0, 0, 0
        if Layout(folder).exists():
            with Dataset(folder) as dataset:
                recorded, ended = dataset.counts.steps, len(dataset.finished().episodes)
            there = dataset_bytes(Layout(folder))
            if recorded and there >= _MEASURED:
                per_step, measured = there / recorded, True
        bounds = []
        left = None if episodes is None else max(0, episodes - ended)
        if left is not None and limit_steps is not None:
            bounds.append(left * (limit_steps + 1))
        if env_steps is not None:
            bounds.append(max(0, env_steps - recorded) + (left or 0))
        steps = min(bounds, default=None)
        sizes = [] if steps is None else [math.ceil(steps * per_step)]
        if budget_bytes is not None:
            sizes.append(max(0, budget_bytes - there))
        return cls(
            *(round(per_step, 1), measured, manifest.row_bytes),
            *(steps, min(sizes, default=None), free_bytes(folder)),
        )

    def __str__(self) -> str:
        how = "measured" if self.measured else "estimated from the columns"
        what = "of unknown length"
        if self.steps is not None:
            what = f"of at most {self.steps:,} steps"
        size = "" if self.expected_bytes is None else f"about {in_units(self.expected_bytes)}, "
        return (
            f"a recording {what}: {size}{in_units(self.bytes_per_step)} a step ({how}; "
            f"{in_units(self.raw_bytes_per_step)} uncompressed); {in_units(self.free_bytes)} are "
            f"free on the disk"
        )

    def describe(self) -> dict[str, Any]:
        """Returns the estimate as JSON-able data."""
        return asdict(self)

    def warn_of(self, budget: int | None) -> None:
        """Warns if the recording is expected to take more than the budget of its run."""
        if budget is not None and (self.expected_bytes or 0) > budget:
            _log.warning(
                "the recording is expected to take %s, and the run ends at %s (disk_budget_gb)",
                *(in_units(self.expected_bytes or 0), in_units(budget)),
            )

    def require_room(self, shard_bytes: int, folder: Path) -> None:
        """Checks that the disk has room for the recording and for the writing of its shards.

        Raises:
            ConfigError: it has not; the message has the numbers.
        """
        if self.expected_bytes is None:
            return
        reserve = min(self.expected_bytes, _ROLLING * shard_bytes)
        if self.expected_bytes + reserve > self.free_bytes:
            raise ConfigError(
                f"no room for {self} at {folder}; with {in_units(reserve)} for the writing of "
                f"shards, {in_units(self.expected_bytes + reserve)} are needed: free some, choose "
                f"another output, fewer episodes or env_steps, another recording.codec, or end the "
                f"run at a size by recording.disk_budget_gb"
            )


def dataset_bytes(layout: Layout) -> int:
    """Returns the bytes of the shards and journals of a dataset."""
    numbers = {folder: layout.numbers(folder) for folder in layout.folders}
    numbers["journal"] = sorted({*numbers["journal"]} - {*numbers["data"]})
    total = 0
    for folder, found in numbers.items():
        for number in found:
            # A journal is removed after its shard is in place, and may disappear meanwhile. A file
            # that cannot be read is named where it is opened.
            with suppress(OSError):
                total += layout.file(folder, number).stat().st_size
    return total


def free_bytes(folder: Path) -> int:
    """Returns the free bytes of the disk on which a folder is, or will be."""
    there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    return shutil.disk_usage(there).free


def in_units(nbytes: float) -> str:
    """Returns a number of bytes as text, e.g. ``1.5 GB``."""
    power = min(len(_UNITS) - 1, int(math.log10(max(nbytes, 1)) / 3 + 1e-9))
    return f"{nbytes / 1000**power:.3g} {_UNITS[power]}"


def _expected(column: Column) -> float:
    """The expected bytes of a value on disk."""
    if column.nullable:
        return 0.0
    if column.role == STEP:
        return column.row_bytes / _SMALLER_STEP
    image = column.dtype == "uint8" and math.prod(column.shape) > _IMAGE
    return column.row_bytes / (_SMALLER_IMAGE if image else _SMALLER)
