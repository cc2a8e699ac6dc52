"""Frame stacks: of an observation that consists of the last frames, only the newest is stored.

The older frames of a step are normally the newest ones of the steps before. Every step is compared
with the step before it, byte for byte; where they differ, at the start of an episode and at the
start of each fragment, the older frames are stored, too. So a stack is always read as it was
written, and a stretch of rows of one fragment can be read without those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rollout.api import Array
from rollout.data.codec import Codec, decode
from rollout.data.schema import OBSERVATION, OLDER, Column
from rollout.errors import DatasetError


@dataclass(frozen=True)
class FrameStack:
    """An observation that is a stack of frames, and the two columns that store it.

    Attributes:
        whole: the column as it is read.
        axis: axis of the frames, oldest first.
        newest: the column of newest frames.
        older: the column of the other frames, null in most rows.
    """

    whole: Column
    axis: int
    newest: Column
    older: Column

    @classmethod
    def of(cls, column: Column, axis: int) -> FrameStack:
        """Returns the stack of a column, which has the codec of a frame."""
        shape, count = frame_shape(column.shape, axis), column.shape[axis]
        said = f"newest of {count} frames {column.doc}"
        newest = replace(column, shape=shape, stack=(axis, count), doc=said)
        name = OLDER if column.key == OBSERVATION else f"{OLDER}/{column.key}"
        older = Column(
            *(name, OLDER, column.key, column.dtype, (count - 1, *shape)),
            unit=column.unit,
            doc="the older frames, oldest first; null if they are the newest of the steps before",
            codec=Codec("raw"),
            nullable=True,
        )
        return cls(column, axis, newest, older)

    @property
    def count(self) -> int:
        """Number of frames."""
        return self.whole.shape[self.axis]

    def frames(self, values: Array) -> Array:
        """Returns values ``(T, B, *shape)`` as ``(T, B, frames, *frame)``, oldest first."""
        return np.moveaxis(values, 2 + self.axis, 2)

    def join(self, newest: Array, older: Sequence[pa.ChunkedArray], skip: int) -> Array:
        """Returns the stacks of consecutive steps of an episode.

        Args:
            newest: newest frames of ``n`` steps, ``(n, *frame)``.
            older: the column of older frames of the same steps.
            skip: how many of the steps are not wanted, and only given for their frames.

        Returns:
            ``(n - skip, *shape)``.

        Raises:
            DatasetError: older frames are missing.
        """
        back = np.arange(self.count - 1, -1, -1)
        index = np.arange(skip, len(newest))[:, None] - back
        stored = pa.chunked_array([c for part in older for c in part.chunks], pa.binary())
        rows: NDArray[np.int64] = np.flatnonzero(stored.is_valid().to_numpy())
        frames = newest
        if len(rows):
            column = self.older
            array = stored.drop_null().combine_chunks()
            kept = decode(column.codec, column.dtype, column.shape, array)
            frames = np.concatenate([newest, kept.reshape(-1, *newest.shape[1:])])
            last = np.searchsorted(rows, np.arange(skip, len(newest)), side="right") - 1
            # Frames before the last row with older frames are among these.
            before = rows[last][:, None] - index
            place = len(newest) + last[:, None] * (self.count - 1) + self.count - 1 - before
            index = np.where((last[:, None] >= 0) & (before > 0), place, index)
        if index.size and index.min() < 0:
            raise DatasetError(
                f"column {self.whole.name}: the frames before a step are missing; "
                f"run: gamut dataset doctor"
            )
        stacks = np.moveaxis(frames[index], 1, 1 + self.axis)
        return np.ascontiguousarray(stacks)


def frame_shape(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Returns the shape of a frame of a stack."""
    return (*shape[:axis], *shape[axis + 1 :])


def follows(frames: Array, start_index: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Returns whether the older frames of each step are the newer ones of the step before.

    Args:
        frames: ``(T, B, frames, *frame)`` of a fragment.
        start_index: ``(T, B)`` of the fragment: steps of an episode have the same number.

    Returns:
        ``(T, B)``.
    """
    same = np.zeros(start_index.shape, bool)
    if len(frames) > 1:
        # Compared as bytes, so that NaN equals NaN; eight at a time where that is possible.
        data = np.ascontiguousarray(frames).reshape(*frames.shape[:3], -1).view(np.uint8)
        data = data.view(np.uint64) if data.shape[-1] % 8 == 0 else data
        same[1:] = (data[1:, :, :-1] == data[:-1, :, 1:]).all((2, 3))
        same[1:] &= start_index[1:] == start_index[:-1]
    return same
