"""Learners that improve networks on minibatches of steps: a base for off-policy algorithms.

``ReplayLearner`` draws them from the newest steps that were played, the job of
``learns_from = "actions"`` from a dataset.
"""

from __future__ import annotations

import copy
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollout.api import Array, Columns, Progress
from rollout.train.batch import ACTION, MEMORY, OBSERVATION, part
from rollout.train.gradients import Optimizer
from rollout.train.recorded import last_transitions
from rollout.train.replay import NEXT, ReplayBuffer, sequences, valid_rows

Reduce = Callable[[list[Tensor]], None] | None


class Rows:
    """A minibatch of steps on a device.

    Args:
        columns: ``observation/<key>``, ``action/<key>`` and others, each ``(B, ...)``.
        layout: of the actions.
        device: where the network learns.

    Attributes:
        seen: the observations before the actions, by key.
        chosen: the encoded actions, ``(B, ...)``.
        following: the observations after the actions, by key.
    """

    def __init__(self, columns: Mapping[str, Array], layout: Any, device: torch.device) -> None:
        self._columns, self._device = columns, device
        self.seen = self._tensors(OBSERVATION)
        self.following = self._tensors(NEXT)
        self.chosen: Tensor = layout.encode(part(columns, ACTION)).to(device)

    def __len__(self) -> int:
        return len(self.chosen)

    def _tensors(self, prefix: str) -> dict[str, Tensor]:
        return {
            k: torch.from_numpy(v).to(self._device) for k, v in part(self._columns, prefix).items()
        }

    def mean(self, values: Tensor) -> Tensor:
        """Returns the mean of values ``(..., B)``, weighted by the column ``weight`` if it is."""
        weight = self.column("weight") if "weight" in self._columns else None
        return weighted_mean(values, weight)

    def outputs(self, network: Any, *, remembers: bool = True) -> Tensor:
        """Returns the outputs of a network; one with a memory sees no earlier step."""
        outputs: Tensor = network(self.seen, {})[0]
        return outputs

    def column(self, name: str) -> Tensor:
        """Returns a column as floats, ``(B,)``."""
        return torch.from_numpy(self._columns[name].astype(np.float32)).to(self._device)


class Sequences:
    """A minibatch of sequences on a device, for a recurrent network.

    Args:
        columns: those of a batch of ``rollout.train.batch``, each ``(N, T, ...)``, and the memory
            before the first steps.
        layout: of the actions.
        device: where the network learns.

    Attributes:
        chosen: the encoded actions, ``(T, N, ...)``; zeros where there is no step.
    """

    def __init__(self, columns: Mapping[str, Array], layout: Any, device: torch.device) -> None:
        self._device = device
        self._seen = {k: self._timed(v) for k, v in part(columns, OBSERVATION).items()}
        self._first, self._valid = self._timed(columns["first"]), self._timed(columns["valid"])
        self._memory = {k: torch.from_numpy(v).to(device) for k, v in part(columns, MEMORY).items()}
        # Rows without a step hold zeros, which may be no action.
        chosen = layout.encode(part(columns, ACTION)).swapaxes(0, 1).to(device)
        self.chosen: Tensor = chosen * self._valid.unsqueeze(-1)

    def _timed(self, array: Array) -> Tensor:
        return torch.from_numpy(array).swapaxes(0, 1).to(self._device)

    def outputs(self, network: Any, *, remembers: bool = True) -> Tensor:
        """Returns the outputs of a network, ``(T, N, ...)``.

        Args:
            network: the network.
            remembers: whether its memory is that of the batch; else it begins with zeros.
        """
        memory = self._memory
        if not remembers:
            count = self._first.shape[1]
            memory = {
                k: torch.zeros(count, network.memory_size, device=self._device)
                for k in network.memory_keys
            }
        outputs: Tensor = network.unroll(self._seen, memory, self._first)[0]
        return outputs

    def mean(self, values: Tensor) -> Tensor:
        """Returns the mean of values ``(T, N)`` over the steps."""
        return weighted_mean(values, self._valid.float())


def weighted_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """Returns the mean of values ``(..., B)``; 0 if there are none, or all weights are 0.

    Args:
        values: the values.
        weight: of each of the ``B``, or of each value; None for equal ones.
    """
    if weight is None:
        return values.mean() if values.numel() else values.sum()
    total = weight.expand_as(values).sum()
    return (values * weight).sum() / total.clamp(min=torch.finfo(total.dtype).tiny)


