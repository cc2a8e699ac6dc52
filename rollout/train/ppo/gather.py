"""The training data of PPO: each step, and the value of the observation that follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.api import Columns, Fragment
from rollout.train.batch import from_fragment
from rollout.train.gae import CUT, RUNNING, TERMINATED


def gather(fragment: Fragment, network: Any, *, reads: Sequence[str], steps: int) -> Columns:
    """Returns a fragment as a batch with ``logp``, ``value``, ``reward``, ``next_value``, ``end``.

    The values that follow are computed here, with the weights that acted; see
    ``rollout.train.gae``.
    """
    t, b = fragment.length, fragment.width
    final, following = following_values(network, fragment, reads)
    end = np.full((t, b), RUNNING, np.int8)
    next_value = np.zeros((t, b), np.float32)
    end[-1] = CUT
    next_value[-1] = following.numpy()
    end[fragment.truncated | fragment.lost] = CUT
    end[fragment.terminated] = TERMINATED
    next_value[fragment.final_index[:, 0], fragment.final_index[:, 1]] = final.numpy()
    end[~fragment.valid] = TERMINATED
    own: Columns = {key: fragment.extras[key] for key in ("logp", "value")}
    own |= {"reward": fragment.reward, "next_value": next_value, "end": end}
    batch = from_fragment(fragment, own, reads=reads, memory_keys=network.memory_keys, steps=steps)
    batch["end"][:, t:] = TERMINATED
    return batch


@torch.inference_mode()
def following_values(
    network: Any, fragment: Fragment, reads: Sequence[str]
) -> tuple[Tensor, Tensor]:
    """Returns the values of the final observations ``(K,)`` and of the next ones ``(B,)``.

    A recurrent network is unrolled over the fragment once more, because its memory at the end of an
    episode is overwritten when the next one begins.
    """
    ends = [fragment.final_observations, fragment.next_observations]
    seen = {k: torch.cat([torch.from_numpy(e[k]) for e in ends]) for k in reads}
    memory: dict[str, Tensor] = {}
    if network.memory_keys:
        before = {k: torch.from_numpy(fragment.memory[k]) for k in network.memory_keys}
        rows = {k: torch.from_numpy(fragment.observations[k]) for k in reads}
        _, _, after = network.unroll(rows, before, torch.from_numpy(fragment.first))
        t, b = fragment.final_index[:, 0], fragment.final_index[:, 1]
        memory = {k: torch.cat([v[t, b], v[-1]]) for k, v in after.items()}
    _, values, _ = network(seen, memory)
    count = len(fragment.final_index)
    return values[:count].float(), values[count:].float()
