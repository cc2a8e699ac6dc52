"""Behaviour cloning on recorded columns: plain torch, no Ray.

The loss is the negative log-likelihood of the recorded actions. Of the network it trains what the
policy uses; the value head keeps its initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rollout.api import Array, Columns
from rollout.data import Dataset, EpisodeRef
from rollout.data.schema import column_name
from rollout.train.batch import ACTION, OBSERVATION, part


@dataclass(frozen=True)
class Demonstrations:
    """Recorded episodes, one after another.

    Attributes:
        columns: ``observation/<key>`` and ``action/<key>``, each ``(steps, ...)``.
        lengths: steps of each episode.
    """

    columns: Columns
    lengths: NDArray[np.int64]

    @classmethod
    def read(
        cls, dataset: Dataset, refs: Sequence[EpisodeRef], columns: Sequence[str]
    ) -> Demonstrations:
        """Returns some episodes of a dataset; they are held in memory.

        Args:
            dataset: where they are.
            refs: the episodes, at least one.
            columns: names of the columns wanted, ``observation/<key>`` or ``action/<key>``; in a
                dataset, those of a space without keys have no slash.
        """
        names = {column: column_name(*column.split("/", 1)) for column in columns}
        episodes = [dataset.read(ref, list(names.values())).columns for ref in refs]
        joined = {
            key: np.concatenate([each[name] for each in episodes]) for key, name in names.items()
        }
        return cls(joined, np.array([ref.length for ref in refs], np.int64))

    def chunks(
        self, rng: np.random.Generator | None, *, minibatch: int, bptt: int, recurrent: bool
    ) -> Iterator[tuple[NDArray[np.int64], Array, Array]]:
        """Yields every step once, in parts of ``bptt`` by ``minibatch / bptt`` steps.

        For a recurrent network, a column of a part continues that of the part before: each column
        is a sequence of whole episodes in random order. Otherwise the order of steps is random.

        Args:
            rng: decides the order; None for that of the recording.
            minibatch: steps of a part.
            bptt: length of its sequences.
            recurrent: whether the network has a memory.

        Yields:
            numbers of the steps, whether an episode begins there, and whether there is a step at
            all; each ``(bptt, columns)``.
        """
        lengths = self.lengths if recurrent else np.ones(self.lengths.sum(), np.int64)
        begins = np.cumsum(lengths) - lengths
        order = np.arange(len(lengths)) if rng is None else rng.permutation(len(lengths))
        width = max(1, minibatch // bptt)
        # The next episode goes to the sequence that is the shortest so far.
        ends = np.zeros(width, np.int64)
        parts: list[list[NDArray[np.int64]]] = [[] for _ in range(width)]
        for number in order.tolist():
            column = int(ends.argmin())
            parts[column].append(np.arange(begins[number], begins[number] + lengths[number]))
            ends[column] += lengths[number]
        rows = -(-int(ends.max()) // bptt) * bptt
        index = np.full((rows, width), -1, np.int64)
        for column, own in enumerate(parts):
            if own:
                index[: ends[column], column] = np.concatenate(own)
        first = np.isin(index, begins)
        for row in range(0, rows, bptt):
            here = index[row : row + bptt]
            yield np.maximum(here, 0), first[row : row + bptt] | (here < 0), here >= 0


class Imitation:
    """Trains a network to choose the recorded actions.

    Args:
        network: a ``rollout.train.network.Network``.
        lr: initial learning rate; it decays linearly to 0.
        minibatch: steps of a minibatch.
        bptt: length of truncated backpropagation through time.
        max_grad_norm: maximum gradient norm.
    """

    def __init__(
        self, network: Any, *, lr: float, minibatch: int, bptt: int, max_grad_norm: float = 1.0
    ) -> None:
        self.network, self._lr = network, lr
        self._minibatch, self._bptt = minibatch, bptt
        self._most = max_grad_norm
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr)

    def epoch(self, shown: Demonstrations, number: int, epochs: int, seed: int) -> float:
        """Makes one pass, and returns the mean loss, in nats per step.

        Args:
            shown: the demonstrations.
            number: of the pass, from 0. It and ``seed`` alone decide the order of the steps.
            epochs: passes in all; the learning rate is 0 after the last.
            seed: of the run.
        """
        chunks = self._chunks(shown, np.random.default_rng((seed, number)))
        self.network.train()
        total, steps = 0.0, 0
        for at, (logp, valid) in enumerate(self._played(shown, chunks)):
            for group in self.optimizer.param_groups:
                group["lr"] = self._lr * (1.0 - (number + at / len(chunks)) / epochs)
            loss = -logp[valid].mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call] # torch
            norm = nn.utils.clip_grad_norm_(self.network.parameters(), self._most)
            if math.isfinite(float(norm)):
                self.optimizer.step()
            total += loss.item() * int(valid.sum())
            steps += int(valid.sum())
        return total / steps

    @torch.no_grad()
    def loss(self, shown: Demonstrations) -> float:
        """Returns the mean loss on demonstrations without learning from them, in nats per step."""
        self.network.eval()
        chunks = self._chunks(shown, None)
        rows = [logp[valid] for logp, valid in self._played(shown, chunks)]
        return -float(torch.cat(rows).mean())

    def _chunks(
        self, shown: Demonstrations, rng: np.random.Generator | None
    ) -> list[tuple[NDArray[np.int64], Array, Array]]:
        recurrent = bool(self.network.memory_keys)
        cut = shown.chunks(rng, minibatch=self._minibatch, bptt=self._bptt, recurrent=recurrent)
        return list(cut)

    def _played(
        self, shown: Demonstrations, chunks: Sequence[tuple[Array, Array, Array]]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields the log-probability of the recorded actions of each part, and where they are."""
        network = self.network
        memory: Mapping[str, Tensor] = {
            key: torch.zeros(chunks[0][0].shape[1], network.memory_size)
            for key in network.memory_keys
        }
        for index, first, valid in chunks:
            if not valid.any():
                continue
            columns = {key: torch.from_numpy(array[index]) for key, array in shown.columns.items()}
            choices = network.layout.encode(part(columns, ACTION))
            seen = part(columns, OBSERVATION)
            outputs, _, after = network.unroll(seen, memory, torch.from_numpy(first))
            yield network.distribution(outputs).log_prob(choices), torch.from_numpy(valid)
            memory = {key: array[-1].detach() for key, array in after.items()}
