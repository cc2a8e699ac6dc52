"""How far verdicts agree with ratings, and with themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

_DRAWS = 2000
Scores: TypeAlias = NDArray[np.float64]


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
    """Returns how scores by episode agree with ratings of the same episodes.

    Args:
        judged: the scores.
        rated: the ratings.
        one_scale: whether both are on the same scale; otherwise alpha, which compares the numbers
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
    """Returns how categories agree with ratings, clip by clip, with all counts."""
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
