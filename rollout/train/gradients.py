"""Optimizer steps that several learners make together, and that a non-finite gradient skips."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn


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
        skipped: number of steps whose gradient was not finite.
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
            given, lr=lr, weight_decay=weight_decay, **options
        )
        self._most = math.inf if max_grad_norm is None else max_grad_norm
        self._reduce = reduce_gradients
        self.skipped = 0

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

    def apply(self) -> float | None:
        """Makes a step with the gradients of the parameters, and removes them.

        Returns:
            their norm before clipping; None if there are none.
        """
        if self._reduce is not None:
            # Learners without rows take part too: the others wait for their gradients.
            for p in self._parameters:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            self._reduce([p.grad for p in self._parameters if p.grad is not None])
        elif all(p.grad is None for p in self._parameters):
            return None
        norm = float(nn.utils.clip_grad_norm_(self._parameters, self._most))
        # One minibatch with a non-finite gradient must not end a run of days.
        if math.isfinite(norm):
            self.adam.step()
        else:
            self.skipped += 1
        self.adam.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return dict(self.adam.state_dict())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the optimizer."""
        self.adam.load_state_dict(dict(state))


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
