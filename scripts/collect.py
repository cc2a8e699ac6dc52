"""Plays a policy in a game and records what happens."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

from rollout.cli import main
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.signals import leave

if __name__ == "__main__":
    leave(main(collect, CollectConfig, "Plays a policy in a game and records what happens."))
