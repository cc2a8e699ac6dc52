"""A policy made of any Python function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    NamedCode,
    Start,
    Task,
    leaf_dtype,
    leaf_shape,
    option,
)
from rollout.api.options import check_function_name, load_function, takes
from rollout.errors import ConfigError, named


@dataclass(frozen=True)
class CallablePolicy:
    """Asks a function: ``f(observations)`` or ``f(observations, details, explore)``.

    ``observations`` are columns ``{key: (B, ...)}``. The function returns the actions as columns
    ``{key: (B, ...)}``, or as one array ``(B, ...)`` if the action space has one column. It must
    treat rows as independent and keep no state between calls, since the slots that share a batch
    change.
    """

    target: str = option("", "module:function, e.g. my_package.agents:act")

    def __post_init__(self) -> None:
        with named("target"):
            check_function_name(self.target)

    def code(self) -> Sequence[NamedCode]:
        """Returns the module of the function; see ``rollout.api.NamesCode``."""
        return [NamedCode("target", self.target.partition(":")[0])]

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> FunctionPolicy:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the function cannot be imported, or takes other arguments.
        """
        with named("target"):
            function = load_function(self.target)
        takes_all = _takes_all(self.target, function)
        return FunctionPolicy(self.target, function, takes_all, spec.action_space)


class FunctionPolicy:
    """Calls the function and checks what it returns.

    Attributes:
        name: its ``module:function``, for messages.
    """

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(
        self, name: str, function: Callable[..., Any], takes_all: bool, action_space: spaces.Dict
    ) -> None:
        self.name, self._function, self._takes_all = name, function, takes_all
        self._space = action_space
        self._name = getattr(function, "__qualname__", repr(function))

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns nothing: a function has no memory."""
        return {}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the function's actions.

        Raises:
            ConfigError: they are not actions of this game; the message says what is wrong.
        """
        if self._takes_all:
            answer = self._function(observations, details, explore)
        else:
            answer = self._function(observations)
        batch = len(next(iter(observations.values()), details or ()))
        return Decision(self._columns(answer, batch))

    def _columns(self, answer: Any, batch: int) -> Columns:
        leaves = self._space.spaces
        if not isinstance(answer, Mapping):
            if len(leaves) != 1:
                raise ConfigError(
                    f"{self._name} returned {type(answer).__name__}; expected a mapping with the "
                    f"columns {sorted(leaves)}"
                )
            answer = {next(iter(leaves)): answer}
        if answer.keys() != leaves.keys():
            raise ConfigError(
                f"{self._name} returned the columns {sorted(map(str, answer))}; "
                f"expected {sorted(leaves)}"
            )
        return {key: self._column(key, answer[key], leaf, batch) for key, leaf in leaves.items()}

    def _column(self, key: str, value: Any, space: spaces.Space[Any], batch: int) -> Array:
        dtype, shape = leaf_dtype(space), (batch, *leaf_shape(space))
        column = np.asarray(value, dtype=object if isinstance(space, spaces.Text) else None)
        if column.shape != shape:
            raise ConfigError(
                f"{self._name} returned the column {key!r} with shape {list(column.shape)}; "
                f"expected {list(shape)}: one row for each of {batch} observations, as in {space}"
            )
        if column.dtype != dtype and not np.can_cast(column.dtype, dtype, "same_kind"):
            raise ConfigError(
                f"{self._name} returned the column {key!r} as {column.dtype}; "
                f"expected {dtype} as in {space}"
            )
        return column.astype(dtype, copy=False)


def _takes_all(target: str, function: Callable[..., Any]) -> bool:
    """Returns whether the function takes details and explore besides observations."""
    if takes(function, 3, unknown=False):
        return True
    if takes(function, 1):
        return False
    raise ConfigError(
        f"target {target!r}: expected a function of (observations) or of "
        f"(observations, details, explore), got {inspect.signature(function)}"
    )
