"""The learners of ``bc``, ``marwil`` and ``iql``: plain torch, no Ray.

Their options are those of ``rollout.train.offline_config``, which imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from rollout.api import Array, Columns, Progress
from rollout.train.batch import ACTION, OBSERVATION, part
from rollout.train.gradients import Optimizer, track
from rollout.train.minibatches import MinibatchLearner, Reduce, Rows, weighted_mean

_MAX_GRAD_NORM = 1.0
_AVERAGED = 1e-2  # share of a minibatch in the moving average of squared advantages


class BcLearner:
    """Makes recorded actions more likely.

    Of the network it trains what the policy uses; the value head keeps its initial weights.
    """

    def __init__(self, network: Any, options: Any, reduce_gradients: Reduce = None) -> None:
        self.network, self._lr, self._reduce = network, options.lr, reduce_gradients
        self._optimizer = Optimizer(
            network.parameters(),
            lr=options.lr,
            max_grad_norm=_MAX_GRAD_NORM,
            reduce_gradients=reduce_gradients,
        )

    def update(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor], progress: Progress
    ) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Learns from sequences; see ``rollout.api.StepLearner``."""
        self.network.train()
        loss, figures, after = self._loss(batch, memory, learns=True)
        self._optimizer.step(loss, lr=self._lr * (1.0 - progress.share))
        return {name: value.item() for name, value in figures.items()}, after

    @torch.no_grad()
    def measure(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor]
    ) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Returns the figures without learning; see ``rollout.api.StepLearner``."""
        self.network.eval()
        _, figures, after = self._loss(batch, memory, learns=False)
        return {name: value.item() for name, value in figures.items()}, after

    def _loss(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor], *, learns: bool
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Returns the loss, the figures and the memory after the sequences."""
        logp, _, after = self._played(batch, memory)
        loss = -weighted_mean(logp, _weight(batch))
        return loss, {"loss": loss}, after

    def _played(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Returns the log-probabilities and values ``(K,)`` of the steps, and the memory."""
        network = self.network
        seen = {key: torch.from_numpy(array) for key, array in part(batch, OBSERVATION).items()}
        choices = network.layout.encode(part(batch, ACTION))
        outputs, values, after = network.unroll(seen, memory, torch.from_numpy(batch["first"]))
        valid = torch.from_numpy(batch["valid"])
        logp = network.distribution(outputs).log_prob(choices)
        kept = {key: array[-1].detach() for key, array in after.items()}
        return logp[valid], values[valid], kept

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return self._optimizer.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        self._optimizer.restore(state)


class MarwilLearner(BcLearner):
    """Makes recorded actions more likely that were followed by a higher return than expected."""

    def __init__(self, network: Any, options: Any, reduce_gradients: Reduce = None) -> None:
        super().__init__(network, options, reduce_gradients)
        self._options = options
        self._square = torch.tensor(1.0)  # moving average of the squared advantages

    def _loss(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor], *, learns: bool
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        o = self._options
        logp, values, after = self._played(batch, memory)
        target = torch.from_numpy(batch["return"])[torch.from_numpy(batch["valid"])]
        advantage, mean = target - values, partial(weighted_mean, weight=_weight(batch))
        if learns:
            square = mean(advantage.detach().square())
            if self._reduce is not None:
                self._reduce([square])
            self._square.lerp_(square, _AVERAGED)
        scaled = advantage.detach() / self._square.sqrt().clamp(min=1e-8)
        weight = (o.beta * scaled).exp().clamp(max=o.max_weight)
        policy_loss, value_loss = -mean(weight * logp), 0.5 * mean(advantage.square())
        figures = {
            "loss": -mean(logp),
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "weight": mean(weight),
        }
        return policy_loss + o.value_coef * value_loss, figures, after

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer, and the scale of advantages."""
        return {"optimizer": super().state(), "square": self._square.clone()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        super().restore(state["optimizer"])
        self._square = state["square"].clone()


class IqlLearner(MinibatchLearner):
    """Learns values of recorded actions, and imitates those that are better than expected."""

    def __init__(self, network: Any, options: Any, reduce_gradients: Reduce = None) -> None:
        super().__init__(network)
        self._options = options
        self._critics = self.critics(2)
        self._targets = self.frozen_copy("targets", self._critics)
        shared: dict[str, Any] = {
            "lr": options.lr,
            "max_grad_norm": _MAX_GRAD_NORM,
            "reduce_gradients": reduce_gradients,
        }
        self._policy_steps = self.optimizer("policy", network, **shared)
        self._critic_steps = self.optimizer("critics", self._critics, **shared)

    def update(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor], progress: Progress
    ) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Learns from steps; see ``rollout.api.StepLearner``."""
        self.network.train()
        figures = self.learn(self.rows(_flat(batch)), progress)
        return {name: value.item() for name, value in figures.items()}, {}

    @torch.no_grad()
    def measure(
        self, batch: Mapping[str, Array], memory: Mapping[str, Tensor]
    ) -> tuple[dict[str, float], dict[str, Tensor]]:
        """Returns the figures without learning; see ``rollout.api.StepLearner``."""
        self.network.eval()
        _, _, figures = self._losses(self.rows(_flat(batch)))
        return {name: value.item() for name, value in figures.items()}, {}

    def learn(self, rows: Rows | None, progress: Progress) -> dict[str, Tensor]:
        """See ``MinibatchLearner``."""
        assert rows is not None  # a share without steps has rows, too
        lr = self._options.lr * (1.0 - progress.share)
        loss, q_loss, figures = self._losses(rows)
        self._policy_steps.step(loss, lr=lr)
        self._critic_steps.step(q_loss, lr=lr)
        track(self._targets, self._critics, self._options.target_rate)
        return figures

    def _losses(self, rows: Rows) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Returns the loss of policy and values, that of the critics, and figures."""
        o, network = self._options, self.network
        outputs, value, _ = network(rows.seen, {})
        logp = network.distribution(outputs).log_prob(rows.chosen)
        with torch.no_grad():
            best = self._targets(rows.seen, rows.chosen).amin(0)
            _, following, _ = network(rows.following, {})
            left = 1.0 - rows.column("terminated")
            target = rows.column("reward") + o.gamma * left * following
        advantage = best - value
        side = torch.where(advantage > 0, o.expectile, 1.0 - o.expectile)
        value_loss = rows.mean(side * advantage.square())
        weight = (o.temperature * advantage.detach()).exp().clamp(max=o.max_weight)
        policy_loss = -rows.mean(weight * logp)
        q_loss = rows.mean((self._critics(rows.seen, rows.chosen) - target).square())
        figures = {
            "loss": -rows.mean(logp),
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "q_loss": q_loss,
            "value": rows.mean(value),
            "weight": rows.mean(weight),
        }
        return policy_loss + value_loss, q_loss, figures


def _weight(batch: Mapping[str, Array]) -> Tensor | None:
    """Returns the weights of the steps of a batch, ``(K,)``, if it has any."""
    return torch.from_numpy(batch["weight"][batch["valid"]]) if "weight" in batch else None


def _flat(batch: Mapping[str, Array]) -> Columns:
    """Returns the steps of sequences ``(T, N, ...)`` as rows."""
    valid = batch["valid"]
    return {key: array[valid] for key, array in batch.items() if key not in ("valid", "first")}
