"""Arguments that several commands of ``gamut dataset`` have."""

from __future__ import annotations

import argparse

from rollout.files import local_path


def add_dataset(command: argparse.ArgumentParser) -> None:
    """Adds the dataset to read, ``dir``."""
    command.add_argument("dir", type=local_path, help="the dataset, or its run directory")


def add_filter(command: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Adds a condition on episodes, ``filter``; empty for all."""
    command.add_argument(
        "--filter",
        metavar="CONDITION",
        default="",
        required=required,
        help="only these episodes, e.g. 'success and return > 5' (docs/dataset.md)",
    )


def add_out(command: argparse.ArgumentParser, what: str = "the new dataset") -> None:
    """Adds the folder to make, ``out``, which must not exist."""
    command.add_argument(
        "--out", metavar="NEW", type=local_path, required=True, help=f"{what}; it must not exist"
    )
