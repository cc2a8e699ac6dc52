"""From rows of episodes to the array that the estimates take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollout.errors import ConfigError


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
