"""Random numbers that depend only on the episode and the step, not on the batch.

A slot's noise is a function of its episode's seed and of the number of actions it has taken. So an
episode that is played again, at another width or on another machine, draws the same actions; all
policies that are compared on an episode draw the same numbers; and there is no generator state to
save.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = np.float32(2.0**-23)
"""For 23 bits: half a unit more still fits a float32, so that no number is rounded up to 1."""


def uniform(seeds: NDArray[np.uint64], steps: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Returns ``(B, count)`` numbers, uniform in the open interval (0, 1).

    SplitMix64 (Steele et al., 2014) as a hash of (seed, step, column).

    Args:
        seeds: of the episodes, ``(B,)``.
        steps: actions taken so far, ``(B,)``.
        count: numbers for each row.
    """
    with np.errstate(over="ignore"):  # the overflow is intended
        base = _mix(seeds + steps.astype(np.uint64) * _GOLDEN)
        words = base[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
        bits = (_mix(words) >> np.uint64(41)).astype(np.float32)
    return np.asarray((bits + np.float32(0.5)) * _TO_UNIT)


def gumbel_and_normal(
    seeds: NDArray[np.uint64], steps: NDArray[np.int64], gumbels: int, normals: int
) -> NDArray[np.float32]:
    """Returns ``(B, gumbels + normals)`` standard Gumbel and then standard normal numbers.

    The option with the largest sum of logit and Gumbel number is a sample of the categorical
    distribution.
    """
    numbers = uniform(seeds, steps, gumbels + normals)
    first = -np.log(-np.log(numbers[:, :gumbels]))
    if not normals:
        return np.asarray(first)
    return np.concatenate([first, special.ndtri(numbers[:, gumbels:])], axis=1)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
