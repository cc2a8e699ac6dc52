"""Lets players play sets of states and reports how well they do."""

if __name__ == "__main__":
    from rollout import early

    early.install()  # signals, for as long as the imports below take

from rollout.cli import main
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.evaluate import evaluate
from rollout.signals import leave

if __name__ == "__main__":
    leave(
        main(
            evaluate,
            EvaluateConfig,
            "Lets players play sets of states and reports how well they do.",
        )
    )
