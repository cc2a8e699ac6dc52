"""Components of the variance of a mean: training seeds, states, and the rest.

A *part* is the scores of one set of states under all training seeds. A figure is the mean over
seeds of a signed sum of parts: one part for a score, train minus test for a gap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError
from rollout.evaluate.statistics.estimate import check_choice, t_quantile

STATES = ("crossed", "nested", "fixed")
"""Designs of the states of a part.

``crossed``: a sample of states that is the same for every seed, as a held-out set is.
``nested``: every seed has a sample of its own, as training sets in different orders are.
``fixed``: the states are all there are; nothing is concluded about others.
"""

_CHUNK = 2_000_000  # numbers gathered at once: 16 MB, small enough to stay quick in the cache


@dataclass(frozen=True)
class Part:
    """The scores of one set of states.

    Attributes:
        scores: (seeds, states, episodes), NaN where there is none.
        sign: +1 or -1.
        states: one of :data:`STATES`.
    """

    scores: NDArray[np.float64]
    sign: int
    states: str

    @property
    def cells(self) -> NDArray[np.float64]:
        """The mean of the episodes of every (seed, state); NaN where there is none."""
        return mean(self.scores)

    @property
    def seed_means(self) -> NDArray[np.float64]:
        """The mean of the states of every seed, all states equal; NaN where there is none."""
        return mean(self.cells)

    def of(self, seeds: NDArray[np.bool_]) -> Part:
        """Returns the part with those seeds only, and the states that have a result for them."""
        scores = self.scores[seeds]
        return Part(scores[:, np.isfinite(scores).any((0, 2))], self.sign, self.states)


def part(name: str, scores: ArrayLike, sign: int, states: str) -> Part:
    """Returns the part that checked ``scores`` make.

    Raises:
        ConfigError: not (seeds, states, episodes), empty, or infinite.
    """
    check_choice("kind of states", states, STATES)
    array = np.asarray(scores, np.float64)
    if array.ndim != 3 or not array.size:
        raise ConfigError(
            f"expected {name} of (training seeds, states, episodes), none of them 0, got shape "
            f"{array.shape}; arrange() makes it of columns"
        )
    if np.isinf(array).any():
        raise ConfigError(f"expected finite {name} or NaN for lost episodes, got infinity")
    return Part(array, sign, states)


def arrange(
    training_seed: ArrayLike, position: ArrayLike, repeat: ArrayLike, score: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns the scores as (training seeds, states, episodes), and the seeds in their order.

    Every column has one entry per episode. Seeds, positions and repeats are sorted, so two arms
    that were evaluated on the same seeds, states and repeats line up. What has no row is NaN.

    Raises:
        ConfigError: columns of different lengths, or two rows for one episode.
    """
    keys = [np.asarray(column) for column in (training_seed, position, repeat)]
    values = np.asarray(score, np.float64)
    shapes = [column.shape for column in (*keys, values)]
    if len(set(shapes)) != 1 or values.ndim != 1:
        raise ConfigError(
            f"expected four columns of one length, got shapes {shapes}; pass whole columns of rows"
        )
    axes = [np.unique(key, return_inverse=True) for key in keys]
    cells = tuple(inverse for _, inverse in axes)
    shape = tuple(len(labels) for labels, _ in axes)
    taken = np.zeros(shape, np.int64)
    np.add.at(taken, cells, 1)
    if (taken > 1).any():
        twice = np.argwhere(taken > 1)[0]
        where = [int(labels[i]) for (labels, _), i in zip(axes, twice, strict=True)]
        raise ConfigError(
            "expected one row for each (training seed, position, repeat), got "
            f"{int(taken.max())} for {tuple(where)}; keep the rows of one arm, N, player, set and "
            "kind of actions only"
        )
    scores = np.full(shape, np.nan)
    scores[cells] = values
    return scores, axes[0][0].astype(np.int64)


