"""The learners of ``appo``, ``dqn``, ``sac`` and ``dagger``.

Their options are those of ``rollout.train.off_policy``, which imports this module.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from rollout.api import Array, Progress
from rollout.train.batch import ACTION, MEMORY, OBSERVATION, part
from rollout.train.gae import vtrace
from rollout.train.gradients import track
from rollout.train.minibatches import Reduce, ReplayLearner, Rows, Sequences
from rollout.train.ppo.learner import PpoLearner

_MAX_GRAD_NORM = 10.0
_STEPS_AT_ONCE = 2048  # limits the memory of a pass without gradients


class DqnLearner(ReplayLearner):
    """Double DQN with the Huber loss."""

    def __init__(self, network: Any, options: Any, reduce_gradients: Reduce) -> None:
        super().__init__(network, options, dataset=options.dataset)
        self._dqn = options
        self._target: Any = self.frozen_copy("target", network)
        self._steps = self.optimizer(
            "q",
            network,
            lr=options.lr,
            max_grad_norm=_MAX_GRAD_NORM,
            reduce_gradients=reduce_gradients,
        )

    def learn(self, rows: Rows | None, progress: Progress) -> dict[str, Tensor]:
        """See ``MinibatchLearner``."""
        o, network = self._dqn, self.network
        falling = min(1.0, progress.share / o.epsilon_share) if o.epsilon_share else 1.0
        network.epsilon.fill_(1.0 + (o.epsilon - 1.0) * falling)
        if rows is None:
            self._steps.step(None)
            return {}
        layout = network.layout
        with torch.no_grad():
            best = layout.pick(network.action_values(rows.following), None)
            following = layout.total(self._target.action_values(rows.following), best)
            target = rows.column("reward")
            target = target + o.gamma * (1.0 - rows.column("terminated")) * following
        value = layout.total(network.action_values(rows.seen), rows.chosen)
        loss = functional.smooth_l1_loss(value, target)
        self._steps.step(loss)
        track(self._target, network, o.target_rate)
        return {"q_loss": loss, "q": value.mean(), "epsilon": network.epsilon.clone()}


class SacLearner(ReplayLearner):
    """Soft actor-critic with two critics, and a weight of the entropy that is learned."""

    def __init__(self, network: Any, options: Any, reduce_gradients: Reduce) -> None:
        super().__init__(network, options, dataset=options.dataset)
        self._sac = options
        self._critics = self.critics(2)
        self._targets = self.frozen_copy("targets", self._critics)
        self._weight = self.kept("entropy", _Scalar())
        shared: dict[str, Any] = {"lr": options.lr, "reduce_gradients": reduce_gradients}
        most = _MAX_GRAD_NORM
        self._actor_steps = self.optimizer("actor", network, max_grad_norm=most, **shared)
        self._critic_steps = self.optimizer("critics", self._critics, max_grad_norm=most, **shared)
        self._weight_steps = self.optimizer("entropy", self._weight, **shared)
        layout = network.layout
        # Densities are those of actions in their own units.
        self._entropy = options.target_entropy * layout.dims + layout.log_volume

    def learn(self, rows: Rows | None, progress: Progress) -> dict[str, Tensor]:
        """See ``MinibatchLearner``."""
        optimizers = (self._critic_steps, self._actor_steps, self._weight_steps)
        if rows is None:
            for each in optimizers:
                each.step(None)
            return {}
        o = self._sac
        log_weight: Tensor = self._weight()
        weight = log_weight.detach().exp()
        with torch.no_grad():
            action, logp = self._sampled(rows.following)
            following = self._targets(rows.following, action).amin(0) - weight * logp
            target = rows.column("reward")
            target = target + o.gamma * (1.0 - rows.column("terminated")) * following
        values = self._critics(rows.seen, rows.chosen)
        q_loss = (values - target).square().mean()
        self._critic_steps.step(q_loss)
        action, logp = self._sampled(rows.seen)
        self._critics.requires_grad_(False)
        policy_loss = (weight * logp - self._critics(rows.seen, action).amin(0)).mean()
        self._actor_steps.step(policy_loss)
        self._critics.requires_grad_(True)
        self._weight_steps.step(-(log_weight * (logp.detach() + self._entropy).mean()))
        track(self._targets, self._critics, o.target_rate)
        return {
            "q_loss": q_loss,
            "q": values.mean(),
            "policy_loss": policy_loss,
            "entropy": -logp.mean(),
            "entropy_weight": weight,
        }

    def _sampled(self, seen: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns encoded actions that the policy chooses, and their log-probabilities."""
        network = self.network
        outputs, _, _ = network(seen, {})
        _, mean, log_std = network.layout.split(outputs)
        action = mean + log_std.exp() * torch.randn_like(mean)
        return action, network.distribution(outputs).log_prob(action)


