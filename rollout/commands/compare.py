"""Compares evaluations, or trainings with validations, pair by pair.

    gamut compare runs/ppo/evaluation runs/appo/evaluation
    gamut compare runs/ppo runs/appo          # the newest validations of two trainings
    gamut compare runs/evaluation             # the players of one evaluation

Scores are paired by state and episode seed, on each set of states and on all sets together; the
p-values are corrected for the number of comparisons (Holm). Runs that played other states, another
task or by another protocol are refused, with what differs. Exit status: 0, or 2 if the runs cannot
be compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rollout.cli import fail
from rollout.errors import InputError
from rollout.files import local_path
from rollout.signals import tell
from rollout.sweep.comparing import compare_runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        tell(compare_runs(args.run_dir).report().rstrip("\n"))
    except InputError as error:
        return fail(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "run_dir",
        type=local_path,
        nargs="+",
        metavar="RUN_DIR",
        help="the folder of an evaluation, or of a training with validations",
    )
    return parser
