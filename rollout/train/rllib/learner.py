"""A Learner that updates on whole batches of columns, and calls of learners, which may die."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import ray
import torch
from ray.exceptions import GetTimeoutError, RayActorError, RayError
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.learner.torch.torch_learner import TorchLearner
from torch import Tensor

from rollout.api import Learner, Progress
from rollout.errors import RayUnavailable, no_exit
from rollout.host.ray_watch import lost_after, require_ray
from rollout.threads import set_threads
from rollout.train.batch import env_steps
from rollout.train.plan import TrainPlan
from rollout.train.updates import ALGORITHM, tensors_of

PLAN = "gamut_plan"
"""Key of RLlib's ``env_config`` that contains the plan."""

_PING_S = 5.0  # deadline of a learner that lives


def quieten() -> None:
    """Silences RLlib's verbose internal messages in this process."""
    for name in ("ray.rllib", "ray.tune", "ray._common.deprecation"):
        logging.getLogger(name).setLevel(logging.ERROR)


class ColumnLearner(TorchLearner):  # type: ignore[misc] # RLlib is untyped
    """Passes whole batches to the algorithm's learner; RLlib keeps the module and the state.

    Several learners average their gradients before each step. They take the same number of steps,
    whatever the size of their shards, so they never wait for each other in vain.
    """

    core: Learner
    _steps = 0  # steps in this learner's share of the batch

    def build(self) -> None:
        """Builds the module and the algorithm's learner."""
        quieten()
        plan: TrainPlan = self.config.env_config[PLAN]
        set_threads(plan.config.learners.threads)
        super().build()
        with no_exit(ALGORITHM):
            self.core = plan.algorithm.learner(
                self._network(),
                references=plan.references(self._device),
                reduce_gradients=self._average if self.config.num_learners > 1 else None,
            )

    def configure_optimizers_for_module(self, module_id: str, config: Any = None) -> None:
        """Does nothing: the algorithm has its own optimizers."""

    def compute_loss_for_module(self, **kwargs: Any) -> Any:
        """Is never called: the algorithm computes its own loss."""
        raise NotImplementedError

    def update(self, training_data: Any = None, *, progress: Progress, **kwargs: Any) -> Any:
        """Updates the network on a batch of columns; returns the figures of the update.

        See ``rollout.train.batch`` for the columns.
        """
        training_data.validate()
        training_data.solve_refs()
        self._weights_seq_no += 1
        batch = {k: np.asarray(v) for k, v in training_data.batch[DEFAULT_MODULE_ID].items()}
        self._steps = env_steps(batch)
        with no_exit(ALGORITHM):
            return self.core.update(batch, progress)

    def weights(self) -> dict[str, Tensor]:
        """Returns the network's tensors, copied to the CPU."""
        return tensors_of(self._network())

    def remember(
        self, weights: Mapping[str, Tensor], optimizer: Mapping[str, Any] | None = None
    ) -> None:
        """Restores saved weights, and the state of the optimizer if it is given."""
        self._network().load_state_dict(weights)
        if optimizer is not None:
            self.core.restore(optimizer)

    def _get_optimizer_state(self) -> dict[str, Any]:
        return self.core.state()

    def _set_optimizer_state(self, state: Mapping[str, Any]) -> None:
        self.core.restore(state)

    def _network(self) -> Any:
        return self._module[DEFAULT_MODULE_ID].unwrapped().network

    def _average(self, gradients: list[Tensor]) -> None:
        """Averages gradients over the learners, weighted by their steps, in one message."""
        weight = gradients[0].new_tensor([float(self._steps)])
        flat = torch.cat([*(g.flatten() * weight for g in gradients), weight])
        torch.distributed.all_reduce(flat)
        flat = flat[:-1] / flat[-1].clamp(min=1.0)
        at = 0
        for gradient in gradients:
            count = gradient.numel()
            gradient.copy_(flat[at : at + count].view_as(gradient))
            at += count


@contextlib.contextmanager
def learner_calls(group: Any) -> Iterator[None]:
    """Reports the death of a learner in calls of RLlib's ``LearnerGroup``.

    Raises:
        RayUnavailable: a learner in its own process has died, or Ray.
    """
    if group.is_remote:
        require_ray(head=False)
    try:
        yield
    except RayError as error:
        what = lost_after(error) or _dead_learner(group)
        if not what:
            raise
        raise RayUnavailable(what) from error


def first_answer(answers: Iterable[Any]) -> Any:
    """Returns the answer of the first learner.

    Raises:
        RayUnavailable: no learner is left.
        Exception: its answer was an error, which RLlib returns.
    """
    for answer in answers:
        found = answer.get()
        if isinstance(found, Exception):
            raise found
        return found
    raise RayUnavailable("no learner is left")


def _dead_learner(group: Any) -> str:
    """Returns the number of a dead learner and its cause of death; empty if all live."""
    for number, learner in enumerate(group._workers or []):
        try:
            ray.get(learner.__ray_ready__.remote(), timeout=_PING_S)
        except RayActorError as error:
            how = str(error).partition("Worker exit type: ")[2].split(".")[0].strip()
            return f"learner {number} has died: {how or type(error).__name__}"
        except GetTimeoutError:
            continue
    return ""