class MinibatchLearner(ABC):
    """Improves networks on minibatches of steps.

    Args:
        network: the network of the policy.

    Attributes:
        network: the network of the policy.
        device: where it is.
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self.device: torch.device = next(network.parameters()).device
        self._optimizers: dict[str, Optimizer] = {}
        self._modules: dict[str, nn.Module] = {}

    def optimizer(self, name: str, *modules: nn.Module, **options: Any) -> Optimizer:
        """Returns a new optimizer of modules, whose state is kept; see ``Optimizer``."""
        parameters = [p for module in modules for p in module.parameters()]
        self._optimizers[name] = made = Optimizer(parameters, **options)
        return made

    def kept(self, name: str, module: nn.Module) -> nn.Module:
        """Returns a module that is no part of the policy, whose weights are kept."""
        self._modules[name] = module.to(self.device)
        return module

    def critics(self, count: int) -> nn.Module:
        """Returns new networks of the values of actions, whose weights are kept.

        The initial weights of the policy's network decide theirs.
        """
        first = next(self.network.parameters()).detach().cpu().numpy()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(first.tobytes()))
            return self.kept("critics", self.network.critics(count))

    def frozen_copy(self, name: str, module: nn.Module) -> nn.Module:
        """Returns a copy of a module without gradients, whose weights are kept."""
        return self.kept(name, copy.deepcopy(module).requires_grad_(False))

    @abstractmethod
    def learn(self, rows: Rows | None, progress: Progress) -> dict[str, Tensor]:
        """Makes the optimizer steps of one minibatch.

        Args:
            rows: the steps; None if there are none here, but other learners may have some.
            progress: where the run stands.

        Returns:
            scalars.
        """

    def rows(self, columns: Mapping[str, Array]) -> Rows:
        """Returns columns as a minibatch."""
        return Rows(columns, self.network.layout, self.device)

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizers, and the weights of further networks."""
        return {
            "optimizers": {name: each.state() for name, each in self._optimizers.items()},
            "modules": {name: dict(each.state_dict()) for name, each in self._modules.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        for name, each in self._optimizers.items():
            each.restore(state["optimizers"][name])
        for name, module in self._modules.items():
            module.load_state_dict(state["modules"][name])


class ReplayLearner(MinibatchLearner):
    """Learns from minibatches of the newest steps, a recurrent network of the newest sequences.

    ``learn`` gets ``Rows``, or ``Sequences`` for a recurrent network.

    Args:
        network: the network of the policy.
        options: of the algorithm, those of ``rollout.train.off_policy.OffPolicy``.
        dataset: whose last steps are in the buffer from the beginning; None for none.
    """

    def __init__(self, network: Any, options: Any, *, dataset: str | None = None) -> None:
        super().__init__(network)
        self._options = options
        self._recurrent, self._dataset = bool(network.memory_keys), dataset
        self._buffer = ReplayBuffer(options.memory)
        self._minibatches = max(1, round(options.batch * options.passes / options.minibatch))

    def update(self, batch: Mapping[str, Array], progress: Progress) -> dict[str, float]:
        """Adds a batch to the buffer, and learns from minibatches; see ``rollout.api.Learner``."""
        rows = sequences(batch) if self._recurrent else valid_rows(batch)
        if self._dataset is not None and progress.update == 0:
            self._buffer.add(last_transitions(self._dataset, rows, self._options.memory))
        if len(next(iter(rows.values()))):
            self._buffer.add(rows)
        skipped = self._skipped
        size, totals = self._buffer.size, dict[str, list[Tensor]]()
        # Decided by steps played, as other learners decide: all take equally many steps.
        if progress.env_steps + self._options.batch < self._options.warmup:
            return {"buffer_steps": float(self._buffer.steps)}
        rng = np.random.default_rng((progress.seed, progress.update))
        torch_seed = int(rng.integers(2**63))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch_seed)
            for _ in range(self._minibatches):
                drawn = self._buffer.sample(rng, self._options.minibatch) if size else None
                figures = self.learn(None if drawn is None else self._drawn(drawn), progress)
                for name, value in figures.items():
                    totals.setdefault(name, []).append(value.detach())
        means = {name: float(torch.stack(values).mean()) for name, values in totals.items()}
        return {
            **means,
            "skipped_steps": float(self._skipped - skipped),
            "buffer_steps": float(self._buffer.steps),
        }

    def _drawn(self, columns: Columns) -> Any:
        if self._recurrent:
            return Sequences(columns, self.network.layout, self.device)
        return self.rows(columns)

    @property
    def _skipped(self) -> int:
        return sum(each.skipped for each in self._optimizers.values())

    def state(self) -> dict[str, Any]:
        """Returns the steps in the buffer beside the rest."""
        return {**super().state(), "buffer": self._buffer.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        super().restore(state)
        self._buffer.restore(state["buffer"])
