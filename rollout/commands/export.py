"""Writes the network of a run as a folder for torch or ONNX, and compares it with the original.

    gamut export runs/first --onnx
    gamut export runs/first --torch --best --output first_policy

The folder has the network, a model card and a config.json, as a hub takes it (docs/export.md).
Exit status: 0 done, 2 invalid input, or the network cannot be exported.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rollout.cli import fail
from rollout.errors import DONE, ConfigError, InputError
from rollout.signals import tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    given = _parser().parse_args(arguments)
    from rollout.train.export import export  # noqa: PLC0415 - imports torch, which --help needs not

    try:
        made = export(given.run, given.format, given.output, best=given.best)
    except InputError as error:
        return fail(error)
    except OSError as error:
        place = given.output or given.run
        return fail(ConfigError(f"{place} cannot be written: {error.strerror or error}"))
    tell(
        f"{made.folder}: compared with the original on {made.rows} observations {made.source}; "
        f"the largest difference is {made.difference:.1e} of 1 + the size of a number"
    )
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", help="run directory, or one of its checkpoints")
    formats = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("torch", "a program of torch.export, network.pt2"),
        ("onnx", "ONNX, network.onnx; needs the extra export"),
    ):
        formats.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, help=what
        )
    parser.add_argument("--output", metavar="FOLDER", help="new folder (RUN/export-FORMAT)")
    parser.add_argument(
        "--best",
        action="store_true",
        help="the checkpoint with the best validation, not the newest",
    )
    return parser
