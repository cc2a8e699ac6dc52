"""Transitions and sequences of fragments, and a buffer of the newest ones, to sample from."""

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
    """The newest rows of some columns, in memory: steps, or sequences if there is ``valid``.

    Args:
        capacity: maximum number of steps; the oldest are overwritten.

    Attributes:
        size: number of rows.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity, self._columns, self._length = capacity, dict[str, Array](), 1
        self.size = self._next = 0

    @property
    def steps(self) -> int:
        """Number of steps; rows of sequences without a step count."""
        return self.size * self._length

    def add(self, rows: Mapping[str, Array]) -> None:
        """Adds rows, ``{key: (K, ...)}``, the same columns in every call."""
        if not self._columns:
            self._length = rows["valid"].shape[1] if "valid" in rows else 1
        most = max(1, self._capacity // self._length)
        count = len(next(iter(rows.values())))
        if count > most:
            rows = {key: array[-most:] for key, array in rows.items()}
            count = most
        if not self._columns:
            self._columns = {
                key: np.empty((most, *array.shape[1:]), array.dtype) for key, array in rows.items()
            }
        at = (self._next + np.arange(count)) % most
        for key, array in rows.items():
            self._columns[key][at] = array
        self._next = (self._next + count) % most
        self.size = min(self.size + count, most)

    def sample(self, rng: np.random.Generator, count: int) -> Columns:
        """Returns rows with about ``count`` steps, drawn uniformly with replacement.

        There must be a row.
        """
        return self.rows(rng.integers(self.size, size=max(1, count // self._length)))

    def rows(self, index: NDArray[np.int64]) -> Columns:
        """Returns copies of some rows."""
        return {key: array[index] for key, array in self._columns.items()}

    def state(self) -> dict[str, Any]:
        """Returns the rows as tensors, oldest first."""
        index = np.roll(np.arange(self.size), -self._next if self._next < self.size else 0)
        return {key: torch.from_numpy(array[index]) for key, array in self._columns.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        self._columns, self.size, self._next = {}, 0, 0
        if state:
            self.add({key: tensor.numpy() for key, tensor in state.items()})


def valid_rows(batch: Mapping[str, Array]) -> Columns:
    """Returns the steps of a batch ``(N, T, ...)`` as rows ``(K, ...)``, in no order of time."""
    valid, left_out = np.asarray(batch["valid"]), ("valid", "version", "first")
    return {k: np.asarray(array)[valid] for k, array in batch.items() if k not in left_out}


def sequences(batch: Mapping[str, Array]) -> Columns:
    """Returns the sequences of a batch that have a step, with the memory before them."""
    there = np.asarray(batch["valid"]).any(1)
    return {key: np.asarray(array)[there] for key, array in batch.items() if key != "version"}
