"""Descriptions of the keys of a configuration, for ``--help`` and for naming the nearest key."""

from __future__ import annotations

import enum
import pathlib
import textwrap
import types
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from rollout.configuration.plugins import options_of
from rollout.configuration.sections import PluginConfig, default_plugin, ordered_keys
from rollout.errors import ContractError, InputError, UnknownNameError
from rollout.registry import SINGULAR, names

EVERYTHING = "all"
"""Argument of ``--help`` that shows every key."""

_NAMES: dict[Any, str] = {
    int: "int",
    float: "float",
    bool: "true|false",
    str: "text",
    pathlib.Path: "path",
    types.NoneType: "null",
    None: "null",
    Any: "any",
}


def help_text(
    model: type[BaseModel], chosen: Mapping[str, str] | None = None, about: str = EVERYTHING
) -> str:
    """Returns keys of a configuration with their types, defaults, units and meanings.

    Args:
        model: the configuration.
        chosen: plug-ins that are already known, by key, e.g. ``{"bridge": "crafter"}``: only
            their options are listed. Otherwise those of every installed plug-in are.
        about: a section or a key, dotted; empty for the keys outside of sections. Sections in it
            have one line each. ``all`` for every key.

    Raises:
        UnknownNameError: there is no such section or key.
    """
    chosen = chosen or {}
    keys = {key: (field, section) for key, field, section in _keys(model)}
    if about not in {*keys, "", EVERYTHING}:
        raise UnknownNameError("section or key", about, [*keys, EVERYTHING])
    inside = [key for key in keys if about in (EVERYTHING, key.rpartition(".")[0])]
    whole = about == EVERYTHING or not inside  # a key or a plug-in is shown with all it has
    blocks = ["keys (--set KEY=VALUE, or the same tree in the --config file):", ""]
    plugins: list[str] = []
    for key in inside or [about]:
        field, section = keys[key]
        may_be_null = section is not field.annotation
        if section is None or may_be_null:
            blocks.append(_entry(key, field))
        elif issubclass(section, PluginConfig):
            # Its name is a key, its options come further down.
            installed = names(section.group)
            blocks.append(
                _entry(f"{key}.name", field, f" Installed: {', '.join(installed) or 'none'}.")
            )
            some = [chosen[key]] if chosen.get(key) in installed else installed
            plugins += [_plugin(section, key, name) for name in some if whole]
    sections = {} if whole else {key: keys[key] for key in inside if keys[key][1] is not None}
    return "\n".join([*blocks, *plugins, *_folded(sections)])


def _folded(sections: Mapping[str, tuple[FieldInfo, type[BaseModel] | None]]) -> list[str]:
    """Returns lines on sections whose keys are not shown."""
    if not sections:
        return []
    lines = ["", f"sections (--help SECTION shows one, --help {EVERYTHING} every key):", ""]
    width = max(map(len, sections)) + 2
    for key, (field, section) in sections.items():
        doc = field.description
        if section is not None and issubclass(section, PluginConfig):
            kind = SINGULAR[section.group]
            doc = f"Options of the {kind}; --set {key}.name=NAME selects one."
        lines.append(f"  {key:{width}}{doc}")
    return lines


def valid_keys(model: type[BaseModel], data: object) -> list[str]:
    """Returns the dotted keys that a configuration may have, sections included.

    Args:
        model: the configuration.
        data: the given values; the options of the plug-ins that they name are valid keys too.
    """
    valid = []
    named = plugins_named(model, data)
    for key, _, section in _keys(model):
        valid.append(key)
        if section is not None and issubclass(section, PluginConfig):
            valid.append(f"{key}.name")
            # Errors of a plug-in are reported where it is built.
            with suppress(InputError, ContractError):
                options = options_of(section.group, named.get(key, "")).model_fields.values()
                for option in options:
                    valid.append(f"{key}.{option.alias}")
                    if isinstance(kind := option.annotation, type) and issubclass(kind, BaseModel):
                        valid += [f"{key}.{option.alias}.{name}" for name in kind.model_fields]
    return valid


