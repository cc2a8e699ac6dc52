"""YAML without surprises: the scalars of YAML 1.2, and no key twice.

YAML 1.1, which PyYAML reads, turns ``no`` into false, ``1:30`` into 90, ``010`` into 8 and leaves
``1e-3`` a text. Here the scalars are those of the core schema of YAML 1.2: only ``true`` and
``false`` are booleans, there are no dates and no sexagesimals, and scientific notation is a
number: a whole one if its value is whole (``1e6``). A key that is given twice is an error.
Every YAML file is read here: configurations, tasks, prompts, prices, the tables of games.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from rollout.errors import ConfigError
from rollout.files import read_document

Lines = dict[tuple[str | int, ...], int]
"""Line of each key and list item, from 1."""

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
_MOST_VALUES = 1_000_000  # with those that aliases repeat; ten lines of them can stand for 10**10
_MOST_LEVELS = 100  # of lists and mappings within one another
_MOST_DIGITS = 30  # of a whole number in scientific notation; 1e999999999 must not fill the memory


class _Loader(yaml.SafeLoader):
    """Reads the scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name and form


class _Fast(yaml.CSafeLoader):
    """Reads the same several times faster; its stack overflows where a file nests very deeply."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name and form


class _Dumper(yaml.SafeDumper):
    """Writes what ``_Loader`` reads, and quotes what readers of YAML 1.1 would mistake."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name and form

    def ignore_aliases(self, data: object) -> bool:
        """Returns True, so that equal values are written out each time, without ``&id001``."""
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
    for _class in (_Loader, _Fast, _Dumper):
        _whole = re.compile(rf"^(?:{_pattern.pattern})$")
        _class.add_implicit_resolver(
            f"tag:yaml.org,2002:{_name}", _whole, ["" if c == "\0" else c for c in _first]
        )
for _reader in (_Loader, _Fast):
    _reader.add_constructor("tag:yaml.org,2002:int", _number)
    _reader.add_constructor("tag:yaml.org,2002:float", _number)
    _reader.add_constructor("tag:yaml.org,2002:bool", lambda _, node: node.value.lower() == "true")
_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def parse_yaml(text: str, source: str, *, ours: bool = False) -> tuple[Any, Lines]:
    """Returns the one document in a text, and the lines of its keys.

    Args:
        text: the text.
        source: name of the file, for messages.
        ours: it comes with Gamut, so that a faster parser can be trusted with it.

    Raises:
        ConfigError: it is not YAML, gives a key twice, or repeats or nests too many values; the
            message has the line.
    """
    try:
        loader = (_Fast if ours else _Loader)(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        _measure(node, (), source, {})
        lines = dict(_lines(node, (), source))
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        what = " ".join(filter(None, (error.context, error.problem)))
        raise ConfigError(f"{source}{at}: not valid YAML: {what}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply to be read") from error


def _measure(
    node: yaml.Node, outer: tuple[yaml.Node, ...], source: str, known: dict[int, tuple[int, int]]
) -> tuple[int, int]:
    """Returns the values in a node, with those that aliases repeat, and its levels."""
    line = f"{source}:{node.start_mark.line + 1}"
    if any(node is other for other in outer):
        raise ConfigError(f"{line}: an alias contains itself")
    if not isinstance(node, yaml.CollectionNode):
        return 1, 0
    if len(outer) >= _MOST_LEVELS:
        raise ConfigError(f"{line}: nested too deeply: expected at most {_MOST_LEVELS} levels")
    if id(node) not in known:
        parts = [part for item in node.value for part in (item if type(item) is tuple else (item,))]
        sizes = [_measure(part, (*outer, node), source, known) for part in parts]
        values, levels = 1 + sum(s for s, _ in sizes), 1 + max((n for _, n in sizes), default=0)
        if values > _MOST_VALUES:
            raise ConfigError(
                f"{line}: expected at most {_MOST_VALUES:,} values, got more with those that its "
                f"aliases repeat"
            )
        if levels > _MOST_LEVELS:
            raise ConfigError(f"{line}: nested too deeply: expected at most {_MOST_LEVELS} levels")
        known[id(node)] = values, levels
    return known[id(node)]


def _lines(
    node: yaml.Node, path: tuple[str | int, ...], source: str
) -> Iterator[tuple[tuple[str | int, ...], int]]:
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
            yield from _lines(value, (*path, name), source)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            yield (*path, i), item.start_mark.line + 1
            yield from _lines(item, (*path, i), source)


def load_yaml(path: Path, *, ours: bool = False) -> Any:
    """Returns what a file holds, see ``read_yaml``."""
    return read_yaml(path, ours=ours)[0]


def read_yaml(path: Path, *, ours: bool = False) -> tuple[Any, Lines]:
    """Returns what a file holds, None for an empty one, and the lines of its keys.

    Args:
        path: the file.
        ours: as in ``parse_yaml``.

    Raises:
        ConfigError: it cannot be read, or is not YAML; the message has its name and the line.
    """
    try:
        text = read_document(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected text in UTF-8: {error}") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return parse_yaml(text, str(path), ours=ours)


def dump_yaml(data: object) -> str:
    """Returns data as YAML that ``parse_yaml`` reads back as the same data."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False,
        width=100,
    )  # fmt: skip
    return text
