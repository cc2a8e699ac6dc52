"""Ranks evaluations of the same protocol, of one or of many people.

    gamut board runs/alice runs/bob
    gamut board runs/alice runs/bob --html board.html

A row for each player or group of players on each set: the score with its interval and what that
covers, lost episodes, retries, calls of models and their price; below, all pairs. Runs that played
other states, another task or by another protocol are refused, with what differs. Exit status: 0, or
2 if the runs cannot be compared.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from rollout.cli import fail
from rollout.errors import ConfigError, InputError
from rollout.files import local_path, write_atomically
from rollout.signals import one_line, tell
from rollout.sweep.board import make_board


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    try:
        if args.html and not (args.html.suffix == ".html" and args.html.parent.is_dir()):
            raise ConfigError(f"--html: expected a file .html in a folder, got {args.html}")
        board = make_board(args.run_dir)
        if args.html:
            write_atomically(args.html, board.page())
            tell(one_line(f"{args.html}: {len(board.rows)} rows, protocol {board.digest}"))
        elif args.json:
            tell(json.dumps(board.as_json(), indent=2))
        else:
            tell(board.report().rstrip("\n"))
    except InputError as error:
        return fail(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "run_dir", type=local_path, nargs="+", metavar="DIR", help="the folder of an evaluation"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--html", type=local_path, metavar="FILE", help="write a page instead of printing a table"
    )
    form.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser
