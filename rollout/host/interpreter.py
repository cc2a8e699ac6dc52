"""The interpreter in which games run: ours, or another with other versions of packages.

In another one NumPy and Gymnasium must be installed, and what the game needs. Gamut is not: the
packages ``rollout`` and that of the bridge are found through links in a folder that is first on its
path, so that none of our own packages are.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rollout.api import Bridge, Environment, HasEnvironment, environment_folder
from rollout.errors import ConfigError
from rollout.host.channel import pack
from rollout.host.frames import column_texts

OLDEST = (3, 11)
"""Of Python, for ``rollout.api``."""

_CHECK_S = 120.0
_CHECK = (
    "import sys\n"
    "sys.stdout.write('%d.%d.%d\\n' % tuple(sys.version_info[:3]))\n"
    "sys.stdout.flush()\n"
    "from rollout.host.child import describe\n"
    "describe()\n"
)
_SHOWN = 300  # characters of an error


@dataclass(frozen=True)
class Interpreter:
    """What was found of the interpreter of some games.

    Attributes:
        path: of its program.
        python: its version.
        packages: versions of all that is installed there, by name.
    """

    path: str
    python: str
    packages: Mapping[str, str]


def interpreter_of(python: str | None, bridge: Bridge) -> Path | None:
    """Returns the interpreter of a game: the configured one, or its bridge's; None for ours.

    Args:
        python: ``host.python`` of the configuration; None for the bridge's choice.
        bridge: recipe of the game.
    """
    if python is not None:
        return Path(python).expanduser().absolute()
    if isinstance(bridge, HasEnvironment):
        return environment_folder(bridge.environment.name) / "bin" / "python"
    return None


def link_packages(folder: Path, bridge: Bridge) -> dict[str, str]:
    """Makes links to the packages of Gamut that a game needs in a folder, if they are not there.

    Returns:
        the environment variables under which another interpreter finds them.

    Raises:
        ConfigError: the bridge is not in a package or module of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in dict.fromkeys(("rollout", type(bridge).__module__.partition(".")[0])):
        module = sys.modules[name]
        places = [*getattr(module, "__path__", ())] or [getattr(module, "__file__", None)]
        if name == "__main__" or places[0] is None:
            raise ConfigError(
                f"{type(bridge).__name__} is defined in {name}, which another interpreter cannot "
                f"import; move it to a package"
            )
        place = Path(places[0])
        with contextlib.suppress(FileExistsError):
            (folder / place.name).symlink_to(place)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, Environment.HOST: sys.executable}


def recipe_for_other(bridge: Any) -> Any:
    """Returns a bridge without what it has computed, for versions of packages other than ours."""
    return replace(bridge)


def check_interpreter(python: Path, bridge: Bridge) -> Interpreter:
    """Returns what an interpreter has for a game; starts it once.

    Raises:
        ConfigError: it does not exist or does not run, is too old, or lacks a package; the message
            says what to do.
    """
    spec = bridge.spec
    made = ""
    if isinstance(bridge, HasEnvironment):
        made = f"gamut env make {bridge.environment.name}"
    where = f"{spec.name} plays in {python} (host.python)"
    if not os.access(python, os.X_OK) or python.is_dir():
        raise ConfigError(
            f"{where}, which is no program"
            + (f"; make it with `{made}`, or set host.python" if made else "")
        )
    with TemporaryDirectory(prefix="gamut-check-") as folder:
        try:
            done = subprocess.run(
                [python, "-c", _CHECK],
                input=pack(recipe_for_other(bridge)),
                env=os.environ | link_packages(Path(folder), bridge),
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{where}, which does not run: {error}") from error
    version, _, described = done.stdout.decode(errors="replace").partition("\n")
    numbers = [int(part) for part in version.split(".") if part.isdigit()]
    if len(numbers) != 3:
        raise ConfigError(f"{where}, which is no Python: it said {version[:_SHOWN]!r}")
    if tuple(numbers[:2]) < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise ConfigError(f"{where}, which is Python {version}; expected {least} or newer")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ConfigError(
            f"{where}, which cannot import what the game needs: {''.join(said)[-_SHOWN:]}; install "
            f"it there" + (f", or make another with `{made}`" if made else "")
        )
    found: dict[str, Any] = json.loads(described)
    if missing := found["missing"]:
        module = any(each.startswith("the module") for each in missing)
        raise ConfigError(
            f"{where}, which lacks {', '.join(missing)}; "
            + (f"make another with `{made}`" if module else "install what is missing")
        )
    if found["columns"] != column_texts(spec):
        raise ConfigError(
            f"{where}, in which it has other columns ({found['columns']}) than here "
            f"({column_texts(spec)}); install the same version of its packages"
        )
    return Interpreter(str(python), version, found["packages"])


def require_program(python: Path) -> None:
    """Checks on the machine of a game that its interpreter is there.

    Raises:
        OSError: it is not.
    """
    if shutil.which(python) is None:
        raise FileNotFoundError(f"there is no interpreter {python} on this machine (host.python)")
