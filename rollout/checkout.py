"""Commit of the code, in a checkout and in a job that was sent from one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

COMMIT = "GAMUT_COMMIT"
"""Environment variable of a job: the commit of the code of Gamut that was sent."""
WORKING_COMMIT = "GAMUT_WORKING_COMMIT"
"""Environment variable of a job: the commit of the working directory that was sent."""
_GIT_TIMEOUT_S = 5.0


def commit_of(root: Path) -> str | None:
    """Returns the commit of the code in a folder; None if it is not known.

    A job gets its code without ``.git``, and the commit in the environment variable ``COMMIT``.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    # An environment inside another project's checkout is not a checkout of this project.
    if top is None or Path(top).resolve() != root:
        return os.environ.get(COMMIT) or None
    return _commit(root)


def working_commit(folder: Path | None = None) -> str | None:
    """Returns the commit of the checkout that a folder is in; None if it is not known.

    Args:
        folder: the folder; None for the working directory, which in a job has the commit in the
            environment variable ``WORKING_COMMIT``.
    """
    if folder is None and (known := os.environ.get(WORKING_COMMIT)):
        return known
    return _commit(folder or Path.cwd())


def _commit(root: Path) -> str | None:
    commit = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if commit and changed else commit


def _git(root: Path, *arguments: str) -> str | None:
    program = shutil.which("git")
    if program is None:
        return None
    command = [program, "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
