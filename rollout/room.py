"""Watches the room that a run has on its disk: warns in time, and ends the run in order."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Self

from rollout.data.sizes import in_units
from rollout.signals import Stop

_EVERY_S = 2.0
_SHARE = 0.01  # of the time that may be spent on measuring the run directory
_RESERVE, _RESERVE_SHARE = 256_000_000, 0.01  # bytes, and share of the disk: the smaller is kept
_WARN_FREE = 4  # times the reserve
_WARN_BUDGET = 0.8

_log = logging.getLogger(__name__)


class Room(AbstractContextManager["Room"]):
    """Ends a run before its disk is full, or when its directory takes its budget.

    The last checkpoint, shards and results of the run still need room, so a reserve is kept: 1 % of
    the disk, and at most 256 MB. A disk that fills up faster than this is noticed is handled where
    writing fails.

    Args:
        folder: the run directory.
        budget: most bytes of it; None for no limit.
        stop: is asked to end the run.
    """

    def __init__(self, folder: Path, budget: int | None, stop: Stop) -> None:
        self._folder, self._budget, self._stop = folder, budget, stop
        self._warned = set[str]()
        self._measured_at, self._measuring_s = -float("inf"), 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="room", daemon=True)

    def __enter__(self) -> Self:
        """Begins to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with suppress(OSError):  # the folder is gone, which others report
                if why := self._check():
                    _log.warning("%s", why)
                    self._stop.end(why)
                    return
            if self._ended.wait(_EVERY_S):
                return

    def _check(self) -> str:
        """Warns if room is scarce; returns why the run must end, empty if it need not."""
        disk = shutil.disk_usage(self._folder)
        reserve = min(_RESERVE, _RESERVE_SHARE * disk.total)
        free = f"{in_units(disk.free)} are free on the disk of {self._folder}"
        if disk.free < reserve:
            return f"{free}, and the run needs some to save what it has; make room"
        if disk.free < _WARN_FREE * reserve:
            self._warn("disk", f"{free}; the run ends at {in_units(reserve)}")
        if self._budget is None:
            return ""
        now = time.monotonic()
        if now - self._measured_at < self._measuring_s / _SHARE:
            return ""
        size = bytes_of(self._folder)
        self._measured_at, self._measuring_s = now, time.monotonic() - now
        taken = f"the run takes {in_units(size)} of its {in_units(self._budget)}"
        if size >= self._budget:
            return f"{taken}; raise disk_budget_gb"
        if size >= _WARN_BUDGET * self._budget:
            self._warn("budget", f"{taken} (disk_budget_gb), at which it ends")
        return ""

    def _warn(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            _log.warning("%s", text)


def bytes_of(folder: Path) -> int:
    """Returns the bytes of the files in a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was removed meanwhile
                total += (Path(place) / name).lstat().st_size
    return total
