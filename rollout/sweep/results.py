"""Evaluation results as columns: their definition and their conversion to arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.data.tables import Table, rows_of
from rollout.errors import ConfigError, DatasetError
from rollout.evaluate.legs import ACTIONS, TRAIN
from rollout.evaluate.scoreboard import COLUMNS
from rollout.evaluate.statistics import arrange

FULL = "full"
"""The set of all states, including training states."""

SAMPLED, DETERMINISTIC = ACTIONS


@dataclass(frozen=True)
class Scores:
    """Scores of one arm, N and set.

    Attributes:
        seeds: training seeds, ascending.
        positions: numbers of the states in their set, ascending.
        values: (seeds, positions, repeats); NaN where an episode is missing or was lost.
        crossed: whether all seeds played the same states, as with held-out states.
        whole: whether these are all training states of the runs, not a sample of them.
    """

    seeds: tuple[int, ...]
    positions: NDArray[np.int64]
    values: NDArray[np.float64]
    crossed: bool
    whole: bool = False

    @property
    def states(self) -> str:
        """The design, as the statistics name it: ``"crossed"``, ``"nested"`` or ``"fixed"``.

        It is fixed where all seeds were trained on the same states and played all of them: then
        nothing is inferred about states, and only the variation between trainings is uncertain.
        """
        if not self.crossed:
            return "nested"
        return "fixed" if self.whole else "crossed"

    def of(self, seeds: Sequence[int]) -> NDArray[np.float64]:
        """Returns the values of the given seeds, in their order."""
        return self.values[[self.seeds.index(seed) for seed in seeds]]

    def by_seed(self) -> tuple[float, ...]:
        """Returns the mean score of each seed: over repeats of a state, then over states."""
        return tuple(float(_mean(_mean(seed, axis=1), axis=0)) for seed in self.values)


def select(table: Table, rows: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Returns rows of a table, given by a mask or by row numbers."""
    return {name: column[rows] for name, column in table.items()}


def scores_of(table: Table, column: str = "score") -> Scores:
    """Returns the scores as an array; the rows are of one arm, N, set and way of acting.

    Raises:
        DatasetError: an episode is duplicated.
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
    """Returns the table, if it is a table of sweep results.

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

    Yields nothing for an empty table, which has no columns.
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
    """The mean without NaN values; NaN if there are no others, without numpy's warning."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    total = np.where(there, values, 0.0).sum(axis=axis)
    means = np.full(np.shape(total), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return means
