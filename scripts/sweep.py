"""Trains on more and more states and shows how the gap to held-out states closes."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

from rollout.cli import main
from rollout.signals import leave
from rollout.sweep.config import SweepConfig
from rollout.sweep.sweep import sweep

if __name__ == "__main__":
    leave(
        main(
            sweep,
            SweepConfig,
            "Trains on more and more states and shows how the gap to held-out states closes.",
        )
    )
