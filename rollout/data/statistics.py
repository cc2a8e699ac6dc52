"""Minimum, maximum, mean, standard deviation and quantiles, in one pass and bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from rollout.api import Array

QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""The quantiles that are shown and exported."""

_SAMPLE_BYTES = 4 << 20
_SAMPLE_ROWS = 64  # at least
_MOST_SIDE = 150  # pixels: larger images are thinned out for their statistics
_LEVELS = 256
_MOST_PIXELS = 1 << 24  # that OpenCV counts exactly at once


@dataclass
class Running:
    """Statistics of the rows seen so far, of each number of a row apart; NaN is left out.

    Attributes:
        count: number of rows.
        known: ``(...)`` number of rows that are not NaN.
        low: ``(...)`` minimum.
        high: ``(...)`` maximum.
        mean: ``(...)`` mean.
        squares: ``(...)`` sum of squared distances from the mean.
        sample: ``(k, ...)`` rows for the quantiles: all, or a random part if they take over 4 MiB.
        ranks: ``(k,)`` random numbers by which the sample is chosen.
    """

    count: int
    known: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean: NDArray[np.float64]
    squares: NDArray[np.float64]
    sample: NDArray[np.float64]
    ranks: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Array) -> Running:
        """Returns the statistics of rows ``(n, ...)``, ``n`` at least 1."""
        values = np.ascontiguousarray(rows, np.float64)
        unknown = np.isnan(values)
        has_nan = bool(unknown.any())
        known = len(values) - unknown.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):  # of infinities, and of NaN alone
            mean = np.where(unknown, 0.0, values).sum(0) / known if has_nan else values.mean(0)
            squared = (values - mean) ** 2
            squares = np.nansum(squared, 0) if has_nan else squared.sum(0)
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        # Seeded by the rows themselves, so that other rows are chosen of each part.
        ranks = np.random.default_rng(zlib.crc32(values.data)).random(len(values))
        found = cls(len(values), known, low, high, mean, squares, values, ranks)
        found._thin(1)
        return found

    def joined(self, other: Running) -> Running:
        """Returns the statistics of the rows of both."""
        known = self.known + other.known
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(known > 0, other.known / known, 0.0)
            one, two = (np.where(s.known > 0, s.mean, 0.0) for s in (self, other))
            mean = np.where(known > 0, one + (two - one) * share, np.nan)
            squares = self.squares + other.squares + (two - one) ** 2 * self.known * share
        low, high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        sample = np.concatenate([self.sample, other.sample])
        ranks = np.concatenate([self.ranks, other.ranks])
        found = Running(self.count + other.count, known, low, high, mean, squares, sample, ranks)
        found._thin(2)  # seldom: thinning copies the sample
        return found

    def _thin(self, slack: int) -> None:
        """Keeps the rows of the lowest ranks, if there are more than ``slack`` times the room."""
        row_bytes = max(1, self.sample[:1].nbytes)
        room = max(_SAMPLE_ROWS, _SAMPLE_BYTES // row_bytes)
        if len(self.ranks) > slack * room:
            kept = np.argpartition(self.ranks, room)[:room]
            self.sample, self.ranks = self.sample[kept], self.ranks[kept]

    @property
    def std(self) -> NDArray[np.float64]:
        """Standard deviation ``(...)`` of the rows themselves."""
        with np.errstate(invalid="ignore", divide="ignore"):
            out: NDArray[np.float64] = np.sqrt(self.squares / self.known)
        return out

    def quantiles(self, shares: Sequence[float] = QUANTILES) -> NDArray[np.float64]:
        """Returns ``(len(shares), ...)``: exact, or of a random sample of the rows."""
        self._thin(1)
        with np.errstate(invalid="ignore"):
            found: NDArray[np.float64] = np.quantile(self.sample, shares, axis=0)
        gaps = np.isnan(found).any(0) & (self.known > 0)
        if gaps.any():
            found[:, gaps] = np.nanquantile(self.sample[:, gaps], shares, axis=0)
        return found


@dataclass
class Levels:
    """Statistics of images, or of other arrays of uint8, of each channel apart.

    Attributes:
        count: number of images.
        counts: ``(C, 256)`` number of pixels of each value.
    """

    count: int
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, images: Array) -> Levels:
        """Returns the statistics of images ``(n, H, W, C)``; large ones are thinned out."""
        step = max(1, max(images.shape[1:3]) // _MOST_SIDE)
        thin = np.ascontiguousarray(images[:, ::step, ::step])
        channels = thin.shape[-1]
        pixels = thin.reshape(-1, channels)
        counts = np.zeros((channels, _LEVELS), np.int64)
        for start in range(0, len(pixels), _MOST_PIXELS):
            part = np.ascontiguousarray(pixels[start : start + _MOST_PIXELS])[None]
            for channel in range(channels):
                found = cv2.calcHist([part], [channel], None, [_LEVELS], [0, _LEVELS])
                counts[channel] += found.reshape(-1).astype(np.int64)
        return cls(len(images), counts)

    def joined(self, other: Levels) -> Levels:
        """Returns the statistics of the images of both."""
        return Levels(self.count + other.count, self.counts + other.counts)

    @property
    def low(self) -> NDArray[np.float64]:
        """Minimum ``(C,)``."""
        out: NDArray[np.float64] = (self.counts > 0).argmax(1).astype(np.float64)
        return out

    @property
    def high(self) -> NDArray[np.float64]:
        """Maximum ``(C,)``."""
        out: NDArray[np.float64] = _LEVELS - 1.0 - (self.counts[:, ::-1] > 0).argmax(1)
        return out

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean ``(C,)``."""
        out: NDArray[np.float64] = self.counts @ np.arange(_LEVELS) / self.counts.sum(1)
        return out

    @property
    def std(self) -> NDArray[np.float64]:
        """Standard deviation ``(C,)``."""
        away = (np.arange(_LEVELS) - self.mean[:, None]) ** 2
        out: NDArray[np.float64] = np.sqrt((self.counts * away).sum(1) / self.counts.sum(1))
        return out

    def quantiles(self, shares: Sequence[float] = QUANTILES) -> NDArray[np.float64]:
        """Returns ``(len(shares), C)``, exact."""
        found = np.empty((len(shares), len(self.counts)))
        for channel, counts in enumerate(self.counts):
            below = np.cumsum(counts)
            places = np.asarray(shares) * (below[-1] - 1)
            low, high = (np.searchsorted(below, f(places), "right") for f in (np.floor, np.ceil))
            found[:, channel] = low + (places - np.floor(places)) * (high - low)
        return found
