"""How far verdicts and ratings agree: correlations, kappa, alpha, F1, each with its interval."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Scores: TypeAlias = NDArray[np.float64]

_DRAWS = 2000  # of the bootstrap


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
    return _bounds(np.array([figure(rng.integers(clips, size=clips)) for _ in range(_DRAWS)]))


def interval_of_pairs(
    figure: Callable[[NDArray[np.int64]], float], pairs: Sequence[tuple[int, int]], *, seed: int = 0
) -> tuple[float, float]:
    """Returns the interval of a figure of pairs by a bootstrap over their clips.

    A pair counts as often as both of its clips are drawn together, so that the pairs of one clip
    are not taken for independent ones.

    Args:
        figure: the figure of some pairs, given by their positions with repetition.
        pairs: the two clips of each pair.
        seed: of the draws.
    """
    clips = sorted({clip for pair in pairs for clip in pair})
    if len(clips) < 3:
        return float("nan"), float("nan")
    at = np.searchsorted(clips, np.array(pairs))
    rng, found = np.random.default_rng(seed), []
    for _ in range(_DRAWS):
        drawn = np.bincount(rng.integers(len(clips), size=len(clips)), minlength=len(clips))
        rows = np.repeat(np.arange(len(pairs)), drawn[at].prod(axis=1))
        found.append(figure(rows) if len(rows) else np.nan)
    return _bounds(np.array(found))


def _bounds(drawn: Scores) -> tuple[float, float]:
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return float("nan"), float("nan")
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def f1_of_order(
    judged: Scores, rated: Scores, groups: Sequence[Hashable], *, seed: int = 0
) -> dict[str, object]:
    """Returns how well scores tell which of two clips of a group was rated higher, as F1.

    Pairs that were rated equal are left out, as in MCU; a pair that is judged equal is found in
    neither order.

    Args:
        judged: scores, ``(clips,)``.
        rated: ratings, likewise.
        groups: the group of each clip, e.g. its task.
        seed: of the bootstrap over clips.

    Returns:
        ``ordered_pairs``, their number, ``f1_of_pairs`` and its interval.
    """
    n = len(judged)
    known = {each: number for number, each in enumerate(dict.fromkeys(groups))}
    of = np.array([known[each] for each in groups], np.int64)
    same = of[:, None] == of[None, :]
    wanted = same & (rated[:, None] > rated[None, :])
    came = (wanted | wanted.T) & (judged[:, None] > judged[None, :])
    hits = wanted & came

    def figures(weights: Scores) -> Scores:
        right, asked, given = (_sums(weights, each) for each in (hits, wanted, came))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(2 * right / (asked + given))

    bounds = float("nan"), float("nan")
    if n >= 3 and wanted.any():
        bounds = _bounds(figures(_draws(n, seed)))
    return {
        "ordered_pairs": int(wanted.sum()),
        "f1_of_pairs": float(figures(np.ones((1, n)))[0]) if n else float("nan"),
        "f1_of_pairs_interval": bounds,
    }


def kendalls(a: Scores, b: Scores, weights: Scores) -> Scores:
    """Returns Kendall's tau-b where each clip counts several times, ``(draws,)``.

    Args:
        a: a series, ``(clips,)``.
        b: another.
        weights: how often each clip counts, ``(draws, clips)``.
    """
    of_a, of_b = (np.sign(each[:, None] - each[None, :]) for each in (a, b))
    both, ours, theirs = (_sums(weights, each) for each in (of_a * of_b, of_a**2, of_b**2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(both / np.sqrt(ours * theirs))


def pearsons(a: Scores, b: Scores, weights: Scores) -> Scores:
    """Returns the correlations where each clip counts several times; see ``kendalls``."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    a, b = a - a.mean(), b - b.mean()
    of_a, of_b = shares @ a, shares @ b
    both = shares @ (a * b) - of_a * of_b
    ours, theirs = shares @ a**2 - of_a**2, shares @ b**2 - of_b**2
    spread = np.maximum(ours, 0) * np.maximum(theirs, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 1e-18, both / np.sqrt(spread), np.nan)


def _interval_of(
    figures: Callable[[Scores, Scores, Scores], Scores], a: Scores, b: Scores
) -> tuple[float, float]:
    if len(a) < 3:
        return float("nan"), float("nan")
    return _bounds(figures(a, b, _draws(len(a), 0)))


def _draws(clips: int, seed: int) -> Scores:
    """How often each clip is in each draw of the bootstrap, ``(draws, clips)``."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clips, np.full(clips, 1 / clips), size=_DRAWS).astype(np.float64)


def _sums(weights: Scores, of_pairs: NDArray[Any]) -> Scores:
    """The sum over pairs of clips in each draw, ``(draws,)``."""
    return np.asarray(((weights @ of_pairs.astype(np.float64)) * weights).sum(axis=1))


def compare_scores(
    judged: Mapping[int, float],
    rated: Mapping[int, float],
    *,
    one_scale: bool = True,
    groups: Mapping[int, Hashable] | None = None,
) -> dict[str, object]:
    """Returns the agreement of scores by clip with ratings of the same clips.

    Args:
        judged: the scores.
        rated: the ratings.
        one_scale: both are on the same scale; otherwise alpha and the mean error, which compare the
            numbers themselves, are NaN.
        groups: the task of each clip; pairs are of one task. None if all are of one.
    """
    shared = sorted(judged.keys() & rated.keys())
    a = np.array([judged[clip] for clip in shared], np.float64)
    b = np.array([rated[clip] for clip in shared], np.float64)
    tasks = [groups[clip] if groups is not None else 0 for clip in shared]
    comparable = len(a) > 0 and one_scale
    return {
        "clips": len(shared),
        "pearson": pearson(a, b),
        "pearson_interval": _interval_of(pearsons, a, b),
        "kendall": kendall(a, b),
        "kendall_interval": _interval_of(kendalls, a, b),
        **f1_of_order(a, b, tasks),
        "mean_error": float(np.abs(a - b).mean()) if comparable else float("nan"),
        "alpha": krippendorff(np.stack([a, b])) if comparable else float("nan"),
    }


def compare_categories(
    judged: Sequence[str],
    rated: Sequence[str],
    pairs: Sequence[tuple[int, int]] | None = None,
) -> dict[str, object]:
    """Returns the agreement of categories with ratings, with all counts.

    Args:
        judged: the category of each clip, or of each pair.
        rated: likewise.
        pairs: the two clips of each pair, over which the bootstrap goes; None for single clips.
    """
    a, b = np.array(judged, object), np.array(rated, object)
    kinds = sorted(set(judged) | set(rated))
    counts = {
        f"{r} rated, {j} judged": int(((a == j) & (b == r)).sum()) for r in kinds for j in kinds
    }

    def kappa(rows: NDArray[np.int64]) -> float:
        return cohen(a[rows].tolist(), b[rows].tolist())

    bounds = interval(kappa, len(a)) if pairs is None else interval_of_pairs(kappa, pairs)
    return {
        "clips" if pairs is None else "pairs": len(judged),
        "agreement": float(np.mean(a == b)) if len(a) else float("nan"),
        "kappa": cohen(list(judged), list(rated)),
        "kappa_interval": bounds,
        "f1": {kind: f1(list(rated), list(judged), kind) for kind in kinds},
        "counts": counts,
    }
