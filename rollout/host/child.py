"""What runs in a game's own process: takes commands from the host, answers with frames.

Started by ``SubprocessHandle``, under a guard, as ``python -m rollout.host.child SOCKET MEMORY``,
two inherited descriptors. Ends when told to and when the socket closes; if that takes too long,
the guard sees to it.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Columns, Instance
from rollout.errors import GameError, GameStartError, GameTimeout, InputError
from rollout.host.channel import Channel
from rollout.host.handle import FRAME, MESSAGE, STEP

_EVERY_ROW = slice(None)


def _answer(error: Exception) -> tuple[str, str]:
    if isinstance(error, GameStartError):
        return "start", str(error)
    if isinstance(error, GameTimeout):
        return "timeout", str(error)
    if isinstance(error, InputError):
        return "input", str(error)
    if isinstance(error, GameError):
        return "crashed", str(error)
    return "crashed", f"{type(error).__name__}: {error}"


class _Child:
    def __init__(self, connection: Connection, memory: int) -> None:
        self._connection, self._memory = connection, memory
        self._instance: Instance | None = None
        self._channel: Channel | None = None
        self._step_s = 0.0  # deadline of a step; the host says when it changes

    def serve(self) -> None:
        """Serves commands until told to end or until the host closes the socket."""
        socket = self._connection.fileno()
        while True:
            byte = os.read(socket, 1)
            try:
                if byte == STEP:
                    reply = self._step({})
                elif byte == MESSAGE:
                    message = self._connection.recv()
                    if message[0] == "close":
                        return
                    reply = self._serve_one(message)
                else:
                    return
            except EOFError:
                return
            except Exception as error:  # noqa: BLE001 - whatever a game raises is its host's news
                reply = _answer(error)
            if reply is None:
                os.write(socket, FRAME)
            else:
                os.write(socket, MESSAGE)
                self._connection.send(reply)

    def _serve_one(self, message: tuple[Any, ...]) -> tuple[str, Any] | None:
        """Returns the answer to a message; None for a frame that is all in the shared memory."""
        if message[0] == "launch":
            _, bridge, workdir, ports, width, timeout_s = message
            self._channel = Channel(self._memory, bridge.spec, width)
            self._instance = bridge.launch(Path(workdir), ports, width=width, timeout_s=timeout_s)
            return "launched", None
        if message[0] == "step":
            _, loose, self._step_s = message
            return self._step(loose)
        if self._instance is None or self._channel is None:
            raise GameStartError("expected a launch before any other command")
        _, slots, starts, timeout_s = message
        frame = self._instance.reset(slots, starts, timeout_s=timeout_s)
        self._channel.write_frame(frame, np.asarray(slots, np.int64))
        return None if frame.details is None else ("frame", list(frame.details))

    def _step(self, loose: Columns) -> tuple[str, Any] | None:
        if self._instance is None or self._channel is None:
            raise GameStartError("expected a launch before any other command")
        actions = self._channel.actions | loose if loose else self._channel.actions
        frame = self._instance.step(actions, timeout_s=self._step_s)
        self._channel.write_frame(frame, _EVERY_ROW)
        return None if frame.details is None else ("frame", list(frame.details))

    def close(self) -> None:
        """Ends the game."""
        if self._instance is not None:
            self._instance.close()


def main() -> None:
    """Serves one host, then ends the game."""
    socket, memory = map(int, sys.argv[1:3])
    for descriptor in (socket, memory):  # ours alone: the host must see the socket close with us
        os.set_inheritable(descriptor, False)
    child = _Child(Connection(socket), memory)
    try:
        child.serve()
    finally:
        child.close()


if __name__ == "__main__":
    main()
