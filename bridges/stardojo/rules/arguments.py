"""Arguments of commands: the types of a rule's parameters say what each may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from rollout.errors import InputError

MOST = 2**31 - 1
"""The largest whole number of the game."""
Whole: TypeAlias = Annotated[int, Field(ge=-MOST - 1, le=MOST)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
Days: TypeAlias = Annotated[int, Field(ge=0, le=1000)]
Quality: TypeAlias = Literal[0, 1, 2, 4]
Id: TypeAlias = str | int


def checked(name: str, rule: Callable[..., Any], given: Sequence[Any]) -> None:
    """Checks the arguments of a command before anything is changed.

    Args:
        name: of the command.
        rule: its function; the first parameter is the world.
        given: the arguments that follow it.

    Raises:
        InputError: their number, or the type or range of one.
    """
    try:
        signature(rule).bind(None, *given)
    except TypeError as error:
        raise InputError(f"{name}: {error}; got {given!r}") from error
    for (argument, kind), value in zip(_kinds(rule).items(), given, strict=False):
        try:
            kind.validate_python(value)
        except ValidationError as error:
            message = error.errors()[-1]["msg"]
            raise InputError(f"{name}: {argument}: {message}, got {value!r}") from None


@cache
def _kinds(rule: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(rule, include_extras=True)
    strict = ConfigDict(strict=True)
    return {
        each: TypeAdapter(hints[each], config=strict) for each in [*signature(rule).parameters][1:]
    }
