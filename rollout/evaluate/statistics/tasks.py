"""Figures over several tasks, as Agarwal et al. 2021 define them (NeurIPS, arXiv 2108.13264).

Runs are the replicates, tasks are the strata: a resample draws the runs of every task anew, each
task for itself, and keeps the tasks. All functions take scores as a mapping from task to the
scores of its runs, or as an array of (runs, tasks); scores have to be normalised so that tasks
can be put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.estimate import (
    Estimate,
    check_confidence,
    check_resamples,
    percentiles,
    refuse_seeds,
)

_CHUNK = 2_000_000  # numbers in one chunk of resamples: 16 MB

Scores = Mapping[str, ArrayLike] | ArrayLike


@dataclass(frozen=True)
class Profile:
    """Shares of runs above thresholds; all arrays are (thresholds,).

    Attributes:
        thresholds: the thresholds.
        share: the share of runs, over all tasks, that score above each.
        low: lower ends of the pointwise intervals; ``None`` if there are none.
        high: upper ends of the pointwise intervals; ``None`` if there are none.
        confidence: the confidence of each interval for itself, not of the whole band.
        refused: why there are no intervals; empty if there are.
    """

    thresholds: NDArray[np.float64]
    share: NDArray[np.float64]
    low: NDArray[np.float64] | None
    high: NDArray[np.float64] | None
    confidence: float
    refused: str = ""


def iqm(
    scores: Scores, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Estimate:
    """Returns the interquartile mean over all runs and tasks, with a stratified bootstrap.

    The mean of the middle half of the (runs x tasks) scores. Its interval is too narrow for fewer
    than about 5 runs unless there are many tasks (``docs/statistics.md``).

    Args:
        scores: {task: (runs,)} with as many runs for every task, or (runs, tasks).
        confidence: of the interval.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.

    Raises:
        ConfigError: ragged, empty or non-finite scores.
    """
    check_confidence(confidence)
    check_resamples(resamples)
    table = _table(scores)
    method = "interquartile mean, bootstrap stratified by task, percentile"
    runs, tasks = table.shape
    counts = {"seeds": runs, "tasks": tasks}
    point = float(_trimmed(table[None])[0])
    refusal = refuse_seeds(point, runs, confidence=confidence, method=method, counts=counts)
    if refusal is not None:
        return refusal
    draws = _bootstrap((table,), lambda part: _trimmed(part[0]), resamples, seed)
    low, high = percentiles(draws, confidence)
    return Estimate(point, float(low), float(high), confidence, method, counts)


def performance_profile(
    scores: Scores,
    thresholds: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Profile:
    """Returns the share of runs that score above each threshold, with pointwise intervals.

    Args:
        scores: {task: (runs,)} with as many runs for every task, or (runs, tasks).
        thresholds: (thresholds,), in the unit of the scores.
        confidence: of every interval.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.

    Raises:
        ConfigError: ragged, empty or non-finite scores or thresholds.
    """
    check_confidence(confidence)
    check_resamples(resamples)
    table, levels = _table(scores), np.asarray(thresholds, np.float64)
    if levels.ndim != 1 or not levels.size or not np.isfinite(levels).all():
        raise ConfigError(f"expected a row of finite thresholds, got {thresholds!r}")

    def above(part: tuple[NDArray[np.float64], ...]) -> NDArray[np.float64]:
        flat = np.sort(part[0].reshape(len(part[0]), -1), axis=1)
        below = [np.searchsorted(row, levels, side="right") for row in flat]
        return np.asarray(1 - np.stack(below) / flat.shape[1], np.float64)

    share = above((table[None],))[0]
    refusal = refuse_seeds(0.0, len(table), confidence=confidence, method="", counts={})
    if refusal is not None:
        return Profile(levels, share, None, None, confidence, refusal.refused)
    low, high = percentiles(_bootstrap((table,), above, resamples, seed), confidence)
    return Profile(levels, share, low, high, confidence)


def probability_of_improvement(
    a: Scores, b: Scores, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Returns how likely a run of ``a`` beats a run of ``b`` on the same task; ties count half.

    The Mann-Whitney statistic of each task divided by its pairs of runs, averaged over tasks; the
    runs of both are drawn anew independently.

    Args:
        a: {task: (runs,)} or (runs, tasks).
        b: the same tasks; the number of runs may differ.
        confidence: of the interval.
        resamples: draws of the bootstrap.
        seed: of the bootstrap.

    Raises:
        ConfigError: other tasks, or ragged, empty or non-finite scores.
    """
    check_confidence(confidence)
    check_resamples(resamples)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            raise ConfigError(
                f"expected the same tasks on both sides, got {sorted(a)} and {sorted(b)}"
            )
        b = {task: b[task] for task in a}
    tables = _table(a), _table(b)
    if tables[0].shape[1] != tables[1].shape[1]:
        raise ConfigError(
            "expected the same tasks on both sides, got "
            f"{tables[0].shape[1]} and {tables[1].shape[1]} tasks"
        )

    def beats(part: tuple[NDArray[np.float64], ...]) -> NDArray[np.float64]:
        ours, theirs = part[0][:, :, None], part[1][:, None]
        return np.asarray(((ours > theirs) + 0.5 * (ours == theirs)).mean((1, 2, 3)))

    method = "probability of improvement, bootstrap stratified by task, percentile"
    runs = min(len(table) for table in tables)
    counts = {"seeds": runs, "tasks": tables[0].shape[1]}
    point = float(beats((tables[0][None], tables[1][None]))[0])
    refusal = refuse_seeds(point, runs, confidence=confidence, method=method, counts=counts)
    if refusal is not None:
        return refusal
    low, high = percentiles(_bootstrap(tables, beats, resamples, seed), confidence)
    return Estimate(point, float(low), float(high), confidence, method, counts)


