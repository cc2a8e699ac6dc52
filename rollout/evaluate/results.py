"""Results of evaluations as columns: what the columns are, and the arrays they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import Table, rows_of
from rollout.errors import ConfigError, DatasetError
from rollout.evaluate.statistics import arrange

TRAIN, TEST, FULL = "train", "test", "full"
"""Sets that every reader of a sweep knows: own training states, held-out states, all states."""

SAMPLED, DETERMINISTIC = "sampled", "deterministic"

COLUMNS = {
    "arm": "named variation of the sweep",
    "n": "number of training states",
    "training_seed": "seed of the training run",
    "player": "who played",
    "set": "which states: train (the run's own), test (held out), full, extrapolation/...",
    "actions": "sampled or deterministic",
    "position": "number of the state in its set",
    "state": "index of the state, decimal digits",
    "repeat": "which of the episodes from this state",
    "episode_seed": "seed of the episode's chance",
    "score": "the metric of the sweep; NaN if the episode was lost",
    "total_reward": "undiscounted sum of rewards",
    "progress": "as the evaluator judged it; NaN where it is not defined",
    "success": "1 or 0; NaN where the task decides nothing",
    "length": "steps",
    "end": "terminated, truncated or lost; lost is never a result",
    "attempts": "how often it was begun",
}
"""What the columns of a table of results are."""


@dataclass(frozen=True)
class Scores:
    """Scores of one arm, N and set.

    Attributes:
        seeds: training seeds, ascending.
        positions: numbers of the states in their set, ascending.
        values: (seeds, positions, repeats), NaN where an episode is missing or was lost.
        crossed: whether all seeds played the same states, as they do held-out ones.
        whole: whether these are all states that the runs were trained on, not a sample of them.
    """

    seeds: tuple[int, ...]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    crossed: bool
    whole: bool = False

    @property
    def states(self) -> str:
        """``"crossed"``, ``"nested"`` or ``"fixed"``, as the statistics call it.

        Where all seeds were trained on the same states and played every one of them, there is
        nothing to infer about the states: what is uncertain is what another training would do.
        """
        if not self.crossed:
            return "nested"
        return "fixed" if self.whole else "crossed"

    def of(self, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Returns the values of some of the seeds, in their order."""
        return self.values[[self.seeds.index(seed) for seed in seeds]]

    def by_seed(self) -> tuple[float, ...]:
        """Returns the mean score of each seed: over its states, each state's repeats first."""
        return tuple(float(_mean(_mean(seed, axis=1), axis=0)) for seed in self.values)


def select(table: Table, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Returns some rows of a table: of a mask or of row numbers."""
    return {name: column[rows] for name, column in table.items()}


def scores_of(table: Table, column: str = "score") -> Scores:
    """Returns the scores of rows of one arm, N, set and way of acting as an array.

    Raises:
        DatasetError: an episode is there twice.
    """
    seed, position, repeat = (table[name] for name in ("training_seed", "position", "repeat"))
    scores = np.where(table["end"] == "lost", np.nan, table[column])
    try:
        values, seeds = arrange(seed, position, repeat, scores)
    except ConfigError as error:
        what = ", ".join(f"{name} {table[name][0]}" for name in ("arm", "n", "set", "actions"))
        raise DatasetError(f"results of {what}: {error}") from error
    positions, place = np.unique(position, return_inverse=True)
    states, state = np.unique(table["state"], return_inverse=True)
    pairs = np.unique(place * len(states) + state)
    crossed = len(pairs) == len(positions)
    whole = bool((table["set"] == TRAIN).all()) and len(positions) >= int(table["n"].max())
    return Scores(tuple(seeds.tolist()), positions, values, crossed, whole)


def checked(table: Table) -> Table:
    """Returns the table of a sweep, if it is one.

    Raises:
        DatasetError: a column is missing, or a row has no number of training states.
    """
    missing = [name for name in COLUMNS if name not in table]
    if missing and table:
        raise DatasetError(
            f"expected a table of results, but the columns {', '.join(missing)} are missing"
        )
    if rows_of(table) and table["n"].min() < 1:
        raise DatasetError(
            f"expected the results of a sweep, where every row has a number of training states; "
            f"got n = {table['n'].min()}"
        )
    return table


def cells_of(table: Table, actions: str) -> Iterator[tuple[str, int, dict[str, NDArray[Any]]]]:
    """Yields arm, N and their rows: arms in the order of the table, N ascending.

    There are none in a table without columns, to which nothing was added.
    """
    if not table:
        return
    own = select(table, table["actions"] == actions)
    names, first = np.unique(own["arm"], return_index=True)
    for arm in names[np.argsort(first)]:
        of_arm = select(own, own["arm"] == arm)
        for n in np.unique(of_arm["n"]):
            yield str(arm), int(n), select(of_arm, of_arm["n"] == n)


def _mean(values: NDArray[np.float64], *, axis: int) -> NDArray[np.float64]:
    """The mean of what is there, NaN where nothing is, without numpy's warning about it."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    means = np.full(np.shape(total), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means