def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the mean over the last axis of what is there; NaN where nothing is."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # 0 / 0 is the NaN that is wanted
        return np.asarray(np.where(there, values, 0).sum(-1) / there.sum(-1))


def half_width(
    totals: NDArray[np.float64], shared: Sequence[NDArray[np.float64]], confidence: float
) -> float:
    """Returns half the width of the interval of the mean over two or more seeds.

    Args:
        totals: the figure of every seed, (seeds,).
        shared: its scores on states that all seeds share: means of the episodes of every
            (seed, state), NaN where there is none.
        confidence: of the interval.

    The variance of the seed means over their number holds all that is new with every seed:
    training, own states, chance of the episodes. States that all seeds share move all seed means
    together, so their share is added; it holds one part of the rest (seed x state, episodes) too
    many, which is taken off again. These are the mean squares of the crossed layout with both
    factors random, of which each is multiplied by the square of its own t quantile (Howe 1974):
    Satterthwaite's one t for their sum holds too seldom where few seeds matter most. With results
    missing, the sums run over each cell's influence on the figure, which is the same when none is.
    """
    seeds = len(totals)
    of_seeds = float(totals.var(ddof=1)) / seeds
    square, least = t_quantile(confidence, seeds - 1) ** 2 * of_seeds, 0.0
    for cells in shared:
        of_states, rest = _shared(cells)
        factor = t_quantile(confidence, cells.shape[1] - 1) ** 2
        square += factor * max(of_states - rest, 0)
        least += factor * of_states
    return math.sqrt(max(square, least))  # seeds that agree by chance do not make states certain


def influences(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns how far every state moves the mean of its seed, (seeds, states); 0 where missing."""
    there = ~np.isnan(cells)
    return np.asarray(
        np.where(there, cells - mean(cells)[:, None], 0) / there.sum(1, keepdims=True)
    )


def _shared(cells: NDArray[np.float64]) -> tuple[float, float]:
    """Returns what shared states add to the squared error, with the rest in it, and that rest."""
    seeds, states = cells.shape
    apart = influences(cells)
    of_states = apart.mean(0)
    rest = (apart - of_states) / seeds
    scale = states / (states - 1)
    return (
        float((of_states**2).sum()) * scale,
        float((rest**2).sum()) * scale * seeds / (seeds - 1),
    )


def resampled(parts: Sequence[Part], resamples: int, seed: int) -> NDArray[np.float64]:
    """Returns the figure of every resample: seeds, then states, then episodes, with replacement.

    All parts share the seeds of a draw. Crossed states are drawn once for all seeds (the
    pigeonhole bootstrap: Owen 2007), nested ones for every seed that was drawn, fixed ones never.
    A draw in which a seed has no result is left out.
    """
    generator = np.random.default_rng(seed)
    seeds = len(parts[0].scores)
    figures = []
    step = max(1, _CHUNK // max(p.scores.size for p in parts))
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        drawn = generator.integers(seeds, size=(count, seeds))
        total = np.zeros((count, seeds))
        for p in parts:
            total += p.sign * _means(p, drawn, generator)
        figures.append(total.mean(1))
    values = np.concatenate(figures)
    return np.asarray(values[np.isfinite(values)])


def _means(
    p: Part, drawn: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.float64]:
    """Returns the (resamples, seeds) means of the drawn seeds over drawn states and episodes."""
    count, seeds = drawn.shape
    _, states, episodes = p.scores.shape
    if p.states == "fixed":
        chosen = np.arange(states)[None, None]
    else:
        each = seeds if p.states == "nested" else 1
        chosen = generator.integers(states, size=(count, each, states))
    if episodes == 1:
        values = p.scores[:, :, 0][drawn[:, :, None], chosen]
    else:
        again = generator.integers(episodes, size=(count, seeds, states, episodes))
        values = mean(p.scores[drawn[:, :, None, None], chosen[..., None], again])
    return mean(values)
