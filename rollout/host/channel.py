"""Columns shared between a game's process and its host, without a copy through a pipe.

The memory is an anonymous file that both processes map. It has no name, so nothing is left behind
whichever of the two is killed, and however.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import Array, BridgeSpec, Columns, Frame, leaf_dtype, leaf_shape

_ALIGN = 64  # bytes; a cache line, so that no two columns share one

Layout = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


def _layout(space: spaces.Dict, prefix: str, width: int) -> Layout:
    """Fixed-shape leaves of a space; columns of strings cannot be shared and travel by message."""
    return {
        prefix + key: (leaf_dtype(leaf), (width, *leaf_shape(leaf)))
        for key, leaf in space.spaces.items()
        if not isinstance(leaf, spaces.Text)
    }


def channel_layout(spec: BridgeSpec, width: int) -> Layout:
    """Returns dtype and shape of everything one frame and one batch of actions hold."""
    layout = _layout(spec.observation_space, "o/", width)
    layout |= _layout(spec.action_space, "a/", width)
    for key, signal in spec.signals.items():
        layout["s/" + key] = (np.dtype(signal.dtype), (width, *signal.shape))
    layout["game_over"] = (np.dtype(bool), (width,))
    layout["game_truncated"] = (np.dtype(bool), (width,))
    layout["tick"] = (np.dtype(np.int64), (width,))
    return layout


def _size(layout: Layout) -> int:
    total = 0
    for dtype, shape in layout.values():
        total += -(-dtype.itemsize * int(np.prod(shape)) // _ALIGN) * _ALIGN
    return max(total, mmap.PAGESIZE)


def create_memory(spec: BridgeSpec, width: int) -> int:
    """Returns a file descriptor of anonymous memory large enough for the channel."""
    size = _size(channel_layout(spec, width))
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
        layout = channel_layout(spec, width)
        self.width = width
        self._map = mmap.mmap(descriptor, _size(layout))
        arrays: Columns = {}
        offset = 0
        for key, (dtype, shape) in layout.items():
            count = int(np.prod(shape))
            arrays[key] = np.frombuffer(self._map, dtype, count, offset).reshape(shape)
            offset += -(-dtype.itemsize * count // _ALIGN) * _ALIGN
        self.observations = {k[2:]: v for k, v in arrays.items() if k.startswith("o/")}
        self.actions = {k[2:]: v for k, v in arrays.items() if k.startswith("a/")}
        self.signals = {k[2:]: v for k, v in arrays.items() if k.startswith("s/")}
        leaves = spec.observation_space.spaces.items()
        self._texts = {key for key, leaf in leaves if isinstance(leaf, spaces.Text)}
        self.game_over = arrays["game_over"]
        self.game_truncated = arrays["game_truncated"]
        self.tick = arrays["tick"]

    def write_frame(self, frame: Frame, rows: slice | Array) -> Columns:
        """Puts a frame into the given rows; returns the columns that must travel by message."""
        for key, array in self.observations.items():
            array[rows] = frame.observations[key]
        for key, array in self.signals.items():
            array[rows] = frame.signals[key]
        self.game_over[rows] = frame.game_over
        self.game_truncated[rows] = frame.game_truncated
        self.tick[rows] = frame.tick
        return {k: v for k, v in frame.observations.items() if k in self._texts}

    def frame(self, rows: slice | Array, details: Any) -> Frame:
        """Returns the frame in the given rows; a slice gives views, an index array copies."""
        return Frame(
            {k: v[rows] for k, v in self.observations.items()},
            {k: v[rows] for k, v in self.signals.items()},
            self.game_over[rows],
            self.game_truncated[rows],
            self.tick[rows],
            details,
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
