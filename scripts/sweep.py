"""Trains on more and more states and shows how the gap to held-out states closes."""

import sys

from rollout.cli import main
from rollout.evaluate.experiment import sweep
from rollout.evaluate.sweep_config import SweepConfig

if __name__ == "__main__":
    sys.exit(
        main(
            sweep,
            SweepConfig,
            "Trains on more and more states and shows how the gap to held-out states closes.",
        )
    )
