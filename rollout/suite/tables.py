"""The tables of a suite: players by difficulty, by task, and what difficulty costs them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.evaluate.statistics import Estimate, Intervals, one_player, wilson
from rollout.judge.report import figure_text
from rollout.judge.rubric import Rubric
from rollout.reports import render, table
from rollout.suite.config import Cell

_Scores = NDArray[np.float64]
_SUCCESS, _PROGRESS = "success", "machine progress"


@dataclass(frozen=True)
class Episodes:
    """The results of a cell, one per episode.

    Attributes:
        success: 1 or 0, NaN where the task decides nothing.
        progress: by the machine, 0 to 1; NaN if it knows none.
        scores: of the judge, by criterion on its scale; NaN without a verdict.
    """

    success: _Scores
    progress: _Scores
    scores: Mapping[str, _Scores]

    @property
    def count(self) -> int:
        """Number of episodes."""
        return len(self.success)


class Tables:
    """The estimates of a suite, in percent of each scale.

    An interval covers other states of these tasks, for these players as they are.

    Args:
        found: the results by cell.
        rubric: the criteria of the judge.
        confidence: confidence of the intervals.
        judged: whether there is a judge.
    """

    def __init__(
        self, found: Mapping[Cell, Episodes], rubric: Rubric, confidence: float, *, judged: bool
    ) -> None:
        self._found, self._rubric, self._confidence = found, rubric, confidence
        self._intervals = Intervals(confidence, bounds=(0.0, 100.0))
        self.columns = [_SUCCESS, _PROGRESS, *(rubric.criteria if judged else ())]
        self.difficulties = list(dict.fromkeys(cell.difficulty for cell in found))
        self.players = list(dict.fromkeys(cell.player for cell in found))

    def title(self, column: str) -> str:
        """Returns the heading of a column."""
        criterion = self._rubric.criteria.get(column)
        return column if criterion is None else criterion.title or column

    def values(self, column: str, **chosen: str) -> _Scores:
        """Returns a column of the episodes of some cells, in percent; NaN where there is none."""
        parts = [
            self._percent(column, episodes)
            for cell, episodes in self._found.items()
            if all(getattr(cell, name) == value for name, value in chosen.items())
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _percent(self, column: str, episodes: Episodes) -> _Scores:
        if column == _SUCCESS:
            return 100 * episodes.success
        if column == _PROGRESS:
            return 100 * episodes.progress
        scale = self._rubric.criteria[column]
        scores = episodes.scores.get(column, np.full(episodes.count, math.nan))
        return 100 * (scores - scale.low) / (scale.high - scale.low)

    def estimate(self, column: str, **chosen: str) -> Estimate | None:
        """Returns the mean of some cells with its interval; None without an episode that counts."""
        values = self.values(column, **chosen)
        known = values[~np.isnan(values)]
        if not len(known):
            return None
        if column == _SUCCESS:
            share = wilson(int(known.sum() // 100), len(known), confidence=self._confidence)
            return _times(share, 100.0)
        return one_player(known[:, None], self._intervals)

    def _difference(self, column: str, first: str, second: str, **chosen: str) -> Estimate | None:
        """Returns the second difficulty minus the first, by Welch's interval; other states each."""
        parts = [self.values(column, difficulty=each, **chosen) for each in (first, second)]
        a, b = (part[~np.isnan(part)] for part in parts)
        if not len(a) or not len(b):
            return None
        point, method = float(b.mean() - a.mean()), "Welch's t"
        counts = {"episodes": len(a) + len(b)}
        if min(len(a), len(b)) < 2:
            why = "fewer than two episodes"
            return Estimate(point, None, None, self._confidence, method, counts, why)
        spread = [part.var(ddof=1) / len(part) for part in (a, b)]
        total = sum(spread)
        if total == 0:
            return Estimate(point, point, point, self._confidence, method, counts)
        from scipy.stats import t  # noqa: PLC0415 - slow to import

        squares = [v**2 / (len(part) - 1) for v, part in zip(spread, (a, b), strict=True)]
        half = float(t.ppf(0.5 + self._confidence / 2, total**2 / sum(squares))) * math.sqrt(total)
        return Estimate(point, point - half, point + half, self._confidence, method, counts)

    def data(self) -> dict[str, Any]:
        """Returns all estimates."""
        return {"players": self.by_player(), "tasks": self.by_task(), "change": self.by_change()}

    def by_player(self) -> list[dict[str, Any]]:
        """Returns a row for each difficulty and player, over all tasks that it plays."""
        rows = []
        for difficulty in self.difficulties:
            for player in self.players:
                chosen = {"difficulty": difficulty, "player": player}
                found = {name: self.estimate(name, **chosen) for name in self.columns}
                count = len(self.values(_SUCCESS, **chosen))
                if count:
                    tasks = sum(
                        (cell.difficulty, cell.player) == (difficulty, player) and each.count > 0
                        for cell, each in self._found.items()
                    )
                    rows.append({**chosen, "tasks": tasks, "episodes": count, **found})
        return rows

    def by_task(self) -> list[dict[str, Any]]:
        """Returns a row for each difficulty, task and player: generalization between tasks."""
        return [
            {
                "difficulty": cell.difficulty,
                "task": cell.name,
                "player": cell.player,
                "episodes": episodes.count,
                **{
                    name: self.estimate(
                        name, difficulty=cell.difficulty, name=cell.name, player=cell.player
                    )
                    for name in self.columns
                },
            }
            for cell, episodes in self._found.items()
            if episodes.count
        ]

    def by_change(self) -> list[dict[str, Any]]:
        """Returns what a harder state of the same task costs: generalization within tasks."""
        rows = []
        for player in self.players:
            tasks: dict[str, list[str]] = {}
            for cell in self._found:
                if cell.player == player and self._found[cell].count:
                    tasks.setdefault(cell.name, []).append(cell.difficulty)
            for task, (first, *others) in tasks.items():
                for second in others:
                    about = {"player": player, "task": task, "from": first, "to": second}
                    found = {
                        name: self._difference(name, first, second, player=player, name=task)
                        for name in self.columns
                    }
                    rows.append({**about, **found})
        return rows


