"""A learner of the steps of a dataset, one of several that may share every minibatch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.api import Array, Columns, Progress, StepLearner
from rollout.config import PolicyConfig
from rollout.data import Dataset
from rollout.threads import set_threads
from rollout.train.offline_config import OfflineConfig, divided, weight_of
from rollout.train.recorded import Demonstrations, PartReader, StepColumns


@dataclass(frozen=True)
class DatasetSetup:
    """The setup of a learner; picklable, see ``rollout.train.workers.Setup``.

    Attributes:
        config: of the training.
        policy: the policy, whose options say how it reads every column.
    """

    config: OfflineConfig
    policy: PolicyConfig

    @property
    def seed(self) -> int:
        """Seed of torch in the workers."""
        return self.config.seed

    def build(self, **shared: Any) -> DatasetLearner:
        """Returns a learner."""
        return DatasetLearner(self.config, self.policy, **shared)


class DatasetLearner:
    """A network, its optimizers and the steps that it learns from.

    Args:
        config: of the training.
        policy: see ``DatasetSetup``.
        rank: number of this learner among those that share every minibatch.
        learners: how many there are.
        add: sums tensors over all learners, in place; None for one.
    """

    def __init__(
        self,
        config: OfflineConfig,
        policy: PolicyConfig,
        *,
        rank: int = 0,
        learners: int = 1,
        add: Callable[[list[Tensor]], None] | None = None,
    ) -> None:
        set_threads(config.threads)
        self._config, self._rank, self._learners, self._add = config, rank, learners, add
        self._own = 0.0  # sum of the weights of the steps in this learner's share of a minibatch
        # An eighth for decoded rows that are read next; see ``PartReader``.
        cache_bytes = max(1, int(config.memory_mb * 2**20 / 8))
        dataset = Dataset(config.dataset, cache_bytes=cache_bytes)
        manifest, refs = dataset.manifest, dataset.episodes(filter=config.filter)
        recipe: Any = policy.build()
        seen, acted = manifest.observation_space, manifest.action_space
        self._network = recipe.network(seen, acted, seed=config.seed)
        self._options = config.algorithm.build()
        columns = StepColumns(
            reads=tuple(recipe.reads(seen)),
            actions=tuple(acted.spaces),
            needs=self._options.needs,
            gamma=getattr(self._options, "gamma", 1.0),
            weight=weight_of(config, dataset, refs),
        )
        shown, held_out = divided(config, refs)
        self._held_out = Demonstrations.read(dataset, held_out, columns)
        self._reader = PartReader(
            dataset, shown, columns, memory_mb=config.memory_mb, seed=config.seed
        )
        reduced = {"reduce_gradients": self._average} if add is not None else {}
        self._learner: StepLearner = self._options.learner(self._network, **reduced)

    def parts(self) -> int:
        """Returns the number of parts of an epoch."""
        return self._reader.parts

    def part(self, number: int) -> dict[str, Any]:
        """Learns from part ``number % parts`` of epoch ``number // parts``.

        Returns:
            ``figures``, ``weight``, the sum of the weights of the steps, ``steps``, their number,
            and ``wait_s``, the seconds that it has waited for the disk.
        """
        waited = self._reader.wait_s
        steps = self._reader.part(number)
        # The order of a whole epoch in memory is that of version 0.1.
        chunks = self._chunks(steps, np.random.default_rng((self._config.seed, number)))
        total = self._options.epochs * self._reader.parts
        figures, memory = _Means(), dict[str, Any]()
        for at, batch in enumerate(chunks):
            progress = Progress(
                update=number * len(chunks) + at,
                env_steps=number * len(chunks) + at,
                budget=total * len(chunks),
                seed=self._config.seed,
            )
            own = self._share(batch)
            self._own = _weight(own)
            found, memory = self._learner.update(own, self._memory(memory, own), progress)
            figures.add(found, self._own)
        figures.join(self._add)
        return {
            "figures": figures.means(),
            "weight": figures.weight,
            "steps": int(steps.lengths.sum()),
            "wait_s": self._reader.wait_s - waited,
        }

    def measured(self) -> dict[str, float]:
        """Returns the figures of the episodes that are not learned from."""
        figures, memory = _Means(), dict[str, Any]()
        for batch in self._chunks(self._held_out, None):
            found, memory = self._learner.measure(batch, self._memory(memory, batch))
            figures.add(found, _weight(batch))
        return figures.means()

    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network."""
        return dict(self._network.state_dict())

    def state(self) -> dict[str, Any]:
        """Returns what updates depend on beside the weights."""
        return self._learner.state()

    def restore(self, weights: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Takes back what ``weights`` and ``state`` returned."""
        self._network.load_state_dict(weights)
        self._learner.restore(state)

    def close(self) -> None:
        """Ends the thread that reads. Idempotent."""
        self._reader.close()

    def _share(self, batch: Columns) -> Columns:
        if self._learners == 1:
            return batch
        return {key: array[:, self._rank :: self._learners] for key, array in batch.items()}

    def _average(self, tensors: list[Tensor]) -> None:
        """Averages tensors over the learners, weighted by their shares, in one message."""
        assert self._add is not None
        weight = tensors[0].new_tensor([self._own])
        flat = torch.cat([*(tensor.flatten() * weight for tensor in tensors), weight])
        self._add([flat])
        flat = flat[:-1] / flat[-1].clamp(min=torch.finfo(flat.dtype).tiny)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def _memory(self, memory: Mapping[str, Any], batch: Mapping[str, Array]) -> Mapping[str, Any]:
        """Returns the memory before a batch: zeros at first."""
        width, network = batch["valid"].shape[1], self._network
        return memory or {k: torch.zeros(width, network.memory_size) for k in network.memory_keys}

    def _chunks(self, steps: Demonstrations, rng: np.random.Generator | None) -> _Chunks:
        options = self._options
        chunks = steps.chunks(
            rng,
            minibatch=options.minibatch,
            bptt=options.bptt,
            recurrent=bool(self._network.memory_keys),
        )
        return _Chunks(steps, list(chunks))


def _weight(batch: Mapping[str, Array]) -> float:
    """Returns the sum of the weights of the steps of a batch."""
    valid = batch["valid"]
    return float(batch["weight"][valid].sum() if "weight" in batch else valid.sum())


class _Chunks:
    """The batches of some steps, made when they are asked for.

    Args:
        steps: the steps.
        chunks: numbers of the steps of each batch, see ``Demonstrations.chunks``.
    """

    def __init__(self, steps: Demonstrations, chunks: Sequence[tuple[Array, Array, Array]]) -> None:
        self._steps = steps
        self._chunks = [chunk for chunk in chunks if chunk[2].any()]

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[Columns]:
        """Yields batches ``(T, N, ...)``."""
        for index, first, valid in self._chunks:
            batch = {key: array[index] for key, array in self._steps.columns.items()}
            yield {**batch, "first": first, "valid": valid}


class _Means:
    """Means of figures over batches, weighted by their steps.

    Attributes:
        weight: sum of the weights.
    """

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self.weight = 0.0

    def add(self, figures: Mapping[str, float], weight: float) -> None:
        """Adds the figures of a batch."""
        for name, value in figures.items():
            self._totals[name] = self._totals.get(name, 0.0) + value * weight
        self.weight += weight

    def join(self, add: Callable[[list[Tensor]], None] | None) -> None:
        """Adds the figures of all learners, if there are others."""
        if add is not None:
            names = list(self._totals)
            sums = torch.tensor([*self._totals.values(), self.weight], dtype=torch.float64)
            add([sums])
            *totals, self.weight = sums.tolist()
            self._totals = dict(zip(names, totals, strict=True))

    def means(self) -> dict[str, float]:
        """Returns the means; none if all weights are 0."""
        return {name: total / self.weight for name, total in self._totals.items() if self.weight}