class _Scalar(nn.Module):
    """A number that is learned; 0 at first."""

    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))

    def forward(self) -> Tensor:
        """Returns the number."""
        return self.value


class DaggerLearner(ReplayLearner):
    """Makes the actions of a teacher more likely.

    The memory of a recurrent teacher begins with zeros in each sequence.
    """

    def __init__(self, network: Any, options: Any, teacher: Any, reduce_gradients: Reduce) -> None:
        super().__init__(network, options)
        self._teacher = teacher
        self._steps = self.optimizer(
            "policy",
            network,
            lr=options.lr,
            max_grad_norm=_MAX_GRAD_NORM,
            reduce_gradients=reduce_gradients,
        )

    def learn(self, rows: Rows | Sequences | None, progress: Progress) -> dict[str, Tensor]:
        """See ``MinibatchLearner``."""
        if rows is None:
            self._steps.step(None)
            return {}
        network = self.network
        distribution = network.distribution(rows.outputs(network))
        if self._teacher is None:
            loss = -rows.mean(distribution.log_prob(rows.chosen))
        else:
            with torch.no_grad():
                outputs = rows.outputs(self._teacher, remembers=False)
            loss = rows.mean(network.distribution(outputs).kl(distribution))
        self._steps.step(loss)
        return {"loss": loss}


class AppoLearner(PpoLearner):
    """Improves a network on steps that older weights played."""

    def update(self, batch: Mapping[str, Array], progress: Progress) -> dict[str, float]:
        """Makes one update; adds ``ratio``, the mean cut probability ratio, to the figures."""
        figures = super().update(batch, progress)
        return {**figures, "ratio": self._ratio}

    def _estimated(
        self, batch: Mapping[str, Array]
    ) -> tuple[Mapping[str, Array], NDArray[np.float32], NDArray[np.float32]]:
        logp, value = self._evaluated(batch)
        valid = np.asarray(batch["valid"])
        cap = self.settings.log_ratio_cap
        ratio = np.where(valid, np.exp(np.minimum(logp - batch["logp"], cap)), 1.0)
        ratio = ratio.astype(np.float32)
        self._ratio = float(np.minimum(ratio[valid], 1.0).mean()) if valid.any() else math.nan
        advantage, target = vtrace(
            batch["reward"],
            value,
            batch["next_value"],
            batch["end"],
            ratio,
            gamma=self.settings.gamma,
            lambda_=self.settings.gae_lambda,
        )
        return {**batch, "logp": logp, "value": value}, advantage, target

    @torch.no_grad()
    def _evaluated(
        self, batch: Mapping[str, Array]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns log-probabilities and values by the network that learns, ``(N, T)`` each."""
        network, device = self.network, self._device
        valid = np.asarray(batch["valid"])
        count, steps = valid.shape
        logp, value = (np.zeros((count, steps), np.float32) for _ in range(2))
        rows = max(1, _STEPS_AT_ONCE // steps)
        for at in range(0, count, rows):
            own = {key: np.array(array[at : at + rows]) for key, array in batch.items()}
            steps_first = {
                key: torch.from_numpy(array).swapaxes(0, 1).to(device)
                for key, array in part(own, OBSERVATION).items()
            }
            memory = {key: torch.from_numpy(a).to(device) for key, a in part(own, MEMORY).items()}
            there = torch.from_numpy(own["valid"])
            # Rows without a step hold zeros, which may be no action.
            choices = network.layout.encode(part(own, ACTION)) * there.unsqueeze(-1)
            first = torch.from_numpy(own["first"]).T.to(device)
            outputs, values, _ = network.unroll(steps_first, memory, first)
            found = network.distribution(outputs.float()).log_prob(
                choices.swapaxes(0, 1).to(device)
            )
            logp[at : at + rows] = found.T.cpu().numpy()
            value[at : at + rows] = values.float().T.cpu().numpy()
        return np.where(valid, logp, np.float32(0.0)), np.where(valid, value, np.float32(0.0))
