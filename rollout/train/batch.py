"""From fragments to what the learner reads: columns whose rows are sequences, ``(N, T, ...)``.

A batch is a flat mapping of arrays, because that is what travels through RLlib unharmed:
``observation/<key>``, ``action/<key>``, ``logp``, ``value``, ``reward``, ``next_value``, ``end``,
``first``, ``valid``, all ``(N, T, ...)``, and ``memory/<key>`` and ``version``, ``(N, ...)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rollout.api import Array, Columns, Fragment
from rollout.train.gae import CUT, RUNNING, TERMINATED

OBSERVATION, ACTION, MEMORY = "observation/", "action/", "memory/"


def from_fragment(
    fragment: Fragment,
    *,
    reads: Sequence[str],
    memory_keys: Sequence[str],
    final_value: Array,
    next_value: Array,
    steps: int,
) -> Columns:
    """Returns the steps of a fragment as a batch of ``B`` sequences.

    Args:
        fragment: what was played; its policy recorded ``logp`` and ``value``.
        reads: the observation columns that the network reads.
        memory_keys: columns of the network's memory.
        final_value: value of each final observation, ``(K,)``, in the order of ``final_index``.
        next_value: value of each next observation, ``(B,)``.
        steps: length of the sequences; a shorter fragment is filled up with rows without a step.
    """
    t, b = fragment.length, fragment.width
    columns: Columns = {OBSERVATION + k: fragment.observations[k] for k in reads}
    columns |= {ACTION + k: v for k, v in fragment.actions.items()}
    columns |= {"logp": fragment.extras["logp"], "value": fragment.extras["value"]}
    end = np.full((t, b), RUNNING, np.int8)
    following = np.zeros((t, b), np.float32)
    end[-1] = CUT
    following[-1] = next_value
    end[fragment.truncated | fragment.lost] = CUT
    end[fragment.terminated] = TERMINATED
    rows, slots = fragment.final_index[:, 0], fragment.final_index[:, 1]
    following[rows, slots] = final_value
    valid = fragment.valid
    end[~valid] = TERMINATED
    columns |= {"reward": fragment.reward, "next_value": following, "end": end}
    columns |= {"first": fragment.first, "valid": valid}
    out = {key: _sequences(array, steps) for key, array in columns.items()}
    out["end"][:, t:] = TERMINATED
    out |= {MEMORY + k: np.ascontiguousarray(fragment.memory[k]) for k in memory_keys}
    out["version"] = np.full(b, fragment.version[0] if t else 0, np.int64)
    return out


def _sequences(array: Array, steps: int) -> Array:
    """Slots first, then time; filled up with zeros to ``steps``."""
    t, b = array.shape[:2]
    if t == steps:
        return np.ascontiguousarray(array.swapaxes(0, 1))
    out = np.zeros((b, steps, *array.shape[2:]), array.dtype)
    out[:, :t] = array.swapaxes(0, 1)
    return out


def join(batches: Sequence[Mapping[str, Array]]) -> Columns:
    """Returns batches one below the other."""
    if len(batches) == 1:
        return dict(batches[0])
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}


def env_steps(batch: Mapping[str, Array]) -> int:
    """Returns the number of rows that hold a step."""
    return int(np.count_nonzero(batch["valid"]))


def part(batch: Mapping[str, Array], prefix: str) -> Columns:
    """Returns the columns under a prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in batch.items() if k.startswith(prefix)}
