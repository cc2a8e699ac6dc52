"""Trains a policy by PPO, on one machine or a Ray cluster."""

from __future__ import annotations

import sys

from rollout.cli import main
from rollout.train.config import TrainConfig
from rollout.train.train import train

if __name__ == "__main__":
    sys.exit(main(train, TrainConfig, "Trains a policy by PPO on RLlib, in columns."))
