"""Reads the valley's content from ``data/*.yaml`` into the types of ``tables``.

``content()`` loads it once per process. Keys that are unknown, missing or twice there, values of
another type and names that lead nowhere are refused with the file and the row.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from bridges.stardojo.valley.dangling import dangling
from bridges.stardojo.valley.tables import (
    Animal,
    Area,
    Building,
    Bundle,
    Channel,
    Content,
    Crop,
    Fertilizer,
    FloorRule,
    FruitTree,
    HelpWanted,
    Item,
    Letter,
    Monster,
    Node,
    Offer,
    Pack,
    Product,
    Project,
    Quest,
    Recipe,
    Resident,
    Shop,
    Upgrade,
    Weapon,
    WildTree,
)
from rollout.errors import ConfigError, nearest

FOLDER = Path(__file__).parent / "data"
_ROWS: Mapping[str, type] = {
    "weapons": Weapon,
    "crops": Crop,
    "fruit_trees": FruitTree,
    "wild_trees": WildTree,
    "fertilizers": Fertilizer,
    "crafting": Recipe,
    "cooking": Recipe,
    "shops": Shop,
    "residents": Resident,
    "animals": Animal,
    "buildings": Building,
    "house": Upgrade,
    "backpack": Pack,
    "upgrades": Upgrade,
    "nodes": Node,
    "monsters": Monster,
    "quests": Quest,
    "letters": Letter,
    "television": Channel,
    "bundles": Bundle,
    "projects": Project,
}
_SINGLE: Mapping[str, type] = {"floor": FloorRule, "help": HelpWanted}
_STRICT = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


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
    for path in sorted(folder.glob("*.yaml")):
        try:
            read = yaml.load(path.read_text(encoding="utf-8"), _Loader)  # noqa: S506  a safe loader
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path.name} is not valid YAML: {error}") from error
        if not isinstance(read, dict):
            raise ConfigError(f"{path.name} must be a mapping of tables")
        if path.stem == "items":
            read = {"items": _items(read)}
        for name, value in read.items():
            if name in tables:
                raise ConfigError(f"{path.name}: the table {name} is there twice")
            tables[name] = _table(f"{path.name}: {name}", name, value)
    return _whole(tables)


class _Loader(yaml.CSafeLoader):
    """Refuses a key that is there twice, which YAML lets pass."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    pairs = [
        (loader.construct_object(k, True), loader.construct_object(v, True)) for k, v in node.value
    ]
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise yaml.YAMLError(f"the key {twice!r} is there twice, line {node.start_mark.line + 1}")
    return made


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _items(read: Mapping[str, Any]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for category, rows in read.items():
        for key, row in rows.items():
            if key in found:
                raise ConfigError(f"items.yaml: {key} is there twice")
            found[key] = _row(f"items.yaml: {key}", Item, [key, category, *_listed(row)])
    return found


def _listed(row: Any) -> list[Any]:
    return row if isinstance(row, list) else [row]


def _table(where: str, name: str, value: Any) -> Any:
    if name == "items":
        return value
    if name == "machines":
        return {key: _rows(f"{where}: {key}", Product, rows) for key, rows in value.items()}
    if name == "areas":
        return tuple(_row(f"{where}: {number}", Area, row) for number, row in enumerate(value))
    if name in _SINGLE:
        return _row(where, _SINGLE[name], value)
    if name == "shops":
        for key, shop in value.items():
            shop["stock"] = _rows(f"{where}: {key}: stock", Offer, shop.get("stock", {}))
    if name == "residents":
        for key, resident in value.items():
            resident["days"] = {
                day: tuple(_place(f"{where}: {key}: {day}", each) for each in places)
                for day, places in resident.get("days", {}).items()
            }
    return _rows(where, _ROWS[name], value) if name in _ROWS else value


def _place(where: str, text: str) -> dict[str, Any]:
    try:
        time, name, x, y = text.split()
    except ValueError as error:
        raise ConfigError(f"{where}: expected 'time map x y', got {text!r}") from error
    return {"time": time, "map": name, "x": x, "y": y}


def _rows(where: str, kind: type, rows: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: _row(f"{where}: {key}", kind, row) for key, row in rows.items()}


def _row(where: str, kind: type, row: Any) -> Any:
    """One row as its type: a mapping of its fields, or a list in their order, then options."""
    values = row if isinstance(row, Mapping) else _named(where, kind, row)
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"])) or kind.__name__
        valid = [each.name for each in dataclasses.fields(kind)]
        hint = nearest(field, valid) if problem["type"] == "unexpected_keyword_argument" else []
        also = f"; did you mean {hint[0]}?" if hint else ""
        raise ConfigError(f"{where}: {field}: {problem['msg']}{also}") from error


def _named(where: str, kind: type, row: Any) -> dict[str, Any]:
    fields = dataclasses.fields(kind)
    listed = list(_listed(row))
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


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(checked(kind, config=_STRICT, frozen=True))


def _whole(tables: dict[str, Any]) -> Content:
    hints = get_type_hints(Content)
    named = {each.name for each in dataclasses.fields(Content)} - {"by_id", "by_name"}
    if unknown := sorted(tables.keys() - named):
        raise ConfigError(f"there is no table {unknown[0]}; nearest: {nearest(unknown[0], named)}")
    if missing := sorted(named - tables.keys()):
        raise ConfigError(f"the tables {', '.join(missing)} are missing")
    for name in named - {"items", "machines", "areas", *_SINGLE, *_ROWS}:
        try:
            tables[name] = TypeAdapter(hints[name], config=None).validate_python(tables[name])
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, (name, *problem["loc"])))
            raise ConfigError(f"{place}: {problem['msg']}") from error
    items = dict(tables["items"])
    for key, weapon in tables["weapons"].items():
        kind = "scythe" if weapon.kind == "scythe" else "weapon"
        items[key] = Item(key, kind, weapon.id, weapon.price)
    tables["items"] = {k: dataclasses.replace(v, name=v.name or k) for k, v in items.items()}
    made = Content(
        **tables, by_id=_by_id(tables["items"].values()), by_name=_by_name(tables["items"])
    )
    if sentence := next(dangling(made), None):
        raise ConfigError(sentence)
    return made


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
