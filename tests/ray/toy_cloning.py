"""Behaviour cloning as another package would add it: the test beside this file installs it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rollout.api import option
from rollout.train.batch import OBSERVATION, from_fragment, part


def teacher(position):
    """The move of a scripted expert: one of four, by the quarter of the map."""
    return (1 + (position[..., 0] > 0.5) + 2 * (position[..., 1] > 0.5)).astype(np.int64)


@dataclass(frozen=True)
class Cloning:
    """Imitates the scripted expert in the states that the policy itself visits."""

    extras: ClassVar[frozenset[str]] = frozenset()

    batch: int = option(256, "steps for each update", unit="steps", gt=0)
    max_staleness: int = option(1, "updates that weights may be behind", ge=0)
    lr: float = option(0.02, "learning rate", gt=0)
    epochs: int = option(8, "passes over each batch", gt=0)

    def check(self, fragment_steps: int) -> None:
        """Every length fits."""

    def references(self) -> Mapping[str, str]:
        return {}

    def gather(self, fragment, network, *, reads, steps):
        more = {"label": teacher(fragment.observations["position"])}
        return from_fragment(
            fragment, more, reads=reads, memory_keys=network.memory_keys, steps=steps
        )

    def learner(self, network, *, references, reduce_gradients):
        return CloningLearner(self, network, reduce_gradients)


class CloningLearner:
    def __init__(self, options, network, reduce_gradients):
        import torch

        self._options, self._network, self._reduce = options, network, reduce_gradients
        self._optimizer = torch.optim.Adam(network.parameters(), lr=options.lr)

    def update(self, batch, progress):
        import torch

        valid = np.asarray(batch["valid"])
        seen = {k: torch.from_numpy(v[valid].copy()) for k, v in part(batch, OBSERVATION).items()}
        label = self._network.layout.encode({"move": batch["label"][valid].copy()})
        figures = {"loss": float("nan"), "accuracy": float("nan")}
        for _ in range(self._options.epochs):
            for parameter in self._network.parameters():
                parameter.grad = torch.zeros_like(parameter)
            if len(label):
                logits, _, _ = self._network(seen, {})
                loss = -self._network.distribution(logits).log_prob(label).mean()
                loss.backward()
                right = (logits.argmax(-1) == label[:, 0]).float().mean()
                figures = {"loss": loss.item(), "accuracy": right.item()}
            if self._reduce is not None:
                self._reduce([p.grad for p in self._network.parameters()])
            self._optimizer.step()
        return figures

    def state(self):
        return dict(self._optimizer.state_dict())

    def restore(self, state):
        self._optimizer.load_state_dict(dict(state))
