"""Success by groups of states over several runs, as benchmarks of many tasks publish it.

A task may say in its ``metadata`` how its states are grouped::

    metadata:
      table:
        factor: task                                   # whose values are grouped
        rows: {clear_weeds: Easy, craft_chest: Medium}
        columns: {clear_weeds: Farming, craft_chest: Crafting}

A run is one episode of every state: with ``episodes_per_state: 3`` there are three. A cell is the
mean over the runs of the share of its states that succeeded, and the deviation of the sample of
runs (n - 1). ``Total`` is over states, not over cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api import StateSet
from rollout.reports import render, table

TOTAL = "Total"

_Scores = NDArray[np.float64]


def grouped(
    table: Mapping[str, Any], states: StateSet, success: _Scores, undefined: NDArray[np.bool_]
) -> dict[str, Any]:
    """Returns the cells, by row and by column, and the states without a verdict.

    Args:
        table: of the metadata, see above.
        states: the states that were played.
        success: 1 or 0, NaN for an episode without a result, (states, runs).
        undefined: episodes that ended without a verdict, because the game did not report what they
            are judged by, (states, runs). They count nowhere.
    """
    values = [states[k].values[table["factor"]] for k in range(states.size)]
    counted = np.where(undefined, np.nan, success)
    cells: dict[str, dict[str, Any]] = {}
    rows, columns = ([table[each].get(v, "") for v in values] for each in ("rows", "columns"))
    for row in (*_in_order(table["rows"], rows), TOTAL):
        for column in (*_in_order(table["columns"], columns), TOTAL):
            mine = np.array(
                [
                    row in (r, TOTAL) and column in (c, TOTAL)
                    for r, c in zip(rows, columns, strict=True)
                ]
            )
            cells.setdefault(row, {})[column] = _cell(counted[mine])
    never = [str(v) for v, each in zip(values, undefined, strict=True) if each.any()]
    return {"runs": int(success.shape[1]), "cells": cells, "undefined": sorted(set(never))}


def _in_order(labels: Mapping[Any, str], played: Sequence[str]) -> list[str]:
    """The labels of what was played, in the order of the task."""
    return [label for label in dict.fromkeys(labels.values()) if label in played]


def _cell(scores: _Scores) -> dict[str, Any]:
    """Mean and deviation over the runs in percent; None without any, or without two."""
    told = ~np.isnan(scores)
    runs = [100 * run[has].mean() for run, has in zip(scores.T, told.T, strict=True) if has.any()]
    return {
        "states": int(told.any(axis=1).sum()),
        "mean": float(np.mean(runs)) if runs else None,
        "deviation": float(np.std(runs, ddof=1)) if len(runs) > 1 else None,
    }


def groups_section(found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the section of a report; ``found`` has ``grouped`` of each leg, and its name."""
    return render("groups", legs=[(leg, _table(leg["cells"])) for leg in found])


def _table(cells: Mapping[str, Mapping[str, Any]]) -> str:
    columns = next(iter(cells.values()))
    rows = [[row, *(_text(of[column]) for column in columns)] for row, of in cells.items()]
    return table(["", *columns], rows)


def _text(cell: Mapping[str, Any]) -> str:
    if cell["mean"] is None:
        return "-"
    spread = "" if cell["deviation"] is None else f" ± {cell['deviation']:.1f}"
    return f"{cell['mean']:.1f}{spread} ({cell['states']})"
