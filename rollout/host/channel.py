"""The connection between a host and the process of a game: shared memory and a socket.

The memory is an anonymous file that both processes map. It has no name, so nothing remains after
either of them is killed. A game may stop at any byte that it sends or receives, so the host never
waits for one: an incomplete message is kept until the rest arrives, and what does not fit into the
socket is sent by a thread.
"""

from __future__ import annotations

import contextlib
import io
import math
import mmap
import os
import struct
import tempfile
import threading
from collections.abc import Mapping
from multiprocessing.reduction import ForkingPickler
from pathlib import Path, PurePath
from socket import MSG_DONTWAIT, SHUT_RDWR, socket
from typing import Any

import numpy as np

from rollout.api import Array, BridgeSpec, Columns, Frame
from rollout.host.frames import FrameColumn, fixed_columns, frame_columns

_ALIGN = 64  # bytes; a cache line, so that no two columns share one
# A byte says what follows. A step whose actions are in shared memory, and its reply, are only that
# byte: this is the hot path of games that step in microseconds, where every pickle and every system
# call counts.
STEP, FRAME, MESSAGE = b"s", b"f", b"m"

_HEAD = struct.Struct("!i")  # the length of a message, as ``multiprocessing.Connection`` writes it
_CHUNK = 2**20

_PROTOCOL = 4  # of pickle; the default of every Python that may be at either end


def pack(message: Any) -> bytes:
    """Returns a message as bytes that any Python and NumPy can unpack, with ``pickle.loads``.

    The pickles of arrays and paths name modules that other versions do not have.
    """
    buffer = io.BytesIO()
    _Pickler(buffer, _PROTOCOL).dump(message)
    return buffer.getvalue()


class _Pickler(ForkingPickler):
    def reducer_override(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            data = value.ravel().tolist() if value.dtype.hasobject else value.tobytes()
            return _array, (value.dtype, value.shape, data)
        if isinstance(value, np.generic):
            return _scalar, (value.dtype, value.tobytes())
        if isinstance(value, PurePath):
            return _path, (str(value),)
        return NotImplemented


def _array(dtype: np.dtype[Any], shape: tuple[int, ...], data: bytes | list[Any]) -> Array:
    if isinstance(data, list):
        return np.fromiter(data, dtype, len(data)).reshape(shape)
    return np.frombuffer(bytearray(data), dtype).reshape(shape)


def _scalar(dtype: np.dtype[Any], data: bytes) -> Any:
    return np.frombuffer(data, dtype)[0]


def _path(text: str) -> Path:
    return Path(text)


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


class Incomplete(Exception):  # noqa: N818 - reads as what happened
    """Only a part of a message has arrived; the rest follows when the socket is readable."""


class Wire:
    """The host's end of a connection to the process of a game.

    Args:
        ours: the connected socket; closed with the wire.
    """

    def __init__(self, ours: socket) -> None:
        self._socket, self._descriptor = ours, ours.fileno()
        self._inbox: bytearray | None = None  # the part of a message that has arrived
        self._sender: threading.Thread | None = None

    def fileno(self) -> int:
        """Returns the descriptor to wait on for a message."""
        return self._descriptor

    def step(self) -> None:
        """Requests a step; the game has read everything that was sent before."""
        os.write(self._descriptor, STEP)

    def send(self, message: tuple[Any, ...]) -> None:
        """Sends a message.

        Raises:
            OSError: the game has closed the connection.
        """
        body = pack(message)
        data = b"".join((MESSAGE, _HEAD.pack(len(body)), body))
        try:
            sent = self._socket.send(data, MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._sender = threading.Thread(target=self._send_rest, args=(data[sent:],))
            self._sender.daemon = True
            self._sender.start()

    def _send_rest(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the game has ended, which its host notices
            self._socket.sendall(data)

    def receive(self) -> tuple[str, Any]:
        """Returns the next message, or ``("frame", None)`` for a frame in shared memory.

        To be called when the descriptor is readable.

        Raises:
            Incomplete: a part of it is missing.
            OSError: the connection is broken.
            EOFError: it was closed.
        """
        if self._inbox is None:
            byte = os.read(self._descriptor, 1)
            if byte == FRAME:
                return "frame", None
            if byte != MESSAGE:
                raise EOFError
            self._inbox = bytearray()
        inbox, size = self._inbox, _HEAD.size
        while len(inbox) < size or len(inbox) < size + _HEAD.unpack_from(inbox)[0]:
            try:
                more = self._socket.recv(_CHUNK, MSG_DONTWAIT)
            except BlockingIOError:
                raise Incomplete from None
            if not more:
                raise EOFError
            inbox += more
        self._inbox = None
        kind, payload = ForkingPickler.loads(memoryview(inbox)[size:])
        return kind, payload

    def close(self) -> None:
        """Closes the connection."""
        with contextlib.suppress(OSError):  # the game has closed it
            self._socket.shutdown(SHUT_RDWR)
        if self._sender is not None:
            self._sender.join()  # the shutdown has ended its wait
        self._socket.close()
