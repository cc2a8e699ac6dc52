"""Checks the frames of a game before the host uses them, and converts its errors to text.

A frame that violates its spec costs the game its episodes (``GameCrashed``), but never the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from operator import attrgetter, is_
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces

from rollout.api import Array, BridgeSpec, Details, Frame, clean_text, leaf_dtype, leaf_shape
from rollout.errors import GameCrashed, GameError, InputError, located, trace_of

_DEEPEST = 64  # levels of details; json and pickle fail from a few hundred on
_LARGEST, _VALUE = 2**24, 16  # characters in the details of one slot; each value counts as some
_INTEGER_BITS = 4096  # Python refuses to write integers of more than 4,300 digits
_LONGEST_TEXT = 2000  # characters of an error
_SHAPE_AND_DTYPE = attrgetter("shape", "dtype")


class FrameColumn(NamedTuple):
    """A column of fixed shape: whether it is an observation, a signal, an action or neither."""

    role: str
    name: str
    shape: tuple[int, ...]  # of one row
    dtype: np.dtype[Any]


def fixed_columns(role: str, space: spaces.Dict) -> list[FrameColumn]:
    """Returns the columns of a space but texts."""
    return [
        FrameColumn(role, name, leaf_shape(leaf), leaf_dtype(leaf))
        for name, leaf in space.spaces.items()
        if not isinstance(leaf, spaces.Text)
    ]


def frame_columns(spec: BridgeSpec) -> list[FrameColumn]:
    """Returns the columns of a frame but texts."""
    return [
        *fixed_columns("observation", spec.observation_space),
        *(
            FrameColumn("signal", k, tuple(c.shape), np.dtype(c.dtype))
            for k, c in spec.signals.items()
        ),
        FrameColumn("frame", "game_over", (), np.dtype(bool)),
        FrameColumn("frame", "game_truncated", (), np.dtype(bool)),
        FrameColumn("frame", "tick", (), np.dtype(np.int64)),
    ]


def column_texts(spec: BridgeSpec) -> list[str]:
    """Returns the columns of frames and actions as text, to compare two interpreters."""
    columns = (*frame_columns(spec), *fixed_columns("action", spec.action_space))
    return [f"{c.role} {c.name}: {c.dtype.str}{[*c.shape]}" for c in columns]


class FrameCheck:
    """Checks the frames of one game and converts their details; see ``Frame.details``.

    Args:
        spec: spec of the game.
    """

    def __init__(self, spec: BridgeSpec) -> None:
        leaves = spec.observation_space.spaces
        self._name = spec.name
        self._texts = [key for key, leaf in leaves.items() if isinstance(leaf, spaces.Text)]
        self._columns, fixed = frame_columns(spec), fixed_columns("", spec.observation_space)
        self._fixed, self._signals = [column.name for column in fixed], list(spec.signals)
        self._floats = [column.name for column in fixed if column.dtype.kind == "f"]
        self._expected: dict[int, list[tuple[tuple[int, ...], np.dtype[Any]]]] = {}  # by rows
        self._last_valid, self._last_rows = list[Any](), -1  # the last arrays that were right

    def __call__(self, frame: Frame, rows: int) -> Frame:
        """Returns the frame with plain details.

        frame: the frame of the instance.
        rows: required number of rows.

        Raises:
            GameCrashed: it violates the spec; the message names the game, the column and the value.
        """
        if not isinstance(frame, Frame):
            raise GameCrashed(f"{self._name}: expected a Frame, got {type(frame).__name__}")
        try:
            self._check_columns(frame, rows)
            if frame.details is None and not self._texts:
                return frame
            return self._plain(frame, rows)
        except GameCrashed:
            raise
        except KeyError as error:
            raise GameCrashed(f"{self._name}: the frame has no column {error}") from error
        except Exception as error:  # objects of a game may raise anything
            broken = GameCrashed(f"{self._name}: broken frame: {describe(error)}")
            broken.trace = trace_of(error)
            raise broken from error

    def _check_columns(self, frame: Frame, rows: int) -> None:
        """Checks shapes, dtypes and NaN; on the hot path of every step."""
        observations, signals = frame.observations, frame.signals
        arrays: list[Any] = [
            *map(observations.__getitem__, self._fixed),
            *map(signals.__getitem__, self._signals),
            *(frame.game_over, frame.game_truncated, frame.tick),
        ]
        # The frames of many games are the same buffers at every step.
        if rows != self._last_rows or not all(map(is_, arrays, self._last_valid)):
            if rows not in self._expected:
                self._expected[rows] = [((rows, *c.shape), c.dtype) for c in self._columns]
            try:
                right = list(map(_SHAPE_AND_DTYPE, arrays)) == self._expected[rows]
            except AttributeError:  # not an array
                right = False
            if not right:
                self._raise_mismatch(arrays, rows)
            self._last_valid, self._last_rows = arrays, rows
        for key in self._floats:
            column = observations[key].ravel()
            if math.isnan(column.dot(column)):  # NaN if and only if one of the values is NaN
                raise GameCrashed(f"{self._name}: observation {key!r} holds NaN")

    def _raise_mismatch(self, arrays: list[Any], rows: int) -> None:
        for (role, key, shape, dtype), array in zip(self._columns, arrays, strict=True):
            came = type(array).__name__
            if came == "ndarray":
                if array.shape == (rows, *shape) and (
                    array.dtype is dtype or np.can_cast(array.dtype, dtype, "same_kind")
                ):
                    continue
                came = f"{array.dtype}{list(array.shape)}"
            raise GameCrashed(
                f"{self._name}: {role} {key!r}: expected {dtype}{[rows, *shape]}, got {came}"
            )

    def _plain(self, frame: Frame, rows: int) -> Frame:
        observations = dict(frame.observations)
        for key in self._texts:
            observations[key] = self._texts_of(key, observations[key], rows)
        details: Any = frame.details  # whatever the game put there
        if details is not None:
            if not isinstance(details, Sequence) or len(details) != rows:
                count = len(details) if isinstance(details, Sequence) else type(details).__name__
                raise GameCrashed(f"{self._name}: details: expected {rows} mappings, got {count}")
            details = [self._details_of(slot, each) for slot, each in enumerate(details)]
        return Frame(
            observations,
            frame.signals,
            frame.game_over,
            frame.game_truncated,
            frame.tick,
            details,
        )

    def _texts_of(self, key: str, column: Iterable[Any], rows: int) -> Array:
        values = list(column)
        if len(values) != rows or not all(isinstance(value, str) for value in values):
            kinds = sorted({type(value).__name__ for value in values})
            raise GameCrashed(
                f"{self._name}: observation {key!r}: expected {rows} texts, "
                f"got {len(values)} of {kinds}"
            )
        return np.fromiter((clean_text(value) for value in values), dtype=object, count=rows)

    def _details_of(self, slot: int, details: Any) -> Details:
        where = f"{self._name}: details of row {slot}"
        if details is None:
            return {}
        if not isinstance(details, Mapping):
            raise GameCrashed(f"{where}: expected a mapping, got {type(details).__name__}")
        plain: Details = _Plain(where).value(details, ())
        return plain


class _Plain:
    """Converts one value to plain data; see ``Frame.details`` for the rules."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._budget = _LARGEST

    def value(self, value: Any, path: tuple[object, ...]) -> Any:
        if isinstance(value, np.ndarray):
            self._charge(_VALUE * value.size, path)
            value = value.tolist()
        elif isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if isinstance(value, list | tuple):
            self._enter(value, path)
            return [self.value(each, (*path, number)) for number, each in enumerate(value)]
        if isinstance(value, str | bytes | bytearray):
            self._charge(len(value), path)
            text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
            return clean_text(text)
        return self._number(value, path)

    def _number(self, value: Any, path: tuple[object, ...]) -> Any:
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else None
        if not isinstance(value, int):
            raise self._error(f"a value of type {type(value).__name__}", path)
        if value.bit_length() > _INTEGER_BITS:
            raise self._error(f"an integer of {value.bit_length()} bits", path)
        return int(value)

    def _mapping(self, value: Mapping[Any, Any], path: tuple[object, ...]) -> dict[str, Any]:
        self._enter(value, path)
        out = {}
        for key, each in value.items():
            name = self._key(key, path)
            if name in out:
                raise self._error(f"two keys that are both {name!r} as text", path)
            out[name] = self.value(each, (*path, name))
        return out

    def _enter(self, value: Sized, path: tuple[object, ...]) -> None:
        if len(path) == _DEEPEST:
            raise self._error(f"more than {_DEEPEST} levels, or a cycle", path)
        self._charge(_VALUE * len(value), path)

    def _key(self, key: object, path: tuple[object, ...]) -> str:
        if isinstance(key, str):
            return clean_text(key)
        plain = self.value(key, (*path, "(a key)"))
        return str(tuple(plain) if isinstance(plain, list) else plain)

    def _charge(self, amount: int, path: tuple[object, ...]) -> None:
        self._budget -= amount
        if self._budget < 0:
            most = f"{_LARGEST // _VALUE} values, or {_LARGEST} characters"
            raise self._error(f"more than {most},", path)

    def _error(self, what: str, path: tuple[object, ...]) -> GameCrashed:
        shown = [*path[:6], "…"] if len(path) > 6 else path
        key = "/".join(str(part)[:80] for part in shown)
        return GameCrashed(
            f"{self._where}: {what} under {key!r}; give text, numbers, lists and mappings"
        )


def describe(error: BaseException) -> str:
    """Returns an error of a game as text, with type and place unless it was raised on purpose.

    Some errors have no text, and the text of others raises; lone surrogates cannot be written.
    """
    kind = type(error).__name__
    try:
        text = clean_text(str(error))[:_LONGEST_TEXT]
    except Exception as another:  # noqa: BLE001 - a game's own error class may do anything
        return f"{kind}: its text cannot be shown ({type(another).__name__})"
    if isinstance(error, GameError | InputError) and text:
        return text  # raised by a bridge, with a complete sentence
    return located(kind, text, error)
