"""Minimum, maximum, mean and standard deviation of columns, in one pass and bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollout.api import Array

_MOST_SIDE = 150  # pixels: larger images are thinned out for their statistics


@dataclass
class Running:
    """Statistics of the rows seen so far, of each number of a row apart.

    Attributes:
        count: number of rows.
        low: ``(...)`` minimum.
        high: ``(...)`` maximum.
        mean: ``(...)`` mean.
        squares: ``(...)`` sum of squared distances from the mean.
    """

    count: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Array) -> Running:
        """Returns the statistics of rows ``(n, ...)``; NaN of a row counts as NaN."""
        values = rows.astype(np.float64)
        with np.errstate(invalid="ignore"):  # of infinities
            mean = values.mean(0)
            squares = ((values - mean) ** 2).sum(0)
        return cls(len(rows), values.min(0), values.max(0), mean, squares)

    @classmethod
    def of_images(cls, images: Array) -> Running:
        """Returns statistics ``(C, 1, 1)`` of images ``(n, H, W, C)``, 255 counting as 1."""
        step = max(1, max(images.shape[1:3]) // _MOST_SIDE)
        thin = images[:, ::step, ::step]
        found = cls.of((thin / 255.0).reshape(-1, thin.shape[-1]))
        low, high, mean, squares = (
            each[:, None, None] for each in (found.low, found.high, found.mean, found.squares)
        )
        return cls(len(images), low, high, mean, squares * (len(images) / found.count))

    def joined(self, other: Running) -> Running:
        """Returns the statistics of the rows of both."""
        count = self.count + other.count
        with np.errstate(invalid="ignore"):
            delta = other.mean - self.mean
            mean = self.mean + delta * (other.count / count)
            squares = self.squares + other.squares
            squares = squares + delta**2 * (self.count * other.count / count)
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Running(count, low, high, mean, squares)

    @property
    def std(self) -> NDArray[np.float64]:
        """Standard deviation ``(...)`` of the rows themselves."""
        out: NDArray[np.float64] = np.sqrt(self.squares / self.count)
        return out
