"""Running figures of a run: means over recent episodes, and rates over recent seconds."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from rollout.api import NO_USAGE, EpisodeResult, Outcome, Usage

_RATE_S = 60.0  # rates are taken over


class Rate:
    """How often something happens per second, over the last ``window_s`` seconds.

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
        env_steps: steps of earlier sessions.
        episodes: episodes of earlier sessions.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        window: int = 100,
        env_steps: int = 0,
        episodes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.env_steps, self.episodes = env_steps, episodes
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=window))
        self._decided = False
        self._usage = NO_USAGE
        self._steps_rate, self._episodes_rate = Rate(_RATE_S, clock), Rate(_RATE_S, clock)

    def add_steps(self, count: int) -> None:
        """Counts steps of single slots."""
        self.env_steps += count
        self._steps_rate.add(count)

    def add_episodes(self, results: Iterable[EpisodeResult]) -> None:
        """Counts episodes that ended."""
        before = self.episodes
        for result in results:
            if result.end == "lost":
                continue
            self.episodes += 1
            self._usage += result.usage
            self._decided = self._decided or result.outcome != Outcome.RUNNING
            figures = {
                "return": result.total_reward,
                "length": result.length,
                "progress": result.progress,
                "success": float(result.outcome == Outcome.SUCCESS),
                "seconds": result.seconds,
            }
            for name, value in figures.items():
                if not math.isnan(value):
                    self._recent[f"episode/{name}"].append(value)
        # At once: the rate keeps a mark for each call, for a minute.
        self._episodes_rate.add(self.episodes - before)

    def brief(self) -> dict[str, object]:
        """Returns the steps per second, mean return and price, rounded, for a progress bar."""
        values = self.values()
        shown = (
            ("steps/s", "rate/steps_per_s"),
            ("return", "episode/return"),
            ("calls", "calls"),
        )
        brief: dict[str, object] = {n: round(values[key], 2) for n, key in shown if key in values}
        return {**brief, "USD": self._usage.price_text(".2f")} if self._usage.calls else brief

    def values(self) -> dict[str, float]:
        """Returns the figures by name, without those that are not known yet.

        ``episode/success`` appears once an evaluator has decided an episode; a game that only gives
        rewards has no success rate.
        """
        # fsum of the window each time: a running sum would drift.
        figures = {name: math.fsum(recent) / len(recent) for name, recent in self._recent.items()}
        if not self._decided:
            figures.pop("episode/success", None)
        rates = {
            "rate/steps_per_s": self._steps_rate.value,
            "rate/episodes_per_s": self._episodes_rate.value,
        }
        known = {name: rate for name, rate in rates.items() if not math.isnan(rate)}
        return {"episodes": self.episodes, **figures, **known, **self._spent()}

    def _spent(self) -> dict[str, float]:
        """What calls of models cost in the episodes that ended; nothing without calls."""
        used = self._usage
        if not used.calls:
            return {}
        return {
            **spent_figures(used),
            "calls/unusable_share": used.unusable / used.calls,
            "calls/input_tokens": used.input_tokens,
            "calls/output_tokens": used.output_tokens,
        }


def spent_figures(used: Usage) -> dict[str, float]:
    """Returns number and price of some calls as metrics; a price is left out if it is unknown.

    ``calls/usd`` is a lower bound where there is ``calls/unpriced``.
    """
    priced = {} if used.price is None else {"calls/usd": used.price}
    unpriced = {"calls/unpriced": used.unpriced} if used.unpriced else {}
    return {"calls": used.calls, **priced, **unpriced}
