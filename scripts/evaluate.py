"""Lets players play sets of states and reports how well they do."""

import sys

from rollout.cli import main
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate

if __name__ == "__main__":
    sys.exit(
        main(
            evaluate,
            EvaluateConfig,
            "Lets players play sets of states and reports how well they do.",
        )
    )
