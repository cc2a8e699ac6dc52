"""Converts values of Gymnasium games to columns, and columns to their actions.

This code runs in every step: everything that follows from the spaces is decided once, when an
instance is launched, so that a step does no avoidable lookups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    FlatSpace,
    allocate,
    check_columns,
    leaf_dtype,
    leaf_shape,
)
from rollout.errors import GameCrashed, SpaceError

greater_equal, less_equal = np.greater_equal, np.less_equal


class WrongRows(GameCrashed):
    """A vector environment returned another number of rows than it was made with."""


def rows_of(value: Any, what: str, width: int, shape: Sequence[int] = ()) -> Array:
    """Returns what a vector environment gave as an array ``(width, *shape)``.

    Raises:
        WrongRows: it has another number of rows.
        GameCrashed: its rows have another shape.
    """
    array = np.asarray(value)
    if array.shape == (width, *shape):
        return array
    kind = WrongRows if array.shape[:1] != (width,) else GameCrashed
    raise kind(f"{what}: expected the shape {[width, *shape]}, got {list(array.shape)}")


class ObservationColumns:
    """The observations of ``width`` games in buffers ``(width, ...)``.

    Attributes:
        columns: the buffers, by key.
        details: one mapping per row with the values that have no fixed shape; None if there are
            none.
        check: compares the values of all rows, or of some (``check(rows)``), with the bounds of
            their spaces and raises GameCrashed; None when every value of the dtypes is within
            bounds.
    """

    def __init__(self, flat: FlatSpace, width: int, *, check_bounds: bool) -> None:
        self.columns = allocate(flat.columns, width)
        self.details: list[dict[str, Any]] | None = [{} for _ in range(width)]
        if not flat.loose:
            self.details = None
        self._flat = flat
        self._leaves = {
            key: _Leaf(key, flat.columns[key], self.columns[key], check_bounds=check_bounds)
            for key in flat.paths
        }
        self._limited = [leaf for leaf in self._leaves.values() if leaf.limited]
        self.check: Callable[..., None] | None = self._check_all if self._limited else None
        if len(self._limited) == 1:
            self.check = self._limited[0].check
        self._parts = [(flat.paths[key], leaf.write) for key, leaf in self._leaves.items()]
        self.write = self._write_nested
        """Copies one observation into a row: ``write(observation, row)``."""
        if not flat.loose and list(flat.paths.values()) == [()]:
            self.write = self._parts[0][1]  # the space is itself a leaf: nothing to flatten

    def _write_nested(self, value: Any, row: int) -> None:
        for path, write in self._parts:
            part = value
            for name in path:
                part = part[name]
            write(part, row)
        if self.details is not None:
            self.details[row] = {k: plain(v) for k, v in self._flat.details(value).items()}

    def write_batch(self, value: Any, rows: Sequence[int] | None) -> None:
        """Copies rows of a batch of observations; all if ``rows`` is None.

        Raises:
            WrongRows: it has another number of rows.
            GameCrashed: its parts have other shapes or types than in the space.
        """
        for key, leaf in self._leaves.items():
            leaf.write_batch(self._part(value, key), rows)

    def write_rows(self, value: Any, rows: Sequence[int]) -> None:
        """Copies a batch of observations that has these rows only; raises as ``write_batch``."""
        for key, leaf in self._leaves.items():
            leaf.write_rows(self._part(value, key), rows)

    def _part(self, value: Any, key: str) -> Any:
        for name in self._flat.paths[key]:
            value = value[name]
        return value

    def _check_all(self, rows: Sequence[int] | None = None) -> None:
        for leaf in self._limited:
            leaf.check(rows)


class _Leaf:
    """One column: writes its rows and knows its bounds."""

    def __init__(
        self, key: str, space: spaces.Space[Any], column: Array, *, check_bounds: bool
    ) -> None:
        self.key, self.space, self.column = key, space, column
        self.shape, self.dtype = leaf_shape(space), leaf_dtype(space)
        self.limited = check_bounds and not _has_no_bounds(space)
        self._low, self._high = _bounds(space)
        self._sides = np.empty((2, *column.shape), np.bool_)
        self._above, self._below = self._sides
        self._inside = b"\1" * self._sides.size
        scalar = self.shape == () and self.dtype.kind in "iu"
        self.write = self._write_scalar if scalar else self._write_array

    def _write_array(self, value: Any, row: int) -> None:
        if (
            type(value) is np.ndarray
            and value.shape == self.shape  # assignment would broadcast a smaller one silently
            and value.dtype == self.dtype  # and would silently truncate a fraction
        ):
            self.column[row] = value
        else:
            self.column[row] = self._converted(value)

    def _write_scalar(self, value: Any, row: int) -> None:
        if type(value) is int or type(value) is np.int64:
            self.column[row] = value
        else:
            self.column[row] = self._converted(value)

    def write_batch(self, value: Any, rows: Sequence[int] | None) -> None:
        batch = self._batch(value, len(self.column))
        if rows is None:
            self.column[...] = batch
        else:
            self.column[rows] = batch[rows]

    def write_rows(self, value: Any, rows: Sequence[int]) -> None:
        self.column[rows] = self._batch(value, len(rows))

    def _batch(self, value: Any, rows: int) -> Array:
        batch = rows_of(value, f"observation {self.key!r}", rows, self.shape)
        return batch if batch.dtype == self.dtype else self._cast(batch)

    def _converted(self, value: Any) -> Array:
        """Returns a value of another type as an array of this column, if nothing is lost."""
        array = np.asarray(value)
        if array.shape != self.shape:
            raise GameCrashed(
                f"observation {self.key!r}: expected the shape {list(self.shape)} of {self.space}, "
                f"got {list(array.shape)}; the game breaks its own observation_space"
            )
        return self._cast(array)

    def _cast(self, array: Array) -> Array:
        number = array.dtype.kind in "iufb"
        converted = array.astype(self.dtype) if number else array
        # A float column rounds (most games compute in float64); other columns must represent it
        # exactly.
        if not number or (self.dtype.kind != "f" and not np.array_equal(converted, array)):
            raise GameCrashed(
                f"observation {self.key!r}: expected {self.dtype} as in {self.space}, got "
                f"{array.dtype} values that do not fit; the game breaks its own observation_space"
            )
        return converted

    def check(self, rows: Sequence[int] | None = None) -> None:
        """Raises GameCrashed if a row is out of bounds; NaN always is."""
        if rows is None:
            # Runs in every step: no allocation, and as few calls as possible.
            greater_equal(self.column, self._low, self._above)
            less_equal(self.column, self._high, self._below)
            if self._sides.tobytes() == self._inside:
                return
            rows = range(len(self.column))
        inside = (self.column[rows] >= self._low) & (self.column[rows] <= self._high)
        if not inside.all():
            at = tuple(int(i) for i in np.argwhere(~inside)[0])
            raise GameCrashed(
                f"observation {self.key!r} of slot {rows[at[0]]}: expected values in {self.space}, "
                f"got {self.column[rows][at]} at {list(at[1:])}; the game breaks its own "
                f"observation_space (check_bounds: false accepts all but NaN)"
            )


def _bounds(space: spaces.Space[Any]) -> tuple[Array, Array]:
    if isinstance(space, spaces.Box):
        return space.low, space.high
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return np.asarray(start), np.asarray(start + int(space.n) - 1)
    if isinstance(space, spaces.MultiDiscrete):
        least = np.asarray(space.start, np.int64)
        return least, least + np.asarray(space.nvec, np.int64) - 1
    return np.zeros(leaf_shape(space), np.int8), np.ones(leaf_shape(space), np.int8)


def _has_no_bounds(space: spaces.Space[Any]) -> bool:
    """True if every value of the dtype is within bounds, as in an image."""
    if not isinstance(space, spaces.Box) or space.dtype is None or space.dtype.kind not in "iu":
        return False
    limits = np.iinfo(space.dtype)
    return bool(np.all(space.low == limits.min) and np.all(space.high == limits.max))


class ActionReader:
    """Converts the columns of actions to actions of the live slots.

    Raises (``read``):
        SpaceError: a column is missing, or has another shape or dtype, or a number is not an
            action.
    """

    def __init__(self, flat: FlatSpace, width: int) -> None:
        if flat.loose:
            raise SpaceError(
                f"expected actions of fixed shape or text, got {dict(flat.loose)}; "
                f"such actions cannot be carried in columns"
            )
        self._flat, self._width = flat, width
        self._space = flat.columns
        self._whole = range(width)
        self.read = self._read_nested
        """Returns the actions of the live slots, in their order: ``read(columns, live)``."""
        if list(flat.paths.values()) == [()]:
            (self._key, leaf) = next(iter(self._space.spaces.items()))
            self._shape, self._dtype = (width, *leaf_shape(leaf)), leaf_dtype(leaf)
            self.read = self._read_text if isinstance(leaf, spaces.Text) else self._read_leaf
            if isinstance(leaf, spaces.Discrete):
                self._first, self._last = int(leaf.start), int(leaf.start) + int(leaf.n) - 1
                self.read = self._read_discrete

    def read_batch(self, columns: Mapping[str, Array], live: Sequence[int]) -> Any:
        """Returns the actions of all slots as a vector environment takes them.

        A slot that does not play gets the action of the first one that does.
        """
        if self.read == self._read_discrete:
            self.read(columns, live)  # checks the numbers
            if len(live) == self._width:
                return columns[self._key].copy()
        else:
            check_columns(self._space, columns, (self._width,))
        rows = np.full(self._width, live[0])
        rows[live] = live
        return self._flat.read(columns, rows)  # type: ignore[arg-type] # many rows, likewise

    def _column(self, columns: Mapping[str, Array]) -> Array:
        column = columns.get(self._key)
        if column is None or column.shape != self._shape or column.dtype != self._dtype:
            check_columns(self._space, columns, (self._width,))
            raise SpaceError(f"the column {self._key!r} is not an array; got {type(column)}")
        return column

    def _read_discrete(self, columns: Mapping[str, Array], live: Sequence[int]) -> list[Any]:
        column = columns.get(self._key)
        if column is None or column.shape != self._shape or column.dtype != self._dtype:
            column = self._column(columns)
        values: list[int] = column.tolist()
        if len(live) != self._width:
            values = [values[row] for row in live]
        if len(values) == 1 and self._first <= values[0] <= self._last:
            return values
        if min(values) < self._first or max(values) > self._last:
            bad = next(v for v in values if not self._first <= v <= self._last)
            raise SpaceError(
                f"action {self._key!r}: expected {self._first} to {self._last}, got {bad}"
            )
        return values

    def _read_leaf(self, columns: Mapping[str, Array], live: Sequence[int]) -> list[Any]:
        column = self._column(columns).copy()  # a game may keep it; the buffer will change
        return [column[row, ...] for row in live]  # with [...] a scalar stays an array

    def _read_text(self, columns: Mapping[str, Array], live: Sequence[int]) -> list[Any]:
        column = self._column(columns)
        return [column[row] for row in live]

    def _read_nested(self, columns: Mapping[str, Array], live: Sequence[int]) -> list[Any]:
        check_columns(self._space, columns, (self._width,))
        return [self._flat.read(columns, row) for row in live]


def plain(value: Any) -> Any:
    """Returns a value without a fixed shape as JSON-able data.

    Raises:
        TypeError: it contains something that JSON cannot represent.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, spaces.GraphInstance):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [plain(part) for part in value]
    raise TypeError(
        f"expected text, numbers, lists or mappings in an observation without fixed shape, "
        f"got {type(value).__name__}"
    )
