"""All pairs of the models of an evaluation, or of several: differences, tests and verdicts.

Every two models are compared on each set that both played, and on all of these together. The
p-values of all comparisons are corrected for their number at once (Holm), so that of models that
are equal none is called better than another in 95 % of evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.evaluate.statistics import Comparison, Estimate, Intervals, comparison, holm
from rollout.reports import render, table

ALL_SETS = "all sets"
"""The name of all sets together among the sets of comparisons; each state counts once."""

Kind: TypeAlias = tuple[str, str]
"""A set and a way of choosing actions."""

Scores: TypeAlias = Mapping[Kind, NDArray[np.float64]]
"""(training seeds, states, episodes) of a model on each set that it played."""

_SMALL_P = 0.001  # smaller ones are not written out
_COLUMNS = ("model", "minus", "set", "actions", "difference", "p", "d", "ahead", "better")


def compare_all(
    models: Mapping[str, Scores],
    states: Mapping[str, Sequence[str]],
    intervals: Intervals,
    *,
    base: str | None = None,
) -> list[dict[str, Any]]:
    """Returns the comparison of every two models, on each set and on all sets together.

    Args:
        models: the scores of each model; of one set all have the same states and episode seeds.
        states: the index of each state of a set, in the order of its scores.
        intervals: of a score; one minus its confidence is the level of the tests.
        base: the model that is subtracted in each of its pairs; the first of two by default.
    """
    names = [base, *(name for name in models if name != base)] if base is not None else [*models]
    pairs: list[tuple[str, str, Kind, Comparison]] = []
    for minus, model in combinations(names, 2):
        ours, theirs = models[model], models[minus]
        for actions in dict.fromkeys(actions for _, actions in ours):
            sets = [name for name, a in ours if a == actions and (name, a) in theirs]
            kinds = {name: (ours[name, actions], theirs[name, actions]) for name in sets}
            if len(sets) > 1:
                kinds[ALL_SETS] = _pooled(kinds, states)
            pairs += [
                (model, minus, (name, actions), comparison(*sides, intervals))
                for name, sides in kinds.items()
            ]
    corrected = holm([found.p for *_, found in pairs])
    level = 1 - intervals.confidence
    return [
        {
            "model": model,
            "minus": minus,
            "set": set_name,
            "actions": actions,
            "difference": found.difference,
            "p": found.p,
            "p_corrected": p,
            "effect": found.effect,
            "ahead": found.ahead,
            "unit": found.unit,
            "better": (model if found.difference.point > 0 else minus) if p < level else None,
        }
        for (model, minus, (set_name, actions), found), p in zip(pairs, corrected, strict=True)
    ]


def _pooled(
    kinds: Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]],
    states: Mapping[str, Sequence[str]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the scores of both sides on the states of all sets; one in several counts once."""
    seen: set[str] = set()
    kept: dict[str, list[int]] = {name: [] for name in kinds}
    for name in kinds:
        for position, state in enumerate(states[name]):
            if state not in seen:
                seen.add(state)
                kept[name].append(position)
    a, b = (
        np.concatenate([sides[side][:, kept[name]] for name, sides in kinds.items()], axis=1)
        for side in (0, 1)
    )
    return a, b


def main_rows(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the comparisons on all sets of each pair, or on the only one."""
    pooled = {(r["model"], r["minus"], r["actions"]) for r in rows if r["set"] == ALL_SETS}
    return [
        r
        for r in rows
        if r["set"] == ALL_SETS or (r["model"], r["minus"], r["actions"]) not in pooled
    ]


def verdict(row: Mapping[str, Any], metric: str, *, actions: bool = False) -> str:
    """Returns what a comparison says, in a sentence.

    Args:
        row: one of ``compare_all``, its numbers as JSON: NaN is None.
        metric: the metric of the scores.
        actions: whether to name the way of choosing actions.
    """
    found, p = row["difference"], row["p_corrected"]
    where = f" with {row['actions']} actions" if actions else ""
    counts, unit = found["counts"], row["unit"]
    number = counts.get("seeds" if unit == "training seeds" else "states", 0)
    number = counts.get("episodes", 0) if unit == "episodes" else number
    on = f"{number} {unit}"
    if p is None:
        return (
            f"**{row['model']}** and **{row['minus']}** cannot be told apart{where}: "
            f"{found['refused'] or 'there are too few results'}."
        )
    if row["better"] is None:
        few = f" {number} states are too few to show any." if _few(row) else ""
        return (
            f"No difference is shown between **{row['model']}** and **{row['minus']}**{where}: "
            f"{metric} {found['text']} on {on}, p {p_text(p)}.{few}"
        )
    worse, text = row["minus"], found["text"]
    if row["better"] == row["minus"]:
        known = {key: value for key, value in found.items() if key != "text"}
        ends = {"point": -found["point"]}
        if found["low"] is not None:
            ends |= {"low": -found["high"], "high": -found["low"]}
        worse, text = row["model"], Estimate(**{**known, **ends}).text()
    return (
        f"**{row['better']}** is better than **{worse}**{where}, by {text} {metric} on {on}, "
        f"p {p_text(p)}."
    )


def _few(row: Mapping[str, Any]) -> bool:
    """Returns whether a comparison of players has fewer states than any test could use."""
    found = row["difference"]
    least = 2.0 ** (1 - int(found["counts"].get("states", 0)))
    return bool(row["unit"] == "states" and least > 1 - found["confidence"])


def p_text(p: float | None) -> str:
    """Returns a p-value for people, as ``= 0.02`` or ``< 0.001``."""
    if p is None or math.isnan(p):
        return "-"
    return f"= {p:.2g}" if p >= _SMALL_P else f"< {_SMALL_P:g}"


def pairs_section(rows: Sequence[Mapping[str, Any]], metric: str) -> str:
    """Returns the verdicts and the table of comparisons, as Markdown.

    Args:
        rows: of ``compare_all``, as JSON-able data.
        metric: the metric of the scores.
    """
    several = len({row["actions"] for row in rows}) > 1
    cells = [
        {
            **row,
            "difference": row["difference"]["text"],
            "p": p_text(row["p_corrected"]).removeprefix("= "),
            "d": "-" if row["effect"] is None else f"{row['effect']:.2f}",
            "ahead": "-" if row["ahead"] is None else f"{row['ahead']:.0%}",
            "better": row["better"] or "-",
        }
        for row in rows
    ]
    return render(
        "pairs",
        verdicts=[verdict(row, metric, actions=several) for row in main_rows(rows)],
        number=len(rows),
        seeds=any(row["unit"] == "training seeds" for row in rows),
        players=any(row["unit"] != "training seeds" for row in rows),
        pairs=table(_COLUMNS, [[row[name] for name in _COLUMNS] for row in cells]),
    )
