"""Actions as text: how a model names them, and the one way in which its text is read.

There is one strict stage. Text that is not an action is never searched for one: parsers that guess
play moves which the model had rejected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import Array, BridgeSpec, leaf_dtype, leaf_shape
from rollout.errors import ConfigError, nearest
from rollout.models.chat_api import brief

Row = dict[str, Any]
"""One row of actions, by column."""

_NOTHING = ("noop", "no-op", "nothing", "do nothing", "none", "stay", "wait", "idle", "0")
_LONG = 60  # characters of a description that is not repeated
_LONGEST_LIST = 64  # names that a problem lists


class Unusable(Exception):  # noqa: N818 - reads as what happened
    """An answer that is no action.

    Attributes:
        code: no_block, two_blocks, malformed, unknown, out_of_range, empty, refused or cut.
        problem: what was expected and what came, for the model.
    """

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(problem)
        self.code, self.problem = code, problem


class Grammar:
    """The actions of a game as text.

    A single ``Discrete`` column is a name, or a number if its values have no names. Anything else
    is a JSON object with a value for each column; columns that can be left alone may be left out.

    Args:
        spec: the game.

    Raises:
        ConfigError: a column cannot be written as text.
    """

    def __init__(self, spec: BridgeSpec) -> None:
        labels, leaves = spec.action_labels, spec.action_space.spaces
        self._columns = {key: _column(key, leaf, labels) for key, leaf in leaves.items()}
        for key, value in spec.action_defaults.items():
            column = self._columns[key]
            assert isinstance(column, _Choice)
            column.nothing = value
        only = next(iter(self._columns.values())) if len(self._columns) == 1 else None
        self._only = only if isinstance(only, _Choice) else None

    @property
    def description(self) -> str:
        """All actions, for the prompt."""
        if self._only:
            return self._only.description
        lines, first = [], dict[str, str]()
        for key, column in self._columns.items():
            told = column.description
            same = first.setdefault(told, key)
            if same != key and len(told) > _LONG:
                told = f'as "{same}"'
            left = "" if column.nothing is None else " (may be left out)"
            lines.append(f'"{key}": {told}{left}')
        return "A JSON object:\n" + "\n".join(lines)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of an action."""
        if self._only:
            return self._only.schema
        needed = [key for key, column in self._columns.items() if column.nothing is None]
        return {
            "type": "object",
            "properties": {key: column.schema for key, column in self._columns.items()},
            "required": needed,
            "additionalProperties": False,
        }

    @property
    def nothing(self) -> Row | None:
        """The action that does nothing; None if there is none."""
        row = {key: column.nothing for key, column in self._columns.items()}
        return None if any(value is None for value in row.values()) else row

    def parse(self, text: object) -> Row:
        """Returns the action of a text, or of data of the form of ``schema``.

        Raises:
            Unusable: it is none.
        """
        if self._only:
            return {next(iter(self._columns)): self._only.read(text)}
        data = text
        if isinstance(text, str):
            try:
                data = json.loads(text, strict=False)  # programs may have their lines as they are
            except (ValueError, RecursionError) as error:
                raise Unusable("malformed", f"the action is not valid JSON: {error}") from error
        if not isinstance(data, Mapping):
            raise Unusable("malformed", f"expected a JSON object as action, got {brief(data)}")
        for key in data:
            if key not in self._columns:
                raise Unusable(
                    "unknown", f"{brief(key)} is not a part of an action{_near(key, self._columns)}"
                )
        row = {}
        for key, column in self._columns.items():
            if key in data:
                try:
                    row[key] = column.read(data[key])
                except Unusable as error:
                    raise Unusable(error.code, f"{key}: {error.problem}") from error
            elif column.nothing is None:
                raise Unusable("malformed", f"the action lacks {key!r}")
            else:
                row[key] = column.nothing
        return row

    def write(self, row: Mapping[str, Any]) -> str:
        """Returns an action as text that ``parse`` reads; what does nothing is left out."""
        if self._only:
            return str(self._only.write(next(iter(row.values()))))
        data = {
            key: column.write(row[key])
            for key, column in self._columns.items()
            if column.nothing is None or not np.array_equal(row[key], column.nothing)
        }
        return json.dumps(data, ensure_ascii=False)

    def random(self, rng: np.random.Generator) -> Row:
        """Returns a uniformly random action."""
        return {key: column.random(rng) for key, column in self._columns.items()}


