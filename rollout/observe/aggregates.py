"""Rates over recent seconds, and the cost of calls of models, as metrics."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from rollout.api import Usage


class Rate:
    """Events per second, over the last ``window_s`` seconds.

    Args:
        window_s: length of the window in seconds.
        clock: monotonic seconds.
    """

    def __init__(self, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._window_s = window_s
        self._clock = clock
        # Times and totals; the first entry is the newest that is at least window_s old.
        self._marks: deque[tuple[float, float]] = deque([(clock(), 0.0)])
        self._total = 0.0

    def add(self, count: float) -> None:
        """Records ``count`` events that have just happened."""
        self._total += count
        self._marks.append((self._clock(), self._total))
        self._drop_old()

    @property
    def value(self) -> float:
        """Events per second; NaN before any time has passed."""
        self._drop_old()
        begin, before = self._marks[0]
        seconds = self._clock() - begin
        return (self._total - before) / seconds if seconds > 0 else math.nan

    def _drop_old(self) -> None:
        old = self._clock() - self._window_s
        while len(self._marks) > 1 and self._marks[1][0] <= old:
            self._marks.popleft()


def spent_figures(used: Usage) -> dict[str, float]:
    """Returns number and price of some calls as metrics; a price is left out if it is unknown.

    ``calls/usd`` is a lower bound where there is ``calls/unpriced``.
    """
    priced = {} if used.price is None else {"calls/usd": used.price}
    unpriced = {"calls/unpriced": used.unpriced} if used.unpriced else {}
    return {"calls": used.calls, **priced, **unpriced}
