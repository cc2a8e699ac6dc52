"""The socket between a host and the process of a game, on the host's side.

A game may stop at any byte that it sends or receives. Nothing here waits for it: a part of a
message is kept until the rest arrives, and what does not fit into the socket is sent by a thread.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from multiprocessing.reduction import ForkingPickler
from socket import MSG_DONTWAIT, SHUT_RDWR, socket
from typing import Any

# A byte says what follows. A step whose actions are in shared memory, and its reply, are only that
# byte: this is the hot path of games that step in microseconds, where every pickle and every system
# call counts.
STEP, FRAME, MESSAGE = b"s", b"f", b"m"

_HEAD = struct.Struct("!i")  # the length of a message, as ``multiprocessing.Connection`` writes it
_CHUNK = 2**20


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
        body = ForkingPickler.dumps(message)
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
