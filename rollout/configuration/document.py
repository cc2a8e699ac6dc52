"""YAML as a configuration needs it: no surprises in the values, and a line for every key.

YAML 1.1, which PyYAML reads, turns ``no`` into false, ``1:30`` into 90, ``010`` into 8 and leaves
``1e-3`` a text. Here the scalars are those of the core schema of YAML 1.2: only ``true`` and
``false`` are booleans, there are no dates and no sexagesimals, and scientific notation is a
number: a whole one if its value is whole (``1e6``). A key that is given twice is an error.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from rollout.configuration import packaged
from rollout.configuration.problems import KeyPath
from rollout.errors import ConfigError, nearest
from rollout.files import remote

_INT = re.compile(r"[-+]?[0-9]+(?:_[0-9]+)*|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:_[0-9]+)*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_RESOLVERS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF"),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", re.compile(r"~|null|Null|NULL|"), "~nN\0"),
    ("merge", re.compile(r"<<"), "<"),
)
_EXACT = 2**53  # every whole float up to here is the number that was written
_MOST_DIGITS = 30  # of a whole number in scientific notation; 1e999999999 must not fill the memory


class _Loader(yaml.SafeLoader):
    """Reads the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name and form


class _Dumper(yaml.SafeDumper):
    """Writes what ``_Loader`` reads, and quotes what readers of YAML 1.1 would mistake."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name and form

    def ignore_aliases(self, data: object) -> bool:
        """Says that equal values are written out each time; ``&id001`` helps no reader."""
        return True


def _number(loader: _Loader, node: yaml.ScalarNode) -> int | float:
    text = node.value.replace("_", "").lower()
    if text.startswith(("0o", "0x")):
        return int(text, 0)
    if _INT.fullmatch(text):
        return int(text)
    value = float(text.replace(".inf", "inf").replace(".nan", "nan"))
    if "e" not in text:
        return value
    exact = Decimal(text)
    # Floats are written with a point ("1.0e+16"), so they come back as floats.
    largest = _EXACT if "." in text else 10**_MOST_DIGITS
    if exact.adjusted() <= _MOST_DIGITS and abs(exact) <= largest and exact == int(exact):
        return int(exact)
    return value


def _text(dumper: _Dumper, data: str) -> yaml.ScalarNode:
    old = yaml.SafeLoader.yaml_implicit_resolvers.get(data[:1], [])
    style = "'" if any(pattern.match(data) for _, pattern in old) else None
    if not data.isprintable():
        style = '"'  # PyYAML breaks lines at U+0085 and its like, unless they are escaped
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


def _list(dumper: _Dumper, data: list[Any]) -> yaml.SequenceNode:
    short = not any(isinstance(item, list | dict) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=short)


for _name, _pattern, _first in _RESOLVERS:
    for _class in (_Loader, _Dumper):
        _whole = re.compile(rf"^(?:{_pattern.pattern})$")
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_name}", _whole, ["" if c == "\0" else c for c in _first]
        )
_Loader.add_constructor("tag:yaml.org,2002:int", _number)
_Loader.add_constructor("tag:yaml.org,2002:float", _number)
_Loader.add_constructor("tag:yaml.org,2002:bool", lambda _, node: node.value.lower() == "true")
_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


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


def parse(text: str, source: str) -> Document:
    """Returns the one document in a text.

    Raises:
        ConfigError: it is not YAML, or gives a key twice; the message has the line.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return Document(None, source)
        lines = dict(_lines(node, (), (), source))
        return Document(loader.construct_document(node), source, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        what = " ".join(filter(None, (error.context, error.problem)))
        raise ConfigError(f"{source}{at}: not valid YAML: {what}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply to be read") from error


def _lines(
    node: yaml.Node, path: KeyPath, outer: tuple[yaml.Node, ...], source: str
) -> Iterator[tuple[KeyPath, int]]:
    if any(node is other for other in outer):
        raise ConfigError(f"{source}:{node.start_mark.line + 1}: an alias contains itself")
    outer = (*outer, node)
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = str(key.value)
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if name in seen:
                raise ConfigError(
                    f"{source}:{line}: key {name!r} is given twice, first in line {seen[name]}; "
                    f"remove one"
                )
            seen[name] = line
            yield (*path, name), line
            yield from _lines(value, (*path, name), outer, source)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield (*path, i), item.start_mark.line + 1
            yield from _lines(item, (*path, i), outer, source)


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
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no file {path}. {_neighbours(path)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected text in UTF-8: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    document = parse(text, str(path))
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got a {type(data).__name__}")
    return Document(data, document.source, document.lines)


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
    return key, parse(value, f"--set {key}").data


def dump(data: object) -> str:
    """Returns data as YAML that ``parse`` reads back as the same data."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False,
        width=100,
    )  # fmt: skip
    return text
