"""Plays a policy in a game and records what happens."""

import sys

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig

if __name__ == "__main__":
    sys.exit(main(collect, CollectConfig, "Plays a policy in a game and records what happens."))
