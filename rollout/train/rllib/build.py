"""Builds the algorithm of a plan."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

from rollout.train.plan import TrainPlan
from rollout.train.rllib.algorithm import ColumnPPO, config_of


def build(plan: TrainPlan) -> ColumnPPO:
    """Returns the algorithm, its games being launched; ``stop`` ends them."""
    # RLlib warns of its own deprecated inner workings, at length.
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    return _HomelessPPO(config=config_of(plan))


class _HomelessPPO(ColumnPPO):
    """Outside of Tune: its folder goes away with it, because the run directory has everything."""

    def _setup_logdir(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gamut-train-")
        self._logdir = str(Path(self._folder.name))

    def cleanup(self) -> Any:
        """Ends runners and learners, and removes the folder."""
        super().cleanup()
        self._folder.cleanup()
