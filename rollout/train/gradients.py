"""Optimizer steps that several learners make together, and that a non-finite gradient skips."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollout.api import Array

# Torch imports its compiler, which takes as long as torch itself, when one of these is first called
# that does not have this attribute, to keep it from being compiled. Nothing here compiles them.
for _name in ("add_param_group", "state_dict", "load_state_dict"):
    _function: Any = getattr(torch.optim.Optimizer, _name).__wrapped__
    _function.__dict__.setdefault("__dynamo_disable", _function)


class Optimizer:
    """AdamW (Adam where ``weight_decay`` is 0) with clipped gradients.

    Args:
        parameters: what it changes.
        lr: learning rate.
        max_grad_norm: maximum gradient norm; None for no clipping.
        reduce_gradients: averages gradients over several learners; called in every step.
        weight_decay: decoupled weight decay.
        options: further options of ``torch.optim.AdamW``.

    Attributes:
        adam: the optimizer of torch.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        max_grad_norm: float | None = None,
        reduce_gradients: Callable[[list[Tensor]], None] | None = None,
        weight_decay: float = 0.0,
        **options: Any,
    ) -> None:
        given = list(parameters)
        self._parameters = [p for p in given if p.requires_grad]
        self.adam: torch.optim.Optimizer = torch.optim.AdamW(
            given, lr=lr, weight_decay=weight_decay, fused=True, **options
        )
        self._most = math.inf if max_grad_norm is None else max_grad_norm
        self._reduce = reduce_gradients
        self._skipped: float | Tensor = 0.0

    @property
    def skipped(self) -> int:
        """Number of steps whose gradient was not finite."""
        return int(self._skipped)

    def step(self, loss: Tensor | None, *, lr: float | None = None) -> None:
        """Makes a step down the gradient of a loss.

        Args:
            loss: a scalar; None if this learner has no data, but others may have.
            lr: learning rate from now on.
        """
        self.adam.zero_grad(set_to_none=True)
        if lr is not None:
            self.set_lr(lr)
        if loss is not None:
            loss.backward()  # type: ignore[no-untyped-call] # torch
        self.apply()

    def set_lr(self, lr: float) -> None:
        """Sets the learning rate."""
        for group in self.adam.param_groups:
            group["lr"] = lr

    def apply(self) -> Tensor | float | None:
        """Makes a step with the gradients of the parameters, and removes them.

        Returns:
            their norm before clipping, not read from the device; None if there are none.
        """
        if self._reduce is not None:
            # Learners without rows take part too: the others wait for their gradients.
            for p in self._parameters:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            self._reduce([p.grad for p in self._parameters if p.grad is not None])
        elif all(p.grad is None for p in self._parameters):
            return None
        norm = nn.utils.clip_grad_norm_(self._parameters, self._most)
        # One minibatch with a non-finite gradient must not end a run of days. Adam reads where it
        # runs whether to skip its step: a GPU is not waited for.
        missing = (~norm.isfinite()).float()
        self.adam.found_inf = missing  # type: ignore[attr-defined] # what torch's GradScaler sets
        self.adam.step()
        self._skipped = self._skipped + missing
        self.adam.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return dict(self.adam.state_dict())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the optimizer."""
        self.adam.load_state_dict(dict(state))


class FlatOptimizer(Optimizer):
    """The same on weights and gradients that lie in one array each, by few array operations.

    The state has the format of torch's optimizer.

    Args:
        parameters: as of ``Optimizer``, all on the processor.
        weights: ``(n,)``, of which the parameters are views in their order.
        gradient: ``(n,)``, of which their gradients are.
        given: further arguments of ``Optimizer``.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], weights: Array, gradient: Array, **given: Any
    ) -> None:
        super().__init__(parameters, **given)
        self._weights, self._gradient = torch.from_numpy(weights), gradient
        self._mean, self._square = np.zeros_like(weights), np.zeros_like(weights)
        self._steps = 0

    def apply(self) -> float | None:
        """Makes a step; see ``Optimizer``."""
        there = self._parameters[0].grad is not None
        if self._reduce is not None:
            if not there:
                self._gradient[:] = 0
            self._reduce([torch.from_numpy(self._gradient)])
        elif not there:
            return None
        for parameter in self._parameters:
            parameter.grad = None
        norm = math.sqrt(float(self._gradient @ self._gradient))
        if not math.isfinite(norm):
            self._skipped += 1.0
            return norm
        if norm > self._most:
            self._gradient *= self._most / (norm + 1e-6)
        self._descend(self.adam.param_groups[0])
        return norm

    def _descend(self, group: Mapping[str, Any]) -> None:
        """Makes a step of AdamW (Loshchilov and Hutter, 2019, algorithm 2)."""
        self._steps += 1
        first, second = group["betas"]
        # What torch's optimizer calls where it is fused; its own call takes as long as the step.
        torch._fused_adamw_(
            [self._weights],
            [torch.from_numpy(self._gradient)],
            [torch.from_numpy(self._mean)],
            [torch.from_numpy(self._square)],
            [],
            [torch.tensor(float(self._steps))],
            lr=group["lr"],
            beta1=first,
            beta2=second,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Any]:
        """Returns the state, in the format of torch's optimizer."""
        if self._steps:
            sizes = [p.numel() for p in self._parameters]
            cuts = (
                torch.split(torch.from_numpy(a.copy()), sizes) for a in (self._mean, self._square)
            )
            for p, mean, square in zip(self._parameters, *cuts, strict=True):
                self.adam.state[p] = {
                    "step": torch.tensor(float(self._steps)),
                    "exp_avg": mean.view_as(p),
                    "exp_avg_sq": square.view_as(p),
                }
        return super().state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores a state."""
        super().restore(state)
        kept = [self.adam.state[p] for p in self._parameters if p in self.adam.state]
        self._steps = int(kept[0]["step"]) if kept else 0
        for own, key in ((self._mean, "exp_avg"), (self._square, "exp_avg_sq")):
            own[:] = torch.cat([each[key].flatten() for each in kept]).numpy() if kept else 0


@torch.no_grad()
def track(target: nn.Module, source: nn.Module, share: float) -> None:
    """Moves the weights of a target network towards those of its source.

    Args:
        target: the network that is changed.
        source: a network of the same architecture.
        share: of the distance, 0 to 1.
    """
    for mine, other in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(other, share)
    for kept, newest in zip(target.buffers(), source.buffers(), strict=True):
        kept.copy_(newest)
