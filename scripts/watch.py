"""Shows a job on one screen, running or ended, from its run directory alone.

    python scripts/watch.py runs/first

Ctrl-C leaves; the job never notices. Exit status: 0, or 2 if there is no run in the folder.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from rollout.errors import InputError
from rollout.observe.look import look_at
from rollout.observe.view import CLEAR, render


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a log may hold what a terminal cannot show
    terminal = sys.stdout.isatty()
    try:
        while True:
            look = look_at(args.run_dir)
            size = shutil.get_terminal_size()
            text = render(
                look,
                width=size.columns,
                height=size.lines - 1 if terminal else None,
                color=terminal and "NO_COLOR" not in os.environ,
            )
            print((CLEAR if terminal and not args.once else "") + text, flush=True)
            if args.once or look.ended:
                return 0
            threading.Event().wait(args.every)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # whoever reads has had enough, e.g. head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nor is anything flushed
        return 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}; give e.g. 2")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the folder of the run")
    parser.add_argument("--once", action="store_true", help="show it once, and leave")
    parser.add_argument(
        "--every", type=_seconds, default=2.0, metavar="S", help="seconds between looks (2)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
