"""The subprocess of a game: receives commands from the host and replies with frames.

Started by ``SubprocessHandle``, under a guard, as ``python -m rollout.host.child SOCKET MEMORY``,
two inherited descriptors. It ends on request or when the socket closes; if that takes too long, the
guard ends it. Its interpreter may be another than the host's; it imports NumPy and Gymnasium only,
beside what the game imports.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pickle  # of the host, which started this process
import shutil
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Array, Columns, Frame, HasEnvironment, Instance, probing
from rollout.errors import GameStartError, trace_of
from rollout.host.channel import FRAME, MESSAGE, STEP, Channel, pack
from rollout.host.frames import FrameCheck, column_texts
from rollout.host.frames import describe as describe_error
from rollout.host.handle import ERRORS

_EVERY_ROW = slice(None)


class _Child:
    def __init__(self, connection: Connection, memory: int) -> None:
        self._connection, self._memory = connection, memory
        self._instance: Instance | None = None
        self._channel: Channel | None = None
        self._check: FrameCheck | None = None
        self._step_s = 0.0  # timeout of a step; the host announces changes

    def serve(self) -> None:
        """Serves commands until it is told to end or the host closes the socket."""
        socket = self._connection.fileno()
        while True:
            byte = os.read(socket, 1)
            try:
                if byte == STEP:
                    reply = self._step({})
                elif byte == MESSAGE:
                    try:
                        message = self._connection.recv()
                    except EOFError:
                        return
                    if message[0] == "close":
                        return
                    reply = self._serve_one(message)
                else:
                    return
            except BaseException as error:  # noqa: BLE001 - any error of a game is reported to its host
                kinds = (kind for kind, each in ERRORS.items() if isinstance(error, each))
                reply = next(kinds, "crashed"), (describe_error(error), trace_of(error))
            if reply is None:
                os.write(socket, FRAME)
            else:
                os.write(socket, MESSAGE)
                self._connection.send_bytes(pack(reply))

    def _serve_one(self, message: tuple[Any, ...]) -> tuple[str, Any] | None:
        """Returns the reply to a message; None for a frame that is entirely in shared memory."""
        if message[0] == "launch":
            _, bridge, workdir, ports, width, timeout_s = message
            self._channel = Channel(self._memory, bridge.spec, width)
            self._check = FrameCheck(bridge.spec)
            self._instance = bridge.launch(Path(workdir), ports, width=width, timeout_s=timeout_s)
            return "launched", None
        if message[0] == "step":
            _, loose, self._step_s = message
            return self._step(loose)
        if self._instance is None or self._channel is None:
            raise GameStartError("expected a launch before any other command")
        _, slots, starts, timeout_s = message
        frame = self._instance.reset(slots, starts, timeout_s=timeout_s)
        return self._write(frame, len(slots), np.asarray(slots, np.int64))

    def _step(self, loose: Columns) -> tuple[str, Any] | None:
        if self._instance is None or self._channel is None:
            raise GameStartError("expected a launch before any other command")
        actions = self._channel.actions | loose if loose else self._channel.actions
        frame = self._instance.step(actions, timeout_s=self._step_s)
        return self._write(frame, self._channel.width, _EVERY_ROW)

    def _write(self, frame: Frame, count: int, rows: slice | Array) -> tuple[str, Any] | None:
        """Writes a frame to shared memory; returns the rest of it as a message, if any."""
        assert self._channel is not None
        assert self._check is not None
        frame = self._check(frame, count)
        loose = self._channel.write_frame(frame, rows)
        return ("frame", (frame.details, loose)) if loose or frame.details is not None else None

    def close(self) -> None:
        """Ends the game."""
        if self._instance is not None:
            self._instance.close()


def describe() -> None:
    """Reads a bridge from stdin and writes what this interpreter has for it, as JSON."""
    bridge = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the host, which started this process
    missing: list[str] = []
    if isinstance(bridge, HasEnvironment):
        needs = bridge.environment
        missing += [f"the module {name}" for name in needs.modules if not _has(name)]
        missing += [f"the program {name}" for name in needs.programs if not shutil.which(name)]
        missing += [f"the file {path}" for path in needs.files if not path.is_file()]
    packages = sorted((d.metadata["Name"], d.version) for d in importlib.metadata.distributions())
    columns = [] if missing else column_texts(bridge.spec)
    found = {"missing": missing, "columns": columns, "packages": dict(packages)}
    sys.stdout.write(json.dumps(found))


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # the package that it belongs to is missing
        return False


def main() -> None:
    """Serves one host, then ends the game."""
    socket, memory = map(int, sys.argv[1:3])
    for descriptor in (socket, memory):  # ours alone, so that the host sees the socket close
        os.set_inheritable(descriptor, False)
    probing.supervised = True
    child = _Child(Connection(socket), memory)
    try:
        child.serve()
    finally:
        child.close()


if __name__ == "__main__":
    main()
