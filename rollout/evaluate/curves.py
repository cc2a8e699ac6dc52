"""The numbers behind the picture and the report of a sweep over numbers of training states.

A *sweep* trains once per arm, number of training states N and training seed, and plays every
result on its own training states and on states held out from all of them. ``curves`` makes one
``Point`` of each arm and N; ``contrasts`` compares the arms where they have the same N.

Source: MCU, Appendix D and Figure 7, for the experiment. Its figure shows the mean and standard
deviation of 100 episodes of one run; here training seeds are the replicates, and the gap has an
interval of its own (Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from rollout.data.tables import Table, rows_of
from rollout.evaluate.results import (
    FULL,
    SAMPLED,
    TEST,
    TRAIN,
    Scores,
    cells_of,
    checked,
    scores_of,
    select,
)
from rollout.evaluate.statistics import Estimate, gap, hierarchical, wilson


@dataclass(frozen=True)
class Point:
    """What came out for one arm and N.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        actions: ``"sampled"`` or ``"deterministic"``.
        seeds: the training seeds that have results.
        scores: the score on each set that was played, by name.
        gap: score on the training states minus score on the held-out ones; None if either is
            missing.
        success: share of successes per set that the task decides; Wilson's interval, over all
            episodes of the set, whoever played them.
        by_seed: set (or ``"gap"``) to the score of each of ``seeds``; NaN where there is none.
        episodes: evaluated episodes with a result.
        lost: evaluated episodes without one.
    """

    arm: str
    n: int
    actions: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Estimate]
    gap: Estimate | None
    success: Mapping[str, Estimate]
    by_seed: Mapping[str, tuple[float, ...]]
    episodes: int
    lost: int


@dataclass(frozen=True)
class Contrast:
    """One arm beside the base arm at the same N.

    Attributes:
        arm: the arm.
        base: the arm that it is compared with.
        n: number of training states of both.
        gap: its gap.
        base_gap: the gap of the base arm.
        gap_difference: its gap minus the gap of the base arm.
        test_difference: its held-out score minus that of the base arm.
        same_test_states: whether both arms were held against the same states; if not,
            ``test_difference`` compares different questions.
    """

    arm: str
    base: str
    n: int
    gap: Estimate
    base_gap: Estimate
    gap_difference: Estimate
    test_difference: Estimate
    same_test_states: bool


@dataclass(frozen=True)
class Intervals:
    """How intervals are made.

    Attributes:
        confidence: share of intervals that hold the true value.
        resamples: of the bootstrap; only for ``percentile``.
        seed: of the bootstrap; only for ``percentile``.
        method: ``t`` or ``percentile``, see ``rollout.evaluate.statistics.hierarchical``.
    """

    confidence: float = 0.95
    resamples: int = 2000
    seed: int = 0
    method: str = "t"


def curves(
    table: Table, *, actions: str = SAMPLED, intervals: Intervals | None = None
) -> list[Point]:
    """Returns a point for each arm and N: arms in the order of the table, N ascending.

    Args:
        table: results, see ``results.COLUMNS``.
        actions: which of the two ways of acting; without such rows there are no points.
        intervals: how intervals are made.

    Raises:
        DatasetError: a column is missing, an episode is there twice, or a row has no N.
    """
    intervals = intervals or Intervals()
    return [
        _point(cell, arm, n, actions, intervals)
        for arm, n, cell in cells_of(checked(table), actions)
    ]


def contrasts(
    table: Table,
    *,
    base: str,
    actions: str = SAMPLED,
    intervals: Intervals | None = None,
) -> list[Contrast]:
    """Returns each arm beside the base arm, for every N that both have.

    The difference of two gaps is estimated as the gap of differences: position by position, the
    score in the arm minus the score in the base arm, for training and held-out states. Where both
    arms share states and seeds this pairs them. Where they do not, the states of either are an
    independent draw in random order, so that pairing them by position changes no expectation.

    Args:
        table: results, see ``results.COLUMNS``.
        base: the arm to compare with.
        actions: which of the two ways of acting.
        intervals: how intervals are made.

    Raises:
        DatasetError: as in ``curves``.
    """
    intervals = intervals or Intervals()
    cells = {(arm, n): cell for arm, n, cell in cells_of(checked(table), actions)}
    found = []
    for (arm, n), cell in cells.items():
        if arm != base and (base, n) in cells:
            found.append(_contrast(cell, cells[base, n], arm, base, n, intervals))
    return [contrast for contrast in found if contrast]


def shrinks(points: Sequence[Point]) -> bool | None:
    """Returns whether the gap of the smallest N lies wholly above that of the largest.

    Args:
        points: of one arm.

    Returns:
        whether the intervals of the two gaps do not overlap and the first is the higher one; None
        if this cannot be said: a single N, or a gap without interval.
    """
    with_gap = sorted((p for p in points if p.gap is not None), key=lambda p: p.n)
    if len(with_gap) < 2:
        return None
    first, last = with_gap[0].gap, with_gap[-1].gap
    if first is None or last is None or first.low is None or last.high is None:
        return None
    return first.low > last.high


def by_arm(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Returns the points of each arm, N ascending; arms in the order they come."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.arm, []).append(point)
    return {arm: sorted(own, key=lambda p: p.n) for arm, own in found.items()}


def _sets(cell: Table) -> dict[str, Scores]:
    """The scores of each set that has a result: train, test, full, then the others."""
    known = {TRAIN: 0, TEST: 1, FULL: 2}
    names = sorted(np.unique(cell["set"]).tolist(), key=lambda name: (known.get(name, 3), name))
    scores = {name: scores_of(select(cell, cell["set"] == name)) for name in names}
    return {name: own for name, own in scores.items() if not np.isnan(own.values).all()}


def _point(cell: Table, arm: str, n: int, actions: str, intervals: Intervals) -> Point:
    sets = _sets(cell)
    seeds = tuple(sorted({seed for own in sets.values() for seed in own.seeds}))
    by_seed: dict[str, tuple[float, ...]] = {}
    for name, own in sets.items():
        means = dict(zip(own.seeds, own.by_seed(), strict=True))
        by_seed[name] = tuple(means.get(seed, np.nan) for seed in seeds)
    if TRAIN in by_seed and TEST in by_seed:
        pairs = zip(by_seed[TRAIN], by_seed[TEST], strict=True)
        by_seed["gap"] = tuple(train - test for train, test in pairs)
    lost = int(np.count_nonzero(cell["end"] == "lost"))
    return Point(
        arm=arm,
        n=n,
        actions=actions,
        seeds=seeds,
        scores={name: _estimate(own, intervals) for name, own in sets.items()},
        gap=_gap(sets.get(TRAIN), sets.get(TEST), intervals),
        success=_success(cell, sets, intervals),
        by_seed=by_seed,
        episodes=rows_of(cell) - lost,
        lost=lost,
    )


def _estimate(scores: Scores, intervals: Intervals) -> Estimate:
    return hierarchical(scores.values, states=scores.states, **asdict(intervals))


def _gap(train: Scores | None, test: Scores | None, intervals: Intervals) -> Estimate | None:
    """The gap over the seeds that have both sides; None if there is none."""
    if train is None or test is None:
        return None
    seeds = [seed for seed in train.seeds if seed in test.seeds]
    if not seeds:
        return None
    return gap(
        train.of(seeds),
        test.of(seeds),
        train_states=train.states,
        test_states=test.states,
        **asdict(intervals),
    )


def _success(cell: Table, sets: Mapping[str, Scores], intervals: Intervals) -> dict[str, Estimate]:
    found = {}
    for name in sets:
        decided = cell["success"][(cell["set"] == name) & (cell["end"] != "lost")]
        decided = decided[~np.isnan(decided)]
        if len(decided):
            successes = int(np.count_nonzero(decided))
            found[name] = wilson(successes, len(decided), confidence=intervals.confidence)
    return found


def _contrast(
    cell: Table, base_cell: Table, arm: str, base: str, n: int, intervals: Intervals
) -> Contrast | None:
    sets, base_sets = _sets(cell), _sets(base_cell)
    gaps = [_gap(own.get(TRAIN), own.get(TEST), intervals) for own in (sets, base_sets)]
    if gaps[0] is None or gaps[1] is None:
        return None
    kept = (sets[TRAIN].seeds, sets[TEST].seeds, base_sets[TRAIN].seeds, base_sets[TEST].seeds)
    seeds = [seed for seed in kept[0] if all(seed in other for other in kept[1:])]
    if not seeds:
        return None
    train = _minus(sets[TRAIN], base_sets[TRAIN], seeds)
    test = _minus(sets[TEST], base_sets[TEST], seeds)
    if np.isnan(train.values).all() or np.isnan(test.values).all():
        return None
    return Contrast(
        arm=arm,
        base=base,
        n=n,
        gap=gaps[0],
        base_gap=gaps[1],
        gap_difference=gap(
            train.values,
            test.values,
            train_states=train.states,
            test_states=test.states,
            **asdict(intervals),
        ),
        test_difference=_estimate(test, intervals),
        same_test_states=_states(cell) == _states(base_cell),
    )


def _minus(scores: Scores, base: Scores, seeds: Sequence[int]) -> Scores:
    """Position by position, over the positions and repeats that both have."""
    positions, own, other = np.intersect1d(scores.positions, base.positions, return_indices=True)
    repeats = min(scores.values.shape[2], base.values.shape[2])
    values = scores.of(seeds)[:, own, :repeats] - base.of(seeds)[:, other, :repeats]
    crossed, whole = scores.crossed and base.crossed, scores.whole and base.whole
    return Scores(tuple(seeds), positions, values, crossed, whole)


def _states(cell: Table) -> set[str]:
    return set(cell["state"][cell["set"] == TEST].tolist())
