"""Comparison of two models on the same states: difference, its test, effect sizes.

A model is one fixed player, or several training seeds. Two fixed players are compared state by
state. Where a side has training seeds, these are its replicates, and those of the two sides are
independent: a seed has the same number on both sides, and nothing else in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.components import influences, mean, part
from rollout.evaluate.statistics.estimate import (
    DEFAULT_INTERVALS,
    Estimate,
    Intervals,
    t_quantile,
)
from rollout.evaluate.statistics.hierarchy import one_player

_Floats = NDArray[np.float64]
_LEAST_P = 1e-12  # smaller ones are not told apart


@dataclass(frozen=True)
class Comparison:
    """One model minus another.

    Attributes:
        difference: the difference of the mean scores, with an interval of its own.
        p: two-sided p-value of no difference; NaN if there is nothing to test with.
        effect: Cohen's d: the difference in standard deviations of a unit; None without a spread.
        ahead: the share of the units on which the first has the higher score, ties counted half:
            of the states for two players, of the pairs of training seeds otherwise; NaN without
            results.
        unit: what is the replicate.
    """

    difference: Estimate
    p: float
    effect: float | None
    ahead: float
    unit: Literal["states", "episodes", "training seeds"]


def comparison(a: ArrayLike, b: ArrayLike, intervals: Intervals = DEFAULT_INTERVALS) -> Comparison:
    """Compares two models that played the same states and episode seeds, in the same order.

    Args:
        a: (training seeds, states, episodes), NaN where an episode is lost; one row is a fixed
            player, or a training seed as it is.
        b: likewise; the number of seeds may be another.
        intervals: confidence and bounds of a score; the method is always t.

    Raises:
        ConfigError: scores of another shape or infinite, or not of the same states and episodes.
    """
    ours, theirs = part("a", a, 1, "crossed").scores, part("b", b, 1, "crossed").scores
    if ours.shape[1:] != theirs.shape[1:]:
        raise ConfigError(
            f"expected the same states and episodes on both sides, got shapes {ours.shape} and "
            f"{theirs.shape}"
        )
    if len(ours) == len(theirs) == 1:
        return _of_players(ours[0], theirs[0], intervals)
    return _of_seeds(mean(ours), mean(theirs), intervals)


def _of_players(a: _Floats, b: _Floats, intervals: Intervals) -> Comparison:
    """Compares two fixed players, (states, episodes), state by state."""
    unit: Literal["states", "episodes"] = "states"
    if len(a) == 1 and a.shape[1] > 1:  # of one state, episode by episode
        a, b, unit = a.T, b.T, "episodes"
    there = ~np.isnan(a - b)
    a, b = (np.where(there, side, np.nan) for side in (a, b))
    found = one_player(a - b, intervals.of_differences)
    means = mean(a), mean(b)
    ours, theirs = (side[np.isfinite(side)] for side in means)
    apart = mean(a - b)
    apart = apart[np.isfinite(apart)]
    ahead = float(np.mean(_above(apart))) if len(apart) else math.nan
    return Comparison(
        _with_spread(found, apart, unit),
        _p_of_signs(apart, found),
        _effect(found.point, ours, theirs),
        ahead,
        unit,
    )


def _with_spread(found: Estimate, apart: _Floats, unit: str) -> Estimate:
    """Returns an estimate whose interval is left out where it would have no width."""
    if found.low is None or len(apart) < 2 or float(np.ptp(apart)):
        return found
    reason = f"all {len(apart)} {unit} differ alike, so their spread was not measured"
    method, counts = "t over states, paired", found.counts
    return Estimate(found.point, None, None, found.confidence, method, counts, reason)


def _p_of_signs(apart: _Floats, found: Estimate) -> float:
    """Returns the p-value of a t test of differences, at least that of their signs.

    Under no difference every sign is as likely as its opposite. So n differences that are not 0
    cannot say more than 2 / 2^n, however alike they are: three are never enough.
    """
    if len(apart) < 2:
        return math.nan
    least = min(1.0, 2.0 ** (1 - int(np.count_nonzero(apart))))
    error = math.sqrt(float(apart.var(ddof=1)) / len(apart))
    if not error:
        return least
    from scipy.special import stdtr  # noqa: PLC0415 - as in estimate

    p = 2 * float(stdtr(len(apart) - 1, -abs(found.point) / error))
    return max(p, least, _LEAST_P)


def _of_seeds(a: _Floats, b: _Floats, intervals: Intervals) -> Comparison:
    """Compares two models by their seeds' means of each state, (seeds, states).

    Half the width is that of ``components.half_width`` with the seeds of the two sides
    independent: Welch's degrees of freedom for the seeds, and the states that all of them share.
    """
    both = np.isfinite(a).any(0) & np.isfinite(b).any(0)
    a, b = a[:, both], b[:, both]
    a, b = a[np.isfinite(a).any(1)], b[np.isfinite(b).any(1)]
    ours, theirs = mean(a), mean(b)
    counts = {"seeds": len(a) + len(b), "states": a.shape[1]}
    counts["episodes"] = int(np.isfinite(a).sum() + np.isfinite(b).sum())
    method, confidence = "t over independent training seeds and shared states", intervals.confidence
    if not len(a) or not len(b):
        lost = "no episode has a result"
        missing = Estimate(math.nan, None, None, confidence, method, counts, lost)
        return Comparison(missing, math.nan, None, math.nan, "training seeds")
    point = float(ours.mean() - theirs.mean())
    ahead = float(np.mean(_above(ours[:, None] - theirs[None])))
    effect = _effect(point, ours, theirs)
    width = _Width(a, b)
    if not width.at(confidence):
        alike = f"all {len(a)} and {len(b)} seeds score alike, so their spread was not measured"
        found = Estimate(point, None, None, confidence, method, counts, alike)
        # If all orders are as likely, the chance that one side is wholly ahead.
        p = 1.0 if not point else min(1.0, 2 / math.comb(len(a) + len(b), len(a)))
        return Comparison(found, p, effect, ahead, "training seeds")
    half, (least, most) = width.at(confidence), intervals.of_differences.bounds
    low, high = max(point - half, least), min(point + half, most)
    found = Estimate(point, low, high, confidence, method, counts)
    return Comparison(found, width.p(abs(point)), effect, ahead, "training seeds")


class _Width:
    """Half the width of the interval of a difference, at any confidence.

    Args:
        a: means of every (seed, state) of one side, NaN where there is none.
        b: of the other; of one side there are two seeds or more.
    """

    def __init__(self, a: _Floats, b: _Floats) -> None:
        spreads = [(float(mean(s).var(ddof=1)) / len(s), len(s)) for s in (a, b) if len(s) > 1]
        self._of_seeds = sum(spread for spread, _ in spreads)
        parts = sum(spread**2 / (seeds - 1) for spread, seeds in spreads)
        self._degrees = self._of_seeds**2 / parts if parts else math.inf
        self._states = states = a.shape[1]
        self._of_states = self._rest = 0.0
        if states > 1:  # of one state nothing is said about others
            scale = states / (states - 1)
            mine, yours = influences(a), influences(b)
            self._of_states = float(((mine.mean(0) - yours.mean(0)) ** 2).sum()) * scale
            for side in (mine, yours):
                if (seeds := len(side)) > 1:
                    rest = (side - side.mean(0)) / seeds
                    self._rest += float((rest**2).sum()) * scale * seeds / (seeds - 1)

    def at(self, confidence: float) -> float:
        """Returns half the width at a confidence."""
        square = t_quantile(confidence, self._degrees) ** 2 * self._of_seeds
        least = 0.0
        if self._states > 1:
            factor = t_quantile(confidence, self._states - 1) ** 2
            square += factor * max(self._of_states - self._rest, 0)
            least = factor * self._of_states
        return math.sqrt(max(square, least))

    def p(self, size: float) -> float:
        """Returns one minus the confidence at which half the width is ``size``."""
        low, high = math.log(_LEAST_P), 0.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.at(1 - math.exp(middle)) < size else (middle, high)
        return math.exp(high)


def _above(differences: _Floats) -> _Floats:
    """Returns 1 where a difference is above 0, 0.5 where it is 0, otherwise 0."""
    return np.asarray((np.sign(differences) + 1) / 2)


def _effect(point: float, a: _Floats, b: _Floats) -> float | None:
    """Returns Cohen's d, with the standard deviations of both sides pooled."""
    spreads = [float(side.var(ddof=1)) for side in (a, b) if len(side) > 1]
    pooled = math.sqrt(sum(spreads) / len(spreads)) if spreads else 0.0
    return point / pooled if pooled else None


def holm(ps: Sequence[float]) -> list[float]:
    """Returns p-values corrected for their number (Holm 1979); those that are NaN stay so.

    If none of the differences exists, the chance that one of the results is below 5 % is at most
    5 %, whatever the tests have in common.
    """
    tested = sorted((p, i) for i, p in enumerate(ps) if not math.isnan(p))
    corrected, most = [math.nan] * len(ps), 0.0
    for rank, (p, i) in enumerate(tested):
        most = max(most, min(1.0, p * (len(tested) - rank)))
        corrected[i] = most
    return corrected