def _near(name: object, valid: Any) -> str:
    close = nearest(str(name), valid, most=1)
    return f'; did you mean "{close[0]}"?' if close else ""


class _Choice:
    """A value of a ``Discrete``: a name, or a number without names."""

    def __init__(self, first: int, count: int, names: Any) -> None:
        self._first, self._count = first, count
        self._names = list(names) if names else []
        self._numbers = {_plain(name): first + n for n, name in enumerate(self._names)}
        if len(self._numbers) < len(self._names):
            raise ConfigError(f"actions with the same name: {', '.join(self._names)}")
        found = (self._numbers[name] for name in _NOTHING if name in self._numbers)
        self.nothing: int | None = next(found, None)

    @property
    def description(self) -> str:
        if not self._names:
            return f"a whole number from {self._first} to {self._first + self._count - 1}"
        return "one of " + ", ".join(f'"{name}"' for name in self._names)

    @property
    def schema(self) -> dict[str, Any]:
        if self._names:
            return {"type": "string", "enum": self._names}
        last = self._first + self._count - 1
        return {"type": "integer", "minimum": self._first, "maximum": last}

    def read(self, value: object) -> int:
        if isinstance(value, str) and not value.strip():
            raise Unusable("empty", "the action is empty")
        if self._names:
            number = self._numbers.get(_plain(str(value)))
            if number is None:
                listed = ", ".join(self._names[:_LONGEST_LIST])
                raise Unusable(
                    "unknown", f"there is no action {brief(value)}; the actions are {listed}"
                )
            return number
        number = _whole(value)
        if not self._first <= number < self._first + self._count:
            raise Unusable("out_of_range", f"expected {self.description}, got {brief(number)}")
        return number

    def write(self, value: Any) -> str | int:
        number = int(value)
        return self._names[number - self._first] if self._names else number

    def random(self, rng: np.random.Generator) -> int:
        return int(self._first + rng.integers(self._count))


def _plain(name: str) -> str:
    return " ".join(name.strip().strip("\"'`").casefold().split())


def _whole(value: object) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise ValueError
        return int(value)  # type: ignore[call-overload, no-any-return]  # refused below
    except (ValueError, TypeError, OverflowError):
        raise Unusable("malformed", f"expected a whole number, got {brief(value)}") from None


