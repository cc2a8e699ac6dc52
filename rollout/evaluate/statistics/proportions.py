"""Success rates: Wilson's interval, and Crafter's score over achievements."""

from __future__ import annotations

import math
import operator
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from rollout.errors import ConfigError
from rollout.evaluate.statistics.estimate import Estimate, check_confidence


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
