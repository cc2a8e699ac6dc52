"""Learning curves of trainings, from the metrics in their run directories.

A curve is the interquartile mean over the training seeds of a run, with bootstrap intervals
(``rollout.evaluate.statistics.quartiles``). A run of one seed has no intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.quartiles import interquartile_band, interquartile_mean
from rollout.observe.metrics import read_metrics
from rollout.observe.run_files import METRICS, RUN, read_about, seed_folders
from rollout.sweep.plan import RUNS

By: TypeAlias = Literal["steps", "seconds"]

FIGURES: Mapping[str, str] = {
    "return": "episode/return",
    "success": "episode/success",
    "validation": "validation/score",
}
"""The metrics that are drawn, by the names of their figures."""

_MOST_POINTS = 400  # of a curve: more than a picture can show

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class NamedRun:
    """A training whose curves are drawn.

    Attributes:
        label: its name among the others.
        folder: its run directory.
        seeds: the run directory of each seed, by name; of a training of one seed itself.
        several: whether it is a training with ``seeds``.
    """

    label: str
    folder: Path
    seeds: Mapping[str, Path]
    several: bool


@dataclass(frozen=True)
class Series:
    """One figure of one training seed.

    Attributes:
        steps: steps of single slots so far, ascending.
        seconds: working time so far, of all its sessions.
        values: the figure.
    """

    steps: _Floats
    seconds: _Floats
    values: _Floats

    def along(self, by: By) -> _Floats:
        """Returns the steps or the seconds."""
        return self.steps if by == "steps" else self.seconds


@dataclass(frozen=True)
class Curve:
    """One figure of one run.

    Attributes:
        run: label of the run.
        figure: name of the figure, one of ``FIGURES``.
        by: what ``x`` is.
        x: steps or seconds, ascending, up to the seed that has the fewest.
        iqm: interquartile mean over the seeds, (points,).
        low: lower ends of the intervals; None for one seed.
        high: upper ends.
        seeds: the series of each seed that has the figure, by name.
        drawn: number of these over which the mean is.
        planned: number of seeds of the run.
    """

    run: str
    figure: str
    by: By
    x: _Floats
    iqm: _Floats
    low: _Floats | None
    high: _Floats | None
    seeds: Mapping[str, Series]
    drawn: int
    planned: int

    def time_to(self, score: float) -> dict[str, float | None]:
        """Returns the first steps or seconds with this score or more, by seed; None for never."""
        found: dict[str, float | None] = {}
        for name, series in self.seeds.items():
            reached = np.flatnonzero(series.values >= score)
            found[name] = float(series.along(self.by)[reached[0]]) if len(reached) else None
        return found


def labels_of(folders: Sequence[Path]) -> list[str]:
    """Returns a short name for each folder: its path without what all of them share.

    Raises:
        ConfigError: a folder is given twice.
    """
    parts = [folder.resolve().parts for folder in folders]
    twice = [folder for i, folder in enumerate(folders) if parts[i] in parts[:i]]
    if twice:
        raise ConfigError(f"{twice[0]} is given twice; name each run once")
    if len(parts) == 1:
        return [folders[0].resolve().name]
    shortest = min(map(len, parts))
    begin = next((i for i in range(shortest) if len({own[i] for own in parts}) > 1), shortest - 1)
    rest = [own[min(begin, len(own) - 1) :] for own in parts]
    end = 0
    while all(len(own) > end + 1 for own in rest) and len({own[-1 - end] for own in rest}) == 1:
        end += 1
    return ["/".join(own[: len(own) - end]) for own in rest]


def named_runs(folders: Sequence[Path]) -> list[NamedRun]:
    """Returns the trainings in some run directories.

    Raises:
        RunDirectoryError: a folder contains no run.
        ConfigError: a folder is given twice, or its run is of many trainings.
    """
    found = []
    for folder, label in zip(folders, labels_of(folders), strict=True):
        kind = read_about(folder).get("kind")
        if kind in ("SweepConfig", "SearchConfig"):
            inner = next((p.parent for p in sorted(folder.glob(f"*/*/{RUN}"))), folder / RUNS)
            raise ConfigError(
                f"{folder} has runs with different settings; name those to draw, e.g. {inner}"
            )
        seeds = seed_folders(folder)
        found.append(NamedRun(label, folder, seeds or {folder.name: folder}, bool(seeds)))
    return found


def series_of(folder: Path) -> dict[str, Series]:
    """Returns the recorded figures of one training; none if it has not begun.

    Raises:
        DatasetError: its metrics are damaged.
    """
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for steps, seconds, line in _lines(folder):
        for figure, metric in FIGURES.items():
            value = line.get(metric)
            if isinstance(value, int | float) and math.isfinite(value):
                rows.setdefault(figure, []).append((steps, seconds, float(value)))
    return {figure: Series(*np.array(rows[figure]).T) for figure in FIGURES if figure in rows}


def _lines(folder: Path) -> Iterator[tuple[float, float, Mapping[str, Any]]]:
    """Yields steps, working time of all sessions in seconds, and the values of each line."""
    try:
        for line in read_metrics(folder / METRICS):
            steps, seconds = line.get("env_steps"), line.get("wall_s")
            if isinstance(steps, int | float) and isinstance(seconds, int | float):
                yield float(steps), float(seconds), line
    except FileNotFoundError:
        return


def curves_of(
    runs: Sequence[NamedRun], *, by: By = "steps", confidence: float = 0.95
) -> list[Curve]:
    """Returns the curves of some runs: figure by figure, in the order of the runs.

    Raises:
        RunDirectoryError: a folder contains no run.
        DatasetError: metrics are damaged.
        ConfigError: a run has recorded none of the figures.
    """
    recorded = {}
    for run in runs:
        recorded[run.label] = {name: series_of(place) for name, place in run.seeds.items()}
        if not any(recorded[run.label].values()):
            raise ConfigError(
                f"{run.folder} has no learning curve: none of {', '.join(FIGURES.values())} is in "
                f"its {METRICS}; expected a training that plays and has made an update"
            )
    found = []
    for figure in FIGURES:
        for run in runs:
            seeds = {n: s[figure] for n, s in recorded[run.label].items() if figure in s}
            if seeds:
                found.append(_curve(run, figure, by, seeds, confidence))
    return found


def _curve(
    run: NamedRun, figure: str, by: By, seeds: Mapping[str, Series], confidence: float
) -> Curve:
    used = dict(seeds)
    while True:
        first = max(each.along(by)[0] for each in used.values())
        last = min(each.along(by)[-1] for each in used.values())
        if first <= last:
            break
        # A seed that has only begun, while another's first figure came later.
        used.pop(min(used, key=lambda name: float(used[name].along(by)[-1])))
    x = np.unique(np.concatenate([each.along(by) for each in used.values()]))
    x = x[(x >= first) & (x <= last)]
    if len(x) > _MOST_POINTS:
        x = np.linspace(first, last, _MOST_POINTS)
    values = np.array([np.interp(x, each.along(by), each.values) for each in used.values()])
    low = high = None
    if len(used) > 1:
        low, high = interquartile_band(values, confidence=confidence)
    middle = interquartile_mean(values)
    return Curve(run.label, figure, by, x, middle, low, high, seeds, len(used), len(run.seeds))


def last_of(curves: Sequence[Curve]) -> dict[str, dict[str, Any]]:
    """Returns the ends of the curves of one run by figure, JSON-able."""
    return {
        curve.figure: {
            curve.by: float(curve.x[-1]),
            "iqm": float(curve.iqm[-1]),
            "low": None if curve.low is None else float(curve.low[-1]),
            "high": None if curve.high is None else float(curve.high[-1]),
            "seeds": curve.drawn,
        }
        for curve in curves
    }


def scored(curves: Sequence[Curve]) -> str:
    """Returns the figure that a score is of: the validations where every run has them."""
    runs = {curve.run for curve in curves}
    validated = {curve.run for curve in curves if curve.figure == "validation"}
    return "validation" if runs == validated else "return"


def times_to(curves: Sequence[Curve], score: float) -> list[dict[str, Any]]:
    """Returns for every run when its seeds reach a score, JSON-able.

    ``median`` counts seeds that never do as the latest; it is null if these are half or more.
    """
    figure, found = scored(curves), []
    for curve in curves:
        if curve.figure == figure:
            times = curve.time_to(score)
            known = [math.inf if each is None else each for each in times.values()]
            median = float(np.median(known)) if math.isfinite(max(known)) else _upper(known)
            found.append(
                {
                    "run": curve.run,
                    "figure": figure,
                    "score": score,
                    "by": curve.by,
                    "reached": sum(each is not None for each in times.values()),
                    "seeds": times,
                    "median": median if math.isfinite(median) else None,
                }
            )
    return found


def _upper(times: Sequence[float]) -> float:
    """Returns the upper median, which may be infinite."""
    return sorted(times)[len(times) // 2]


def as_json(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """Returns the points of the curves, JSON-able."""
    return [
        {
            "run": curve.run,
            "figure": curve.figure,
            "seeds": curve.drawn,
            curve.by: curve.x.tolist(),
            "iqm": curve.iqm.tolist(),
            "low": None if curve.low is None else curve.low.tolist(),
            "high": None if curve.high is None else curve.high.tolist(),
        }
        for curve in curves
    ]
