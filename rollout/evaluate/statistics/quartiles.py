"""The interquartile mean over training seeds, with bootstrap intervals.

Both as Agarwal et al. (2021) define them, "Deep RL at the Edge of the Statistical Precipice", and
as their library rliable computes them: seeds are drawn with replacement, and the interval is that
of percentiles. The curves of one run are of one task, the only stratum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.estimate import check_confidence

_CHUNK = 4_000_000  # numbers gathered at once: 32 MB


def interquartile_mean(values: ArrayLike) -> NDArray[np.float64]:
    """Returns the mean of the middle half of the values along the first axis.

    A quarter of them, rounded down, is left out at either end: of up to three it is their mean.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)
    cut = len(ordered) // 4
    return np.asarray(ordered[cut : len(ordered) - cut].mean(0))


def interquartile_band(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns the ends of the intervals of ``interquartile_mean`` over training seeds.

    Args:
        values: (seeds, points), of two seeds or more.
        confidence: of the intervals, each by itself.
        resamples: draws of seeds, the same for all points.
        seed: of the draws.

    Raises:
        ConfigError: another shape or one seed, or a confidence outside 0 to 1.
    """
    check_confidence(confidence)
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or len(array) < 2:
        raise ConfigError(
            f"expected values of (training seeds, points) with 2 seeds or more, got shape "
            f"{array.shape}; one seed has no interval"
        )
    seeds, points = array.shape
    drawn = np.random.default_rng(seed).integers(seeds, size=(seeds, resamples))
    step, tail = max(1, _CHUNK // drawn.size), (1 - confidence) / 2
    parts = (array[:, at : at + step] for at in range(0, points, step))
    ends = [
        np.quantile(interquartile_mean(part[drawn]), [tail, 1 - tail], axis=0) for part in parts
    ]
    low, high = np.concatenate(ends, axis=1)
    return low, high
