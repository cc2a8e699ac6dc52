"""The totals of a run: counts, running figures, and the results of all its sessions."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from rollout.api import EpisodeResult, Fragment, Loss
from rollout.data import CallSample, Dataset, EpisodeRef
from rollout.host.hosting import FleetEvents
from rollout.observe.aggregates import Aggregates
from rollout.observe.hosts import HostTable
from rollout.observe.metrics import Media, Table
from rollout.run_directory import RunDirectory

_FIRST_CALLS = 100  # after which a table of calls is shown, then ten times as many, ...

_Row = tuple[str, str, float, int]  # end, outcome, return, length


class Tally:
    """Counts fragments as they arrive, and reads the results of the whole run at the end.

    Args:
        env_steps: steps recorded in earlier sessions.
        episodes: episodes finished in earlier sessions.
        keeps: whether it keeps the results of episodes, which nothing records.
    """

    def __init__(self, *, env_steps: int = 0, episodes: int = 0, keeps: bool = False) -> None:
        self._figures = Aggregates(env_steps=env_steps, episodes=episodes)
        self._steps_before, self._episodes_before = env_steps, episodes
        self._began = time.monotonic()
        self._keeps, self._results = keeps, list[_Row]()
        self.lost: Counter[str] = Counter()
        self.abandoned: list[int] = []
        self.hosts_replaced = 0
        self._heard, self._hosts = (0, 0), HostTable()
        self._calls, self._due = CallSample(), _FIRST_CALLS

    @property
    def env_steps(self) -> int:
        """Steps of single slots, of all sessions."""
        return self._figures.env_steps

    @property
    def episodes(self) -> int:
        """Episodes with a result, of all sessions."""
        return self._figures.episodes

    def add(self, fragment: Fragment) -> None:
        """Counts a fragment."""
        self._figures.add_steps(fragment.env_steps)
        self._figures.add_episodes(fragment.results)
        self.lost.update(loss.phase for loss in fragment.losses)
        self._calls.add(fragment)
        if self._keeps:
            self._results += [_row(r) for r in fragment.results if r.end != "lost"]

    def hear(self, news: FleetEvents) -> list[Loss]:
        """Counts what a fleet reports besides fragments; may be called repeatedly.

        Returns:
            the new losses.
        """
        losses, abandoned = self._heard
        fresh = news.losses[losses:]
        self.lost.update(loss.phase for loss in fresh)
        self.abandoned += [start.episode for start in news.abandoned[abandoned:]]
        self._heard = len(news.losses), len(news.abandoned)
        self.hosts_replaced, self._hosts = news.replaced, news.hosts
        return fresh

    def metrics(self) -> dict[str, float]:
        """Returns the running figures for a metrics line."""
        hosts = self._hosts.values()
        lost = {f"lost/{phase}": float(count) for phase, count in self.lost.items()}
        return {**self._figures.values(), "lost": float(self.lost.total()), **lost, **hosts}

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
        """Returns a few figures for a progress bar."""
        lost = {"lost": self.lost.total()} if self.lost else {}
        counts = {"episodes": self.episodes, "steps": self.env_steps}
        return {**counts, **self._figures.brief(), **lost}

    def results(self, dataset: Dataset | None = None) -> dict[str, Any]:
        """Returns the results of all sessions, which a dataset holds; without one, of this one."""
        rows = self._results if dataset is None else [_row(e) for e in dataset.episodes()]
        return {
            "episodes": len(rows),
            "env_steps": sum(length for *_, length in rows),
            "ends": dict(Counter(end for end, *_ in rows)),
            "outcomes": dict(Counter(outcome for _, outcome, *_ in rows)),
            "return": _spread([total for *_, total, _ in rows]),
            "length": _spread([float(length) for *_, length in rows]),
        }

    def session(self) -> dict[str, Any]:
        """Returns the results and speed of this session."""
        seconds = time.monotonic() - self._began
        steps = self.env_steps - self._steps_before
        return {
            "episodes": self.episodes - self._episodes_before,
            "env_steps": steps,
            "seconds": round(seconds, 2),
            "env_steps_per_second": round(steps / max(seconds, 1e-9), 1),
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
