"""The report of a judgement: mean verdicts, and their agreement with ratings and themselves."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.api import Outcome, Usage
from rollout.data import Dataset, EpisodeRef
from rollout.errors import ConfigError
from rollout.files import read_document
from rollout.judge.rubric import Criterion, Rubric
from rollout.reports import render

_Rows = Sequence[Mapping[str, Any]]
Scores: TypeAlias = NDArray[np.float64]
Ratings = Mapping[str, Mapping[int, float]]
"""Scores by criterion and episode."""

_DRAWS = 2000  # of the bootstrap


def read_ratings(path: str, rubric: Rubric, mode: str) -> dict[str, dict[int, float]]:
    """Returns ratings of a CSV file; several of one episode and criterion are averaged.

    Args:
        path: the file.
        rubric: its scales are those of the ratings.
        mode: ``pairwise`` needs the order of ratings alone, so that any scale will do.

    Raises:
        ConfigError: it cannot be read, has other columns, or a rating is not on its scale.
    """
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    try:
        text = read_document(Path(path).expanduser()).decode()
        for row in csv.DictReader(io.StringIO(text, newline="")):
            found[row["criterion"]][int(row["episode"])].append(float(row["score"]))
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise ConfigError(
            f"ratings: {path}: expected a CSV file with the columns episode, criterion and score; "
            f"{error!r}"
        ) from error
    if not found:
        raise ConfigError(f"ratings: {path} has no rows")
    for criterion, scale in rubric.criteria.items() if mode == "absolute" else ():
        for episode, scores in found.get(criterion, {}).items():
            if min(scores) < scale.low or max(scores) > scale.high:
                raise ConfigError(
                    f"ratings: {path}: {criterion}: expected ratings on the scale of the rubric, "
                    f"{scale.low:g} to {scale.high:g}, got {scores} for episode {episode}; convert "
                    f"them, or change low and high of the criterion"
                )
    return {
        criterion: {episode: float(np.mean(scores)) for episode, scores in by_episode.items()}
        for criterion, by_episode in found.items()
    }


def calibrate(
    rows: _Rows,
    dataset: Dataset,
    mode: str,
    ratings: Ratings | None,
    measure: str,
    criteria: Mapping[str, Criterion],
) -> dict[str, Any]:
    """Returns the mean verdicts, their spread, and their agreement with ratings, by criterion.

    Verdicts that were not given are counted, and are no part of any mean. A measured progress or
    success, 0 to 1, is compared on the scale of its criterion. A return has no scale.
    """
    known: dict[str, Mapping[int, float]] = dict(ratings or {})
    unscaled: set[str] = set()
    if measure:
        if "progress" in criteria and "progress" not in known:
            scale = criteria["progress"] if measure != "return" else None
            known["progress"] = _measured(dataset, measure, scale)
            unscaled |= {"progress"} if scale is None else set()
        known.setdefault("success", _measured(dataset, "success"))
    by_criterion: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_criterion[row["criterion"]].append(row)
    found = {}
    for criterion, own in by_criterion.items():
        rated = known.get(criterion)
        if mode == "absolute":
            figures = _absolute(own, rated, one_scale=criterion not in unscaled)
        else:
            figures = _pairwise(own, rated)
        found[criterion] = {"codes": dict(Counter(row["code"] for row in own)), **figures}
    return found


def _measured(dataset: Dataset, measure: str, scale: Criterion | None = None) -> dict[int, float]:
    """Returns a measure by episode, on a scale if one is given."""
    low, high = (0.0, 1.0) if scale is None else (scale.low, scale.high)

    def value(ref: EpisodeRef) -> float:
        if measure == "success":
            return float(ref.outcome == Outcome.SUCCESS)
        return float(ref.total_reward if measure == "return" else ref.progress)

    return {ref.episode: low + (high - low) * value(ref) for ref in dataset.episodes()}


def _absolute(rows: _Rows, rated: Mapping[int, float] | None, *, one_scale: bool) -> dict[str, Any]:
    given: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if not math.isnan(row["score"]):
            given[row["episode"]].append(row["score"])
    means = {episode: float(np.mean(scores)) for episode, scores in given.items()}
    repeats = max((len(scores) for scores in given.values()), default=0)
    table = np.full((repeats, len(given)), np.nan)
    for unit, scores in enumerate(given.values()):
        table[: len(scores), unit] = scores
    found: dict[str, Any] = {
        "mean": float(np.mean(list(means.values()))) if means else None,
        "alpha_of_repeats": krippendorff(table) if repeats > 1 else None,
    }
    if rated is None:
        return found
    rated = {episode: score for episode, score in rated.items() if not math.isnan(score)}
    if rows[0]["criterion"] == "success":
        shared = sorted(means.keys() & rated.keys())
        names = ("failure", "success")
        judged = [names[means[episode] > 0.5] for episode in shared]
        return {
            **found,
            "against": compare_categories(judged, [names[rated[e] > 0.5] for e in shared]),
        }
    return {**found, "against": compare_scores(means, rated, one_scale=one_scale)}


def _pairwise(rows: _Rows, rated: Mapping[int, float] | None) -> dict[str, Any]:
    """Returns the figures of pairs; a verdict that changes with the order is a tie and a flip."""
    orders: dict[tuple[int, int, int], dict[bool, float]] = defaultdict(dict)
    for row in rows:
        if not math.isnan(row["score"]):
            pair = (row["episode"], row["other"], row["repeat"])
            orders[pair][row["swapped"]] = row["score"]
    both = {pair: scores for pair, scores in orders.items() if len(scores) == 2}
    flips = sum(scores[False] != scores[True] for scores in both.values())
    final = {
        pair: scores[False] if scores[False] == scores[True] else 0.5
        for pair, scores in both.items()
    }
    shown_first = [s[False] for s in both.values()] + [1 - s[True] for s in both.values()]
    found: dict[str, Any] = {
        "pairs": len(both),
        "flip_rate": flips / len(both) if both else None,
        "ties": sum(score == 0.5 for score in final.values()),
        "first_preferred": float(np.mean(shown_first)) if shown_first else None,
    }
    if rated is None:
        return found
    judged, wanted = [], []
    for (first, second, _), score in final.items():
        if first in rated and second in rated and not math.isnan(rated[first] + rated[second]):
            judged.append(_winner(score))
            wanted.append(_winner(0.5 + 0.5 * float(np.sign(rated[first] - rated[second]))))
    return {**found, "against": compare_categories(judged, wanted)}


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
        usage=usage,
        usd=Usage(**{**usage, "usd": usage["usd"] or 0.0}).price_text(),
        cut=cut_note(summary),
        text=_text,
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


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(each) for each in value)}]"
    if isinstance(value, float):
        return "unknown" if math.isnan(value) else f"{value:.3g}"
    return "unknown" if value is None else str(value)


def pearson(a: Scores, b: Scores) -> float:
    """Returns the correlation of two series; NaN if one is constant or there are fewer than 3."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def kendall(a: Scores, b: Scores) -> float:
    """Returns Kendall's tau-b, which counts ties; NaN where ``pearson`` is."""
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    from scipy.stats import kendalltau  # noqa: PLC0415 - slow to import

    return float(kendalltau(a, b).statistic)


