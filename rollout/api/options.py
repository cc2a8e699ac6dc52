"""Options of plug-ins: their declaration, and the code that they name.

Plug-ins are frozen dataclasses whose fields are their options. An option may name a function as
``module:function``, a module or a program.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rollout.errors import ConfigError, located, nearest


def option(
    default: Any,
    doc: str,
    *,
    unit: str = "",
    choices: tuple[Any, ...] = (),
    gt: float | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> Any:
    """Returns a dataclass field with its documentation, its unit and its valid values.

    Bridges, policies, evaluators and algorithms are frozen dataclasses whose fields *are* their
    configuration keys: ``bridge.id`` is the field ``id`` of the bridge. ``--help`` prints the
    documentation, and the check of configurations enforces the valid values.

    Args:
        default: the value when the key is not given; mutable defaults must be a factory.
        doc: one sentence, shown by ``--help``.
        unit: e.g. ``"s"``, ``"steps"``; empty for a pure number or a name.
        choices: the only valid values, if there is a closed list.
        gt: the value must be greater than this; such bounds allow no infinity and no NaN.
        ge: the value must be at least this.
        le: the value must be at most this.
    """
    bounds = {name: b for name, b in (("gt", gt), ("ge", ge), ("le", le)) if b is not None}
    metadata = {"doc": doc, "unit": unit, "choices": choices, "bounds": bounds}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class NamedCode:
    """A module that an option names, or a program.

    Attributes:
        option: name of the option.
        name: dotted name of the module, or path of the program.
        program: whether it is a program.
    """

    option: str
    name: str
    program: bool = False


@runtime_checkable
class NamesCode(Protocol):
    """A recipe with options that name modules to import or programs to start.

    A run directory or a dataset that comes from elsewhere may hold such options, so they are
    checked before the recipe is used; see ``rollout.named_code``.
    """

    def code(self) -> Sequence[NamedCode]:
        """Returns what its options name; imports and starts none of it."""
        ...


def check_function_name(name: str) -> str:
    """Returns a name of the form ``module:function``; imports nothing.

    Raises:
        ConfigError: it has another form.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigError(
            f"expected 'module:function', e.g. my_package.my_module:my_function, got {name!r}"
        )
    return name


def load_function(name: str, arguments: int | None = None) -> Callable[..., Any]:
    """Imports a function by its name.

    Args:
        name: ``module:function``; the function may be an attribute of a class or an object.
        arguments: number of arguments that it must take; None if it does not matter.

    Raises:
        ConfigError: the module or the function does not exist, or it takes other arguments; the
            message names what is nearest.
    """
    module, _, path = check_function_name(name).partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{name!r}: the module {module!r} cannot be imported: {error}; is its folder on "
            f"PYTHONPATH?"
        ) from error
    except (Exception, SystemExit) as error:  # a module may raise anything
        raise ConfigError(
            f"{name!r}: the module {module!r} cannot be imported: "
            f"{located(type(error).__name__, str(error), error)}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            close = nearest(part, vars(found)) if hasattr(found, "__dict__") else []
            hint = f" Nearest: {', '.join(close)}." if close else ""
            raise ConfigError(f"{name!r}: {module} has no {path!r}.{hint}")
        found = getattr(found, part)
    if not callable(found):
        raise ConfigError(f"{name!r}: expected a function, got {type(found).__name__}")
    function: Callable[..., Any] = found
    if arguments is not None and not takes(function, arguments):
        raise ConfigError(
            f"{name!r}: expected a function that can be called with {arguments} "
            f"argument{'s' * (arguments != 1)}, got {inspect.signature(function)}"
        )
    return function


def takes(function: Callable[..., Any], arguments: int, *, unknown: bool = True) -> bool:
    """Returns whether a function can be called with this number of positional arguments.

    ``unknown`` is returned for a function without a signature, e.g. a compiled one.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return unknown
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        return False
    return True
