"""Shows the progress of a running or finished job, from its run directory alone.

    gamut watch runs/first

Ctrl-C ends the display, not the job. Exit status: 0, or 2 if the folder contains no run.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.live import Live

from rollout.errors import InputError
from rollout.files import local_path
from rollout.observe.run_status import read_status
from rollout.observe.view import screen
from rollout.signals import Stopped, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    args = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a log may hold what a terminal cannot show
    console = Console(highlight=False)
    try:
        if console.is_terminal and not args.once:
            _watch(console, args.run_dir, args.every)
        else:
            _print(console, args.run_dir, args.every, once=args.once)
    except InputError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt as error:
        if isinstance(error, Stopped) and error.signum != signal.SIGINT:
            raise
        return 0
    except BrokenPipeError:  # the reader closed the pipe, e.g. head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that nothing is flushed
        return 0
    return 0


def _watch(console: Console, folder: Path, every_s: float) -> None:
    """Shows the job on the terminal until it ends."""
    status = read_status(folder)
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            live.update(screen(status, console, height=console.height), refresh=True)
            if status.ended:
                return
            threading.Event().wait(every_s)
            status = read_status(folder)


def _print(console: Console, folder: Path, every_s: float, *, once: bool) -> None:
    """Prints the job, again and again until it ends."""
    while True:
        status = read_status(folder)
        with console.capture() as captured:
            console.print(screen(status, console))
        print(captured.get(), end="", flush=True)
        if once or status.ended:
            return
        threading.Event().wait(every_s)


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
    parser.add_argument("run_dir", type=local_path, metavar="RUN_DIR", help="the folder of the run")
    parser.add_argument("--once", action="store_true", help="show it once and exit")
    parser.add_argument(
        "--every", type=_seconds, default=2.0, metavar="S", help="seconds between updates (2)"
    )
    return parser