def cohen(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Returns Cohen's kappa of two raters' categories; NaN if chance alone agrees completely."""
    if not a:
        return float("nan")
    agreed = float(np.mean([x == y for x, y in zip(a, b, strict=True)]))
    values = set(a) | set(b)
    chance = sum(a.count(v) * b.count(v) for v in values) / len(a) ** 2
    return float("nan") if chance == 1 else (agreed - chance) / (1 - chance)


def krippendorff(ratings: Scores) -> float:
    """Returns Krippendorff's alpha for numbers (interval level).

    Args:
        ratings: ``(raters, units)``, NaN where a rater gave none.

    Returns:
        1 for complete agreement, 0 for that of chance, NaN if nothing can be compared.
    """
    pairable = (~np.isnan(ratings)).sum(axis=0) >= 2
    units = [column[~np.isnan(column)] for column in ratings.T[pairable]]
    values = np.concatenate(units) if units else np.zeros(0)
    total = len(values)
    expected = 2 * (total * (values**2).sum() - values.sum() ** 2)
    if expected <= 1e-12:
        return float("nan")
    observed = 0.0
    for unit in units:
        count = len(unit)
        observed += 2 * (count * (unit**2).sum() - unit.sum() ** 2) / (count - 1)
    return float(1 - (total - 1) * observed / expected)


def f1(wanted: Sequence[str], came: Sequence[str], label: str) -> float:
    """Returns the F1 score of one label; NaN if it occurs in neither."""
    hits = sum(w == c == label for w, c in zip(wanted, came, strict=True))
    total = wanted.count(label) + came.count(label)
    return 2 * hits / total if total else float("nan")


def interval(
    figure: Callable[[NDArray[np.int64]], float], clips: int, *, seed: int = 0
) -> tuple[float, float]:
    """Returns the 95 % percentile interval of a figure by a bootstrap over clips.

    Args:
        figure: the figure of some clips, drawn with repetition; NaN draws are left out.
        clips: number of clips.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    if clips < 3:
        return float("nan"), float("nan")
    drawn = np.array([figure(rng.integers(clips, size=clips)) for _ in range(_DRAWS)])
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def compare_scores(
    judged: Mapping[int, float], rated: Mapping[int, float], *, one_scale: bool = True
) -> dict[str, object]:
    """Returns the agreement of scores by episode with ratings of the same episodes.

    Args:
        judged: the scores.
        rated: the ratings.
        one_scale: both are on the same scale; otherwise alpha, which compares the numbers
            themselves, is NaN.
    """
    shared = sorted(judged.keys() & rated.keys())
    a = np.array([judged[episode] for episode in shared])
    b = np.array([rated[episode] for episode in shared])
    return {
        "clips": len(shared),
        "pearson": pearson(a, b),
        "pearson_interval": interval(lambda rows: pearson(a[rows], b[rows]), len(a)),
        "kendall": kendall(a, b),
        "alpha": krippendorff(np.stack([a, b])) if len(a) and one_scale else float("nan"),
    }


def compare_categories(judged: Sequence[str], rated: Sequence[str]) -> dict[str, object]:
    """Returns the agreement of categories with ratings, clip by clip, with all counts."""
    a, b = np.array(judged, object), np.array(rated, object)
    kinds = sorted(set(judged) | set(rated))
    counts = {
        f"{r} rated, {j} judged": int(((a == j) & (b == r)).sum()) for r in kinds for j in kinds
    }
    return {
        "clips": len(judged),
        "agreement": float(np.mean(a == b)) if len(a) else float("nan"),
        "kappa": cohen(list(judged), list(rated)),
        "kappa_interval": interval(lambda rows: cohen(a[rows].tolist(), b[rows].tolist()), len(a)),
        "f1": {kind: f1(list(rated), list(judged), kind) for kind in kinds},
        "counts": counts,
    }
