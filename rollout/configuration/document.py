"""Configurations from YAML documents: reading, replacing keys, checking, writing."""

from __future__ import annotations

import copy
import logging
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rollout.configuration.explain import valid_keys
from rollout.configuration.problems import KeyPath, Problem, explain, joined, problems_of
from rollout.configuration.sections import PluginConfig, ordered_keys
from rollout.errors import ConfigError, nearest
from rollout.files import remote, write_atomically
from rollout.yaml12 import dump_yaml, parse_yaml, read_yaml

log = logging.getLogger(__name__)

M = TypeVar("M", bound=BaseModel)

_PACKAGED = Path("share", "gamut", "configs")  # where a wheel installs configurations


@dataclass(frozen=True)
class Document:
    """A YAML document with the lines of its keys.

    Attributes:
        data: its contents.
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

    A file that comes with Gamut may be given by its name, see ``find_config``.

    Raises:
        ConfigError: there is no such file (the message lists the nearest), it cannot be read, or
            it holds something else.
    """
    if said := remote(str(path)):
        raise ConfigError(said)
    path = find_config(path)
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


def packaged_folder() -> Path | None:
    """Returns the folder of the configurations; None if they were not installed."""
    above = Path(__file__).parents[2]
    places = (above / "configs", above / _PACKAGED, Path(sysconfig.get_path("data"), _PACKAGED))
    return next((place for place in places if (place / "sweeps").is_dir()), None)


def find_config(path: Path) -> Path:
    """Returns a file of the user, or else the configuration of that name that comes with Gamut.

    Only a name without a folder is looked up, e.g. ``train_hunt_sheep.yaml``, or
    ``hunt_sheep_demo.yaml``, which lies in ``sweeps``: a path that does not exist was mistyped. Any
    other path is returned as it is.
    """
    place = packaged_folder()
    if path.exists() or path.name != str(path) or place is None:
        return path
    found = [place / path, *sorted(place.rglob(path.name))]
    return next((each for each in found if each.is_file()), path)


def log_packaged(path: Path) -> None:
    """Logs the file that is used for a path if it comes with Gamut."""
    if (used := find_config(path)) != path:
        log.info("%s is not in this folder; using %s, which comes with Gamut", path, used)


def load_config(
    model: type[M], path: Path | str | None, overrides: Iterable[tuple[str, Any]] = ()
) -> M:
    """Returns the configuration in a file.

    Args:
        model: its class.
        path: a YAML file; None when the overrides say everything.
        overrides: keys and values in the sense of ``parse_set``; later ones win.

    Raises:
        ConfigError: there is no such file, it is not YAML, or a key or a value is wrong. The
            message says all that is wrong, with file, line and dotted key.
    """
    source = Document({}) if path is None else read(Path(path).expanduser())
    return from_document(model, source.override(overrides))


def make_config(model: type[M], data: Mapping[str, Any], *, source: str = "") -> M:
    """Returns the configuration that plain data describes.

    Args:
        model: its class.
        data: nested mappings, as a YAML file would hold them.
        source: their origin, for messages.

    Raises:
        ConfigError: a key or a value is wrong.
    """
    return from_document(model, Document(dict(data), source))


def from_document(model: type[M], source: Document) -> M:
    """Returns the configuration that a YAML document describes; raises as ``load_config``."""
    addresses = getattr(model, "addresses", ())
    elsewhere = [
        Problem(path, said)
        for path, text in _texts(source.data)
        if not text.lower().startswith("http")  # which servers have
        and ".".join(map(str, path)) not in addresses
        and (said := remote(text))
    ]
    if elsewhere:  # under any key: those of plug-ins do not say which of them are paths
        raise _wrong(source, elsewhere)
    try:
        return model.model_validate(source.data)
    except ValidationError as error:
        valid = valid_keys(model, source.data)
        raise _wrong(source, problems_of(error, source.data), valid) from error


def _wrong(source: Document, problems: Sequence[Problem], valid: Sequence[str] = ()) -> ConfigError:
    texts = [(source.place(each.path), explain(each, valid)) for each in problems]
    return ConfigError(joined(": ".join(filter(None, text)) for text in texts))


def _texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yields all texts in plain data, each with its place."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping | list | tuple):
        parts = data.items() if isinstance(data, Mapping) else enumerate(data)
        for key, value in parts:
            yield from _texts(value, (*path, key))


def resolved(config: BaseModel) -> dict[str, Any]:
    """Returns a configuration as plain data, every default and option spelled out."""
    values = config.model_dump(mode="json")
    ordered = {name: values.pop(name) for name in ordered_keys(type(config)) if name in values}
    return {**ordered, **values}


def chosen(config: BaseModel) -> dict[str, Any]:
    """Returns the keys that differ from their defaults, as plain data, and the names of plug-ins.

    A key that is added to a section or to a plug-in, with its default, does not change it.
    """
    if isinstance(config, PluginConfig):
        return {"name": config.name, **config.chosen}
    found: dict[str, Any] = {}
    plain = config.model_dump(mode="json")
    for name, about in type(config).model_fields.items():
        value = getattr(config, name)
        if isinstance(value, BaseModel):
            found |= {name: inner} if (inner := chosen(value)) else {}
        elif about.is_required() or value != about.get_default(call_default_factory=True):
            found[name] = plain[name]
    return found


def write_config(config: BaseModel, path: Path) -> None:
    """Writes a configuration with every default spelled out; loading it gives an equal one.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    head = "# Every key of the run, defaults spelled out. Runs again with --config THIS_FILE.\n"
    write_atomically(path, head + dump_yaml(resolved(config)))
