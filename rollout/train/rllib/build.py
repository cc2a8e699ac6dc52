"""Builds the algorithm of a plan."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

from rollout.host.processes import owned_workdir, remove_workdir
from rollout.train.plan import TrainPlan
from rollout.train.rllib.algorithm import ColumnAlgorithm, config_of
from rollout.train.rllib.learner import quieten


def build(plan: TrainPlan) -> ColumnAlgorithm:
    """Returns the algorithm, with its games launching; ``stop`` ends them."""
    quieten()
    return _Homeless(config=config_of(plan))


class _Homeless(ColumnAlgorithm):
    """Used outside Tune: its folder is removed, because the run directory has everything."""

    def _setup_logdir(self) -> None:
        self._logdir = str(owned_workdir("gamut-train-"))
        self._remove = weakref.finalize(self, remove_workdir, Path(self._logdir))

    def log_result(self, result: Any) -> None:
        """Writes no RLlib files, which took longer than a small update."""

    def cleanup(self) -> Any:
        """Ends runners and learners, and removes the folder."""
        super().cleanup()
        self._remove()
