"""A game program in any language that exchanges lines of JSON with its bridge."""

from __future__ import annotations

import json
import os
import selectors
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

from rollout.api.child_process import REAP_S, ChildProcess
from rollout.errors import GameCrashed, GameError, GameStartError, GameTimeout

_CHUNK = 2**16
_LONGEST = 2**26  # bytes of an answer, so that a program gone wild does not fill the memory
_STDERR_BYTES, _STDERR_LINES, _STDERR_SHOWN = 2**14, 10, 2000  # kept; in an error, characters
_SHOWN = 80  # characters of an answer in an error
_DIE_S = 5.0  # longest wait for a killed process, which only the kernel can hold


class LineProcess:
    """A running program that reads requests from its stdin and writes answers to its stdout.

    Every request and every answer is one line of JSON. The program must write exactly one line for
    each line it reads, and flush it; text for people goes to its stderr, whose last lines are part
    of every error. It should end when its stdin is closed.

    A bridge makes one in ``launch``, asks it in ``reset`` and ``step``, and closes it in ``close``.
    After an error the program is ended, and only ``close`` may be called. Not thread-safe.

    Args:
        command: the program and its arguments.
        cwd: the folder it runs in, e.g. the ``workdir`` of the instance.

    Raises:
        GameStartError: it cannot be started.
    """

    def __init__(self, command: Sequence[str | os.PathLike[str]], *, cwd: Path) -> None:
        words = [os.fspath(word) for word in command]
        try:
            self._child = ChildProcess(
                words, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE, bufsize=0
            )
        except OSError as error:
            raise GameStartError(f"the program {words} cannot be started: {error}") from error
        popen = self._child.popen
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._stdin: IO[bytes] = popen.stdin
        self._stdout: IO[bytes] = popen.stdout
        self._stderr: IO[bytes] = popen.stderr
        self._exit = self._child.descriptor
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        for readable in (self._stdout, self._stderr, self._exit):
            self._selector.register(readable, selectors.EVENT_READ)
        self._unsent = memoryview(b"")
        self._out, self._err = bytearray(), bytearray()
        self._silent = False  # it has closed its stdout
        self._dead = self._answered = False
        self._over = ""  # why it gets no more requests

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its process group."""
        return self._child.pid

    def ask(self, request: Any, *, timeout_s: float) -> Any:
        """Sends a request and returns the answer.

        Args:
            request: JSON-able data; numpy numbers and arrays are sent as numbers and lists.
            timeout_s: seconds until the answer must be complete.

        Raises:
            GameTimeout: the answer is not complete within ``timeout_s``.
            GameCrashed: the program has ended, or its answer is not a line of JSON.
            GameStartError: either of them, before its first answer.
        """
        if self._over:
            raise GameCrashed(f"the program {self._over}; launch another")
        line = json.dumps(request, default=_plain, allow_nan=False).encode() + b"\n"
        self._pump(0.0)
        if self._out:
            raise self._fail(f"wrote {_brief(self._out)} before it was asked; {_RULE}")
        self._unsent = memoryview(line)
        self._write()
        answer = self._line(timeout_s)
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise self._fail(f"answered {_brief(answer)}, which is not JSON; {_RULE}") from error
        if self._out:
            raise self._fail(f"wrote {_brief(self._out)} after its answer; {_RULE}")
        self._answered = True
        return found

    def _line(self, timeout_s: float) -> bytes:
        """Waits for the rest of the next line."""
        deadline = time.monotonic() + timeout_s
        searched, late = 0, False
        while (end := self._out.find(b"\n", searched)) < 0:
            searched = len(self._out)
            if searched > _LONGEST:
                raise self._fail(f"wrote {searched} bytes without ending the line; {_RULE}")
            if self._dead or self._silent:
                raise self._died()
            if late:
                said = f", only {_brief(self._out)}" if self._out else ""
                raise self._fail(
                    f"gave no answer within {timeout_s:g} s{said}; if it did write a line, it must "
                    f"flush its stdout",
                    GameTimeout,
                )
            left = deadline - time.monotonic()
            self._pump(max(0.0, left))
            late = left <= 0  # what had arrived by then was still read
        line = bytes(self._out[:end])
        del self._out[: end + 1]
        return line

    def _pump(self, pause_s: float) -> None:
        """Writes and reads what is possible, after a wait of at most ``pause_s`` seconds.

        Stderr is read here too: a program whose stderr is full would hang.
        """
        for key, _ in self._selector.select(pause_s):
            if key.fileobj is self._stdin:
                self._write()
            elif key.fileobj is self._stdout:
                self._silent = not self._read(self._stdout, self._out)
            elif key.fileobj is self._stderr:
                self._read(self._stderr, self._err)
                del self._err[:-_STDERR_BYTES]
            else:
                self._dead = True
                self._selector.unregister(self._exit)
        if self._dead:
            # No one uses what a dead program leaves running.
            self._child.send_signal(signal.SIGKILL)
            for pipe, data in ((self._stdout, self._out), (self._stderr, self._err)):
                while pipe in self._selector.get_map() and self._read(pipe, data) == _CHUNK:
                    if len(data) > _LONGEST:
                        break

    def _read(self, pipe: IO[bytes], data: bytearray) -> int:
        """Returns the number of bytes that were read; 0 if the pipe is closed."""
        try:
            more = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return 1  # none now
        data += more
        if not more:
            self._selector.unregister(pipe)
        return len(more)

    def _write(self) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            if self._stdin not in self._selector.get_map():
                self._selector.register(self._stdin, selectors.EVENT_WRITE)
            return
        except BrokenPipeError:  # it has ended, or reads no more: shown by what follows
            self._unsent = memoryview(b"")
        if self._stdin in self._selector.get_map():
            self._selector.unregister(self._stdin)

    def _died(self) -> GameError:
        self._wait(REAP_S)
        half = f" after {_brief(self._out)}" if self._out else ""
        how = self._child.ended(time.monotonic() + _DIE_S) if self._dead else None
        if how is None:
            return self._fail(f"closed its stdout and continues{half}")
        return self._fail(f"ended, {'with ' * how.startswith('exit')}{how}{half}")

    def _fail(self, what: str, kind: type[GameError] = GameCrashed) -> GameError:
        """Ends the program and returns the error."""
        lines = [line.strip() for line in self._err.decode(errors="replace").splitlines()]
        said = " | ".join([line for line in lines if line][-_STDERR_LINES:])[-_STDERR_SHOWN:]
        tail = f"; its last lines on stderr: {said}" if said else ""
        self._over = "has failed"
        self._end()
        return (kind if self._answered else GameStartError)(f"the program {what}{tail}")

    def close(self, timeout_s: float = 5.0) -> None:
        """Ends the program and its process group. Idempotent; never raises.

        Its stdin is closed, after half of ``timeout_s`` it gets SIGTERM, and at the end SIGKILL.
        """
        if not self._over:
            self._unsent = memoryview(b"")
            self._write()  # nothing, so that the pipe is no longer waited for
            self._stdin.close()
            self._wait(timeout_s / 2)
            if not self._dead:
                self._child.send_signal(signal.SIGTERM)
                self._wait(timeout_s / 2)
            self._end()
        self._over = "is closed"

    def _wait(self, timeout_s: float) -> None:
        """Waits until the program has ended, and reads what it writes meanwhile."""
        deadline = time.monotonic() + timeout_s
        while not self._dead and (left := deadline - time.monotonic()) > 0:
            self._pump(left)
            del self._out[:-_CHUNK]

    def _end(self) -> None:
        self._selector.close()
        self._child.close(time.monotonic() + _DIE_S)


_RULE = "it must write one line of JSON for each line it reads, and other text to stderr"


def _plain(value: Any) -> Any:
    """Returns a number or an array of numpy as plain data."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"expected JSON-able data in a request, got {type(value).__name__}")
    return value.tolist()


def _brief(data: bytes | bytearray) -> str:
    text = data[: 4 * _SHOWN].decode(errors="replace").strip()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
