"""Orderly ends of a program by signals.

SIGINT, SIGTERM and SIGHUP have the same meaning: stop in an orderly way, print one line, and exit
with status 128 plus the number of the signal. There are three phases:

- while a script imports its modules there is nothing to save, see ``rollout.early``;
- while it works, a ``Stop`` turns the first signal into an orderly stop;
- after its work its status is decided, and further signals are ignored, see ``leave``.

A process that was started with SIGHUP ignored, as by ``nohup``, keeps ignoring it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn, Self

from rollout.early import HANDLED, exit_at_once

_RETRY_S = 0.05
_IMPORT_S = 30.0  # after which an import that hangs is interrupted anyway


class Stopped(KeyboardInterrupt):
    """The user or the cluster asked the program to stop.

    Attributes:
        signum: number of the signal.
    """

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signal.Signals(signum).name)

    def __reduce__(self) -> tuple[type[Stopped], tuple[int]]:
        return type(self), (self.signum,)


def stopped(signum: int, then: str = "") -> int:
    """Prints that a signal stopped the program, and what to do next; returns the exit status."""
    say(f"stopped by {signal.Signals(signum).name}{then}")
    return 128 + signum


def shown(text: str, encoding: str | None = None) -> str:
    """Returns a text as a terminal may get it: what would control it is an escape sequence.

    Messages may hold texts of games, datasets and programs. Line ends and tabs stay.

    Args:
        text: the text.
        encoding: of the terminal; what it cannot hold is an escape sequence, too. None for any.
    """
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
            for c in text
        )
    return text.encode(encoding, "backslashreplace").decode(encoding) if encoding else text


def one_line(text: str) -> str:
    """Returns a text whose line ends are escape sequences: names may not begin another line."""
    return text.replace("\n", "\\n")


def tell(text: str, end: str = "\n") -> None:
    """Prints a text to stdout, escape sequences in it as text."""
    sys.stdout.write(f"{shown(text, getattr(sys.stdout, 'encoding', None))}{end}")


def say(line: str) -> None:
    """Writes a line to stderr; a closed terminal is not an error."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{shown(line, getattr(sys.stderr, 'encoding', None))}\n")
        sys.stderr.flush()


def interruptible(main: Callable[[], int]) -> int:
    """Returns the exit status of a function that a signal may interrupt anywhere."""
    try:
        with Stop():
            return main()
    except Stopped as error:
        return stopped(error.signum)


_abruptly: list[bool] = []


def leave_abruptly() -> None:
    """Makes ``leave`` skip the end of the interpreter, which a library would crash."""
    _abruptly.append(True)


def leave(status: int) -> NoReturn:
    """Exits with a status that neither a signal nor a closed pipe can change."""
    for signum in HANDLED:
        signal.signal(signum, signal.SIG_IGN)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # otherwise the interpreter would try again and exit with its own status
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if _abruptly:
        os._exit(status)
    sys.exit(status)


class Stop:
    """Turns signals into an orderly stop of the main thread.

    A signal raises ``Stopped`` wherever the program is, so that ``finally`` and ``with`` clean up.
    A loop that can stop at a better place defers the signal and checks ``requested``::

        with stop.deferred():
            while not stop.requested:
                ...
        # Stopped is raised here, between two rounds

    A second signal is not deferred: it interrupts the round. Handlers raise only once, so that a
    burst of signals cannot interrupt the clean-up, whose waits all have deadlines; code that must
    not be interrupted at all uses ``held``. Within an import, the exception is raised right after
    it.

    As a context manager it restores the previous handlers.

    Attributes:
        signum: number of the newest signal; 0 if none arrived.
        reason: why the program itself asked for the stop, see ``end``; empty if it did not.
    """

    def __init__(self) -> None:
        self.signum = self._count = self._deferred = self._held = 0
        self.reason = ""
        self._raised = False
        self._previous: dict[int, Any] = {}
        self._waits, self._retried = False, False  # a signal waits for the end of an import
        self._retries = 0

    @property
    def requested(self) -> bool:
        """True if a signal arrived."""
        return self._count > 0

    @property
    def times(self) -> int:
        """How many signals arrived."""
        return self._count

    def end(self, reason: str) -> None:
        """Asks the main thread to stop as a signal does; may be called in any thread."""
        self.reason = reason
        if self._previous:
            os.kill(os.getpid(), signal.SIGTERM)
        else:  # without our handlers the signal would end the process
            self.signum, self._count = signal.SIGTERM, self._count + 1

    def install(self) -> None:
        """Installs the handlers. Python supports this only in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for signum in HANDLED:
            if signum != signal.SIGHUP or signal.getsignal(signum) is not signal.SIG_IGN:
                self._previous.setdefault(signum, signal.signal(signum, self._handle))

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Defers the first signal, which sets ``requested`` and is raised at the end."""
        self._deferred += 1
        try:
            yield
        finally:
            self._deferred -= 1
        if self.requested and not self._deferred:
            self._raised = True
            raise Stopped(self.signum)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Holds all signals; one that arrived is raised at the end.

        For short steps with deadlines that would leave something behind if interrupted.
        """
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        self._deliver()

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Allows interruptions again, inside ``held``."""
        held, self._held = self._held, 0
        try:
            self._deliver()
            yield
        finally:
            self._held = held

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        for signum, previous in self._previous.items():
            ended = previous is exit_at_once  # the status of the script is decided
            signal.signal(signum, signal.SIG_IGN if ended else previous)
        self._previous.clear()

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        again, self._retried = self._retried, False
        if not again:
            self.signum = signum
            self._count += 1
        self._deliver(frame)

    def _deliver(self, frame: FrameType | None = None) -> None:
        if self._held or self._raised or self._count <= bool(self._deferred):
            return
        if _importing(frame) and self._retries < _IMPORT_S / _RETRY_S:
            if not self._waits:
                self._waits = True
                # Without threading: the interrupted code may hold its locks.
                _thread.start_new_thread(self._retry, ())
            return
        self._raised = True
        raise Stopped(self.signum)

    def _retry(self) -> None:
        threading.Event().wait(_RETRY_S)
        self._retries += 1
        self._waits, self._retried = False, True
        if self._previous and not self._raised:  # our handlers are still installed
            signal.pthread_kill(threading.main_thread().ident or 0, self.signum)


def _importing(frame: FrameType | None) -> bool:
    """Returns whether a module is being imported or an object finalized (exceptions get lost)."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith("<frozen importlib") or code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
