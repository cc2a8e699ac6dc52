"""Builds plug-ins from options, and knows which options each of them has.

A plug-in is a frozen dataclass, and its fields are its options (see ``rollout.api.option``). The
annotations are enforced here, in the strict sense of JSON: a list may stand for a tuple, a whole
number for a number, a text for a path or an enumeration; ``"3"`` is never a number.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, is_typeddict

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError
from pydantic_core import PydanticSerializationError

from rollout.configuration.annotations import annotations_of
from rollout.configuration.problems import Problem, explain, got, problems_of
from rollout.errors import ConfigError, ContractError, nearest
from rollout.registry import SINGULAR, Group, load_plugin

REQUIRED = dataclasses.MISSING
"""The default of an option that must be given."""


# Infinity and NaN are numbers in YAML, where JSON has null at best.
_CONFIG = ConfigDict(arbitrary_types_allowed=True, ser_json_inf_nan="constants")


@dataclass(frozen=True)
class Option:
    """One option of a plug-in: a field of its dataclass.

    Attributes:
        name: the key.
        annotation: the type its values must have.
        default: value when the key is not given, or ``REQUIRED``.
        doc: what it decides.
        unit: unit of the value.
        choices: the only valid values, if the list is closed.
    """

    name: str
    annotation: Any
    default: Any
    doc: str = ""
    unit: str = ""
    choices: tuple[Any, ...] = ()

    def check(self, value: object) -> tuple[Any, list[Problem]]:
        """Returns the value in the option's type, and what is wrong with it."""
        try:
            checked = self._validate(value)
        except ValidationError as error:
            return None, problems_of(error, value)
        if self.choices and checked not in self.choices:
            message = f"expected one of {', '.join(map(str, self.choices))}, got {got(value)}"
            close = nearest(str(value), map(str, self.choices))
            near = f". Nearest: {', '.join(close)}." if close else ""
            return None, [Problem((), message + near)]
        return checked, []

    def plain(self, value: object) -> Any:
        """Returns a value as YAML can hold it.

        Raises:
            ContractError: the plug-in's option has a value that no file can hold.
        """
        try:
            return self._adapter.dump_python(value, mode="json", warnings=False)
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            raise ContractError(
                f"option {self.name!r}: expected a value that YAML can hold, "
                f"got {got(value)}: {error}"
            ) from error

    def _validate(self, value: object) -> Any:
        try:
            text = json.dumps(value)
        except (TypeError, ValueError):
            # A value from Python code that JSON has no form for, e.g. a Path.
            return self._adapter.validate_python(value, strict=True)
        return self._adapter.validate_json(text, strict=True)

    @property
    def _adapter(self) -> TypeAdapter[Any]:
        annotation = self.annotation
        own = is_typeddict(annotation) or (
            isinstance(annotation, type)
            and (dataclasses.is_dataclass(annotation) or issubclass(annotation, BaseModel))
        )
        try:
            # Types with a configuration of their own accept no other.
            return TypeAdapter(annotation, config=None if own else _CONFIG)
        except (PydanticUserError, PydanticSchemaGenerationError) as error:
            raise ContractError(
                f"option {self.name!r}: expected an annotation that can be checked, "
                f"got {annotation!r}: {error}"
            ) from error


def options_of(group: Group, name: str) -> dict[str, Option]:
    """Returns the options of a plug-in by name, in the order of its fields.

    Raises:
        UnknownNameError: there is no such plug-in.
        PluginImportError: it cannot be imported.
        ContractError: it is not a dataclass, or its annotations cannot be resolved.
    """
    plugin = load_plugin(group, name)
    kind = SINGULAR[group]
    if not dataclasses.is_dataclass(plugin):
        raise ContractError(
            f"{kind} {name!r}: expected a frozen dataclass whose fields are its options, "
            f"got the plain class {plugin.__qualname__}"
        )
    hints = annotations_of(plugin)
    options = {}
    for field in dataclasses.fields(plugin):
        if not field.init or field.name.startswith("_"):
            continue
        if field.name == "name":
            raise ContractError(
                f"{kind} {name!r} has an option called 'name', which is the key that chooses the "
                f"{kind} itself; rename the option"
            )
        default: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        annotation, bounds = hints[field.name], field.metadata.get("bounds")
        if bounds:
            annotation = Annotated[annotation, Field(allow_inf_nan=False, **bounds)]
        options[field.name] = Option(
            field.name,
            annotation,
            default,
            str(field.metadata.get("doc", "")),
            str(field.metadata.get("unit", "")),
            tuple(field.metadata.get("choices", ())),
        )
    return options


def check_options(
    group: Group, name: str, given: Mapping[str, object]
) -> tuple[dict[str, Any], list[Problem]]:
    """Returns every option of a plug-in in its own type, defaults included, and what is wrong.

    Options that are wrong or missing are left out of the result.
    """
    options = options_of(group, name)
    values: dict[str, Any] = {}
    problems = []
    for key in given:
        if key not in options:
            message = f"unknown option of {SINGULAR[group]} {name!r}"
            problems.append(Problem((key,), message, unknown=True))
    for key, option in options.items():
        if key in given:
            checked, wrong = option.check(given[key])
            problems += [problem.under((key,)) for problem in wrong]
            if not wrong:
                values[key] = checked
        elif option.default is REQUIRED:
            problems.append(Problem((key,), f"is missing; {SINGULAR[group]} {name!r} needs it"))
        else:
            values[key] = option.default
    return values, problems


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
    if problems:
        key = SINGULAR[group]
        valid = [f"{key}.{option}" for option in options_of(group, name)]
        raise ConfigError("; ".join(explain(problem.under((key,)), valid) for problem in problems))
    return load_plugin(group, name)(**values)
