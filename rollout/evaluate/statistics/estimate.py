"""A figure with its interval, or with the reason why it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from rollout.errors import ConfigError, UnknownNameError

METHODS = ("t", "percentile")
"""How :func:`hierarchical`, :func:`gap` and :func:`difference` find their intervals."""

_ONE_SEED = (
    "one training seed; the training seed is the replicate, so nothing shows how another run "
    "would differ: train with at least 2 seeds, better 5"
)


@dataclass(frozen=True)
class Estimate:
    """A figure, its confidence interval, and what both rest on.

    Attributes:
        point: the figure; NaN if there was nothing to compute it from.
        low: lower end of the interval; ``None`` if there is none.
        high: upper end of the interval; ``None`` if there is none.
        confidence: the share of experiments whose interval is meant to hold the true value.
        method: how the interval was found, in a few words.
        counts: ``seeds``, ``states``, ``episodes`` and ``lost`` where they make sense: the seeds
            and states with a result, the episodes with a result, and those without one.
        refused: why there is no interval; empty if there is one.
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
        return f"{point} [{_fixed(self.low, digits)}, {_fixed(self.high, digits)}]"

    def overlaps(self, other: Estimate) -> bool | None:
        """Returns whether the two intervals share a value; ``None`` if one has no interval."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return None
        return self.low <= other.high and other.low <= self.high


def refuse(
    point: float, reason: str, *, confidence: float, method: str, counts: Mapping[str, int]
) -> Estimate:
    """Returns an estimate without an interval, for ``reason``."""
    return Estimate(point, None, None, confidence, method, counts, reason)


def refuse_seeds(
    point: float, seeds: int, *, confidence: float, method: str, counts: Mapping[str, int]
) -> Estimate | None:
    """Returns the refusal for fewer than two training seeds; ``None`` if there are enough."""
    if seeds >= 2:
        return None
    reason = _ONE_SEED if seeds == 1 else "no episode has a result"
    return refuse(point, reason, confidence=confidence, method=method, counts=counts)


def check_confidence(confidence: float) -> float:
    """Returns ``confidence``.

    Raises:
        ConfigError: it is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ConfigError(
            f"expected 0 < confidence < 1, e.g. 0.95, got {confidence!r}; give a share, not percent"
        )
    return confidence


def check_resamples(resamples: int) -> int:
    """Returns ``resamples``.

    Raises:
        ConfigError: too few for the ends of an interval to mean something.
    """
    if resamples < 100:
        raise ConfigError(f"expected at least 100 resamples, better 2000 or more, got {resamples}")
    return resamples


def check_choice(kind: str, name: str, valid: tuple[str, ...]) -> str:
    """Returns ``name``.

    Raises:
        UnknownNameError: it is not in ``valid``.
    """
    if name not in valid:
        raise UnknownNameError(kind, name, valid)
    return name


def percentiles(
    values: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the two ends of the central ``confidence`` of ``values`` along their first axis."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)


def t_quantile(confidence: float, degrees: float) -> float:
    """Returns the half width of a central t interval, in standard errors.

    ``degrees`` of freedom are positive, whole or not; infinity gives the normal quantile.
    """
    return float(stdtrit(degrees, (1 + confidence) / 2))


def _fixed(value: float, digits: int) -> str:
    shown = f"{value:.{digits}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown  # never "-0.000"
