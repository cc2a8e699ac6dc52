"""What the keys of a configuration are: for ``--help``, and for naming the nearest one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rollout.configuration.annotations import annotations_of, describe
from rollout.configuration.plugins import REQUIRED, options_of
from rollout.configuration.sections import PluginConfig
from rollout.errors import ContractError, InputError
from rollout.registry import SINGULAR, names


def help_text(model: type[BaseModel], chosen: Mapping[str, str] | None = None) -> str:
    """Returns every key of a configuration with its type, default, unit and meaning.

    Args:
        model: the configuration.
        chosen: plug-ins that are already known, by key, e.g. ``{"bridge": "crafter"}``: only
            their options are listed. Otherwise those of every installed plug-in are.
    """
    chosen = chosen or {}
    blocks = ["keys (--set KEY=VALUE, or the same tree in the --config file):", ""]
    sections: list[str] = []
    for key, field, annotation in _keys(model, ""):
        plugin = _section(annotation)
        if plugin is not None:  # a plug-in: its name is a key, its options come further down
            installed = ", ".join(names(plugin.group)) or "none"
            doc = f"{field.description} Installed: {installed}."
            blocks.append(_entry(f"{key}.name", "text", _default(field), "", doc))
            some = [chosen[key]] if chosen.get(key) in names(plugin.group) else names(plugin.group)
            sections += [_plugin(plugin, key, name) for name in some]
            continue
        unit = field.json_schema_extra
        unit_text = str(unit.get("unit", "")) if isinstance(unit, dict) else ""
        blocks.append(
            _entry(key, describe(annotation), _default(field), unit_text, field.description or "")
        )
    return "\n".join([*blocks, *sections])


def valid_keys(model: type[BaseModel], data: object) -> list[str]:
    """Returns the dotted keys that a configuration may have, sections included.

    Args:
        model: the configuration.
        data: what was given; the options of the plug-ins it names are valid keys too.
    """
    valid = []
    named = plugins_named(model, data)
    for key, _, annotation in _keys(model, "", sections=True):
        valid.append(key)
        plugin = _section(annotation)
        if plugin is not None:
            valid.append(f"{key}.name")
            if named.get(key) in names(plugin.group):
                valid += [f"{key}.{option}" for option in _options(plugin, named[key])]
    return valid


def plugins_named(model: type[BaseModel], data: object) -> dict[str, str]:
    """Returns the plug-ins that raw data names, by dotted key; whether they exist is not asked."""
    named = {}
    for key, _, annotation in _keys(model, ""):
        plugin = _section(annotation)
        if plugin is None:
            continue
        given: Any = data
        for part in key.split("."):
            given = given.get(part) if isinstance(given, Mapping) else None
        default = plugin.model_fields["name"].default
        name = given.get("name", default) if isinstance(given, Mapping) else given
        if isinstance(name, str):
            named[key] = name
    return named


def _keys(
    model: type[BaseModel], prefix: str, *, sections: bool = False
) -> Iterator[tuple[str, FieldInfo, Any]]:
    """Every key in order, with its annotation as it was written."""
    annotations = annotations_of(model)
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        annotation = annotations[name]
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            plugin = issubclass(annotation, PluginConfig)
            if plugin or sections:
                yield key, field, annotation
            if not plugin:
                yield from _keys(annotation, f"{key}.", sections=sections)
        else:
            yield key, field, annotation


def _section(annotation: Any) -> type[PluginConfig] | None:
    known = isinstance(annotation, type) and issubclass(annotation, PluginConfig)
    return annotation if known else None


def _options(plugin: type[PluginConfig], name: str) -> list[str]:
    try:
        return list(options_of(plugin.group, name))
    except (InputError, ContractError):
        return []  # what is wrong with the plug-in is said where it is built


def _plugin(plugin: type[PluginConfig], key: str, name: str) -> str:
    head = f"\n{key}.* of {SINGULAR[plugin.group]} {name!r}:\n"
    try:
        options = options_of(plugin.group, name)
    except (InputError, ContractError) as error:
        return f"{head}\n{textwrap.fill(f'  cannot be used: {error}', 96)}\n"
    entries = [
        _entry(
            f"{key}.{o.name}",
            "|".join(map(str, o.choices)) or describe(o.annotation),
            "required" if o.default is REQUIRED else _show(o.plain(o.default)),
            o.unit,
            o.doc,
        )
        for o in options.values()
    ]
    return "\n".join([head, *entries] if entries else [head, "  no options\n"])


def _entry(key: str, kind: str, default: str, unit: str, doc: str) -> str:
    facts = ", ".join(filter(None, (kind, default, f"unit: {unit}" if unit else "")))
    text = textwrap.fill(doc, 96, initial_indent="      ", subsequent_indent="      ")
    return f"  {key}  ({facts})\n{text}" if doc else f"  {key}  ({facts})"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    return _show(field.get_default(call_default_factory=True, validated_data={}))


def _show(value: object) -> str:
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = value or '""'
    elif isinstance(value, tuple):
        text = str(list(value))
    else:
        text = str(value)
    return f"default {text}"
