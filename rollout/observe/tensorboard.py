"""Mirrors ``metrics.jsonl`` as event files of TensorBoard.

One line is one event with all its numbers, at the time of the line. A session continues in a new
file in the same folder. It first adds the lines that the folder does not have: those that a killed
session had not written to disk yet, or all if the mirror was off. A training that continues from a
checkpoint repeats some steps; an event makes TensorBoard hide the points that they replace.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from rollout.files import open_file
from rollout.observe.metrics import Metrics, Scalar, read_metrics

logger = logging.getLogger(__name__)

FOLDER = "tensorboard"
"""Folder of the event files in a run directory."""

_FLUSH_S = 5.0
_LENGTH, _CHECKSUM = 8, 4  # bytes in the frame of a record
_EXCLUDED = ("time",)  # it is the time of the event, and too large for the precision of a value


class TensorboardMirror:
    """Writes the lines of a metrics file as events, those that are there and those that follow.

    It never raises: if writing fails, it warns and stops.

    Args:
        metrics: the metrics, which it listens to.
        by_lines: whether the step of an event is the number of its line; otherwise ``env_steps``.
    """

    def __init__(self, metrics: Metrics, *, by_lines: bool = False) -> None:
        self._metrics, self._by_lines = metrics.path, by_lines
        self._folder = metrics.path.parent / FOLDER
        self._file: Any = None  # opened with the first event: a run without lines has no folder
        self._count, self._session, self._flushed = 0, None, time.monotonic()
        self._failed = False
        try:
            known = max(_times(self._folder), default=0.0)
            for line in read_metrics(metrics.path):
                self._add(line, write=float(line.get("time") or 0.0) > known)
        except (OSError, ValueError, TypeError, LookupError) as error:  # a damaged line of metrics
            self._warn(error)
        metrics.listen(self._write_line)

    def _write_line(self, line: Mapping[str, Scalar]) -> None:
        if self._failed:
            return
        try:
            self._add(line, write=True)
            if time.monotonic() - self._flushed > _FLUSH_S:
                self._file.flush()
                self._flushed = time.monotonic()
        except OSError as error:
            self._warn(error)

    def _add(self, line: Mapping[str, Scalar], *, write: bool) -> None:
        from tensorboardX.proto import event_pb2, summary_pb2  # noqa: PLC0415 - slow to import

        session: Any = line.get("resume_count")
        repeats = self._count > 0 and session != self._session and not self._by_lines
        self._count, self._session = self._count + 1, session
        if not write:
            return
        step = self._count if self._by_lines else int(line["env_steps"] or 0)
        at = {"step": step, "wall_time": float(line["time"] or 0.0)}
        if repeats:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._write(event_pb2.Event(**at, session_log=start))
        values = [
            summary_pb2.Summary.Value(tag=name, simple_value=float(value))
            for name, value in line.items()
            if isinstance(value, bool | int | float) and name not in _EXCLUDED
        ]
        self._write(event_pb2.Event(**at, summary=summary_pb2.Summary(value=values)))

    def _write(self, event: Any) -> None:
        if self._file is None:
            from tensorboardX.event_file_writer import EventsWriter  # noqa: PLC0415 - as above

            self._folder.mkdir(exist_ok=True)
            # The library names a file by the second; two sessions must not share one.
            suffix = f".{len(list(self._folder.iterdir()))}"
            self._file = EventsWriter(str(self._folder / "events"), suffix)
        self._file.write_event(event)

    def _warn(self, error: Exception) -> None:
        self._failed = True
        logger.warning(
            "the event files of TensorBoard end here: %s. The run continues, and %s has everything",
            *(error, self._metrics),
        )

    def close(self) -> None:
        """Writes everything to disk."""
        try:
            if self._file is not None:
                self._file.close()
        except OSError as error:
            self._warn(error)
        self._failed, self._file = True, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_events(folder: Path) -> Iterator[Any]:
    """Yields the events of all files of a folder, as protocol buffers, file by file.

    The record that a killed session was writing is left out, with all that follows in its file.
    """
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - as above
    from tensorboardX.proto import event_pb2  # noqa: PLC0415 - as above

    for path in sorted(folder.glob("events.out.tfevents.*")):
        with open_file(path) as file:
            data, at = file.read(), 0
        while at + _LENGTH <= len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            begin = at + _LENGTH + _CHECKSUM
            at = begin + length + _CHECKSUM
            if at > len(data):
                break
            try:
                yield event_pb2.Event.FromString(data[begin : begin + length])
            except DecodeError:
                break


def _times(folder: Path) -> Iterator[float]:
    """Yields the times of events with values; the library adds others, with its own time."""
    return (event.wall_time for event in read_events(folder) if event.HasField("summary"))
