"""Logging: one set-up for terminal and file, with the subject of every record.

Code binds the subject where it is known, and every record inside the block carries it::

    with about(instance=3, slot=0):
        logger.warning("the game did not answer")

    12:00:01 WARNING the game did not answer [instance=3 slot=0]           the terminal
    2026-01-31T12:00:01.123+00:00 WARNING rollout.host the game did not answer | instance=3 slot=0
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from rollout.api import EpisodeResult, Loss
from rollout.errors import identity_of
from rollout.signals import one_line, shown

_ABOUT: ContextVar[Mapping[str, object]] = ContextVar("about")

_TRACED: set[str] = set()  # the errors whose tracebacks are in the log file
_FILE_ONLY = "file_only"  # attribute of records that the terminal does not show

OURS = ("rollout", "policies", "bridges")
"""Packages whose records are shown from the configured level; others from ``warning``."""


_FULL_RECORDS, _EVERY_S = 5, 30.0  # records of one kind that the terminal shows at first, and then
_DETAILS = re.compile(r"[;\[].*", re.DOTALL)
_NUMBERS = re.compile(r"\d+(\.\d+)?")


@contextlib.contextmanager
def about(**fields: object) -> Iterator[None]:
    """Binds the subject of records: ``run``, ``instance``, ``slot``, ``episode``.

    Fields bound by an outer block stay unless they are given again.
    """
    token = _ABOUT.set({**bound_fields(), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def bound_fields() -> Mapping[str, object]:
    """Returns the fields that are bound here."""
    return _ABOUT.get({})


def log_losses(logger: logging.Logger, losses: Iterable[Loss]) -> None:
    """Warns of lost episodes, each with instance, slot and episode."""
    for loss in losses:
        with about(instance=loss.instance, slot=loss.slot, episode=loss.start.episode):
            logger.warning(
                "episode lost in %s after %d steps: %s",
                *(loss.phase, loss.steps, loss.reason),
                extra=kind_of(loss.phase, loss.reason),
            )
            log_trace(logger, loss.trace)


def log_trace(logger: logging.Logger, trace: str) -> None:
    """Writes the traceback of the code of a plug-in to the log file, once for each error.

    Errors are the same if they have the same type and were raised in the same lines.

    Args:
        logger: the logger.
        trace: see ``rollout.errors.GamutError``; empty for none.
    """
    if trace and (error := identity_of(trace)) not in _TRACED:
        _TRACED.add(error)
        logger.error("the traceback of this error:\n%s", trace.rstrip(), extra={_FILE_ONLY: True})


def kind_of(*parts: str) -> dict[str, str]:
    """Returns the ``extra`` of a record of which many of a kind may come.

    The terminal shows the first of a kind, and then only how many more there were, every
    ``_EVERY_S`` seconds; the file shows all.

    Args:
        parts: the common texts of the records of a kind; numbers in them may differ, and what
            follows a semicolon or a bracket.
    """
    return {"kind": _NUMBERS.sub("#", " ".join(_DETAILS.sub("", part) for part in parts))}


def log_notices(logger: logging.Logger, results: Iterable[EpisodeResult]) -> None:
    """Warns of notices that games gave at the end of episodes; most give none."""
    for result in results:
        if result.notice:
            with about(instance=result.instance, slot=result.slot, episode=result.start.episode):
                logger.warning("episode ended after %d steps: %s", result.length, result.notice)


class _RepeatFilter(logging.Filter):
    """Passes the first records of a kind, and then one every ``_EVERY_S`` seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[int, float]] = {}  # not shown, and when the last one was

    def filter(self, record: logging.LogRecord) -> bool:
        kind = getattr(record, "kind", None)
        if kind is None:
            return True
        count, shown = self._seen.get(kind, (-_FULL_RECORDS, 0.0))
        if count >= 0 and record.created < shown + _EVERY_S:
            self._seen[kind] = count + 1, shown
            return False
        if count > 0:
            record.unseen = f" ({count} more like it in {record.created - shown:.0f} s)"
        self._seen[kind] = min(0, count + 1), record.created
        return True


class _Formatter(logging.Formatter):
    """One line of a record, with the fields that are bound where it is created.

    Args:
        terminal: time, level, message and the fields in brackets; otherwise full time, level,
            logger, message, and the fields after a bar.
    """

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def format(self, record: logging.LogRecord) -> str:
        """Returns the record as text, in which nothing can control a terminal."""
        encoding = getattr(sys.stderr, "encoding", None) if self._terminal else None
        return shown(super().format(record), encoding)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        time = datetime.fromtimestamp(record.created, UTC)
        # Those for the file alone have tracebacks; libraries have lines of their own.
        if record.name.startswith(OURS) and not hasattr(record, _FILE_ONLY):
            record.message = one_line(record.message)
        pairs = " ".join(f"{key}={_format_value(value)}" for key, value in bound_fields().items())
        if self._terminal:
            tail = f" [{pairs}]" if pairs else ""
            text = record.message + getattr(record, "unseen", "")
            return f"{time.astimezone():%H:%M:%S} {record.levelname} {text}{tail}"
        tail = f" | {pairs}" if pairs else ""
        moment = time.isoformat(timespec="milliseconds")
        return f"{moment} {record.levelname} {record.name} {record.message}{tail}"


def _format_value(value: object) -> str:
    text = str(value)
    plain = text and not any(c.isspace() or c in '"=|]' or not c.isprintable() for c in text)
    return text if plain else json.dumps(text)


class _QuietHandler(logging.Handler):
    """A handler that prints no traceback for a full disk or a closed terminal."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)


class _Stderr(_QuietHandler, logging.StreamHandler[TextIO]):
    """Writes to the current ``sys.stderr``, which a progress bar may have replaced."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.addFilter(lambda record: not hasattr(record, _FILE_ONLY))

    @property
    def stream(self) -> TextIO:
        """The current stream."""
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        raise AttributeError("the stream of this handler is always sys.stderr")


class _LogFile(_QuietHandler, logging.FileHandler):
    """The file handler of ``set_up_logging``."""


def set_up_logging(level: str = "info", file: Path | None = None) -> None:
    """Sends records to the terminal and optionally to a file; replaces an earlier set-up.

    Args:
        level: ``debug``, ``info``, ``warning`` or ``error``: lowest level of our own records.
        file: a file to append to; None for none.
    """
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, _Stderr | _LogFile)]:
        root.removeHandler(old)
        old.close()
    _TRACED.clear()
    handlers: list[logging.Handler] = [_Stderr()]
    handlers[0].addFilter(_RepeatFilter())
    if file is not None:
        handlers.append(_LogFile(file, encoding="utf-8", errors="backslashreplace"))
    for handler in handlers:
        handler.setFormatter(_Formatter(terminal=isinstance(handler, _Stderr)))
        root.addHandler(handler)
    for name in OURS:
        logging.getLogger(name).setLevel(level.upper())
