"""Means, gaps and differences over training seeds, states and episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.components import Part, half_width, mean, part, resampled
from rollout.evaluate.statistics.estimate import (
    DEFAULT_INTERVALS,
    Estimate,
    Intervals,
    t_quantile,
)

NO_SPREAD = " (all results alike: the spread was not measured, it is not 0)"
"""Added to the method of an interval without width; :func:`wilson` has one even then."""

_ONE_SEED = (
    "one training seed; the training seed is the replicate, so nothing shows how another run "
    "would differ: train with at least 2 seeds, better 5"
)
_ONE_STATE = "one state, so nothing shows how another would differ"
_SHARED_STATE = f"{_ONE_STATE}: evaluate on more, or say that the states are fixed"
_NAMES = {
    "t": "t over training seeds and states",
    "percentile": "bootstrap of training seeds, states and episodes, percentile",
}


def hierarchical(
    scores: ArrayLike, intervals: Intervals = DEFAULT_INTERVALS, *, states: str = "crossed"
) -> Estimate:
    """Returns the mean score, with an interval for other training runs and other states.

    The mean of the seed means; a seed's mean weighs its states equally, a state's mean its
    episodes. The seed is the replicate: with one there is no interval.

    Args:
        scores: (training seeds, states, episodes), NaN where an episode is lost.
        intervals: method of the interval.
        states: ``crossed`` if all seeds share a sample of states, as a held-out set; ``nested``
            if every seed has its own, as training sets; ``fixed`` if they are all there are.

    Raises:
        ConfigError: scores of another shape or infinite.
        UnknownNameError: an unknown kind of states.
    """
    parts = [part("scores", scores, 1, states)]
    return _estimate(parts, ("",), intervals)


def gap(
    train: ArrayLike,
    test: ArrayLike,
    intervals: Intervals = DEFAULT_INTERVALS,
    *,
    train_states: str = "nested",
    test_states: str = "crossed",
) -> Estimate:
    """Returns the generalization gap, train minus test, paired by training seed.

    A seed that is lucky on both sides does not widen the interval. A seed with no result on one
    side is left out.

    Args:
        train: (training seeds, states, episodes) on the run's own training states.
        test: (training seeds, states, episodes), seeds in the same order.
        intervals: method of the interval; ``bounds`` are those of a score.
        train_states: as in :func:`hierarchical`; ``crossed`` where all seeds were trained on the
            same states, as with prefixes.
        test_states: as in :func:`hierarchical`.

    Raises:
        ConfigError: scores of another shape, infinite, or of different numbers of seeds.
        UnknownNameError: an unknown kind of states.
    """
    parts = [
        part("train scores", train, 1, train_states),
        part("test scores", test, -1, test_states),
    ]
    ours, theirs = (len(p.scores) for p in parts)
    if ours != theirs:
        raise ConfigError(
            f"expected the same training seeds in train and test, got {ours} and {theirs}; "
            "evaluate every run on both sets"
        )
    return _estimate(parts, ("train_", "test_"), intervals.of_differences)


def difference(
    a: ArrayLike, b: ArrayLike, intervals: Intervals = DEFAULT_INTERVALS, *, states: str = "crossed"
) -> Estimate:
    """Returns the mean of ``a`` minus ``b``, paired by training seed, state and episode.

    Hard states and lucky seeds hit both sides and cancel. An episode that is lost on one side is
    left out on both.

    Args:
        a: (training seeds, states, episodes).
        b: the same seeds, states and episode seeds in the same order; or one row, a player that
            was not trained or is fixed, against which every seed of ``a`` is held.
        intervals: method of the interval; ``bounds`` are those of a score.
        states: as in :func:`hierarchical`; one row needs states that are shared.

    Raises:
        ConfigError: scores of another shape, infinite, or not the same episodes on both sides.
        UnknownNameError: an unknown kind of states.
    """
    ours, theirs = part("a", a, 1, states).scores, part("b", b, 1, states).scores
    seeds = len(ours), len(theirs)
    same = seeds[0] == seeds[1] or (min(seeds) == 1 and states != "nested")
    if not same or ours.shape[1:] != theirs.shape[1:]:
        raise ConfigError(
            "expected the same seeds, states and episodes on both sides (or one seed on one side, "
            f"where states are shared), got shapes {ours.shape} and {theirs.shape} with {states} "
            "states"
        )
    parts = [Part(ours - theirs, 1, states)]
    return _estimate(parts, ("",), intervals.of_differences)


def one_player(scores: ArrayLike, intervals: Intervals = DEFAULT_INTERVALS) -> Estimate:
    """Returns the mean score of one fixed player, with an interval for other states only.

    For players that are not trained, and for one checkpoint as it is. It does not say what
    another training run would reach: use :func:`hierarchical` for that.

    Args:
        scores: (states, episodes), NaN where an episode is lost.
        intervals: confidence and bounds; always a t interval of the state means.

    Raises:
        ConfigError: scores of another shape or infinite.
    """
    confidence, bounds = intervals.confidence, intervals.bounds
    array = np.asarray(scores, np.float64)
    if array.ndim != 2:
        raise ConfigError(f"expected scores of (states, episodes), got shape {array.shape}")
    means = mean(part("scores", array[None], 1, "crossed").scores[0])
    means = means[np.isfinite(means)]
    there = int(np.isfinite(array).sum())
    counts = {"states": len(means), "episodes": there, "lost": array.size - there}
    point, method = float(means.mean()) if len(means) else math.nan, "t over states, one player"
    if len(means) < 2:
        reason = _ONE_STATE if len(means) else "no episode has a result"
        return Estimate(point, None, None, confidence, method, counts, reason)
    error = math.sqrt(float(means.var(ddof=1)) / len(means))
    half = t_quantile(confidence, len(means) - 1) * error
    method += "" if error else NO_SPREAD
    low, high = max(point - half, bounds[0]), min(point + half, bounds[1])
    return Estimate(point, low, high, confidence, method, counts)


def jackknife(
    statistic: Callable[[NDArray[np.intp]], float],
    seeds: int,
    intervals: Intervals = DEFAULT_INTERVALS,
    *,
    shared: Sequence[NDArray[np.float64]] = (),
) -> Estimate:
    """Returns a figure in which training seeds are combined, with an interval.

    The seeds are the replicates: a seed is left out together with everything that belongs to it,
    its policies and its training states, so policies may play the training states of other seeds.
    The variance of the pseudo-values takes the place of that of the seed means (Tukey 1958; for
    means over pairs of seeds it is not too small on average, Efron and Stein 1981).

    Args:
        statistic: the figure for some of the seeds, given by their numbers; of one seed fewer, too.
        seeds: number of seeds; with one there is no interval.
        intervals: confidence and bounds; the method is always this one.
        shared: scores of the figure on states that all seeds share: scores of (seeds, states,
            episodes) of which it is the mean, NaN where there is none.
    """
    everyone = np.arange(seeds)
    confidence, method = intervals.confidence, "jackknife over training seeds"
    counts = {"seeds": seeds}
    point = statistic(everyone)
    if seeds < 2:
        return Estimate(point, None, None, confidence, method, counts, _ONE_SEED)
    if any(scores.shape[1] == 1 for scores in shared):
        return Estimate(point, None, None, confidence, method, counts, _SHARED_STATE)
    left_out = np.array([statistic(np.delete(everyone, seed)) for seed in range(seeds)])
    half = half_width(
        seeds * point - (seeds - 1) * left_out, [mean(scores) for scores in shared], confidence
    )
    method += "" if half else NO_SPREAD
    low, high = max(point - half, intervals.bounds[0]), min(point + half, intervals.bounds[1])
    return Estimate(point, low, high, confidence, method, counts)


def _estimate(parts: Sequence[Part], prefixes: Sequence[str], intervals: Intervals) -> Estimate:
    confidence, bounds, name = intervals.confidence, intervals.bounds, _NAMES[intervals.method]
    usable = np.all([np.isfinite(p.seed_means) for p in parts], axis=0)
    kept = [p.of(usable) for p in parts]
    counts = _counts(parts, kept, prefixes)
    if not usable.any():
        reason = "no episode has a result"
        return Estimate(math.nan, None, None, confidence, name, counts, reason)
    point = float(np.sum([p.sign * p.seed_means for p in kept], axis=0).mean())
    if counts["seeds"] == 1:
        return Estimate(point, None, None, confidence, name, counts, _ONE_SEED)
    if any(p.states == "crossed" and p.scores.shape[1] == 1 for p in kept):
        return Estimate(point, None, None, confidence, name, counts, _SHARED_STATE)
    if intervals.method == "percentile":
        tail = (1 - confidence) / 2
        ends = np.quantile(resampled(kept, intervals.resamples, intervals.seed), [tail, 1 - tail])
        low, high = (float(end) for end in ends)
    else:
        totals = np.sum([p.sign * p.seed_means for p in kept], axis=0)
        half = half_width(totals, [p.cells for p in kept if p.states == "crossed"], confidence)
        low, high = point - half, point + half
    name += NO_SPREAD if low == high else ""
    low, high = max(low, bounds[0]), min(high, bounds[1])
    return Estimate(point, low, high, confidence, name, counts)


def _counts(parts: Sequence[Part], kept: Sequence[Part], prefixes: Sequence[str]) -> dict[str, int]:
    """Returns the numbers behind the figure; nested states count once for every seed."""
    states = [
        int(np.isfinite(p.cells).sum()) if p.states == "nested" else p.scores.shape[1] for p in kept
    ]
    there = sum(int(np.isfinite(p.scores).sum()) for p in kept)
    counts = {"seeds": len(kept[0].scores), "states": sum(states), "episodes": there}
    counts["lost"] = sum(int(np.isnan(p.scores).sum()) for p in parts)
    if len(parts) > 1:
        counts |= {f"{prefix}states": n for prefix, n in zip(prefixes, states, strict=True)}
    return counts
