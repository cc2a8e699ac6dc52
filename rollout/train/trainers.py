"""What makes the updates of a training: this process alone, or RLlib with Ray actors."""

from __future__ import annotations

import logging
from typing import Any

from rollout.train.plan import TrainPlan

log = logging.getLogger(__name__)


def trainer(plan: TrainPlan) -> Any:
    """Returns what makes the updates of a plan, with its games launching; ``stop`` ends them.

    That is a ``rollout.train.updates.Trainer``, or an algorithm of RLlib where runners or learners
    have processes of their own; Ray must run then.
    """
    if plan.config.runners or plan.config.learners.count:
        log.info("loading RLlib")
        # It takes seconds to import, and Ray decides about authentication when it is imported.
        from rollout.train.rllib.algorithm import build  # noqa: PLC0415

        return build(plan)
    from rollout.train.updates import Trainer  # noqa: PLC0415 - imports torch

    return Trainer(plan)
