"""Published results of a benchmark, which a report shows beside its own.

A file of published results says where they are from, what was measured, and how. The file
``NAME.yaml`` in the folder ``published`` beside the tasks of a game is found by its name::

    title: BALROG, BabyAI
    source: github.com/balrog-ai/experiments
    read: 2026-11-23
    metric: progress
    about: what the figures are, and how they were got
    results:
      GPT-4o: {text: [77.6, 3.7], VLM: [62.0, 4.3]}   # mean and standard error, in percent
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from rollout.config import Section, key, resolved
from rollout.configuration import document
from rollout.configuration.load import from_document
from rollout.errors import UnknownNameError
from rollout.evaluate.published_tables import Cell, cells_table
from rollout.evaluate.statistics import Intervals, one_player
from rollout.reports import render, table

FOLDER = "published"
_SUFFIXES = (".yaml", ".yml")

_Scores = NDArray[np.float64]
_Figure = Annotated[tuple[float, float], Field(strict=False)]


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
        intervals: how intervals are computed.
    """
    rows = []
    for (player, actions), scores in own.items():
        ended = scores[~np.isnan(scores)]
        counted = {f"{ended.size} of {scores.size} with a result": ended}
        if ended.size < scores.size:
            counted[f"{scores.size}, those without a result as 0"] = np.nan_to_num(scores)
        interval = one_player(scores, intervals)
        for told, values in counted.items():
            figure = as_published(values)
            about = {"player": player, "actions": actions, "counted": told}
            rows.append({**about, "mean": figure, "interval": interval})
    return {**resolved(published), "own": rows}


def published_section(found: Mapping[str, Any]) -> str:
    """Returns the section of a report.

    Args:
        found: what ``beside`` returns, as in the ``summary.json`` of a run; or the published tables
            and ``own``, cells by player, actions and set.
    """
    if found["tables"]:
        return render("published", found=found, own=cells_table(found), results="")
    own = [
        [
            *(each["player"], each["actions"], each["counted"]),
            *(_figure(each["mean"]), each["interval"]["text"]),
        ]
        for each in found["own"]
    ]
    results: Mapping[str, Mapping[str, Sequence[float]]] = found["results"]
    columns = list(dict.fromkeys(name for row in results.values() for name in row))
    others = [[model, *(_figure(row.get(c)) for c in columns)] for model, row in results.items()]
    return render(
        "published",
        found=found,
        own=table(["player", "actions", "episodes", "mean", "interval"], own),
        results=table(["model", *columns], others),
    )


def _figure(figure: Sequence[float | None] | None) -> str:
    if figure is None or None in figure:
        return "-"
    mean, error = figure
    return f"{mean:.1f} ± {error:.1f}"
