"""Ends processes and removes files that killed runs left on this machine.

    gamut clean --dry-run

Nothing of a live run, of another user or of another container is touched. Every run does the same
when it starts. The exit status is always 0.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rollout.host.processes import sweep_orphans
from rollout.signals import tell


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    dry_run = parser.parse_args(arguments).dry_run
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