def _times(estimate: Estimate, factor: float) -> Estimate:
    low, high = (None if v is None else v * factor for v in (estimate.low, estimate.high))
    return Estimate(
        estimate.point * factor,
        low,
        high,
        estimate.confidence,
        estimate.method,
        estimate.counts,
        estimate.refused,
    )


def write_report(summary: Mapping[str, Any], tables: Tables) -> str:
    """Returns a Markdown report of the contents of ``summary.json``."""
    found = summary["findings"]
    heads = [tables.title(name) for name in tables.columns]

    def drawn(about: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
        cells = [
            [*(row[name] for name in about), *(_text(row[name]) for name in tables.columns)]
            for row in rows
        ]
        return table([*about, *heads], cells)

    players = {
        difficulty: drawn(
            ("player", "tasks", "episodes"),
            [row for row in found["players"] if row["difficulty"] == difficulty],
        )
        for difficulty in tables.difficulties
    }
    return render(
        "suite",
        protocol=summary["protocol"],
        missing=summary["missing"],
        players=players,
        tasks=drawn(("difficulty", "task", "player"), found["tasks"]),
        change=drawn(("player", "task", "from", "to"), found["change"]) if found["change"] else "",
        machine=_machine(summary["judge"]),
        text=figure_text,
        usage=summary["usage"],
    )


def _text(estimate: Mapping[str, Any] | None) -> str:
    if estimate is None:
        return "-"
    if estimate["low"] is None or estimate["low"] == estimate["high"]:
        return f"{estimate['point']:.1f}"
    return f"{estimate['point']:.1f} [{estimate['low']:.1f}, {estimate['high']:.1f}]"


def _machine(findings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns how far the judge's progress agrees with the machine's; empty without any."""
    found: Mapping[str, Any] = (findings.get("progress") or {}).get("against") or {}
    return found
