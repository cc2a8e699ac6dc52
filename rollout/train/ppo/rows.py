"""The rows that a PPO update learns from, and their minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.train.batch import OBSERVATION, part
from rollout.train.ppo.options import PpoOptions

Tensors = dict[str, Tensor]


@dataclass
class Rows:
    """A batch on the device, and its division into minibatches.

    Attributes:
        columns: ``(N, T, ...)``, or ``(rows, ...)`` after ``flatten``.
        memory: of a recurrent network before each sequence, ``(N, memory_size)``.
        explained: explained variance of the values.
    """

    columns: Tensors
    memory: Tensors
    explained: float

    def flatten(self) -> None:
        """Drops the order of rows in time, and rows without a step."""
        valid = self.columns.pop("valid").flatten()
        del self.columns["first"]
        flat = {key: array.flatten(0, 1) for key, array in self.columns.items()}
        self.columns = flat if bool(valid.all()) else {k: v[valid] for k, v in flat.items()}

    @torch.no_grad()
    def cut(self, length: int, network: Any) -> None:
        """Cuts sequences to ``length``; the network computes the memory at the cuts."""
        slots, steps = self.columns["first"].shape
        count = max(1, steps // length)
        if count == 1:
            return
        seen = {k: v.swapaxes(0, 1) for k, v in part(self.columns, OBSERVATION).items()}
        _, _, after = network.unroll(seen, self.memory, self.columns["first"].T)
        at = torch.arange(1, count) * (steps // count) - 1
        self.memory = {
            k: torch.cat([v.unsqueeze(1), after[k][at].swapaxes(0, 1)], 1).flatten(0, 1)
            for k, v in self.memory.items()
        }
        self.columns = {
            k: v.reshape(slots * count, steps // count, *v.shape[2:])
            for k, v in self.columns.items()
        }

    def minibatches(
        self, rng: np.random.Generator, s: PpoOptions
    ) -> Iterator[tuple[Tensors, Tensors | None]]:
        """Yields ``epochs`` times ``minibatches`` parts, in a new random order each epoch.

        They are flat and have no memory, or sequences with time first and the weights of rows.

        The number of parts does not depend on the number of rows: learners that wait for each
        other's gradients must all take the same number of steps.
        """
        count = len(self.columns["logp"])
        for _ in range(s.epochs):
            order = torch.from_numpy(rng.permutation(count)).to(self.columns["logp"].device)
            for rows in order.tensor_split(s.minibatches):
                # Gathered as it is needed: new memory for a whole batch of pictures costs more.
                own = {key: array.index_select(0, rows) for key, array in self.columns.items()}
                if "valid" not in own:
                    yield own, None
                    continue
                own["weight"] = own.pop("valid").float()
                timed = {key: array.swapaxes(0, 1) for key, array in own.items()}
                memory = {key: array.index_select(0, rows) for key, array in self.memory.items()}
                yield timed, memory
