"""Progress of a run: a bar on a terminal, otherwise a log line at intervals."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol, Self, TextIO

import rich.progress
from rich.console import Console

from rollout.signals import shown

logger = logging.getLogger(__name__)


class Progress(Protocol):
    """Shows the progress of a run. A context manager; ``update`` may be called at any rate."""

    def update(self, done: float, values: Mapping[str, object]) -> None:
        """Shows that a fraction ``done`` of the run is finished (0 to 1), with a few values."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Throttle:
    """Limits how often something is done.

    Args:
        every_s: least seconds between two times.
        at_once: whether the first time is due at once, and not after ``every_s``.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        every_s: float,
        *,
        at_once: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every_s, self._clock = every_s, clock
        self._next = clock() if at_once else clock() + every_s

    def due(self) -> bool:
        """Returns True if it is time; the next time is then due after ``every_s``."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._every_s
        return True


class BarProgress:
    """A progress bar; log records scroll above it.

    Args:
        title: name of the activity.
        stream: the terminal.
    """

    def __init__(self, title: str, stream: TextIO) -> None:
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.TaskProgressColumn(),
            rich.progress.TimeElapsedColumn(),
            rich.progress.TimeRemainingColumn(),
            rich.progress.TextColumn("{task.fields[values]}", markup=False),
            console=Console(file=stream),
        )
        self._task = self._bar.add_task(title, total=1.0, values="")

    def update(self, done: float, values: Mapping[str, object]) -> None:
        """Updates the bar."""
        with contextlib.suppress(OSError):  # the terminal was closed
            self._bar.update(self._task, completed=done, values=_format_values(values))

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._bar.stop()


class LineProgress:
    """Logs a line for the first update, then at intervals, and one at the end.

    Args:
        title: name of the activity.
        every_s: seconds between lines.
        clock: monotonic seconds.
    """

    def __init__(
        self, title: str, every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._title, self._throttle = title, Throttle(every_s, clock=clock)
        self._pending: tuple[float, Mapping[str, object]] | None = None

    def update(self, done: float, values: Mapping[str, object]) -> None:
        """Logs a line if one is due."""
        self._pending = (done, dict(values))
        if self._throttle.due():
            self._log()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log()

    def _log(self) -> None:
        if self._pending is not None:
            done, values = self._pending
            logger.info("%s %.0f%% %s", self._title, 100 * done, _format_values(values))
            self._pending = None


def show_progress(title: str, *, every_s: float, stream: TextIO | None = None) -> Progress:
    """Returns a bar if the stream is a terminal, and log lines otherwise.

    Args:
        title: name of the activity, in a word or two.
        every_s: seconds between log lines.
        stream: the stream; stderr if None.
    """
    stream = sys.stderr if stream is None else stream
    return BarProgress(title, stream) if stream.isatty() else LineProgress(title, every_s)


def share(*parts: tuple[float, float | None]) -> float:
    """Returns the fraction of a run that is done: the largest of ``done / bound``, at most 1.

    Args:
        parts: amount done and bound of every budget; None where there is no bound.
    """
    shares = [done / bound for done, bound in parts if bound is not None]
    return min(1.0, max(shares, default=0.0))


def _format_values(values: Mapping[str, object]) -> str:
    words = (f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
    return shown(" ".join(words))
