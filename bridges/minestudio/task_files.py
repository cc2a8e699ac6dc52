"""Task files of MineStudio and MCU, read as YAML from a user's folder.

What each asks becomes options of the bridge; nothing is played by the files themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml

STEPS = 600
"""Steps of an episode where a file sets none, as MCU plays them: 30 seconds."""

_SUFFIX = ".yaml"
_COMMANDS = ("custom_init_commands", "commands")
_OPTIONS = {"summon_mobs": "mobs", "init_inventory": "inventory", "rewards": "rewards"}
# No part of the start: those of Hydra, the generator's reasons, and a video for imitation.
_LEFT_OUT = ("defaults", "thinking", "reference_video")
_KEYS = (*_COMMANDS, *_OPTIONS, *_LEFT_OUT, "text", "time_limit")


def read_task(path: Path) -> dict[str, Any]:
    """Returns the contents of a task file as those of a task of ours.

    Raises:
        ConfigError: it cannot be read, or has other keys or values; the message names them.
    """
    data = load_yaml(path)
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: expected keys such as {', '.join(_KEYS[:3])}, got {data!r}")
    for key in data:
        if key not in _KEYS:
            raise ConfigError(f"{path}: {UnknownNameError('key', str(key), _KEYS)}")
    options: dict[str, Any] = {}
    for key in _COMMANDS:
        options.setdefault("commands", []).extend(_texts(path, key, data.get(key)))
    for key, option in _OPTIONS.items():
        if data.get(key):
            options[option] = data[key]
    steps = data.get("time_limit", STEPS)
    if type(steps) is not int or steps < 1:
        raise ConfigError(f"{path}: time_limit: expected a number of steps, got {steps!r}")
    text = str(data.get("text") or path.stem.replace("_", " "))
    return {
        "name": path.stem,
        "goal": text,
        "options": options,
        "limits": {"steps": steps},
        "metadata": {"source": "MineStudio"},
    }


def _texts(path: Path, key: str, value: Any) -> list[str]:
    value = [] if value is None else value
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigError(f"{path}: {key}: expected a list of commands, got {value!r}")
    return value


@dataclass(frozen=True)
class TaskFiles:
    """Makes tasks from the files of a folder; see ``rollout.api.bridge.TaskMaker``.

    Attributes:
        folder: the folder; empty for none.
    """

    folder: str = ""

    def names(self) -> Iterable[str]:
        """Returns the names of the files, without their suffix."""
        if not self.folder:
            return ()
        if not Path(self.folder).expanduser().is_dir():
            raise ConfigError(f"task_files: expected a folder of .yaml files, got {self.folder!r}")
        return sorted(each.stem for each in Path(self.folder).expanduser().glob(f"*{_SUFFIX}"))

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the contents of a task's file; see ``rollout.api.bridge.TaskMaker``."""
        if name not in self.names():
            return None
        document = read_task(Path(self.folder).expanduser() / f"{name}{_SUFFIX}")
        options = {**document["options"], "task_files": self.folder}
        return {**document, "options": options}
