"""Transitions of fragments, and a buffer of the newest ones, from which learners sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rollout.api import Array, Columns, Fragment
from rollout.train.batch import from_fragment

NEXT = "next/"
"""Prefix of the columns of the observation that followed a step."""


def transitions(fragment: Fragment, *, reads: Sequence[str], steps: int) -> Columns:
    """Returns a fragment as a batch with ``reward``, ``terminated`` and ``next/<key>``.

    The step after which a game was lost is followed by the last observation that it gave.

    Args:
        fragment: the fragment.
        reads: the observation columns that the network reads.
        steps: number of steps of a whole fragment.
    """
    more: Columns = {"reward": fragment.reward, "terminated": fragment.terminated}
    at = (fragment.final_index[:, 0], fragment.final_index[:, 1])
    for key in reads:
        following = np.empty_like(fragment.observations[key])
        following[:-1] = fragment.observations[key][1:]
        following[-1] = fragment.next_observations[key]
        following[at] = fragment.final_observations[key]
        more[NEXT + key] = following
    return from_fragment(fragment, more, reads=reads, memory_keys=(), steps=steps)


class ReplayBuffer:
    """The newest rows of some columns, in memory.

    Args:
        capacity: maximum number of rows; the oldest are overwritten.

    Attributes:
        size: number of rows.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity, self._columns = capacity, dict[str, Array]()
        self.size = self._next = 0

    def add(self, rows: Mapping[str, Array]) -> None:
        """Adds rows, ``{key: (K, ...)}``, the same columns in every call."""
        count = len(next(iter(rows.values())))
        if count > self._capacity:
            rows = {key: array[-self._capacity :] for key, array in rows.items()}
            count = self._capacity
        if not self._columns:
            self._columns = {
                key: np.empty((self._capacity, *array.shape[1:]), array.dtype)
                for key, array in rows.items()
            }
        at = (self._next + np.arange(count)) % self._capacity
        for key, array in rows.items():
            self._columns[key][at] = array
        self._next = (self._next + count) % self._capacity
        self.size = min(self.size + count, self._capacity)

    def sample(self, rng: np.random.Generator, count: int) -> Columns:
        """Returns ``count`` rows drawn uniformly, with replacement; there must be one."""
        return self.rows(rng.integers(self.size, size=count))

    def rows(self, index: NDArray[np.int64]) -> Columns:
        """Returns copies of some rows."""
        return {key: array[index] for key, array in self._columns.items()}

    def state(self) -> dict[str, Any]:
        """Returns the rows as tensors, oldest first."""
        first = self._next if self.size == self._capacity else 0
        index = (first + np.arange(self.size)) % self._capacity
        return {key: torch.from_numpy(array[index]) for key, array in self._columns.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        self._columns, self.size, self._next = {}, 0, 0
        if state:
            self.add({key: tensor.numpy() for key, tensor in state.items()})


def valid_rows(batch: Mapping[str, Array]) -> Columns:
    """Returns the steps of a batch ``(N, T, ...)`` as rows ``(K, ...)``, without ``valid``."""
    valid = np.asarray(batch["valid"])
    steps = {k: v for k, v in batch.items() if k != "valid" and v.shape[:2] == valid.shape}
    return {key: np.asarray(array)[valid] for key, array in steps.items()}
