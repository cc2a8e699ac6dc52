"""Trains a policy, on one machine or a Ray cluster."""

from __future__ import annotations

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

from rollout.cli import main
from rollout.signals import leave
from rollout.train.config import TrainConfig
from rollout.train.train import train

if __name__ == "__main__":
    leave(main(train, TrainConfig, "Trains a policy."))
