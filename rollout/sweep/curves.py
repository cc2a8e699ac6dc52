"""Computes the figures for the plot and the report of a sweep over numbers of training states.

A *sweep* trains once per arm, number of training states N and training seed. Every result plays its
own training states and states held out from all of them. ``curves`` computes one ``Point`` per arm
and N; ``contrasts`` compares arms at equal N.

Source of the experiment: MCU, Appendix D and Figure 7. Its figure shows mean and standard deviation
of 100 episodes of one run. Here training seeds are the replicates, and the gap has its own interval
(Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import Table, rows_of
from rollout.errors import ConfigError, DatasetError
from rollout.evaluate.legs import ACTIONS, TEST, TRAIN
from rollout.evaluate.scoreboard import COLUMNS, USAGE
from rollout.evaluate.statistics import (
    UNBOUNDED,
    Estimate,
    Intervals,
    arrange,
    gap,
    hierarchical,
)
from rollout.evaluate.statistics.components import mean
from rollout.evaluate.statistics.estimate import DEFAULT_INTERVALS

FULL = "full"
"""The set of all states, including training states."""

_OF_RUN = f"{TRAIN}/n"

INSIDE = "inside"
"""Held-out states with the entries of a run's own lists."""

SET_NAMES = {
    TRAIN: "training states",
    TEST: "held-out states",
    FULL: "all states",
    INSIDE: "held-out states with the run's entries",
}

SAMPLED, DETERMINISTIC = ACTIONS


def set_of_run(n: int, seed: int) -> str:
    """Returns the name of the training states of another run of the arm, in its results."""
    return f"{_OF_RUN}{n}-s{seed}"


def of_other_run(set_name: str) -> bool:
    """Returns whether a set has the training states of another run."""
    return set_name.startswith(_OF_RUN)


