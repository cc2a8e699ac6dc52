"""Ends processes and removes files that killed runs left on this machine, or removes old runs.

    gamut clean --dry-run
    gamut clean --older 30d --dry-run
    gamut clean --older 30d runs --yes

Nothing of a live run, of another user or of another container is touched. Every run does the first
when it starts. With --older, whole run directories are removed in which nothing was written for
that time: never one that a process works in, never a folder that is no run, and never one whose
files are not all at the address of its output.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rollout.cli import fail
from rollout.commands.old_runs import remove_old_runs, seconds_of
from rollout.errors import ConfigError, InputError
from rollout.files import local_path
from rollout.host.processes import sweep_orphans
from rollout.signals import tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 2 for wrong arguments, otherwise 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    parser.add_argument(
        "--older", metavar="AGE", help="remove runs that are older, e.g. 30d, 12h or 2w"
    )
    parser.add_argument(
        "folder",
        metavar="DIR",
        nargs="?",
        type=local_path,
        help="where --older looks for runs; default: GAMUT_RUNS_DIR, or the current directory, and "
        "the cache of runs whose output is an address",
    )
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    given = parser.parse_args(arguments)
    try:
        if given.older is not None:
            older_s = seconds_of(given.older)
            remove_old_runs(given.folder, older_s, dry_run=given.dry_run, yes=given.yes)
            return 0
        if given.folder is not None or given.yes:
            raise ConfigError("DIR and --yes are for old runs; add --older, e.g. --older 30d")
    except InputError as error:
        return fail(error)
    return _clean(dry_run=given.dry_run)


def _clean(*, dry_run: bool) -> int:
    """Removes what dead runs left."""
    swept = sweep_orphans(dry_run=dry_run)
    for line in swept.lines():
        tell(line)
    if not swept:
        tell("nothing is left of dead runs")
        return 0
    counts = (
        _count(len(swept.processes), "process", "processes"),
        _count(len(swept.folders), "folder", "folders"),
    )
    tell(("would end and remove " if dry_run else "ended and removed ") + ", ".join(counts))
    return 0


def _count(number: int, one: str, many: str) -> str:
    return f"{number or 'no'} {one if number == 1 else many}"
