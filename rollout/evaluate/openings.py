"""Records every session of a job that opens test states; each costs a claim some of its worth."""

from __future__ import annotations

import contextlib
import json
import logging
from datetime import UTC, datetime
from pathlib import Path

from rollout.files import LineFile, read_lines
from rollout.observe.run_files import parse

log = logging.getLogger(__name__)

OPENINGS = "test_openings.jsonl"
"""File of a run directory with a line for every session that set out to play test states."""


def note_opening(folder: Path, about: str) -> None:
    """Records that a session opens test states, and logs it.

    Args:
        folder: the run directory.
        about: what is played on them.
    """
    line = {"time": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", "played": about}
    with contextlib.closing(LineFile(folder / OPENINGS)) as file:
        file.cut()  # an incomplete line of a session that was killed
        file.append(json.dumps(line) + "\n")
    log.info(
        "opens test states (session %d of this run that does): choose settings on the "
        "validation states",
        len(openings(folder)),
    )


def openings(folder: Path) -> list[str]:
    """Returns when sessions of a job opened test states, UTC."""
    try:
        lines = list(read_lines(folder / OPENINGS))
    except FileNotFoundError:
        return []
    # A damaged line counts as an opening too.
    return [str((parse(line) or {}).get("time", "at an unknown time")) for line in lines]
