"""Running figures of a run: means over recent episodes, and rates over recent seconds."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable

from rollout.api import EpisodeResult, Outcome


class Mean:
    """The mean of the last ``window`` values; NaN values are left out.

    Args:
        window: number of values.
    """

    def __init__(self, window: int) -> None:
        if window < 1:
            raise ValueError(f"a window holds at least 1 value, got {window}")
        self._values: deque[float] = deque(maxlen=window)

    def add(self, value: float) -> None:
        """Adds a value, and drops the oldest if the window is full."""
        if not math.isnan(value):
            self._values.append(value)

    @property
    def value(self) -> float:
        """The mean; NaN if there is no value."""
        # fsum of the window each time: a running sum would drift.
        return math.fsum(self._values) / len(self._values) if self._values else math.nan


class Rate:
    """How often something happens per second, over the last ``window_s`` seconds.

    Args:
        window_s: length of the window in seconds.
        clock: monotonic seconds.
    """

    def __init__(self, window_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not window_s > 0:
            raise ValueError(f"a rate looks back more than 0 seconds, got {window_s}")
        self._window_s = window_s
        self._clock = clock
        # Times and totals; the first entry is the newest that is at least window_s old.
        self._marks: deque[tuple[float, float]] = deque([(clock(), 0.0)])
        self._total = 0.0

    def add(self, count: float) -> None:
        """Records that it has just happened ``count`` times."""
        self._total += count
        self._marks.append((self._clock(), self._total))
        self._forget()

    @property
    def value(self) -> float:
        """Events per second; NaN before any time has passed."""
        self._forget()
        begin, before = self._marks[0]
        seconds = self._clock() - begin
        return (self._total - before) / seconds if seconds > 0 else math.nan

    def _forget(self) -> None:
        old = self._clock() - self._window_s
        while len(self._marks) > 1 and self._marks[1][0] <= old:
            self._marks.popleft()


class Aggregates:
    """The running figures of a run, as metrics.

    Lost episodes are not counted, since they are not results.

    Args:
        window: episodes that means are taken over.
        rate_window_s: seconds that rates are taken over.
        env_steps: steps of earlier sessions.
        episodes: episodes of earlier sessions.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        window: int = 100,
        rate_window_s: float = 60.0,
        env_steps: int = 0,
        episodes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.env_steps, self.episodes = env_steps, episodes
        self._return, self._length = Mean(window), Mean(window)
        self._progress, self._success = Mean(window), Mean(window)
        self._seconds = Mean(window)
        self._decided = False
        self._steps_rate, self._episodes_rate = (
            Rate(rate_window_s, clock),
            Rate(rate_window_s, clock),
        )

    def add_steps(self, count: int) -> None:
        """Counts steps of single slots."""
        self.env_steps += count
        self._steps_rate.add(count)

    def add_episodes(self, results: Iterable[EpisodeResult]) -> None:
        """Counts episodes that ended."""
        for result in results:
            if result.end == "lost":
                continue
            self.episodes += 1
            self._episodes_rate.add(1)
            self._return.add(result.total_reward)
            self._length.add(result.length)
            self._progress.add(result.progress)
            self._success.add(float(result.outcome == Outcome.SUCCESS))
            self._seconds.add(result.seconds)
            self._decided = self._decided or result.outcome != Outcome.RUNNING

    def values(self) -> dict[str, float]:
        """Returns the figures by name, without those that are not known yet.

        ``episode/success`` appears once an evaluator has decided an episode; a game that only gives
        rewards has no success rate.
        """
        figures = {
            "episode/return": self._return.value,
            "episode/length": self._length.value,
            "episode/progress": self._progress.value,
            "episode/success": self._success.value if self._decided else math.nan,
            "episode/seconds": self._seconds.value,
            "rate/steps_per_s": self._steps_rate.value,
            "rate/episodes_per_s": self._episodes_rate.value,
        }
        known = {name: value for name, value in figures.items() if not math.isnan(value)}
        return {"episodes": self.episodes, **known}
