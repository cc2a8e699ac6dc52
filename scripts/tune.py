"""Searches for good settings of a training run, by Ray Tune."""

import sys

from rollout.cli import main
from rollout.train.search import search
from rollout.train.search_config import SearchConfig

if __name__ == "__main__":
    sys.exit(main(search, SearchConfig, "Searches for good settings: grids, random draws, ASHA."))
