"""Reads the annotations of classes, and writes types as a reader of a configuration knows them."""

from __future__ import annotations

import enum
import pathlib
import types
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rollout.errors import ContractError

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


def annotations_of(cls: type) -> dict[str, Any]:
    """Returns the resolved annotations of a class by name.

    Raises:
        ContractError: an annotation names something that cannot be found when the program runs.
    """
    try:
        return get_type_hints(cls, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise ContractError(
            f"{cls.__module__}.{cls.__qualname__}: its annotations cannot be resolved ({error}); "
            f"import the types of its fields outside of TYPE_CHECKING"
        ) from error


def describe(annotation: Any) -> str:
    """Returns a type in words: ``int | null``, ``list of text``, ``auto|online``."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _NAMES:
        text = _NAMES[annotation]
    elif origin is Annotated:
        text = describe(arguments[0])
    elif origin is Literal:
        text = "|".join(map(str, arguments))
    elif origin in (Union, types.UnionType):
        text = " | ".join(describe(argument) for argument in arguments)
    elif isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        text = "|".join(str(member.value) for member in annotation)
    else:
        container = origin or annotation
        text = _describe_container(container, arguments) if isinstance(container, type) else ""
    return text or str(annotation)


def _describe_container(container: type, arguments: tuple[Any, ...]) -> str:
    if issubclass(container, Mapping):
        return f"mapping to {describe(arguments[1])}" if len(arguments) == 2 else "mapping"
    if issubclass(container, tuple) and arguments and arguments[-1] is not Ellipsis:
        return f"[{', '.join(map(describe, arguments))}]"
    if issubclass(container, Collection):
        return f"list of {describe(arguments[0])}" if arguments else "list"
    return container.__name__