def plugins_named(model: type[BaseModel], data: object) -> dict[str, str]:
    """Returns the plug-ins that raw data names or leaves at their default, by dotted key.

    It is not checked that they exist.
    """
    named = {}
    for key, field, section in _keys(model):
        if section is None or not issubclass(section, PluginConfig):
            continue
        given: Any = data
        for part in key.split("."):
            given = given.get(part) if isinstance(given, Mapping) else None
        default = default_plugin(field)
        if given is None:
            name: Any = default
        else:
            name = given.get("name", default) if isinstance(given, Mapping) else given
        if isinstance(name, str):
            named[key] = name
    return named


def _keys(
    model: type[BaseModel], prefix: str = ""
) -> Iterator[tuple[str, FieldInfo, type[BaseModel] | None]]:
    """Yields every key in order, with its class if it is a section, whose keys follow it."""
    for name in ordered_keys(model):
        field = model.model_fields[name]
        section = _section(field.annotation)
        yield f"{prefix}{name}", field, section
        if section is not None and not issubclass(section, PluginConfig):
            yield from _keys(section, f"{prefix}{name}.")


def _section(annotation: Any) -> type[BaseModel] | None:
    """Returns the class of a section, which may be null; None for another value."""
    kind = annotation
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [each for each in get_args(annotation) if each is not types.NoneType]
        kind = kinds[0] if len(kinds) == 1 else None
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _plugin(plugin: type[PluginConfig], key: str, name: str) -> str:
    head = f"\n{key}.* of {SINGULAR[plugin.group]} {name!r}:\n"
    try:
        options = options_of(plugin.group, name).model_fields.values()
    except (InputError, ContractError) as error:
        return f"{head}\n{textwrap.fill(f'  cannot be used: {error}', 96)}\n"
    entries = [_entry(f"{key}.{option.alias}", option) for option in options]
    return "\n".join([head, *entries] if entries else [head, "  no options\n"])


def _entry(key: str, field: FieldInfo, more: str = "") -> str:
    about: Any = field.json_schema_extra or {}
    unit, choices = about.get("unit", ""), about.get("choices", ())
    kind = "|".join(map(str, choices)) or _describe(field.annotation)
    default = field.get_default(call_default_factory=True, validated_data={})
    if more:  # a plug-in
        kind, default = "text", getattr(default, "name", "")
    default = "required" if field.is_required() else f"default {_show(default)}"
    facts = filter(None, (kind, default, unit and f"unit: {unit}"))
    indent, doc = " " * 6, f"{field.description}{more}"
    text = textwrap.fill(doc, 96, initial_indent=indent, subsequent_indent=indent)
    return f"  {key}  ({', '.join(facts)})" + (f"\n{text}" if doc else "")


def _show(value: object) -> str:
    plain = to_jsonable_python(value, fallback=str)
    if plain is None:
        return "null"
    if isinstance(plain, bool):
        return str(plain).lower()
    return '""' if plain == "" else str(plain)


def _describe(annotation: Any) -> str:
    """Returns a type as text: ``int | null``, ``list of text``, ``auto|online``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _NAMES:
        text = _NAMES[annotation]
    elif origin is Annotated:
        text = _describe(arguments[0])
    elif origin is Literal:
        text = "|".join(map(str, arguments))
    elif origin in (Union, types.UnionType):
        text = " | ".join(_describe(argument) for argument in arguments)
    elif isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        text = "|".join(str(member.value) for member in annotation)
    else:
        container = origin or annotation
        text = _container(container, arguments) if isinstance(container, type) else ""
    return text or str(annotation)


def _container(container: type, arguments: tuple[Any, ...]) -> str:
    if issubclass(container, Mapping):
        return f"mapping to {_describe(arguments[1])}" if len(arguments) == 2 else "mapping"
    if issubclass(container, tuple) and arguments and arguments[-1] is not Ellipsis:
        return f"[{', '.join(map(_describe, arguments))}]"
    if issubclass(container, Collection):
        return f"list of {_describe(arguments[0])}" if arguments else "list"
    return container.__name__
