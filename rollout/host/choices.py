"""What a policy is given and what it chooses, checked by its host at every step of every game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    Columns,
    Decision,
    Details,
    Policy,
    check_columns,
    leaf_dtype,
    leaf_shape,
)
from rollout.api.types import Bools
from rollout.errors import PluginCode, PluginError, place_of

POLICY_CODE = PluginCode("the policy")
"""The context of every call of a policy."""

_READ_ONLY = "read-only"  # in the ValueError of numpy


def name_of(policy: Policy) -> str:
    """Returns the name of a policy for messages: its attribute ``name``, or that of its class."""
    kind = type(policy)
    return str(getattr(policy, "name", "")) or f"{kind.__module__}.{kind.__qualname__}"


def read_only(array: Array) -> Array:
    """Returns a view of an array that cannot be written to."""
    view = array[...]
    view.flags.writeable = False
    return view


def ask(
    policy: Policy,
    observations: Columns,
    memory: Columns,
    details: Sequence[Details] | None,
    explore: bool,
) -> Decision:
    """Returns the decision of a policy, whose observations are read-only.

    Raises:
        PluginError: it raised an error, e.g. because it wrote into its observations.
    """
    try:
        with POLICY_CODE:
            return policy.act(observations, memory, details=details, explore=explore)
    except PluginError as error:
        cause = error.__cause__
        if not isinstance(cause, ValueError) or _READ_ONLY not in str(cause):
            raise
        place = f" ({place_of(cause)})"
        told = PluginError(
            f"the policy {name_of(policy)} tried to write into an array that is read-only{place}; "
            f"its observations are what is recorded: write into a copy, as in x = x / 255 instead "
            f"of x /= 255"
        )
        told.trace = error.trace
        raise told from cause


class ActionCheck:
    """Checks that a policy's actions are actions of the game.

    Args:
        space: the action space.
        width: number of rows.
        policy: the policy, which messages name.
    """

    def __init__(self, space: spaces.Dict, width: int, policy: Policy) -> None:
        self._space, self._width, self._policy = space, width, policy
        self._columns = [_ActionColumn(key, leaf, width) for key, leaf in space.spaces.items()]

    def __call__(self, actions: Columns, active: Bools) -> None:
        """Checks the actions of one step.

        Args:
            actions: ``{key: (width, ...)}``.
            active: slots that play, ``(width,)``; the actions of others do nothing.

        Raises:
            SpaceError: a column is missing, or has another shape or dtype.
            PluginError: a value is outside of the space.
        """
        for column in self._columns:
            if not column.holds(actions.get(column.key)):
                self._look_closer(column, actions, active)

    def _look_closer(self, column: _ActionColumn, actions: Columns, active: Bools) -> None:
        check_columns(self._space, actions, (self._width,))
        array = actions[column.key]
        wrong = ~((array >= column.low) & (array <= column.high))
        rows = np.flatnonzero(wrong.reshape(self._width, -1).any(1) & active)
        if not len(rows):
            return
        at = tuple(np.argwhere(wrong[rows[0]])[0].tolist())
        where = f" at {list(at)}" if at else ""
        advice = "; numpy.clip keeps it in bounds" if isinstance(column.space, spaces.Box) else ""
        raise PluginError(
            f"the policy {name_of(self._policy)} chose {array[(rows[0], *at)]}{where} for "
            f"{column.key!r} in slot {rows[0]}; expected a value of {column.space}{advice}"
        )


class _ActionColumn:
    """One column of an action space.

    Attributes:
        key: its name.
        space: its space.
        low: lowest value of each place.
        high: highest value of each place.
    """

    def __init__(self, key: str, space: spaces.Space[Any], width: int) -> None:
        self.key, self.space = key, space
        self._shape, self._dtype = (width, *leaf_shape(space)), leaf_dtype(space)
        self._free = isinstance(space, spaces.Text)
        self.low, self.high = _bounds(space)
        self._one = None if self._shape != (1,) else (self.low.item(), self.high.item())
        sides = np.empty((2, *self._shape), np.bool_)
        self._above, self._below, self._sides = sides[0], sides[1], sides
        self._inside = np.ones_like(sides).tobytes()

    def holds(self, array: Array | None) -> bool:
        """Returns whether the array has the right shape and dtype and all values are inside."""
        if (
            not isinstance(array, np.ndarray)
            or array.shape != self._shape
            or array.dtype != self._dtype
        ):
            return False
        if self._free:
            return True
        if self._one is not None:  # several times as fast for one slot
            return bool(self._one[0] <= array.item() <= self._one[1])
        np.greater_equal(array, self.low, self._above)
        np.less_equal(array, self.high, self._below)
        return self._sides.tobytes() == self._inside


def _bounds(space: spaces.Space[Any]) -> tuple[Array, Array]:
    dtype = leaf_dtype(space)
    if isinstance(space, spaces.Text):
        return np.zeros(()), np.zeros(())
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.Discrete):
        first, count = int(space.start), int(space.n)
        return np.array(first, dtype), np.array(first + count - 1, dtype)
    if isinstance(space, spaces.MultiDiscrete):
        least = np.asarray(space.start, dtype)
        return least, np.asarray(least + space.nvec - 1, dtype)
    return np.zeros(leaf_shape(space), dtype), np.ones(leaf_shape(space), dtype)
