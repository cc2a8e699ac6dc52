"""Child processes of bridges: started with a log, watched, and ended with their children."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LEAST_S = 0.5
"""Seconds that are reserved for killing it, whatever the deadline."""

REAP_S = 1.0
"""Its pipes and sockets may close that long before its exit status is known."""

_POLL_S = 0.005
_CHUNK = 2**13  # as most messages need; a larger buffer takes microseconds to allocate


class ChildProcess:
    """A program in a process group of its own, which is ended as a whole.

    It is reaped by ``close`` alone: before that no other process can get its id, so its group can
    be signalled safely. Not thread-safe.

    Args:
        command: the program and its arguments.
        log: file that its stdout and stderr are appended to, unless ``options`` say otherwise.
        options: those of ``subprocess.Popen``; its stdin is empty unless they say otherwise.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str | os.PathLike[str]],
        *,
        log: Path | None = None,
        **options: Any,
    ) -> None:
        self.log = log
        with contextlib.ExitStack() as opened:
            if log is not None:
                output = opened.enter_context(log.open("ab"))
                options = {"stdout": output, "stderr": output, **options}
            options = {"stdin": subprocess.DEVNULL, **options}
            # Its group can be ended without its bridge, which is in another one.
            self.popen = subprocess.Popen([*command], process_group=0, **options)
        self.pid = self.popen.pid
        """Its process id, which is also that of its process group."""
        self.descriptor = os.pidfd_open(self.pid)
        """Readable once it has ended, even if its children keep its files open."""
        self._poll = select.poll()
        self._poll.register(self.descriptor, select.POLLIN)
        self._ended: str | None = None
        self._closed = False

    def ended(self, deadline: float = 0.0) -> str | None:
        """Returns how it ended, e.g. ``exit code 1`` or ``killed by SIGKILL``.

        Args:
            deadline: on the monotonic clock, until which it is waited for.

        Returns:
            None if it still runs.
        """
        if self._ended is None and self._poll.poll(_left_ms(deadline)):
            try:
                found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                self._ended = "reaped by someone else"
            else:
                if found is not None:
                    exited = found.si_code == os.CLD_EXITED
                    self._ended = ending(found.si_status if exited else -found.si_status)
        return self._ended

    def last_output(self, most: int) -> str:
        """Returns the end of its log, at most that many characters; empty without one."""
        if self.log is None:
            return ""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - 4 * most))
                return log.read().decode(errors="replace").strip()[-most:]
        except OSError:
            return ""  # its folder was removed

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal to its process group, unless it is closed."""
        if self.popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def close(self, deadline: float, *, patience_s: float = 0.0) -> None:
        """Ends it and its process group. Idempotent; never raises.

        Its pipes are closed, it gets SIGTERM, and after ``patience_s`` its group gets SIGKILL.

        Args:
            deadline: on the monotonic clock; after it only the kernel may still hold the process.
            patience_s: seconds that it may take to end by itself; 0 to kill it at once.
        """
        if self._closed:
            return
        self._closed = True
        self._hang_up()
        if patience_s and self.ended() is None:
            self.send_signal(signal.SIGTERM)
            self.ended(time.monotonic() + patience_s)
        self.send_signal(signal.SIGKILL)
        deadline = max(deadline, time.monotonic() + LEAST_S)
        self._ended = self.ended(deadline) or "not reaped"
        self.popen.poll()
        os.close(self.descriptor)
        pause = threading.Event()
        while runs(self.pid) and time.monotonic() < deadline:
            pause.wait(_POLL_S)

    def _hang_up(self) -> None:
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class ConnectedProcess(ChildProcess):
    """A program with a connection for bytes in both directions.

    It should end when its connection is closed.

    Args:
        command: the program and its arguments.
        log: file that its output is appended to.
        pipes: whether it is connected by its stdin and stdout; if not, by a socket, whose number, a
            file descriptor, is appended to its arguments. Pipes are faster.
        options: those of ``subprocess.Popen``.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], *, log: Path, pipes: bool = False, **options: Any
    ) -> None:
        self._socket: socket.socket | None = None
        if pipes:
            both = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
            super().__init__(command, log=log, **both, **options)
            assert self.popen.stdin is not None
            assert self.popen.stdout is not None
            self._input, self._output = self.popen.stdin.fileno(), self.popen.stdout.fileno()
        else:
            self._socket, theirs = socket.socketpair()
            self._input = self._output = self._socket.fileno()
            try:
                with theirs:
                    number = theirs.fileno()
                    super().__init__([*command, str(number)], log=log, pass_fds=[number], **options)
            except OSError:
                self._socket.close()
                raise
        self._received: bytes | bytearray = b""  # and not yet taken
        self._readable, self._writable = select.poll(), select.poll()
        self._readable.register(self._output, select.POLLIN)
        self._writable.register(self._input, select.POLLOUT)
        for poll, end in ((self._readable, self._output), (self._writable, self._input)):
            poll.register(self.descriptor, select.POLLIN)
            os.set_blocking(end, False)

    def send(self, data: bytes, deadline: float) -> None:
        """Sends bytes.

        Args:
            data: the bytes.
            deadline: on the monotonic clock.

        Raises:
            TimeoutError: they are not taken by then.
            EOFError: the program has ended or closed its connection, or is closed.
        """
        left: bytes | memoryview = data
        while left:
            if self._closed:
                raise EOFError
            try:
                sent = os.write(self._input, left)
                left = b"" if sent == len(left) else memoryview(left)[sent:]
            except BlockingIOError:
                self._wait_for(self._writable, deadline)
            except OSError as error:
                raise EOFError from error

    def receive(self, size: int, deadline: float) -> bytes | bytearray:
        """Returns the next ``size`` bytes.

        Raises:
            TimeoutError: they have not come by then.
            EOFError: the program has ended or closed its connection, or is closed.
        """
        data = self._received
        while len(data) < size:
            if self._closed:
                raise EOFError
            self._wait_for(self._readable, deadline)
            try:
                more = os.read(self._output, max(_CHUNK, size - len(data)))
            except OSError as error:
                raise EOFError from error
            if not more:
                raise EOFError
            if data:  # a long message, of which several parts are joined in place
                data = data if isinstance(data, bytearray) else bytearray(data)
                data += more
            else:
                data = more
            self._received = data
        self._received = data[size:]
        return data[:size]

    def _wait_for(self, poll: select.poll, deadline: float) -> None:
        ready = poll.poll(_left_ms(deadline))
        if not ready:
            raise TimeoutError
        if len(ready) == 1 and ready[0][0] == self.descriptor:
            raise EOFError

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
        super()._hang_up()


def ending(code: int) -> str:
    """Returns how a process ended, as text: its exit code or the name of the signal."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"killed by signal {-code}"


def runs(group: int) -> bool:
    """Returns whether a process of a group runs; a zombie has ended."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # gone, or its number is another user's
        return False
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            state, _, its = place.read_bytes().rpartition(b")")[2].split()[:3]
            if int(its) == group and state not in b"ZX":
                return True
    return False


def _left_ms(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic()) * 1000
