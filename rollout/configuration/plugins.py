"""Builds plug-ins from options, and describes the options of each plug-in.

A plug-in is a frozen dataclass, and its fields are its options (see ``rollout.api.option``). The
annotations are enforced here, in the strict sense of JSON: a list may stand for a tuple, a whole
number for a number, a text for a path or an enumeration; ``"3"`` is never a number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Annotated, Any, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError, to_json

from rollout.configuration.problems import Problem, explain, got, joined, problems_of
from rollout.errors import ConfigError, ContractError, nearest
from rollout.registry import SINGULAR, Group, load_plugin

_CONFIG = ConfigDict(
    extra="forbid",
    arbitrary_types_allowed=True,
    # Infinity and NaN are numbers in YAML, where JSON has null at best.
    ser_json_inf_nan="constants",
)


def options_of(group: Group, name: str) -> type[BaseModel]:
    """Returns the options of a plug-in as a model, in the order of its fields.

    The alias of a field is the option, which may be called ``copy`` or ``keys``.

    Raises:
        UnknownNameError: there is no such plug-in.
        PluginImportError: it cannot be imported.
        ContractError: it is not a dataclass, or its annotations cannot be resolved or checked.
    """
    return _model(group, name, load_plugin(group, name))


@lru_cache(maxsize=64)
def _model(group: Group, name: str, plugin: type) -> type[BaseModel]:
    """Makes the model of a plug-in once, since pydantic compiles it."""
    kind = SINGULAR[group]
    if not dataclasses.is_dataclass(plugin):
        raise ContractError(
            f"{kind} {name!r}: expected a frozen dataclass whose fields are its options, "
            f"got the plain class {plugin.__qualname__}"
        )
    try:
        hints = get_type_hints(plugin, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise ContractError(
            f"{plugin.__module__}.{plugin.__qualname__}: its annotations cannot be resolved "
            f"({error}); import the types of its fields outside of TYPE_CHECKING"
        ) from error
    keys: dict[str, Any] = {}
    for field in dataclasses.fields(plugin):
        if not field.init or field.name.startswith("_"):
            continue
        if field.name == "name":
            raise ContractError(
                f"{kind} {name!r} has an option called 'name', which is the key that chooses the "
                f"{kind} itself; rename the option"
            )
        annotation, about = hints[field.name], field.metadata
        choices = tuple(about.get("choices", ()))
        if choices:
            annotation = Annotated[annotation, AfterValidator(partial(_one_of, choices))]
        constraints: dict[str, Any] = dict(about.get("bounds", {}))
        if constraints:
            constraints["allow_inf_nan"] = False
        if field.default_factory is not dataclasses.MISSING:
            constraints["default_factory"] = field.default_factory
        elif field.default is not dataclasses.MISSING:
            constraints["default"] = field.default
        extra: Any = {"unit": str(about.get("unit", "")), "choices": list(choices)}
        doc = str(about.get("doc", ""))
        constraints |= {"alias": field.name, "description": doc, "json_schema_extra": extra}
        keys[f"option_{field.name}"] = annotation, Field(**constraints)
    try:
        return create_model(plugin.__name__, __config__=_CONFIG, **keys)
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise ContractError(
            f"{kind} {name!r}: expected options with annotations that can be checked: {error}"
        ) from error


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    """Checks that a value is one of a closed list."""
    if value not in choices:
        close = nearest(str(value), map(str, choices))
        near = f". Nearest: {', '.join(close)}." if close else ""
        raise ValueError(f"expected one of {', '.join(map(str, choices))}, got {got(value)}{near}")
    return value


def plain_options(options: BaseModel) -> dict[str, Any]:
    """Returns options as YAML can hold them; a ContractError if it cannot."""
    try:
        return options.model_dump(mode="json", by_alias=True, warnings=False)
    except (PydanticSerializationError, UnicodeDecodeError) as error:
        raise ContractError(
            f"options of {type(options).__name__}: expected values that YAML can hold: {error}"
        ) from error


def with_options(plugin: type, options: BaseModel) -> Any:
    """Returns a plug-in with options that were checked."""
    return plugin(**{key.removeprefix("option_"): value for key, value in options})


def default_options(group: Group, name: str) -> dict[str, Any]:
    """Returns the options of a plug-in that need not be given, with their defaults, as in YAML."""
    return plain_options(options_of(group, name).model_construct())


def check_options(
    group: Group, name: str, given: Mapping[str, object]
) -> tuple[BaseModel | None, list[Problem]]:
    """Returns every option of a plug-in in its own type, defaults included, or what is wrong."""
    options = options_of(group, name)
    plugin = load_plugin(group, name)
    given, problems = without_removed(given, getattr(plugin, "removed", {}))
    renamed: Mapping[str, str] = getattr(plugin, "renamed", {})
    problems += [
        Problem((k,), f"was renamed to {renamed[k]}") for k in sorted(renamed) if k in given
    ]
    if problems:
        return None, problems
    try:
        try:
            return options.model_validate_json(to_json(given), strict=True), []
        except PydanticSerializationError:
            # Values from Python code that JSON has no form for.
            return options.model_validate(given, strict=True), []
    except ValidationError as error:
        return None, problems_of(error, given, f"{SINGULAR[group]} {name!r}")


def without_removed(
    given: Mapping[str, Any], removed: Mapping[str, object]
) -> tuple[Mapping[str, Any], list[Problem]]:
    """Returns values without keys that no longer exist, so that older configurations open.

    Args:
        given: values by key.
        removed: such keys, each with the only value that is still accepted.

    Returns:
        the values, and a problem for each removed key with another value.
    """
    old = [key for key in sorted(removed) if key in given]
    problems = [
        Problem((key,), f"was removed, and is always {got(removed[key])}; remove the key")
        for key in old
        if given[key] != removed[key]
    ]
    return {key: value for key, value in given.items() if key not in old}, problems


def build_plugin(group: Group, name: str, options: Mapping[str, object]) -> Any:
    """Returns a plug-in with these options.

    Args:
        group: the kind of the plug-in.
        name: the name its distribution registered it under.
        options: values of its fields; the others keep their defaults.

    Raises:
        UnknownNameError: there is no such plug-in.
        PluginImportError: it cannot be imported.
        ConfigError: an option is unknown, missing, or has a wrong value; the message says all.
        InputError: whatever the plug-in itself refuses.
        ContractError: it is not a dataclass, or its annotations cannot be resolved.
    """
    values, problems = check_options(group, name, options)
    if values is None:
        key = SINGULAR[group]
        valid = [f"{key}.{each.alias}" for each in options_of(group, name).model_fields.values()]
        raise ConfigError(joined(explain(problem.under((key,)), valid) for problem in problems))
    return with_options(load_plugin(group, name), values)
