"""Splits the generalization gap of a sweep into its parts, and compares it across N.

The gap of N contains two effects of training on few states and one that is none. With *reference*
the policies of the arm's largest N, trained with other seeds::

    gap  = score of the run on its training states - its score on held-out states
         = gain on own       score on its training states - score of the reference on them
         + ease              score of the reference on them - on held-out states
         + loss on held-out  score of the reference on held-out states - score of the run on them

Only gain and loss are due to N. The ease of randomly chosen training states is zero on average, but
not for the few that a seed got; without it the gap is *adjusted*. For this the reference plays the
training states of all runs of the other seeds (cross-play), in the episodes that those runs played.

The *change* is the adjusted gap of N minus that of the largest N, seed by seed. It is the verdict:
two intervals that are each computed for one N may overlap although the change is clear, since seeds
and held-out states are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import Table
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.statistics import UNBOUNDED, Estimate, Intervals, jackknife
from rollout.evaluate.statistics.components import mean
from rollout.evaluate.statistics.estimate import DEFAULT_INTERVALS
from rollout.sweep.curves import (
    SAMPLED,
    Scores,
    by_set,
    cells,
    gap_of,
    minus,
    scores_of,
    select,
    set_of_run,
)

LEAST_SEEDS = 3
"""Training seeds that cross-play needs: if one is left out, there must be another one to play."""


@dataclass(frozen=True)
class Decomposition:
    """The gap of one arm and N, split into its parts.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        largest: the largest N of the arm, whose policies are the reference.
        seeds: the training seeds with all of these results.
        gap: as in ``rollout.sweep.curves.Point``.
        ease: score of the reference on the training states minus that on held-out states; None
            without cross-play, as with fewer than three seeds.
        gain: score of the run minus that of the reference, on the run's training states; likewise.
        loss: score of the reference minus that of the run, on held-out states; None for the largest
            N, whose runs are the reference.
        adjusted: gain plus loss; without cross-play the gap itself.
        change: ``adjusted`` of N minus ``adjusted`` of the largest N, paired by training seed; None
            for the largest N.
    """

    arm: str
    n: int
    largest: int
    seeds: tuple[int, ...]
    gap: Estimate
    ease: Estimate | None
    gain: Estimate | None
    loss: Estimate | None
    adjusted: Estimate
    change: Estimate | None


def decompositions(
    table: Table, *, actions: str = SAMPLED, intervals: Intervals = DEFAULT_INTERVALS
) -> list[Decomposition]:
    """Returns the parts of the gap of each arm and N that has both scores, N ascending.

    Args:
        table: results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        actions: ``"sampled"`` or ``"deterministic"``.
        intervals: confidence and bounds of intervals; the method is the jackknife.

    Raises:
        DatasetError: as in ``curves``.
    """
    found = []
    for arm, n, largest, sets, played in _all_played(table, actions):
        gap = gap_of(sets[TRAIN], sets[TEST], intervals)
        if gap is not None:
            found.append(_decomposition(arm, n, largest, gap, played, intervals))
    return found


def adjusted_differences(
    table: Table,
    *,
    base: str,
    actions: str = SAMPLED,
    intervals: Intervals = DEFAULT_INTERVALS,
) -> dict[tuple[str, int], Estimate]:
    """Returns the adjusted gap of each other arm minus that of the base arm, by arm and N.

    Paired by training seed; only where both have cross-play, the same training seeds and the same
    largest N, whose policies are the reference.

    Args:
        table: results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        base: the arm with which others are compared.
        actions: ``"sampled"`` or ``"deterministic"``.
        intervals: confidence of intervals; the method is the jackknife.

    Raises:
        DatasetError: as in ``curves``.
    """
    every = {(arm, n, top): played for arm, n, top, _, played in _all_played(table, actions)}
    found = {}
    for (arm, n, top), own in every.items():
        other = every.get((base, n, top))
        if arm == base or other is None or own.seeds != other.seeds:
            continue
        if own.cross is not None and other.cross is not None:
            found[arm, n] = _difference(own, other, intervals)
    return found


def _difference(own: _Played, other: _Played, intervals: Intervals) -> Estimate:
    one, two = _adjusted(own), _adjusted(other)
    pairs = zip(own.difference, other.difference, strict=False)
    return jackknife(
        lambda seeds: one(seeds) - two(seeds),
        len(own.seeds),
        replace(intervals, bounds=UNBOUNDED),
        shared=[minus(ours, theirs, own.seeds).values for ours, theirs in pairs],
    )


def _all_played(
    table: Table, actions: str
) -> Iterator[tuple[str, int, int, Mapping[str, Scores], _Played]]:
    """Yields arm, N, the arm's largest N, the scores of each set, and what is compared."""
    arms: dict[str, dict[int, Table]] = {}
    for arm, n, cell in cells(table, actions):
        arms.setdefault(arm, {})[n] = cell
    for arm, own in arms.items():
        sets = {n: by_set(cell) for n, cell in own.items()}
        usable = [n for n, each in sets.items() if TRAIN in each and TEST in each]
        for n in usable:
            played = _played(sets[n], sets[usable[-1]], own[usable[-1]], n)
            if played is not None:
                yield arm, n, usable[-1], sets[n], played


class _Played(NamedTuple):
    """Mean scores of N and of the reference, for the seeds that have them all.

    ``own``, ``held``, ``top_own``, ``top_held``: (seeds,), of the run and of the reference of the
    same seed, each on its training states and on held-out states. ``cross`` and ``top_cross``:
    (seeds that play, seeds whose training states are played), of the reference on the training
    states of N and on its own. The last four are the scores on states that the seeds share, where
    they do: held-out ones of the run, of the reference, and of the reference minus the run, and
    training states of both.
    """

    seeds: tuple[int, ...]
    own: NDArray[np.float64]
    held: NDArray[np.float64]
    top_own: NDArray[np.float64]
    top_held: NDArray[np.float64]
    cross: NDArray[np.float64] | None
    top_cross: NDArray[np.float64] | None
    held_states: list[Scores]
    top_held_states: list[Scores]
    difference: list[Scores]
    train_states: list[Scores]


