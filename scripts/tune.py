"""Searches for good settings of a training run, by Ray Tune."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

from rollout.cli import main
from rollout.signals import leave
from rollout.train.search import search
from rollout.train.search_config import SearchConfig

if __name__ == "__main__":
    leave(main(search, SearchConfig, "Searches for good settings: grids, random draws, ASHA."))
