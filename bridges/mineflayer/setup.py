"""Installs the packages of the game: ``python -m bridges.mineflayer.setup``.

They are installed into a temporary folder that is renamed when it is complete, so that no game ever
sees an incomplete installation, and an interruption leaves the former packages unchanged.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from bridges.mineflayer.node import (
    GAME,
    STAMP,
    WHERE,
    find_node,
    lock_digest,
    npm,
    packages_problem,
    shared_game,
)
from rollout.errors import ConfigError, InputError

_FILES = ("package.json", "package-lock.json", ".npmrc")
_LOCK = ".node_modules.lock"
_BESIDE = ".node_modules-"
_LAST_LINES = 15
_QUIET = ("--no-audit", "--no-fund", "--loglevel=error")


def install(
    game: Path = GAME,
    *,
    command: Sequence[str] | None = None,
    timeout_s: float = 1800.0,
) -> bool:
    """Installs the packages that the lock file names, unless they are installed.

    A process that starts during another installation waits for it, and finds the packages
    installed.

    Args:
        game: folder with the lock file.
        command: called with ``ci`` and its options; Node's npm when None.
        timeout_s: seconds for the installation.

    Returns:
        whether something was installed.

    Raises:
        ConfigError: Node is missing, or the packages cannot be installed; the message ends with the
            last lines of npm.
    """
    with FileLock(game / _LOCK, timeout=timeout_s):
        if not packages_problem(game):
            return False
        command = npm(find_node()) if command is None else command
        beside = Path(tempfile.mkdtemp(prefix=_BESIDE, dir=game))
        try:
            for name in _FILES:
                if (game / name).exists():
                    shutil.copy2(game / name, beside / name)
            _npm(command, ["ci", "--ignore-scripts", *_QUIET], beside, timeout_s)
            (beside / "node_modules" / STAMP).write_text(lock_digest(game) + "\n")
            _into_place(game, beside)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return True


def install_shared(game: Path = GAME, **how: Any) -> bool:
    """Installs them in the folder that all checkouts with this lock file share; see ``install``."""
    shared = shared_game(game)
    shared.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if (game / name).exists():
            shutil.copy2(game / name, shared / name)
    return install(shared, **how)


def _npm(
    command: Sequence[str],
    arguments: Sequence[str],
    folder: Path,
    timeout_s: float,
) -> None:
    # Npm's script looks for "node" on the PATH, where an older one may be first.
    first = [str(Path(command[0]).parent), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*first, os.environ.get("PATH", "")])
    try:
        run = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"npm did not come to an end within {timeout_s:g} s; check the way to its registry, "
            f"and run it again"
        ) from error
    except OSError as error:
        raise ConfigError(f"npm could not be started ({command[0]}): {error}") from error
    if run.returncode or not (folder / "node_modules").is_dir():
        last = "\n".join(run.stdout.strip().splitlines()[-_LAST_LINES:])
        raise ConfigError(f"npm ended with exit status {run.returncode}:\n{last}")


def _into_place(game: Path, beside: Path) -> None:
    modules, former = game / "node_modules", beside / "former"
    if modules.exists():
        modules.rename(former)
    try:
        (beside / "node_modules").rename(modules)
    except OSError:
        if former.exists():
            former.rename(modules)
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status of the command: 0, or 2 with the reason on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m bridges.mineflayer.setup",
        description="Installs npm packages of the Mineflayer bridge: the game's, about 500 MB.",
    )
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds it may take")
    parser.add_argument(
        "--shared",
        action="store_true",
        help=f"for all checkouts and jobs of this user: into ${WHERE}, else the user's cache",
    )
    chosen = parser.parse_args(arguments)
    try:
        fresh = (install_shared if chosen.shared else install)(timeout_s=chosen.timeout)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    folder = (shared_game() if chosen.shared else GAME) / "node_modules"
    sys.stdout.write(f"{'installed' if fresh else 'already installed'}: {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
