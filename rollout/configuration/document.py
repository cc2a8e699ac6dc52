"""YAML documents as configurations need them: a line for every key, and keys to replace."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollout.configuration import packaged
from rollout.configuration.problems import KeyPath
from rollout.errors import ConfigError, nearest
from rollout.files import remote
from rollout.yaml12 import parse_yaml, read_yaml


@dataclass(frozen=True)
class Document:
    """A YAML document, and where its keys are.

    Attributes:
        data: what it says.
        source: name of the file, for messages.
        lines: line of each key and list item, from 1.
        overridden: keys that ``--set`` gave, with their values.
    """

    data: Any
    source: str = ""
    lines: Mapping[KeyPath, int] = field(default_factory=dict)
    overridden: tuple[KeyPath, ...] = ()

    def place(self, path: KeyPath) -> str:
        """Returns where a key was written: ``file.yaml:12``, ``--set`` or the file."""
        if not path:
            return self.source
        if not self.source or any(path[: len(key)] == key for key in self.overridden):
            return "--set" if self.overridden else ""
        while path and path not in self.lines:
            path = path[:-1]
        line = self.lines.get(path)
        return f"{self.source}:{line}" if line else self.source

    def override(self, overrides: Iterable[tuple[str, Any]]) -> Document:
        """Returns the document with keys replaced; later ones win."""
        data = copy.deepcopy(self.data)
        paths: list[KeyPath] = []
        for key, value in overrides:
            path = tuple(key.split("."))
            _put(data, path, value)
            paths.append(path)
        return Document(data, self.source, self.lines, tuple(paths))


def _put(data: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for i, part in enumerate(path[:-1]):
        inner = data.get(part)
        if isinstance(inner, str) and i == 0:
            inner = {"name": inner}  # the short form of a plug-in, "bridge: crafter"
        data[part] = inner = dict(inner) if isinstance(inner, Mapping) else {}
        data = inner
    data[path[-1]] = value


def read(path: Path) -> Document:
    """Returns the document in a file, which must be a mapping; an empty file is an empty one.

    A file that comes with Gamut is found by its name, see ``packaged.find``.

    Raises:
        ConfigError: there is no such file (the message lists the nearest), it cannot be read, or
            it holds something else.
    """
    if said := remote(str(path)):
        raise ConfigError(said)
    path = packaged.find(path)
    try:
        found, lines = read_yaml(path)
    except ConfigError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise ConfigError(f"there is no file {path}. {_neighbours(path)}") from error
    data = {} if found is None else found
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got a {type(data).__name__}")
    return Document(data, str(path), lines)


def _neighbours(path: Path) -> str:
    try:
        siblings = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))
    except OSError:
        return f"The folder {path.parent} cannot be read either."
    close = nearest(path.name, siblings)
    if close:
        return f"Nearest: {', '.join(str(path.parent / name) for name in close)}."
    return f"YAML files in {path.parent}: {', '.join(siblings[:20]) or 'none'}."


def parse_set(text: str) -> tuple[str, Any]:
    """Returns the key and the value of ``a.b=value``; the value is YAML.

    Nothing after the ``=`` is the empty text; write ``null`` for null.

    Raises:
        ConfigError: there is no ``=``, the key has an empty part, or the value is not YAML.
    """
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise ConfigError(f"--set {text!r}: expected KEY=VALUE, e.g. seed=3 or bridge.name=crafter")
    if not value.strip():
        return key, ""
    return key, parse_yaml(value, f"--set {key}")[0]
