"""Results in the form in which benchmarks publish them, and those that were published.

A file of published results says where they are from, what was measured, and how. The file
``NAME.yaml`` in the folder ``published`` beside the tasks of a game is found by its name::

    title: BALROG, BabyAI
    source: github.com/balrog-ai/experiments
    read: 2026-11-23
    metric: progress
    about: what the figures are, and how they were got
    results:
      GPT-4o: {text: [77.6, 3.7], VLM: [62.0, 4.3]}   # mean and standard error, in percent

Instead of ``results`` a file may have ``tables``, whose columns are tasks: success, length and
return beside those of the run.

A task may say in its ``metadata`` how its states are grouped::

    metadata:
      table:
        factor: task                                   # whose values are grouped
        rows: {clear_weeds: Easy, craft_chest: Medium}
        columns: {clear_weeds: Farming, craft_chest: Crafting}
        attempts: true                          # attempted and invalid episodes are counted, too

A run is one episode of every state: with ``episodes_per_state: 3`` there are three. A cell is the
mean over the runs of the share of its states that succeeded, and the deviation of the sample of
runs (n - 1). ``Total`` is over states, not over cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from rollout.api import StateSet
from rollout.config import Section, key, resolved
from rollout.configuration import document
from rollout.configuration.document import from_document
from rollout.errors import UnknownNameError
from rollout.evaluate.statistics import Intervals, one_player, wilson
from rollout.reports import render, table

FOLDER, TOTAL = "published", "Total"
_SUFFIXES = (".yaml", ".yml")

_Scores = NDArray[np.float64]
_Figure = Annotated[tuple[float, float], Field(strict=False)]
_OptionalFigure = Annotated[tuple[float | None, float | None], Field(strict=False)]


class Cell(Section):
    """Published figures of one model on one task; each is a mean and a deviation."""

    success: _OptionalFigure | None = key(None, "Successful episodes in percent.")
    length: _OptionalFigure | None = key(None, "Steps of the successful episodes.")
    total: _OptionalFigure | None = key(None, "Return of an episode.")


def own_cell(rows: Mapping[str, Any], confidence: float) -> dict[str, Any]:
    """Returns the figures of a leg: means, deviations with n, and the interval of the success.

    Args:
        rows: the columns of its episodes (``rollout.evaluate.scoreboard.COLUMNS``).
        confidence: of the interval.
    """
    known = ~np.isnan(rows["success"])
    won = known & (rows["success"] == 1.0)
    share = wilson(int(won.sum()), int(known.sum()), confidence=confidence) if known.any() else None
    return {
        "episodes": int(known.sum()),
        "success": share,
        "length": _mean_and_deviation(rows["length"][won]),
        "total": _mean_and_deviation(rows["total_reward"][known]),
    }


def _mean_and_deviation(values: ArrayLike) -> tuple[float, float] | None:
    found = np.asarray(values, np.float64)
    return (float(found.mean()), float(found.std())) if found.size else None


def cells_table(found: Mapping[str, Any]) -> str:
    """Returns a table of the cells of this run and of the published ones, by player or model.

    Args:
        found: the published tables and ``own``, cells by player, actions and set.
    """
    published: Mapping[str, Mapping[str, Any]] = found["tables"]
    columns = list(dict.fromkeys(name for row in published.values() for name in row))
    body = []
    for each in found["own"]:
        cells = [_own_cell_text(each["cells"].get(name)) for name in columns]
        body.append([f"**{each['player']}** ({each['actions']}, this run)", *cells])
    for model, row in published.items():
        body.append([model, *(_cell_text(row.get(name)) for name in columns)])
    return table(["player or model", *columns], body)


def _own_cell_text(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    share = "-"
    if cell["success"] is not None:
        low, high = (100 * cell["success"][end] for end in ("low", "high"))
        share = f"{100 * cell['success']['point']:.1f} [{low:.0f}, {high:.0f}]"
    return f"{share} / {_figure_text(cell['length'])} / {_figure_text(cell['total'])}"


def _cell_text(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return "-"
    return " / ".join(_figure_text(cell.get(name)) for name in ("success", "length", "total"))


def _figure_text(figure: Any) -> str:
    if figure is None or figure[0] is None or not math.isfinite(figure[0]):
        return "-"
    digits = 0 if abs(figure[0]) >= 1000 else 1
    return " ± ".join(f"{value:.{digits}f}" for value in figure if value is not None)


class Published(Section):
    """Published results of a benchmark."""

    title: str = key(..., "What was published.")
    source: str = key(..., "Where it can be read.")
    read: str = key(..., "The day on which it was read.")
    metric: Literal["progress", "return", "success"] = key(
        ..., "The metric of an evaluation that measures the same."
    )
    about: str = key("", "What the figures are, and how they were got.")
    spread: Literal["standard error", "deviation of runs"] = key(
        "standard error", "What follows the means. Of runs: see the groups of the report."
    )
    results: dict[str, dict[str, _Figure]] = key(
        ..., "Mean and spread in percent, by model and by column."
    )
    tables: dict[str, dict[str, Cell]] = key(
        dict,
        "Several figures, by model and by set of the evaluation; instead of results, where the "
        "columns of a benchmark are tasks.",
    )


def load_published(name_or_path: str, tasks: Path | None) -> Published:
    """Returns published results by the name or the path of their file.

    Args:
        name_or_path: a path that ends with ``.yaml``, or the name of a file in the folder
            ``published`` beside the tasks of the game.
        tasks: folder of the tasks of the game; None if there are none.

    Raises:
        UnknownNameError: the game has none of that name.
        ConfigError: the file cannot be read, or is invalid.
    """
    if name_or_path.endswith(_SUFFIXES):
        return from_document(Published, document.read(Path(name_or_path).expanduser()))
    known = {} if tasks is None else {each.stem: each for each in (tasks / FOLDER).glob("*.yaml")}
    if name_or_path not in known:
        advice = "A path ends with .yaml."
        raise UnknownNameError("published results", name_or_path, known, advice)
    return from_document(Published, document.read(known[name_or_path]))


def as_published(scores: ArrayLike) -> tuple[float, float]:
    """Returns the mean score of episodes and its standard error, both in percent.

    All episodes have equal weights, whatever state or set they are of. The standard error is that
    of BALROG: the deviation of the population, with n and not n - 1, over the root of n; 0 for one
    episode. NaN without any.

    Args:
        scores: scores of the episodes that count, of any shape.
    """
    values = np.asarray(scores, np.float64).ravel()
    if not values.size:
        return math.nan, math.nan
    return 100 * float(values.mean()), 100 * float(values.std()) / math.sqrt(values.size)


def beside(
    published: Published, own: Mapping[tuple[str, str], _Scores], intervals: Intervals
) -> dict[str, Any]:
    """Returns published results with those of a run in ``own``, a list of rows.

    Published means are often those of the episodes that have a result. Where some have none, a
    second row counts them as 0.

    Args:
        published: the published results.
        own: scores by player and actions, (states, episodes), NaN where an episode has none.
        intervals: method of the intervals.
    """
    rows = []
    for (player, actions), scores in own.items():
        ended = scores[~np.isnan(scores)]
        counted = {f"{ended.size} of {scores.size} with a result": ended}
        if ended.size < scores.size:
            counted[f"{scores.size}, those without a result as 0"] = np.nan_to_num(scores)
        interval = one_player(scores, intervals)
        for episodes, values in counted.items():
            figure = as_published(values)
            about = {"player": player, "actions": actions, "counted": episodes}
            rows.append({**about, "mean": figure, "interval": interval})
    return {**resolved(published), "own": rows}


def published_section(found: Mapping[str, Any]) -> str:
    """Returns the section of a report.

    Args:
        found: the result of ``beside``, as in the ``summary.json`` of a run; or the published
            tables and ``own``, cells by player, actions and set.
    """
    if found["tables"]:
        return render("published", found=found, own=cells_table(found), results="")
    own = [
        [
            each["player"],
            each["actions"],
            each["counted"],
            _mean_text(each["mean"]),
            each["interval"]["text"],
        ]
        for each in found["own"]
    ]
    results: Mapping[str, Mapping[str, Sequence[float]]] = found["results"]
    columns = list(dict.fromkeys(name for row in results.values() for name in row))
    others = [[model, *(_mean_text(row.get(c)) for c in columns)] for model, row in results.items()]
    return render(
        "published",
        found=found,
        own=table(["player", "actions", "episodes", "mean", "interval"], own),
        results=table(["model", *columns], others),
    )


def _mean_text(figure: Sequence[float | None] | None) -> str:
    if figure is None or None in figure:
        return "-"
    mean, error = figure
    return f"{mean:.1f} ± {error:.1f}"


def grouped(
    labels: Mapping[str, Any], states: StateSet, success: _Scores, undefined: NDArray[np.bool_]
) -> dict[str, Any]:
    """Returns the cells, by row and by column, and the states without a verdict.

    Args:
        labels: the table in the metadata of the task, see above.
        states: the states that were played.
        success: 1 or 0, NaN for an episode without a result, (states, runs).
        undefined: episodes that ended without a verdict, because the game did not report what they
            are judged by, (states, runs). They count nowhere.
    """
    values = [states[k].values[labels["factor"]] for k in range(states.size)]
    counted = np.where(undefined, np.nan, success)
    cells: dict[str, dict[str, Any]] = {}
    rows, columns = ([labels[each].get(v, "") for v in values] for each in ("rows", "columns"))
    for row in (*_in_order(labels["rows"], rows), TOTAL):
        for column in (*_in_order(labels["columns"], columns), TOTAL):
            mine = np.array(
                [
                    row in (r, TOTAL) and column in (c, TOTAL)
                    for r, c in zip(rows, columns, strict=True)
                ]
            )
            cells.setdefault(row, {})[column] = _group_cell(counted[mine])
    never = [str(v) for v, each in zip(values, undefined, strict=True) if each.any()]
    return {"runs": int(success.shape[1]), "cells": cells, "undefined": sorted(set(never))}


def _in_order(labels: Mapping[Any, str], played: Sequence[str]) -> list[str]:
    """Returns the labels of the states that were played, in the order of the task."""
    return [label for label in dict.fromkeys(labels.values()) if label in played]


def _group_cell(scores: _Scores) -> dict[str, Any]:
    """Returns mean and deviation over the runs in percent; None without any, or without two."""
    known = ~np.isnan(scores)
    runs = [100 * run[has].mean() for run, has in zip(scores.T, known.T, strict=True) if has.any()]
    return {
        "states": int(known.any(axis=1).sum()),
        "mean": float(np.mean(runs)) if runs else None,
        "deviation": float(np.std(runs, ddof=1)) if len(runs) > 1 else None,
    }


def attempted(
    labels: Mapping[str, Any],
    states: StateSet,
    success: _Scores,
    invalid: NDArray[np.bool_],
    confidence: float,
) -> list[dict[str, Any]]:
    """Returns successful, attempted and invalid episodes by row of the table of a task.

    Args:
        labels: the table in the metadata of the task, with ``attempts: true``.
        states: the states that were played.
        success: 1 or 0, NaN for an episode without a result, (states, runs).
        invalid: episodes that broke a rule of their task, which are not attempted, (states, runs).
        confidence: of the intervals of the share.
    """
    rows = [labels["rows"].get(states[k].values[labels["factor"]], "") for k in range(states.size)]
    found = []
    for label in (*_in_order(labels["rows"], rows), TOTAL):
        mine = np.array([label in (row, TOTAL) for row in rows])
        counted = ~np.isnan(success[mine]) & ~invalid[mine]
        won, total = int((success[mine][counted] == 1).sum()), int(counted.sum())
        share = wilson(won, total, confidence=confidence) if total else None
        about = {"success": won, "attempted": total, "invalid": int(invalid[mine].sum())}
        found.append({"group": label, **about, "share": share})
    return found


def groups_section(found: Sequence[Mapping[str, Any]]) -> str:
    """Returns the section of a report; ``found`` has ``grouped`` of each leg, and its name."""
    legs = [
        (leg, _groups_table(leg["cells"]), _attempts_table(leg.get("attempts"))) for leg in found
    ]
    return render("groups", legs=legs)


def _attempts_table(counts: Sequence[Mapping[str, Any]] | None) -> str:
    if not counts:
        return ""
    rows = [
        [
            each["group"],
            f"{each['success']} / {each['attempted']}",
            each["share"]["text"] if each["share"] else "-",
            each["invalid"],
        ]
        for each in counts
    ]
    return table(["", "success / attempted", "share", "invalid"], rows)


def _groups_table(cells: Mapping[str, Mapping[str, Any]]) -> str:
    columns = next(iter(cells.values()))
    rows = [[row, *(_group_text(of[column]) for column in columns)] for row, of in cells.items()]
    return table(["", *columns], rows)


def _group_text(cell: Mapping[str, Any]) -> str:
    if cell["mean"] is None:
        return "-"
    spread = "" if cell["deviation"] is None else f" ± {cell['deviation']:.1f}"
    return f"{cell['mean']:.1f}{spread} ({cell['states']})"