def _played(
    sets: Mapping[str, Scores], top: Mapping[str, Scores], top_cell: Table, n: int
) -> _Played | None:
    four = (sets[TRAIN], sets[TEST], top[TRAIN], top[TEST])
    means = [dict(zip(s.seeds, mean(mean(s.values)).tolist(), strict=True)) for s in four]
    seeds = tuple(
        seed for seed in means[0] if all(np.isfinite(each.get(seed, np.nan)) for each in means)
    )
    if not seeds:
        return None
    trained = _shared(seeds, sets[TRAIN], top[TRAIN])
    cross = top_cross = None
    if len(seeds) >= LEAST_SEEDS and not trained:
        largest = int(top_cell["n"][0])
        cross, top_cross = (_cross(top_cell, each, seeds) for each in (n, largest))
        if cross is None or top_cross is None:
            cross = top_cross = None
    own, held, top_own, top_held = (np.array([each[seed] for seed in seeds]) for each in means)
    return _Played(
        seeds,
        own,
        held,
        top_own,
        top_held,
        cross,
        top_cross,
        _shared(seeds, sets[TEST]),
        _shared(seeds, top[TEST]),
        _shared(seeds, minus(top[TEST], sets[TEST], seeds)),
        trained,
    )


def _shared(seeds: tuple[int, ...], *scores: Scores) -> list[Scores]:
    """Returns, for some of the seeds, the scores whose states all seeds share."""
    own = [each for each in scores if each.states == "crossed"]
    return [replace(each, seeds=seeds, values=each.of(seeds)) for each in own]


def _cross(cell: Table, n: int, seeds: tuple[int, ...]) -> NDArray[np.float64] | None:
    """Returns mean scores of the reference on other seeds' training states; NaN on the diagonal."""
    found = np.full((len(seeds), len(seeds)), np.nan)
    for column, seed in enumerate(seeds):
        rows = cell["set"] == set_of_run(n, seed)
        scores = scores_of(select(cell, rows)) if rows.any() else None
        for row, other in enumerate(seeds):
            if other == seed:
                continue
            if scores is None or other not in scores.seeds:
                return None
            found[row, column] = mean(mean(scores.of([other])))[0]
    missing = np.isnan(found) & ~np.eye(len(seeds), dtype=bool)
    return None if missing.any() else found


def _decomposition(
    arm: str, n: int, largest: int, gap: Estimate, played: _Played, intervals: Intervals
) -> Decomposition:
    p, differs, crossed = played, n != largest, played.cross is not None
    parts = _parts(p.own, p.held, p.top_held, p.cross)
    of_largest = _parts(p.top_own, p.top_held, p.top_held, p.top_cross)

    def estimate(statistic: _Statistic, shared: list[Scores], *, bounded: bool) -> Estimate:
        wide = intervals.of_differences if bounded else replace(intervals, bounds=UNBOUNDED)
        states = [scores.values for scores in shared]
        return jackknife(statistic, len(p.seeds), wide, shared=states)

    adjusted = _adjusted(p)

    def change(seeds: NDArray[np.intp]) -> float:
        return adjusted(seeds) - of_largest(seeds).gain

    def ease(seeds: NDArray[np.intp]) -> float:
        return parts(seeds).ease

    def gain(seeds: NDArray[np.intp]) -> float:
        return parts(seeds).gain

    def loss(seeds: NDArray[np.intp]) -> float:
        return parts(seeds).loss

    apart = p.difference if crossed else [*p.held_states, *p.train_states[:1]]
    return Decomposition(
        arm=arm,
        n=n,
        largest=largest,
        seeds=p.seeds,
        gap=gap,
        ease=estimate(ease, p.top_held_states, bounded=True) if crossed else None,
        gain=estimate(gain, [], bounded=True) if crossed else None,
        loss=estimate(loss, p.difference, bounded=True) if differs else None,
        adjusted=estimate(adjusted, apart, bounded=not crossed),
        change=estimate(change, [*p.difference, *p.train_states], bounded=False)
        if differs
        else None,
    )


class _Parts(NamedTuple):
    """Ease, gain and loss; their sum is the gap."""

    ease: float
    gain: float
    loss: float


_Statistic = Callable[[NDArray[np.intp]], float]


def _parts(
    own: NDArray[np.float64],
    held: NDArray[np.float64],
    top_held: NDArray[np.float64],
    cross: NDArray[np.float64] | None,
) -> Callable[[NDArray[np.intp]], _Parts]:
    """Returns the function of the parts for some of the seeds; without cross-play ease is 0."""

    def parts(seeds: NDArray[np.intp]) -> _Parts:
        ours, apart, reference = (float(each[seeds].mean()) for each in (own, held, top_held))
        if cross is None:
            return _Parts(0.0, ours - reference, reference - apart)
        theirs = cross[np.ix_(seeds, seeds)]
        others = float(theirs[~np.eye(len(seeds), dtype=bool)].mean())
        return _Parts(others - reference, ours - others, reference - apart)

    return parts


def _adjusted(played: _Played) -> _Statistic:
    """Returns the function of the adjusted gap for some of the seeds."""
    parts = _parts(played.own, played.held, played.top_held, played.cross)
    return lambda seeds: parts(seeds).gain + parts(seeds).loss
