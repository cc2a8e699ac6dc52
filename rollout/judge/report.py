"""The report of a judgement: mean verdicts, and their agreement with ratings and themselves."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rollout.api import Outcome, Usage
from rollout.data import EpisodeRef
from rollout.judge.agreement import compare_categories, compare_scores, krippendorff
from rollout.judge.ratings import Known
from rollout.judge.rubric import Criterion
from rollout.judge.sources import Clip
from rollout.reports import render

_Rows = Sequence[Mapping[str, Any]]


def calibrate(
    rows: _Rows,
    clips: Sequence[Clip],
    mode: str,
    ratings: Known | None,
    measure: str,
    criteria: Mapping[str, Criterion],
) -> dict[str, Any]:
    """Returns the mean verdicts, their spread, and their agreement with ratings, by criterion.

    Verdicts that were not given are counted, and are no part of any mean. A measured progress or
    success, 0 to 1, is compared on the scale of its criterion. A return has no scale. Where both
    are there, the ratings are in ``against`` and the measure is in ``against_measure``.

    Args:
        rows: the verdicts by criterion (``rollout.judge.judge.COLUMNS``).
        clips: the clips, whose episodes have the measure.
        mode: absolute or pairwise.
        ratings: ratings of the clips; None without any.
        measure: progress, return or success; empty for none.
        criteria: the criteria of the rubric.
    """
    groups = {clip.number: clip.task for clip in clips}
    known = dict(ratings.scores) if ratings is not None else {}
    measured: dict[str, Mapping[int, float]] = {}
    if measure:
        if "progress" in criteria:
            scale = criteria["progress"] if measure != "return" else None
            measured["progress"] = _measured(clips, measure, scale)
        measured["success"] = _measured(clips, "success")
    one_scale = measure != "return"
    by_criterion: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_criterion[row["criterion"]].append(row)
    found = {}
    for criterion, own in by_criterion.items():
        codes: dict[str, Any] = {"codes": dict(Counter(row["code"] for row in own))}
        pairs = ratings.pairs.get(criterion) if ratings is not None else None
        if mode == "absolute":
            figures, against = _absolute(own), partial(_against, own, groups=groups)
        else:
            figures, against = _pairwise(own), partial(_pairs_against, own)
            if pairs:
                figures["against"] = against(None, pairs=pairs)
        if ratings is not None and criterion in ratings.alpha:
            figures["alpha_of_raters"] = ratings.alpha[criterion]
        if criterion in known and "against" not in figures:
            figures["against"] = against(known[criterion])
        if criterion in measured:
            name = "against_measure" if "against" in figures else "against"
            figures[name] = against(measured[criterion], one_scale=one_scale)
        found[criterion] = {**codes, **figures}
    return found


def _measured(
    clips: Sequence[Clip], measure: str, scale: Criterion | None = None
) -> dict[int, float]:
    """Returns a measure by episode, on a scale if one is given."""
    low, high = (0.0, 1.0) if scale is None else (scale.low, scale.high)

    def value(ref: EpisodeRef) -> float:
        if measure == "success":
            return float(ref.outcome == Outcome.SUCCESS)
        return float(ref.total_reward if measure == "return" else ref.progress)

    return {c.number: low + (high - low) * value(c.ref) for c in clips if c.ref is not None}


def _given(rows: _Rows) -> dict[int, list[float]]:
    given: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if not math.isnan(row["score"]):
            given[row["episode"]].append(row["score"])
    return given


def _absolute(rows: _Rows) -> dict[str, Any]:
    given = _given(rows)
    repeats = max((len(scores) for scores in given.values()), default=0)
    table = np.full((repeats, len(given)), np.nan)
    for unit, scores in enumerate(given.values()):
        table[: len(scores), unit] = scores
    means = [float(np.mean(scores)) for scores in given.values()]
    return {
        "mean": float(np.mean(means)) if means else None,
        "alpha_of_repeats": krippendorff(table) if repeats > 1 else None,
    }


def _against(
    rows: _Rows,
    rated: Mapping[int, float],
    *,
    one_scale: bool = True,
    groups: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    means = {episode: float(np.mean(scores)) for episode, scores in _given(rows).items()}
    rated = {episode: score for episode, score in rated.items() if not math.isnan(score)}
    if rows[0]["criterion"] == "success":
        shared = sorted(means.keys() & rated.keys())
        names = ("failure", "success")
        judged = [names[means[episode] > 0.5] for episode in shared]
        return compare_categories(judged, [names[rated[e] > 0.5] for e in shared])
    return compare_scores(means, rated, one_scale=one_scale, groups=groups)


def _decided(rows: _Rows) -> dict[tuple[int, int, int], dict[bool, float]]:
    """The scores of each pair and repeat in both orders; pairs with one order are left out."""
    orders: dict[tuple[int, int, int], dict[bool, float]] = defaultdict(dict)
    for row in rows:
        if not math.isnan(row["score"]):
            pair = (row["episode"], row["other"], row["repeat"])
            orders[pair][row["swapped"]] = row["score"]
    return {pair: scores for pair, scores in orders.items() if len(scores) == 2}


def _final(scores: Mapping[bool, float]) -> float:
    return scores[False] if scores[False] == scores[True] else 0.5


def _pairwise(rows: _Rows) -> dict[str, Any]:
    """Returns the figures of pairs; a verdict that changes with the order is a tie and a flip."""
    both = _decided(rows)
    flips = sum(scores[False] != scores[True] for scores in both.values())
    shown_first = [s[False] for s in both.values()] + [1 - s[True] for s in both.values()]
    return {
        "pairs": len(both),
        "flip_rate": flips / len(both) if both else None,
        "ties": sum(_final(scores) == 0.5 for scores in both.values()),
        "first_preferred": float(np.mean(shown_first)) if shown_first else None,
    }


def _pairs_against(
    rows: _Rows,
    rated: Mapping[int, float] | None,
    *,
    pairs: Mapping[tuple[int, int], float] | None = None,
    one_scale: bool = True,
) -> dict[str, Any]:
    """Compares pairs with ratings of pairs, or with the order of the ratings of their clips."""
    del one_scale  # an order has no scale
    judged, wanted, clips = [], [], []
    for (first, second, _), scores in _decided(rows).items():
        if pairs is not None:
            score = pairs.get((first, second), math.nan)
        else:
            a, b = ((rated or {}).get(clip, math.nan) for clip in (first, second))
            score = 0.5 + 0.5 * float(np.sign(a - b))
        if not math.isnan(score):
            judged.append(_winner(_final(scores)))
            wanted.append(_winner(score))
            clips.append((first, second))
    return compare_categories(judged, wanted, clips)


def _winner(score: float) -> str:
    return "tie" if score == 0.5 else "first" if score > 0.5 else "second"


def write_report(summary: Mapping[str, Any]) -> str:
    """Returns a short Markdown report of the contents of ``summary.json``."""
    results = summary["results"]
    usage = results["usage"]
    return render(
        "judgement",
        protocol=summary["protocol"],
        findings=results["findings"],
        not_judged=results.get("not_judged", {}),
        usage=usage,
        usd=Usage(**{**usage, "usd": usage["usd"] or 0.0}).price_text(),
        cut=cut_note(summary),
        text=figure_text,
    )


def cut_note(summary: Mapping[str, Any]) -> str:
    """Returns a sentence on verdicts that were cut off, and what to do; empty without any."""
    protocol, findings = summary["protocol"], summary["results"]["findings"].values()
    cut = max((found["codes"].get("cut", 0) for found in findings), default=0)
    if not cut:
        return ""
    return (
        f"{cut} verdicts are missing: the answers of {protocol['model']} were cut off at "
        f"sampling.max_tokens={protocol['sampling']['max_tokens']}, which counts hidden reasoning; "
        f"raise it in another run, or lower the effort in endpoint.extra (docs/endpoints.md)"
    )


def figure_text(value: Any) -> str:
    """Returns a figure of a report, a list or a mapping of figures, as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {figure_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(figure_text(each) for each in value)}]"
    if isinstance(value, float):
        return "unknown" if math.isnan(value) else f"{value:.3g}"
    return "unknown" if value is None else str(value)
