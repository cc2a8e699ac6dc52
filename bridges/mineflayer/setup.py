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
from collections.abc import Mapping, Sequence
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
from bridges.mineflayer.viewer_process import BUILT, VIEWER
from rollout.errors import ConfigError, InputError

_FILES = ("package.json", "package-lock.json", ".npmrc")
_LOCK = ".node_modules.lock"
_BESIDE = ".node_modules-"
_LAST_LINES = 15
_QUIET = ("--no-audit", "--no-fund", "--loglevel=error")
_COMPILES = (
    "{names} is compiled here, which takes a C++ compiler, make, pkg-config and headers of X and "
    "OpenGL; Debian: apt-get install build-essential pkg-config libx11-dev libxext-dev libxi-dev "
    "libgl1-mesa-dev libglu1-mesa-dev libglew-dev"
)


def install(
    game: Path = GAME,
    *,
    command: Sequence[str] | None = None,
    build: Sequence[str] = (),
    timeout_s: float = 1800.0,
) -> bool:
    """Installs the packages that the lock file names, unless they are installed.

    A process that starts during another installation waits for it, and finds the packages
    installed.

    Args:
        game: folder with the lock file.
        command: called with ``ci`` and its options; Node's npm when None.
        build: packages whose install scripts are run; no others are.
        timeout_s: seconds for the installation, and again for the builds.

    Returns:
        whether something was installed.

    Raises:
        ConfigError: Node is missing, or the packages cannot be installed; the message ends with the
            last lines of npm.
    """
    with FileLock(game / _LOCK, timeout=2 * timeout_s):
        if not packages_problem(game):
            return False
        command = npm(find_node()) if command is None else command
        beside = Path(tempfile.mkdtemp(prefix=_BESIDE, dir=game))
        try:
            for name in _FILES:
                if (game / name).exists():
                    shutil.copy2(game / name, beside / name)
            _npm(command, ["ci", "--ignore-scripts", *_QUIET], beside, timeout_s)
            if build:
                _build(command, build, beside, timeout_s)
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


def _build(command: Sequence[str], names: Sequence[str], folder: Path, timeout_s: float) -> None:
    # From source, with the headers that are part of Node: what npm would download instead is not in
    # the lock file. ANGLE's build calls "python".
    env = {"npm_config_build_from_source": "true", "JOBS": "max"}
    root = find_node().program.resolve().parents[1]
    if (root / "include/node/node.h").exists():
        env["npm_config_nodedir"] = str(root)
    try:
        _npm(command, ["rebuild", *names, "--foreground-scripts", *_QUIET], folder, timeout_s, env)
    except ConfigError as error:
        raise ConfigError(f"{error}\n{_COMPILES.format(names=', '.join(names))}") from error


def _npm(
    command: Sequence[str],
    told: Sequence[str],
    folder: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> None:
    # Npm's script looks for "node" on the PATH, where an older one may be first.
    first = [str(Path(command[0]).parent), str(Path(sys.executable).parent)]
    path = os.pathsep.join([*first, os.environ.get("PATH", "")])
    try:
        run = subprocess.run(
            [*command, *told],
            cwd=folder,
            env={**os.environ, "PATH": path, **(env or {})},
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
    parser.add_argument(
        "--viewer",
        action="store_true",
        help="those of renderer=prismarine instead: about 900 MB, and gl is compiled",
    )
    chosen = parser.parse_args(arguments)
    extra: dict[str, Any] = {"game": VIEWER, "build": BUILT} if chosen.viewer else {}
    try:
        fresh = (install_shared if chosen.shared else install)(timeout_s=chosen.timeout, **extra)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    program = VIEWER if chosen.viewer else GAME
    folder = (shared_game(program) if chosen.shared else program) / "node_modules"
    sys.stdout.write(f"{'installed' if fresh else 'already installed'}: {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
