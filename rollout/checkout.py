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
    # An environment inside another project's checkout is not a checkout of this project.
    commit = _commit(root) if (root / ".git").exists() else None
    return commit or os.environ.get(COMMIT) or None


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
    head, *changed = _status(root) or [""]
    commit = head.removeprefix("# branch.oid ")
    if commit in ("", "(initial)"):
        return None
    return f"{commit}-dirty" if any(not line.startswith("# ") for line in changed) else commit


def _status(root: Path) -> list[str]:
    """Returns what git says of the checkout that a folder is in: its commit, then what changed."""
    program = shutil.which("git")
    if program is None:
        return []
    asked = ("status", "--porcelain=v2", "--branch", "--untracked-files=no")
    command = [program, "--no-optional-locks", "-C", str(root), *asked]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
