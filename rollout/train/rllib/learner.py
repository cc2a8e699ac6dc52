"""A Learner that updates on whole batches of columns."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import DEFAULT_MODULE_ID
from torch import Tensor

from rollout.train.batch import env_steps
from rollout.train.checkpoint import find_checkpoint
from rollout.train.plan import TrainPlan
from rollout.train.ppo import PpoLearner, Update, make_optimizer
from rollout.train.rllib.runner import PLAN


def quieten() -> None:
    """Silences what RLlib says of its own inner workings, at length, in this process."""
    for name in ("ray.rllib", "ray.tune", "ray._common.deprecation"):
        logging.getLogger(name).setLevel(logging.ERROR)


class ColumnLearner(PPOTorchLearner):  # type: ignore[misc] # RLlib is untyped
    """Hands whole batches to ``PpoLearner``; RLlib keeps the module, the optimizer, the state.

    Several learners average their gradients before each step. They take the same number of steps
    whatever the size of their shards, so none ever waits for another in vain.
    """

    core: PpoLearner
    _steps = 0  # in this learner's share of the batch

    def build(self) -> None:
        """Builds module and optimizer, and what updates them."""
        quieten()
        plan: TrainPlan = self.config.env_config[PLAN]
        threads = plan.config.learners.threads
        if threads:
            torch.set_num_threads(threads)
        super().build()
        network = self._network()
        self.core = PpoLearner(
            network,
            self._named_optimizers[f"{DEFAULT_MODULE_ID}_default_optimizer"],
            plan.settings(),
            reference=self._reference(plan),
            reduce_gradients=self._average if self.config.num_learners > 1 else None,
        )

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Makes the optimizer; the learning rate of each update comes with the update."""
        ppo = self.config.env_config[PLAN].config.ppo
        network = self._module[module_id].unwrapped().network
        self.register_optimizer(
            module_id=module_id,
            optimizer=make_optimizer(
                network, lr=ppo.lr, eps=ppo.adam_eps, weight_decay=ppo.weight_decay
            ),
            params=list(network.parameters()),
            lr_or_lr_schedule=ppo.lr,
        )

    def update(self, training_data: Any = None, *, how: Update, **kwargs: Any) -> Any:
        """Updates the network on a batch of columns, see ``rollout.train.batch``."""
        training_data.validate()
        training_data.solve_refs()
        self._weights_seq_no += 1
        batch = {k: np.asarray(v) for k, v in training_data.batch[DEFAULT_MODULE_ID].items()}
        self._steps = env_steps(batch)
        for key, value in self.core.update(batch, how).items():
            self.metrics.log_value((DEFAULT_MODULE_ID, key), value, window=1)
        return self.metrics.reduce()

    def weights(self) -> dict[str, Tensor]:
        """Returns the network's tensors, copied to the CPU."""
        return {k: v.detach().cpu().clone() for k, v in self._network().state_dict().items()}

    def memory(self) -> dict[str, Any]:
        """Returns everything an update depends on, beside the weights: the optimizer's state."""
        return dict(self.core.optimizer.state_dict())

    def remember(
        self, weights: Mapping[str, Tensor], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Goes back to saved weights, and to the state of the optimizer where it is given."""
        self._network().load_state_dict(weights)
        if optimizer is not None:
            self.core.optimizer.load_state_dict(dict(optimizer))

    def _network(self) -> Any:
        return self._module[DEFAULT_MODULE_ID].unwrapped().network

    def _reference(self, plan: TrainPlan) -> Any:
        path = plan.config.ppo.reference.checkpoint
        if path is None:
            return None
        network = plan.network()
        network.load_state_dict(find_checkpoint(path).weights())
        return network.requires_grad_(False).eval().to(self._device)

    def _average(self, gradients: list[Tensor]) -> None:
        """Averages gradients over the learners, by the steps in their shares, in one message."""
        weight = gradients[0].new_tensor([float(self._steps)])
        flat = torch.cat([*(g.flatten() * weight for g in gradients), weight])
        torch.distributed.all_reduce(flat)
        flat = flat[:-1] / flat[-1].clamp(min=1.0)
        at = 0
        for gradient in gradients:
            count = gradient.numel()
            gradient.copy_(flat[at : at + count].view_as(gradient))
            at += count
