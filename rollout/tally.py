"""The totals of a run: counts, running figures, and the results of all its sessions."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from rollout.api import NO_USAGE, EpisodeResult, Fragment, Loss, Outcome
from rollout.data import CallSample, Dataset, EpisodeRef
from rollout.host.hosting import FleetEvents
from rollout.observe.aggregates import Rate, spent_figures
from rollout.observe.hosts import HostTable
from rollout.observe.metrics import Media, Table
from rollout.run_directory import RunDirectory

_FIRST_CALLS = 100  # after which a table of calls is shown, then ten times as many, ...
_RATE_S = 60.0  # rates are taken over

_Row = tuple[str, str, float, int]  # end, outcome, return, length


class Tally:
    """Counts what is played, and reads the results of the whole run at the end.

    Means are taken over the newest episodes and rates over the last minute. Lost episodes are
    counted apart, since they are not results.

    Args:
        env_steps: steps of single slots of earlier sessions.
        episodes: episodes finished in earlier sessions.
        lost: episodes lost in earlier sessions, by phase.
        abandoned: episodes given up in earlier sessions.
        keeps: whether it keeps the results of episodes, which nothing records.
        window: episodes that means are taken over.
        clock: monotonic seconds.

    Attributes:
        env_steps: steps of single slots, of all sessions.
        episodes: episodes with a result, of all sessions.
        lost: lost episodes by phase.
        abandoned: numbers of the episodes that were given up.
        hosts_replaced: number of hosts that were replaced.
    """

    def __init__(
        self,
        *,
        env_steps: int = 0,
        episodes: int = 0,
        lost: Mapping[str, int] | None = None,
        abandoned: Iterable[int] = (),
        keeps: bool = False,
        window: int = 100,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.env_steps, self.episodes = env_steps, episodes
        self.lost: Counter[str] = Counter(lost or {})
        self.abandoned, self.hosts_replaced = list(abandoned), 0
        self._steps_before, self._episodes_before = env_steps, episodes
        self._clock, self._began = clock, clock()
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=window))
        self._decided, self._usage = False, NO_USAGE
        self.restart_rates()
        self._keeps, self._results = keeps, list[_Row]()
        self._news, self._hosts = (0, 0), HostTable()
        self._calls, self._due = CallSample(), _FIRST_CALLS

    def restart_rates(self) -> None:
        """Measures rates from now on, without the time before, e.g. of launching the games."""
        self._steps_rate = Rate(_RATE_S, self._clock)
        self._episodes_rate = Rate(_RATE_S, self._clock)

    def add(self, fragment: Fragment) -> None:
        """Counts a fragment."""
        self.count(fragment.env_steps, fragment.results, fragment.losses)
        self._calls.add(fragment)
        if self._keeps:
            self._results += [_row(r) for r in fragment.results if r.end != "lost"]

    def count(
        self, env_steps: int, results: Iterable[EpisodeResult], losses: Iterable[Loss] = ()
    ) -> None:
        """Counts steps of single slots, episodes that ended, and episodes that were lost."""
        self.env_steps += env_steps
        self._steps_rate.add(env_steps)
        self.lost.update(loss.phase for loss in losses)
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

    def add_news(self, news: FleetEvents) -> list[Loss]:
        """Counts what a fleet reports besides fragments; may be called repeatedly.

        Returns:
            the new losses.
        """
        losses, abandoned = self._news
        fresh = news.losses[losses:]
        self.lost.update(loss.phase for loss in fresh)
        self.abandoned += [start.episode for start in news.abandoned[abandoned:]]
        self._news = len(news.losses), len(news.abandoned)
        self.hosts_replaced, self._hosts = news.replaced, news.hosts
        return fresh

    def figures(self) -> dict[str, float]:
        """Returns the running figures of episodes by name, without those that are not known yet.

        ``episode/success`` appears once an evaluator has decided an episode; a game that only gives
        rewards has no success rate.
        """
        # fsum of the window each time: a running sum would drift.
        means = {name: math.fsum(recent) / len(recent) for name, recent in self._recent.items()}
        if not self._decided:
            means.pop("episode/success", None)
        rates = {
            "rate/steps_per_s": self._steps_rate.value,
            "rate/episodes_per_s": self._episodes_rate.value,
        }
        known = {name: rate for name, rate in rates.items() if not math.isnan(rate)}
        figures = {"episodes": self.episodes, **means, **known}
        used = self._usage
        if not used.calls:
            return figures
        return {
            **figures,
            **spent_figures(used),
            "calls/unusable_share": used.unusable / used.calls,
            "calls/input_tokens": used.input_tokens,
            "calls/output_tokens": used.output_tokens,
        }

    def metrics(self) -> dict[str, float]:
        """Returns all figures for a metrics line: of episodes, losses and hosts."""
        lost = {f"lost/{phase}": float(count) for phase, count in self.lost.items()}
        return {
            **self.figures(),
            "lost": float(self.lost.total()),
            **lost,
            **self._hosts.values(),
        }

    def media(self, run: RunDirectory, *, last: bool = False) -> dict[str, Media]:
        """Returns a table of calls of models, a sample of this session's, for a metrics line.

        There is one after 100 calls, then after ten times as many, and so on, and with the last
        line; nothing otherwise, or without calls. Each is a new file in ``tables`` of the run.

        Raises:
            OSError: it cannot be written.
        """
        seen = self._calls.seen
        if not seen or (seen < self._due and not last):
            return {}
        while self._due <= seen:
            self._due *= 10
        path = run.path / "tables" / f"calls-{run.resume_count}-{seen}.parquet"
        self._calls.write(path)
        return {"tables/calls": Table(path)}

    def brief(self) -> dict[str, object]:
        """Returns steps per second, mean return, calls, price and losses for a progress bar."""
        values = self.figures()
        shown = (("steps/s", "rate/steps_per_s"), ("return", "episode/return"), ("calls", "calls"))
        brief: dict[str, object] = {n: round(values[key], 2) for n, key in shown if key in values}
        if self._usage.calls:
            brief["USD"] = self._usage.price_text(".2f")
        if self.lost:
            brief["lost"] = self.lost.total()
        return brief

    def results(
        self, dataset: Dataset | None = None, dropped: Iterable[EpisodeRef] = ()
    ) -> dict[str, Any]:
        """Returns the results of all sessions, which a dataset holds; without one, of this one.

        Args:
            dataset: the dataset of the run.
            dropped: episodes whose steps were not recorded.
        """
        rows = self._results if dataset is None else [_row(e) for e in dataset.episodes()]
        rows = [*rows, *map(_row, dropped)]
        return {
            "episodes": len(rows),
            "env_steps": sum(length for *_, length in rows),
            "ends": dict(Counter(end for end, *_ in rows)),
            "outcomes": dict(Counter(outcome for _, outcome, *_ in rows)),
            "return": _spread([total for *_, total, _ in rows]),
            "length": _spread([float(length) for *_, length in rows]),
        }

    def speed(self) -> dict[str, Any]:
        """Returns steps, seconds and steps per second of this session."""
        seconds = self._clock() - self._began
        steps = self.env_steps - self._steps_before
        return {
            "env_steps": steps,
            "seconds": round(seconds, 2),
            "env_steps_per_second": round(steps / max(seconds, 1e-9), 1),
        }

    def session(self) -> dict[str, Any]:
        """Returns the results and speed of this session."""
        return {
            "episodes": self.episodes - self._episodes_before,
            **self.speed(),
            "lost_by_phase": dict(self.lost),
            "episodes_given_up": self.abandoned,
            "hosts_replaced": self.hosts_replaced,
        }


def _row(episode: EpisodeResult | EpisodeRef) -> _Row:
    outcome = episode.outcome.name.lower()
    return episode.end, outcome, episode.total_reward, episode.length


def _spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    array = np.array(values)
    return {
        "mean": float(array.mean()),
        "std": float(array.std()),
        "min": float(array.min()),
        "median": float(np.median(array)),
        "max": float(array.max()),
    }
