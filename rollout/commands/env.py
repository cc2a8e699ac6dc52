"""Makes the interpreter in which the games of a bridge run.

    gamut env make minestudio

It is made once; made again, if its requirements have changed. Exit status: 0 it is there, 2 invalid
input, nothing was changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock

from rollout.api import Environment, HasEnvironment, environment_folder
from rollout.cli import fail
from rollout.config import build_plugin
from rollout.errors import DONE, ConfigError, InputError
from rollout.files import read_document
from rollout.registry import names
from rollout.signals import tell

_STAMP = "gamut-environment.sha256"
_MAKE_S, _INSTALL_S = 600.0, 3600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        bridge = build_plugin("bridges", asked.name, {})
        if not isinstance(bridge, HasEnvironment):
            raise ConfigError(f"bridge {asked.name} has no interpreter of its own, and needs none")
        folder = environment_folder(asked.name)
        made = make_environment(bridge.environment, folder)
    except InputError as error:
        return fail(error)
    tell(f"{folder / 'bin' / 'python'} {'was made' if made else 'is there already'}")
    tell(f"next: gamut check-bridge {asked.name}")
    return DONE


def make_environment(environment: Environment, folder: Path) -> bool:
    """Makes an interpreter with the packages of its requirements, unless it is there.

    It gets its place when it is complete. A process that asks for it meanwhile waits.

    Args:
        environment: its description.
        folder: where, a venv; one that is there with other requirements is replaced.

    Returns:
        whether it was made.

    Raises:
        ConfigError: uv is missing, or could not make it; what it said is above.
    """
    requirements = read_document(environment.requirements)
    stamp = hashlib.sha256(environment.python.encode() + b"\n" + requirements).hexdigest()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_name(f".{folder.name}.lock")):
        made = folder / _STAMP
        if made.is_file() and read_document(made) == stamp.encode():
            return False
        uv = shutil.which(str(Path(sys.executable).with_name("uv"))) or shutil.which("uv")
        if uv is None:
            raise ConfigError("uv, which makes interpreters, is missing; say pip install uv")
        with TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as draft:
            new = Path(draft) / folder.name
            make = [uv, "venv", "-q", "--relocatable", "--python", environment.python, str(new)]
            _run(make, _MAKE_S, dict(os.environ), _no_python(environment.python))
            # Compiled, since every game is a new process, which may not be allowed to write here.
            install = [uv, "pip", "install", "--no-deps", "--compile-bytecode", "--python"]
            wanted = [str(new / "bin" / "python"), "-r", str(environment.requirements)]
            _run([*install, *wanted], _INSTALL_S, _variables())
            (new / _STAMP).write_text(stamp)
            if folder.exists():
                folder.rename(Path(draft) / "former")
            new.rename(folder)
    return True


def _no_python(version: str) -> str:
    return (
        f". If there is no Python {version} here and uv could not download it: install Python "
        f"{version}, put the folder of the program python{version} first on PATH, and say it again"
    )


def _run(command: list[str], timeout_s: float, variables: dict[str, str], advice: str = "") -> None:
    try:
        done = subprocess.run(command, env=variables, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"`{' '.join(command)}` did not end in {timeout_s:g} s") from error
    if done.returncode:
        raise ConfigError(
            f"`{' '.join(command)}` failed (exit code {done.returncode}); see above{advice}"
        )


def _variables() -> dict[str, str]:
    """Returns the environment of uv: pip's folders of wheels, else the PyTorch without CUDA.

    Nothing is installed that is not in the requirements, and PyTorch with CUDA needs more.
    """
    asked = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=_MAKE_S)
    wheels = told.stdout.strip() or os.environ.get("PIP_FIND_LINKS", "")
    added = {"UV_FIND_LINKS": wheels} if wheels else {"UV_TORCH_BACKEND": "cpu"}
    return added | dict(os.environ)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    make = actions.add_parser("make", help="make the interpreter of a bridge")
    make.add_argument("name", help=f"name of the bridge: {', '.join(names('bridges'))}")
    return parser
