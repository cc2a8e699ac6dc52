"""Converts fragments into training batches: columns whose rows are sequences, ``(N, T, ...)``.

A batch is a flat mapping of arrays, which RLlib transports unchanged. Every algorithm's batch has
``observation/<key>``, ``action/<key>``, ``first`` and ``valid``, all ``(N, T, ...)``, and
``memory/<key>`` and ``version``, ``(N, ...)``. An algorithm adds its own columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from rollout.api import Array, Columns, Fragment

T = TypeVar("T")

OBSERVATION, ACTION, MEMORY = "observation/", "action/", "memory/"


def from_fragment(
    fragment: Fragment,
    more: Mapping[str, Array],
    *,
    reads: Sequence[str],
    memory_keys: Sequence[str],
    steps: int,
) -> Columns:
    """Returns the steps of a fragment as a batch of ``B`` sequences.

    Args:
        fragment: the fragment.
        more: columns ``(T, B, ...)`` that the algorithm adds.
        reads: the observation columns that the network reads.
        memory_keys: columns of the network's memory.
        steps: length of the sequences; a shorter fragment is padded with rows of zeros.
    """
    columns: Columns = {OBSERVATION + k: fragment.observations[k] for k in reads}
    columns |= {ACTION + k: v for k, v in fragment.actions.items()}
    columns |= {"first": fragment.first, "valid": fragment.valid, **more}
    out = {key: _sequences(array, steps) for key, array in columns.items()}
    out |= {MEMORY + k: np.ascontiguousarray(fragment.memory[k]) for k in memory_keys}
    out["version"] = np.full(fragment.width, fragment.version[0], np.int64)
    return out


def _sequences(array: Array, steps: int) -> Array:
    """Transposes to slots first, then time; pads with zeros to ``steps``."""
    t, b = array.shape[:2]
    if t == steps:
        return np.ascontiguousarray(array.swapaxes(0, 1))
    out = np.zeros((b, steps, *array.shape[2:]), array.dtype)
    out[:, :t] = array.swapaxes(0, 1)
    return out


def join(batches: Sequence[Mapping[str, Array]]) -> Columns:
    """Returns batches concatenated along the first axis."""
    if len(batches) == 1:
        return dict(batches[0])
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}


def env_steps(batch: Mapping[str, Array]) -> int:
    """Returns the number of rows that contain a step."""
    return int(np.count_nonzero(batch["valid"]))


def part(batch: Mapping[str, T], prefix: str) -> dict[str, T]:
    """Returns the columns under a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in batch.items() if k.startswith(prefix)}