class _Buttons:
    """A ``MultiBinary``: the names of the bits that are set."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._numbers = {_plain(name): n for n, name in enumerate(names)}
        self.nothing: Array = np.zeros(len(names), np.int8)
        self.description = "a list of any of " + ", ".join(f'"{name}"' for name in names)
        self.schema = {"type": "array", "items": {"type": "string", "enum": names}}

    def read(self, value: object) -> Array:
        if not isinstance(value, list):
            raise Unusable("malformed", f"expected a list of names, got {brief(value)}")
        row = self.nothing.copy()
        for name in value:
            if _plain(str(name)) not in self._numbers:
                raise Unusable("unknown", f"there is no {brief(name)}{_near(name, self._names)}")
            row[self._numbers[_plain(str(name))]] = 1
        return row

    def write(self, value: Any) -> list[str]:
        return [name for name, bit in zip(self._names, value, strict=True) if bit]

    def random(self, rng: np.random.Generator) -> Array:
        row: Array = rng.integers(0, 2, len(self._names)).astype(np.int8)
        return row


class _Places:
    """A ``MultiDiscrete``: an object with a value for each place."""

    def __init__(self, places: dict[str, _Choice], dtype: np.dtype[Any]) -> None:
        self._places, self._dtype = places, dtype
        rest = [choice.nothing for choice in places.values()]
        self.nothing = None if None in rest else np.array(rest, dtype)
        inner = "; ".join(f'"{name}": {choice.description}' for name, choice in places.items())
        self.description = f"an object with {inner}"
        self.schema = {
            "type": "object",
            "properties": {name: choice.schema for name, choice in places.items()},
            "additionalProperties": False,
        }

    def read(self, value: object) -> Array:
        if not isinstance(value, Mapping):
            raise Unusable("malformed", f"expected an object, got {brief(value)}")
        for name in value:
            if name not in self._places:
                raise Unusable("unknown", f"there is no {brief(name)}{_near(name, self._places)}")
        row = []
        for name, choice in self._places.items():
            if name not in value and choice.nothing is None:
                raise Unusable("malformed", f"{name!r} is missing")
            row.append(choice.read(value[name]) if name in value else choice.nothing)
        return np.array(row, self._dtype)

    def write(self, value: Any) -> dict[str, str | int]:
        places = zip(self._places.items(), value, strict=True)
        return {name: choice.write(n) for (name, choice), n in places if n != choice.nothing}

    def random(self, rng: np.random.Generator) -> Array:
        return np.array([choice.random(rng) for choice in self._places.values()], self._dtype)


class _Numbers:
    """A ``Box``: a number, or nested lists of numbers."""

    def __init__(self, box: spaces.Box) -> None:
        self._box = box
        zero = np.zeros(box.shape, box.dtype)
        self.nothing = zero if box.contains(zero) else None
        lo, hi = float(box.low.min()), float(box.high.max())
        form = f"a list of shape {list(box.shape)} of numbers" if box.shape else "a number"
        bounds = f" from {lo:g} to {hi:g}" if math.isfinite(lo) and math.isfinite(hi) else ""
        self.description = form + bounds
        self.schema = {"type": "array"} if box.shape else {"type": "number"}

    def read(self, value: object) -> Array:
        try:
            row = np.asarray(value, np.float64)
        except (ValueError, TypeError, OverflowError):
            row = np.array(None, object)
        if row.dtype == object or row.shape != self._box.shape or not np.isfinite(row).all():
            raise Unusable("malformed", f"expected {self.description}, got {brief(value)}")
        if (row < self._box.low).any() or (row > self._box.high).any():
            raise Unusable("out_of_range", f"expected {self.description}, got {brief(value)}")
        return row.astype(self._box.dtype)

    def write(self, value: Any) -> Any:
        return np.asarray(value).tolist()

    def random(self, rng: np.random.Generator) -> Array:
        self._box.seed(int(rng.integers(2**31)))
        row: Array = self._box.sample()
        return row


class _Text:
    """A ``Text``."""

    def __init__(self, text: spaces.Text) -> None:
        self._text = text
        self.nothing = "" if text.min_length == 0 else None
        self.description = f"text of {text.min_length} to {text.max_length} characters"
        self.schema = {"type": "string"}

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise Unusable("malformed", f"expected text, got {brief(value)}")
        if not self._text.contains(value):
            strange = next((c for c in value if c not in self._text.character_set), None)
            short, long = self._text.min_length, self._text.max_length
            fits = short <= len(value) <= long
            why = f"it contains {strange!r}" if fits else f"it has {len(value)}"
            raise Unusable("out_of_range", f"expected {self.description}; {why}")
        return value

    def write(self, value: Any) -> str:
        return str(value)

    def random(self, rng: np.random.Generator) -> str:
        return self._text.characters[: self._text.min_length]


_Column = _Choice | _Buttons | _Places | _Numbers | _Text


def _column(key: str, leaf: spaces.Space[Any], labels: Mapping[str, Any]) -> _Column:
    if isinstance(leaf, spaces.Discrete):
        return _Choice(int(leaf.start), int(leaf.n), labels.get(key))
    if isinstance(leaf, spaces.MultiBinary) and len(leaf.shape) == 1:
        return _Buttons(list(labels.get(key) or map(str, range(leaf.shape[0]))))
    if isinstance(leaf, spaces.MultiDiscrete) and len(leaf.shape) == 1:
        names = list(labels.get(key) or map(str, range(leaf.shape[0])))
        firsts = np.zeros(leaf.shape, np.int64) + np.asarray(getattr(leaf, "start", 0))
        places = {
            name: _Choice(first, count, labels.get(f"{key}/{name}"))
            for name, first, count in zip(names, firsts.tolist(), leaf.nvec.tolist(), strict=True)
        }
        return _Places(places, leaf_dtype(leaf))
    if isinstance(leaf, spaces.Box):
        return _Numbers(leaf)
    if isinstance(leaf, spaces.Text):
        return _Text(leaf)
    raise ConfigError(
        f"the action column {key!r} ({leaf}) cannot be written as text; choose other actions of "
        f"this game"
    )


def columns_of(space: spaces.Dict, rows: list[Row]) -> dict[str, Array]:
    """Returns rows of actions as columns ``{key: (B, ...)}``."""
    columns = {}
    for key, leaf in space.spaces.items():
        column = np.zeros((len(rows), *leaf_shape(leaf)), leaf_dtype(leaf))
        for number, row in enumerate(rows):
            column[number, ...] = row[key]
        columns[key] = column
    return columns
