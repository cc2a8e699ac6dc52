"""Random starts, and comparisons of frames with their spec and of trajectories."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import Array, BridgeSpec, ColumnSpec, Frame, Start, StateSpace, check_columns
from rollout.errors import ContractError, SpaceError
from rollout.testing.report import require


def random_start(
    space: StateSpace, rng: np.random.Generator, episode: int = 0, state_set: str = "check"
) -> Start:
    """Returns a start from a random state of the space, with a random seed."""
    state = space.state(int.from_bytes(rng.bytes(32), "little") % space.size)
    return Start(state, int(rng.integers(2**63)), episode, state_set=state_set)


def copy_frame(frame: Frame, rows: Sequence[int] | Array | None = None) -> Frame:
    """Returns a copy of some rows (all if None) that shares no memory with the instance."""
    if frame.details is not None:
        check_details(frame.details, len(frame.game_over))
    taken = frame.take(np.arange(len(frame.game_over)) if rows is None else rows)
    taken.details = copy.deepcopy(taken.details)
    return taken


def check_frame(spec: BridgeSpec, frame: Frame, rows: int) -> None:
    """Checks keys, shapes, dtypes and values of a frame against the spec.

    Raises:
        ContractError: the message names the column, and what was expected and received.
    """
    try:
        check_columns(spec.observation_space, frame.observations, (rows,))
    except SpaceError as error:
        raise ContractError(f"observations: {error}") from error
    check_outside("observation", spec.observation_space, frame.observations)
    check_declared("signal", spec.signals, frame.signals, rows)
    for name, dtype in (("game_over", bool), ("game_truncated", bool), ("tick", np.int64)):
        _check_array(name, getattr(frame, name), np.dtype(dtype), (rows,))
    require((frame.tick >= 0).all(), f"tick: expected 0 or more, got {frame.tick.min()}")
    if frame.details is not None:
        check_details(frame.details, rows)


def check_declared(
    what: str, declared: Mapping[str, ColumnSpec], columns: Mapping[str, Array], rows: int
) -> None:
    """Checks that columns are exactly the declared ones, with their dtypes and shapes.

    Raises:
        ContractError: the message names the column.
    """
    missing = sorted(declared.keys() - columns.keys())
    unknown = sorted(columns.keys() - declared.keys())
    require(
        not missing and not unknown,
        f"{what} columns: expected {sorted(declared)} as declared; missing: {missing}, "
        f"undeclared: {unknown}",
    )
    for name, column in declared.items():
        dtype, shape = np.dtype(column.dtype), (rows, *column.shape)
        _check_array(f"{what} {name!r}", columns[name], dtype, shape)


def check_details(details: Sequence[Mapping[str, Any]], rows: int) -> None:
    """Checks that there is one JSON-able mapping per row.

    Raises:
        ContractError: there is not.
    """
    require(len(details) == rows, f"details: expected {rows} mappings, got {len(details)}")
    for row, each in enumerate(details):
        require(isinstance(each, Mapping), f"details[{row}]: expected a mapping, got {type(each)}")
        try:
            json.dumps(dict(each))
        except (TypeError, ValueError) as error:
            raise ContractError(f"details[{row}] must be JSON-able: {error}") from error


def _check_array(name: str, array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    require(isinstance(array, np.ndarray), f"{name}: expected an array, got {type(array).__name__}")
    require(
        array.dtype == dtype and array.shape == shape,
        f"{name}: expected {dtype}{list(shape)}, got {array.dtype}{list(array.shape)}",
    )


def check_outside(what: str, space: spaces.Dict, columns: Mapping[str, Array]) -> None:
    """Checks that every row lies in its space.

    Raises:
        ContractError: the message names the column, the first row outside and its range.
    """
    for key, leaf in space.spaces.items():
        for row, value in enumerate(columns[key]):
            if not inside(leaf, value):
                few = np.size(value) <= 8
                shown = value if few else f"values from {value.min()} to {value.max()}"
                raise ContractError(f"{what} {key!r} row {row} is outside {leaf}: {shown}")


def inside(leaf: spaces.Space[Any], value: Any) -> bool:
    """Returns whether a row of a column is in the leaf space."""
    plain = isinstance(leaf, spaces.Discrete | spaces.Text)  # others want arrays of any shape
    return (value if plain else np.asarray(value)) in leaf


def check_finite(frame: Frame) -> None:
    """Checks that no observation and no signal is NaN or infinite.

    Raises:
        ContractError: the message names the column.
    """
    for what, columns in (("observation", frame.observations), ("signal", frame.signals)):
        for key, column in columns.items():
            finite = not np.issubdtype(column.dtype, np.inexact) or np.isfinite(column).all()
            require(finite, f"{what} {key!r} holds NaN or infinite values")


def difference(expected: Frame, got: Frame) -> str:
    """Returns the first difference between two frames; empty if they are equal."""
    pairs: list[tuple[str, Array, Array]] = []
    for what in ("observations", "signals"):
        left, right = getattr(expected, what), getattr(got, what)
        pairs += [(f"{what}/{key}", left[key], right[key]) for key in left if key in right]
    for name in ("game_over", "game_truncated", "tick"):
        pairs.append((name, getattr(expected, name), getattr(got, name)))
    for name, left, right in pairs:
        if not same(left, right):
            return f"{name} differs"
    return "details differ" if expected.details != got.details else ""


def same(left: Array, right: Array) -> bool:
    """Returns whether two arrays have the same values; NaN equals NaN."""
    return np.array_equal(left, right, equal_nan=np.issubdtype(left.dtype, np.inexact))


def check_same(expected: Sequence[Frame], got: Sequence[Frame], what: str) -> None:
    """Checks that two trajectories are equal.

    Raises:
        ContractError: the message gives the first step and column that differ.
    """
    require(len(expected) == len(got), f"{what}: {len(expected)} frames became {len(got)}")
    for step, (left, right) in enumerate(zip(expected, got, strict=True)):
        found = difference(left, right)
        at = "on reset" if step == 0 else f"after step {step} of {len(expected) - 1}"
        require(not found, f"{what}: {found} {at}")