@dataclass(frozen=True)
class Scores:
    """Scores of one arm, N and set.

    Attributes:
        seeds: training seeds, ascending.
        positions: numbers of the states in their set, ascending.
        values: (seeds, positions, repeats); NaN where an episode is missing or was lost.
        states: the design, as the statistics name it: ``crossed`` where all seeds played the same
            states, as with held-out states; otherwise ``nested``. In both cases the states are a
            sample, and what is estimated is the score for other states too.
    """

    seeds: tuple[int, ...]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    states: str

    def of(self, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Returns the values of the given seeds, in their order."""
        return self.values[[self.seeds.index(seed) for seed in seeds]]


@dataclass(frozen=True)
class Point:
    """The results of one arm and N.

    Attributes:
        arm: named variation of the sweep.
        n: number of training states.
        actions: ``"sampled"`` or ``"deterministic"``.
        seeds: the training seeds that have results.
        scores: the score on each set that was played, by set name.
        gap: score on the training states minus score on the held-out ones; None if either is
            missing.
        success: success rate on each set for which the task decides success, with an interval over
            training seeds and states as that of the score; within 0 and 1.
        by_seed: scores in the order of ``seeds``, by set name or ``"gap"``; NaN where missing.
        episodes: evaluated episodes with a result.
        lost: evaluated episodes without a result.
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
    """Comparison of an arm with the base arm at the same N.

    Attributes:
        arm: the arm.
        base: the arm with which it is compared.
        n: number of training states of both.
        gap: the gap of the arm.
        base_gap: the gap of the base arm.
        gap_difference: ``gap`` minus ``base_gap``.
        test_difference: held-out score of the arm minus that of the base arm.
        same_test_states: both arms were tested on the same states; if not,
            ``test_difference`` also contains the difference between the states.
    """

    arm: str
    base: str
    n: int
    gap: Estimate
    base_gap: Estimate
    gap_difference: Estimate
    test_difference: Estimate
    same_test_states: bool


def curves(
    table: Table, *, actions: str = SAMPLED, intervals: Intervals = DEFAULT_INTERVALS
) -> list[Point]:
    """Returns a point for each arm and N: arms in the order of the table, N ascending.

    Args:
        table: results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        actions: ``"sampled"`` or ``"deterministic"``; without such rows there are no points.
        intervals: method of the intervals.

    Raises:
        DatasetError: a column is missing, an episode is duplicated, or a row has no N.
    """
    return [_point(cell, arm, n, actions, intervals) for arm, n, cell in cells(table, actions)]


def contrasts(
    table: Table, *, base: str, actions: str = SAMPLED, intervals: Intervals = DEFAULT_INTERVALS
) -> list[Contrast]:
    """Compares each arm with the base arm, for every N that both have.

    The difference of two gaps is estimated as the gap of differences: the score in the arm minus
    the score in the base arm, position by position, for training and held-out states. Where both
    arms share states and seeds, this pairs them. Otherwise the states of each are an independent
    draw in random order, so pairing by position does not change the expectation.

    Args:
        table: results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        base: the arm with which others are compared.
        actions: ``"sampled"`` or ``"deterministic"``.
        intervals: method of the intervals.

    Raises:
        DatasetError: as in ``curves``.
    """
    by_key = {(arm, n): cell for arm, n, cell in cells(table, actions)}
    found = []
    for (arm, n), cell in by_key.items():
        if arm != base and (base, n) in by_key:
            found.append(_contrast(cell, by_key[base, n], arm, base, n, intervals))
    return [contrast for contrast in found if contrast]


def worst_cases(
    table: Table, *, actions: str = SAMPLED, bounds: tuple[float, float] = UNBOUNDED
) -> list[tuple[str, int, dict[str, tuple[float, float]]]]:
    """Returns what the scores could be at worst and at best if lost episodes had a score.

    Args:
        table: results, see ``rollout.evaluate.scoreboard.COLUMNS``.
        actions: ``"sampled"`` or ``"deterministic"``.
        bounds: the least and the greatest score; if unbounded, those of any episode of the table.

    Returns:
        arm, N and by set, and ``"gap"``, the mean if all lost episodes had the least score, and if
        all had the greatest; for each arm and N with lost episodes.
    """
    known = table["score"][np.isfinite(table["score"])] if table else np.zeros(0)
    if not np.isfinite(bounds).all() and len(known):
        bounds = (float(known.min()), float(known.max()))
    found = []
    for arm, n, cell in cells(table, actions):
        if not (cell["end"] == "lost").any():
            continue
        ends: dict[str, tuple[float, float]] = {}
        for name in by_set(cell):
            rows = select(cell, cell["set"] == name)
            least, most = (scores_of(rows, lost=each).values for each in bounds)
            ends[name] = (_mean_of(least), _mean_of(most))
        if TRAIN in ends and TEST in ends:
            (low, high), (least_held, most_held) = ends[TRAIN], ends[TEST]
            ends["gap"] = (low - most_held, high - least_held)
        found.append((arm, n, ends))
    return found


def _mean_of(values: NDArray[np.float64]) -> float:
    return float(mean(mean(mean(values))))


def by_arm(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Returns the points of each arm, N ascending; arms in order of appearance."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.arm, []).append(point)
    return {arm: sorted(own, key=lambda p: p.n) for arm, own in found.items()}


def select(table: Table, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Returns rows of a table, given by a mask or by row numbers."""
    return {name: column[rows] for name, column in table.items()}


def scores_of(table: Table, column: str = "score", *, lost: float = np.nan) -> Scores:
    """Returns the scores as an array; the rows are of one arm, N, set and way of acting.

    Args:
        table: the rows.
        column: the column of the scores.
        lost: the score of lost episodes.

    Raises:
        DatasetError: an episode is duplicated.
    """
    seed, position, repeat = (table[name] for name in ("training_seed", "position", "repeat"))
    scores = np.where(table["end"] == "lost", lost, table[column])
    try:
        values, seeds = arrange(seed, position, repeat, scores)
    except ConfigError as error:
        what = ", ".join(f"{name} {table[name][0]}" for name in ("arm", "n", "set", "actions"))
        raise DatasetError(f"results of {what}: {error}") from error
    positions, place = np.unique(position, return_inverse=True)
    names, state = np.unique(table["state"], return_inverse=True)
    shared = len(np.unique(place * len(names) + state)) == len(positions)
    return Scores(tuple(seeds.tolist()), positions, values, "crossed" if shared else "nested")


def cells(table: Table, actions: str) -> Iterator[tuple[str, int, Table]]:
    """Yields arm, N and their rows: arms in the order of the table, N ascending.

    Yields nothing for an empty table, which has no columns.

    Raises:
        DatasetError: a column is missing, or a row has no number of training states.
    """
    if not table:
        return
    # Results of version 0.1 do not have the usage, and older ones no invalid episodes.
    later = {*USAGE, "invalid"}
    missing = [name for name in COLUMNS if name not in table and name not in later]
    if missing:
        raise DatasetError(
            f"expected a table of results, but the columns {', '.join(missing)} are missing"
        )
    if rows_of(table) and table["n"].min() < 1:
        raise DatasetError(
            f"expected the results of a sweep, where every row has a number of training states; "
            f"got n = {table['n'].min()}"
        )
    own = select(table, table["actions"] == actions)
    names, first = np.unique(own["arm"], return_index=True)
    for arm in names[np.argsort(first)]:
        of_arm = select(own, own["arm"] == arm)
        for n in np.unique(of_arm["n"]):
            yield str(arm), int(n), select(of_arm, of_arm["n"] == n)


def by_set(cell: Table) -> dict[str, Scores]:
    """Returns the scores of each set with results: train, test, full, others; not of other runs."""
    known = {TRAIN: 0, TEST: 1, FULL: 2}
    own = [name for name in np.unique(cell["set"]).tolist() if not of_other_run(name)]
    names = sorted(own, key=lambda name: (known.get(name, 3), name))
    scores = {name: scores_of(select(cell, cell["set"] == name)) for name in names}
    return {name: own for name, own in scores.items() if not np.isnan(own.values).all()}


def _point(cell: Table, arm: str, n: int, actions: str, intervals: Intervals) -> Point:
    sets = by_set(cell)
    seeds = tuple(sorted({seed for own in sets.values() for seed in own.seeds}))
    by_seed: dict[str, tuple[float, ...]] = {}
    for name, own in sets.items():
        means = dict(zip(own.seeds, mean(mean(own.values)).tolist(), strict=True))
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
        scores={
            name: hierarchical(own.values, intervals, states=own.states)
            for name, own in sets.items()
        },
        gap=gap_of(sets.get(TRAIN), sets.get(TEST), intervals),
        success=_success(cell, sets, intervals),
        by_seed=by_seed,
        episodes=rows_of(cell) - lost,
        lost=lost,
    )


def gap_of(train: Scores | None, test: Scores | None, intervals: Intervals) -> Estimate | None:
    """Returns the gap over the seeds that have both scores; None if there is none."""
    if train is None or test is None:
        return None
    seeds = [seed for seed in train.seeds if seed in test.seeds]
    if not seeds:
        return None
    states = {"train_states": train.states, "test_states": test.states}
    return gap(train.of(seeds), test.of(seeds), intervals, **states)


def _success(cell: Table, sets: Mapping[str, Scores], intervals: Intervals) -> dict[str, Estimate]:
    found, shares = {}, replace(intervals, bounds=(0.0, 1.0))
    for name in sets:
        decided = scores_of(select(cell, cell["set"] == name), "success")
        if not np.isnan(decided.values).all():
            found[name] = hierarchical(decided.values, shares, states=decided.states)
    return found


def _contrast(
    cell: Table, base_cell: Table, arm: str, base: str, n: int, intervals: Intervals
) -> Contrast | None:
    sets, base_sets = by_set(cell), by_set(base_cell)
    own, other = (gap_of(s.get(TRAIN), s.get(TEST), intervals) for s in (sets, base_sets))
    if own is None or other is None:
        return None
    four = [each[name] for name in (TRAIN, TEST) for each in (sets, base_sets)]
    seeds = [seed for seed in four[0].seeds if all(seed in each.seeds for each in four)]
    train, test = (minus(sets[name], base_sets[name], seeds) for name in (TRAIN, TEST))
    if np.isnan(train.values).all() or np.isnan(test.values).all():  # also if there are none
        return None
    states = {"train_states": train.states, "test_states": test.states}
    return Contrast(
        arm=arm,
        base=base,
        n=n,
        gap=own,
        base_gap=other,
        gap_difference=gap(train.values, test.values, intervals.of_differences, **states),
        test_difference=hierarchical(test.values, intervals.of_differences, states=test.states),
        same_test_states=_states(cell) == _states(base_cell),
    )


def minus(scores: Scores, base: Scores, seeds: Sequence[int]) -> Scores:
    """Returns the difference of the scores of seeds, over positions and repeats that both have."""
    positions, own, other = np.intersect1d(scores.positions, base.positions, return_indices=True)
    repeats = min(scores.values.shape[2], base.values.shape[2])
    values = scores.of(seeds)[:, own, :repeats] - base.of(seeds)[:, other, :repeats]
    designs = (scores.states, base.states)
    states = "nested" if "nested" in designs else "crossed"
    return Scores(tuple(seeds), positions, values, states)


def _states(cell: Table) -> set[str]:
    return set(cell["state"][cell["set"] == TEST].tolist())
