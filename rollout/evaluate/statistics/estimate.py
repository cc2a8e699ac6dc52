"""Estimates with their intervals, and Wilson's interval of success rates."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from rollout.errors import ConfigError, UnknownNameError

METHODS = ("t", "percentile")
"""Methods of the intervals of :func:`hierarchical`, :func:`gap` and :func:`difference`."""

UNBOUNDED = (-math.inf, math.inf)
"""The bounds of a score that may have any value."""


@dataclass(frozen=True)
class Estimate:
    """A figure, its confidence interval, and the counts behind both.

    Attributes:
        point: the figure; NaN without data.
        low: lower end of the interval; ``None`` if there is none.
        high: upper end of the interval; ``None`` if there is none.
        confidence: the share of experiments whose interval is meant to hold the true value.
        method: method of the interval, in a few words.
        counts: ``seeds``, ``states``, ``episodes`` and ``lost`` where they make sense: the seeds
            and states with a result, the episodes with a result, and those without one.
        refused: reason for a missing interval; empty if there is one.
    """

    point: float
    low: float | None
    high: float | None
    confidence: float
    method: str
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""

    def text(self, digits: int = 3) -> str:
        """Returns the estimate for people, ``digits`` behind the point: ``0.53 [0.49, 0.58]``."""
        point = _fixed(self.point, digits)
        if self.low is None or self.high is None:
            return f"{point} (no interval: {self.refused})"
        if self.low == self.high:
            return f"{point} (no interval: all results alike, so their spread was not measured)"
        return f"{point} [{_fixed(self.low, digits)}, {_fixed(self.high, digits)}]"


def check_confidence(confidence: float) -> None:
    """Raises a ``ConfigError`` if a confidence is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ConfigError(
            f"expected 0 < confidence < 1, e.g. 0.95, got {confidence!r}; give a share, not percent"
        )


def check_choice(kind: str, name: str, valid: tuple[str, ...]) -> None:
    """Raises an ``UnknownNameError`` if a name is not in ``valid``."""
    if name not in valid:
        raise UnknownNameError(kind, name, valid)


@dataclass(frozen=True)
class Intervals:
    """Method of confidence intervals.

    Attributes:
        confidence: confidence level.
        resamples: draws of the bootstrap; only for ``percentile``.
        seed: of the bootstrap; only for ``percentile``.
        method: ``t`` (random effects, best coverage) or ``percentile`` (hierarchical bootstrap,
            too narrow for few seeds: ``docs/statistics.md`` says how much).
        bounds: the least and the largest value that a score can have; the interval is cut off
            there. The true mean lies within them, so this excludes no true value.

    Raises:
        ConfigError: a confidence outside 0 to 1, or too few resamples.
        UnknownNameError: an unknown ``method``.
    """

    confidence: float = 0.95
    resamples: int = 2000
    seed: int = 0
    method: str = "t"
    bounds: tuple[float, float] = UNBOUNDED

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if self.resamples < 100:
            raise ConfigError(
                f"expected at least 100 resamples, better 2000 or more, got {self.resamples}"
            )
        check_choice("method", self.method, METHODS)

    @property
    def of_differences(self) -> Intervals:
        """Intervals of the difference of two scores that have these bounds."""
        low, high = self.bounds
        return replace(self, bounds=(low - high, high - low))


DEFAULT_INTERVALS = Intervals()
"""The default: t intervals of 95 %, without bounds."""


def t_quantile(confidence: float, degrees: float) -> float:
    """Returns the half width of a central t interval, in standard errors.

    ``degrees`` of freedom are positive, whole or not; infinity gives the normal quantile.
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - a fifth of a script's start

    return float(stdtrit(degrees, (1 + confidence) / 2))


def _fixed(value: float, digits: int) -> str:
    # "-0.000" is below 0: whether 0 is in an interval can be seen. What is below by rounding is 0.
    return f"{round(value, 12) or 0.0:.{digits}f}"


def wilson(successes: int, trials: int, *, confidence: float = 0.95) -> Estimate:
    """Returns a success rate with Wilson's score interval (Wilson 1927).

    It holds for independent trials of one fixed player, so it says nothing about another
    training run; :func:`hierarchical` does. It stays within 0 and 1 and has a width at 0 and at
    ``trials`` successes, where intervals from the spread of the scores collapse.

    Raises:
        ConfigError: not ``0 <= successes <= trials`` in whole numbers.
    """
    check_confidence(confidence)
    hits, total = _whole("successes", successes), _whole("trials", trials)
    if not 0 <= hits <= total:
        raise ConfigError(f"expected 0 <= successes <= trials, got {hits} of {total}")
    counts, method = {"episodes": total}, "Wilson, independent episodes of one player"
    if total == 0:
        reason = "no episode has a result"
        return Estimate(math.nan, None, None, confidence, method, counts, reason)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = hits / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt((rate * (1 - rate) + z * z / (4 * total)) / total)
    # Exact at the ends, where rounding would leave 1e-17.
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == total else middle + half
    return Estimate(rate, low, high, confidence, method, counts)


def geometric_mean_score(success_rates: ArrayLike) -> float:
    """Returns Crafter's score in percent, ``exp(mean(ln(1 + s_i))) - 1`` (Hafner 2021).

    Args:
        success_rates: the success rate of every achievement in percent, 0 to 100.

    Raises:
        ConfigError: no rates, or one that is no percentage.
    """
    rates = np.asarray(success_rates, np.float64)
    if rates.ndim != 1 or not rates.size:
        raise ConfigError(f"expected one success rate per achievement, got shape {rates.shape}")
    if not ((rates >= 0) & (rates <= 100)).all():
        raise ConfigError(f"expected success rates in percent, 0 to 100, got {rates.tolist()}")
    return float(np.expm1(np.log1p(rates).mean()))


def _whole(name: str, value: int) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ConfigError(f"expected a whole number of {name}, got {value!r}") from None
