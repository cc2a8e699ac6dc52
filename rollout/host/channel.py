"""Columns shared between a game's process and its host, without a copy through a pipe.

The memory is an anonymous file that both processes map. It has no name, so nothing is left behind
whichever of the two is killed, and however.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollout.api import Array, BridgeSpec, Columns, Frame
from rollout.host.frames import FrameColumn, fixed_columns, frame_columns

_ALIGN = 64  # bytes; a cache line, so that no two columns share one


def _layout(spec: BridgeSpec, width: int) -> tuple[list[tuple[FrameColumn, int]], int]:
    """Returns the columns of a frame and of actions with their offsets, and the size of all.

    Texts have no fixed size and travel by message.
    """
    columns, size = [], 0
    for column in (*frame_columns(spec), *fixed_columns("action", spec.action_space)):
        columns.append((column, size))
        size += -(-column.dtype.itemsize * width * math.prod(column.shape) // _ALIGN) * _ALIGN
    return columns, max(size, mmap.PAGESIZE)


def create_memory(spec: BridgeSpec, width: int) -> int:
    """Returns a file descriptor of anonymous memory large enough for the channel."""
    _, size = _layout(spec, width)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gamut-channel")
    else:  # not Linux: an unlinked file has no name either
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor


class Channel:
    """The mapped memory as named arrays, on either side."""

    def __init__(self, descriptor: int, spec: BridgeSpec, width: int) -> None:
        columns, size = _layout(spec, width)
        self.width = width
        self._map = mmap.mmap(descriptor, size)
        arrays: dict[str, Columns] = {"observation": {}, "signal": {}, "frame": {}, "action": {}}
        for (role, key, shape, dtype), offset in columns:
            flat = np.frombuffer(self._map, dtype, width * math.prod(shape), offset)
            arrays[role][key] = flat.reshape(width, *shape)
        self.observations, self.signals = arrays["observation"], arrays["signal"]
        self.actions, self._rest = arrays["action"], arrays["frame"]

    def write_frame(self, frame: Frame, rows: slice | Array) -> Columns:
        """Puts a frame into the given rows; returns the columns that must travel by message."""
        for key, array in self.observations.items():
            array[rows] = frame.observations[key]
        for key, array in self.signals.items():
            array[rows] = frame.signals[key]
        for key, array in self._rest.items():
            array[rows] = getattr(frame, key)
        return {k: v for k, v in frame.observations.items() if k not in self.observations}

    def frame(self, rows: slice | Array, details: Any) -> Frame:
        """Returns the frame in the given rows; a slice gives views, an index array copies."""
        return Frame(
            {k: v[rows] for k, v in self.observations.items()},
            {k: v[rows] for k, v in self.signals.items()},
            **{k: v[rows] for k, v in self._rest.items()},
            details=details,
        )

    def write_actions(self, actions: Mapping[str, Array]) -> Columns:
        """Puts actions into the memory; returns the columns that must travel by message."""
        loose = {}
        for key, column in actions.items():
            if key in self.actions:
                self.actions[key][:] = column
            else:
                loose[key] = column
        return loose
