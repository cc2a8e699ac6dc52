"""Reads the valley's content from ``data/valley/*.yaml`` into the types of ``tables``.

``content()`` loads it once per process. Keys that are unknown, missing or twice there, values of
another type and names that lead nowhere are refused with the file and the row.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from bridges.stardojo.rules.names import Names
from bridges.stardojo.rules.tables import Content, Item
from rollout.errors import ConfigError, nearest
from rollout.yaml12 import load_yaml

FOLDER = Path(__file__).parents[1] / "data" / "valley"
_STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
_DERIVED = {"by_id", "by_name"}  # of no file
_TEXT_ROWS = ("Place",)  # types whose rows are a text of their fields


@cache
def content() -> Content:
    """Returns the content of the valley, loaded at the first call."""
    return load(FOLDER)


def load(folder: Path) -> Content:
    """Returns the content of a folder.

    Raises:
        ConfigError: a file is malformed, or names something that is not there.
    """
    tables: dict[str, Any] = {}
    reader, known = _Reader(), _hints(Content).keys() - _DERIVED
    for path in sorted(folder.glob("*.yaml")):
        read = load_yaml(path, ours=True)
        if not isinstance(read, dict):
            raise ConfigError(f"{path.name} must be a mapping of tables")
        if path.stem == "items":
            read = {"items": _items(read)}
        for name, value in read.items():
            if name in tables:
                raise ConfigError(f"{path.name}: the table {name} is there twice")
            if name not in known:
                near = nearest(name, known)
                raise ConfigError(f"{path.name}: there is no table {name}; nearest: {near}")
            tables[name] = reader.table(f"{path.name}: {name}", _hints(Content)[name], value)
    if missing := sorted(known - tables.keys()):
        raise ConfigError(f"the tables {', '.join(missing)} are missing")
    return _whole(tables, reader.named)


def _items(read: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for category, rows in read.items():
        for key, row in rows.items():
            if key in found:
                raise ConfigError(f"items.yaml: {key} is there twice")
            found[key] = [key, category, *(row if isinstance(row, list) else [row])]
    return found


class _Reader:
    """Reads values as their types say.

    Attributes:
        named: the names that were read: where, what they name, and the text.
    """

    def __init__(self) -> None:
        self.named: list[tuple[str, Names, str]] = []

    def table(self, where: str, hint: Any, value: Any) -> Any:
        """Returns a table, checked."""
        return _checked(where, TypeAdapter(hint), self._read(where, hint, value))

    def _read(self, where: str, hint: Any, value: Any) -> Any:
        """Returns a value with rows of ``tables`` in it; other types are checked later."""
        origin, args = get_origin(hint), get_args(hint)
        if origin is Annotated and isinstance(value, str) and value:
            self.named.append((where, args[1], value))
        elif origin in (Union, UnionType):
            return self._read(where, args[0], value)
        elif dataclasses.is_dataclass(hint):
            return self._row(where, hint, value)
        elif origin is Mapping and isinstance(value, Mapping):
            keys = [self._read(where, args[0], key) for key in value]
            pairs = zip(keys, value.values(), strict=True)
            return {key: self._read(f"{where}: {key}", args[1], each) for key, each in pairs}
        elif origin is tuple and isinstance(value, list):
            kinds = args[:1] * len(value) if args[-1] is ... else args
            if len(kinds) == len(value):
                return tuple(map(self._read, [where] * len(kinds), kinds, value))
        return value

    def _row(self, where: str, kind: Any, row: Any) -> Any:
        """One row as its type: a mapping of its fields, or a list in their order, then options."""
        values = row if isinstance(row, Mapping) else _by_field(where, kind, row)
        known = _hints(kind)
        values = {
            key: self._read(f"{where}: {key}", known.get(key), each) for key, each in values.items()
        }
        return _checked(where, _adapter(kind), values, list(known))


def _by_field(where: str, kind: Any, row: Any) -> dict[str, Any]:
    fields = dataclasses.fields(kind)
    text = isinstance(row, str) and kind.__name__ in _TEXT_ROWS
    listed = row.split() if text else list(row) if isinstance(row, list) else [row]
    needed = sum(
        each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        for each in fields
    )
    options = listed.pop() if len(listed) > needed and isinstance(listed[-1], Mapping) else {}
    if not needed <= len(listed) <= len(fields):
        names = ", ".join(each.name for each in fields[:needed])
        raise ConfigError(f"{where}: expected {names}, then options; got {row!r}")
    named = {each.name: value for each, value in zip(fields, listed, strict=False)}
    if twice := named.keys() & options.keys():
        raise ConfigError(f"{where}: {', '.join(sorted(twice))} is there twice")
    return named | dict(options)


def _checked(where: str, kind: TypeAdapter[Any], values: Any, names: Iterable[str] = ()) -> Any:
    try:
        return kind.validate_python(values)
    except ValidationError as error:
        unknown = "unexpected_keyword_argument"  # it is why another one is missing
        problem = min(error.errors(), key=lambda each: each["type"] != unknown)
        field = ".".join(map(str, problem["loc"]))
        hint = nearest(field, names) if problem["type"] == unknown else []
        also = f"; did you mean {hint[0]}?" if hint else ""
        place = ": ".join(filter(None, (where, field)))
        raise ConfigError(f"{place}: {problem['msg']}{also}") from error


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(checked(kind, config=_STRICT, frozen=True))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _whole(tables: dict[str, Any], named: list[tuple[str, Names, str]]) -> Content:
    items = dict(tables["items"])
    for key, weapon in tables["weapons"].items():
        kind = "scythe" if weapon.kind == "scythe" else "weapon"
        items[key] = Item(key, kind, weapon.id, weapon.price)
    tables["items"] = {k: dataclasses.replace(v, name=v.name or k) for k, v in items.items()}
    for table in ("crafting", "cooking"):
        own = [key for key, recipe in tables[table].items() if not recipe.makes]
        named += [(table, Names("items"), key) for key in own]
    _check(named, {**tables, "": (), "categories": {each.category for each in items.values()}})
    return Content(
        **tables, by_id=_by_id(tables["items"].values()), by_name=_by_name(tables["items"])
    )


def _check(named: list[tuple[str, Names, str]], tables: Mapping[str, Iterable[str]]) -> None:
    """Refuses a name that leads nowhere."""
    kinds = {names for _, names, _ in named}
    valid = {names: {*tables[names.table], *names.words} for names in kinds}
    for where, names, text in named:
        for name in names.parts(text):
            inside = name[1:-1] if name.startswith("<") and name.endswith(">") else ""
            others = set(tables["categories"]) if inside else valid[names]
            if (inside or name) not in others:
                near = ", ".join(nearest(inside or name, others))
                also = f"; nearest: {near}" if near else ""
                raise ConfigError(f"{where}: there is no {inside or name!r}{also}")


def _by_id(items: Iterable[Item]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for item in items:
        if other := found.get(item.qualified):
            raise ConfigError(f"{item.key} and {other.key} have the same id {item.qualified}")
        found[item.qualified] = item
    return found


def _by_name(items: Mapping[str, Item]) -> dict[str, Item]:
    """Items by what is shown; the item whose key it is comes before others of that name."""
    shown = {item.name: item for item in reversed(list(items.values()))}
    return shown | dict(items)