def _table(scores: Scores) -> NDArray[np.float64]:
    """Returns the scores as a finite array of (runs, tasks)."""
    if isinstance(scores, Mapping):
        columns = {str(task): np.asarray(runs, np.float64) for task, runs in scores.items()}
        runs = {task: column.shape for task, column in columns.items()}
        if not columns or len(set(runs.values())) != 1 or next(iter(columns.values())).ndim != 1:
            raise ConfigError(
                "expected a row of scores for every task, with as many runs for each, got shapes "
                f"{runs}; a task with fewer runs would weigh less"
            )
        table = np.stack(list(columns.values()), axis=1)
    else:
        table = np.asarray(scores, np.float64)
    if table.ndim != 2 or not table.size:
        raise ConfigError(f"expected scores of (runs, tasks), got shape {table.shape}")
    if not np.isfinite(table).all():
        raise ConfigError("expected finite scores, got NaN or infinity; give each run's mean score")
    return table


def _trimmed(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the mean of the middle half of each of (resamples, runs, tasks)."""
    flat = tables.reshape(len(tables), -1)
    cut = flat.shape[1] // 4  # whole scores only, as scipy's trim_mean and so rliable cut
    middle = np.partition(flat, [cut, flat.shape[1] - cut - 1], axis=1)
    return np.asarray(middle[:, cut : flat.shape[1] - cut].mean(1))


def _bootstrap(
    tables: tuple[NDArray[np.float64], ...],
    figure: Callable[[tuple[NDArray[np.float64], ...]], NDArray[np.float64]],
    resamples: int,
    seed: int,
) -> NDArray[np.float64]:
    """Returns ``figure`` of (resamples, runs, tasks) tables whose runs were drawn task by task."""
    generator = np.random.default_rng(seed)
    # Pairs of runs are what the largest figure holds at once.
    size = tables[0].size * (len(tables[1]) if len(tables) > 1 else 1)
    step = max(1, _CHUNK // size)
    done = []
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        drawn = [
            np.take_along_axis(
                table[None], generator.integers(len(table), size=(count, *table.shape)), axis=1
            )
            for table in tables
        ]
        done.append(figure(tuple(drawn)))
    return np.concatenate(done)
