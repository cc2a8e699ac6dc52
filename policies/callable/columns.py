"""Policies of functions over columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    leaf_dtype,
    leaf_shape,
)
from rollout.errors import ConfigError


class FunctionPolicy:
    """Asks a function: ``f(observations)`` or ``f(observations, details, explore)``.

    ``observations`` are columns ``{key: (B, ...)}``. The function returns the actions as columns
    ``{key: (B, ...)}``, or as one array ``(B, ...)`` if the action space has one column. It must
    treat rows as independent and keep no state between calls, since the slots that share a batch
    change.

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
