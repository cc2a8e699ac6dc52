"""Actions as text: their description for a model, and the parser of its answers.

The parser is strict. It never searches for an action in other text: parsers that guess play moves
which the model had rejected.
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
from rollout.models.chat_api import shorten

Row = dict[str, Any]
"""One row of actions, by column."""

_NOOP_NAMES = ("noop", "no-op", "nothing", "do nothing", "none", "stay", "wait", "idle", "0")
_LONGEST_REPEATED = 60  # characters of a description that is not repeated
_LONGEST_LIST = 64  # names that a problem lists


class UnusableAnswerError(Exception):
    """An answer that is not an action.

    Attributes:
        code: no_block, two_blocks, malformed, unknown, out_of_range, illegal, empty, refused
            or cut.
        problem: the expected and the actual answer, for the model.
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
            column.noop = value
        only = next(iter(self._columns.values())) if len(self._columns) == 1 else None
        self._only = only if isinstance(only, _Choice) else None

    @property
    def description(self) -> str:
        """All actions, for the prompt."""
        if self._only:
            return self._only.description
        lines, first = [], dict[str, str]()
        for key, column in self._columns.items():
            text = column.description
            same = first.setdefault(text, key)
            if same != key and len(text) > _LONGEST_REPEATED:
                text = f'as "{same}"'
            left = "" if column.noop is None else " (may be left out)"
            lines.append(f'"{key}": {text}{left}')
        return "A JSON object:\n" + "\n".join(lines)

    @property
    def descriptions(self) -> dict[str, str]:
        """The values of each column, by its name."""
        return {key: column.description for key, column in self._columns.items()}

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of an action."""
        if self._only:
            return self._only.schema
        needed = [key for key, column in self._columns.items() if column.noop is None]
        return {
            "type": "object",
            "properties": {key: column.schema for key, column in self._columns.items()},
            "required": needed,
            "additionalProperties": False,
        }

    @property
    def noop(self) -> Row | None:
        """The action that does nothing; None if there is none."""
        row = {key: column.noop for key, column in self._columns.items()}
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
                raise UnusableAnswerError(
                    "malformed", f"the action is not valid JSON: {error}"
                ) from error
        if not isinstance(data, Mapping):
            raise UnusableAnswerError(
                "malformed", f"expected a JSON object as action, got {shorten(data)}"
            )
        for key in data:
            if key not in self._columns:
                raise UnusableAnswerError(
                    "unknown",
                    f"{shorten(key)} is not a part of an action{_did_you_mean(key, self._columns)}",
                )
        row = {}
        for key, column in self._columns.items():
            if key in data:
                try:
                    row[key] = column.read(data[key])
                except UnusableAnswerError as error:
                    raise UnusableAnswerError(error.code, f"{key}: {error.problem}") from error
            elif column.noop is None:
                raise UnusableAnswerError("malformed", f"the action lacks {key!r}")
            else:
                row[key] = column.noop
        return row

    def write(self, row: Mapping[str, Any]) -> str:
        """Returns an action as text that ``parse`` reads; what does nothing is left out."""
        if self._only:
            return str(self._only.write(next(iter(row.values()))))
        data = {
            key: column.write(row[key])
            for key, column in self._columns.items()
            if column.noop is None or not np.array_equal(row[key], column.noop)
        }
        return json.dumps(data, ensure_ascii=False)

    def random(self, rng: np.random.Generator) -> Row:
        """Returns a uniformly random action."""
        return {key: column.random(rng) for key, column in self._columns.items()}


def _did_you_mean(name: object, valid: Any) -> str:
    close = nearest(str(name), valid, most=1)
    return f'; did you mean "{close[0]}"?' if close else ""


class _Choice:
    """A value of a ``Discrete``: a name, or a number without names."""

    def __init__(self, first: int, count: int, names: Any) -> None:
        self._first, self._count = first, count
        self._names = list(names) if names else []
        self._numbers = {_normalized(name): first + n for n, name in enumerate(self._names)}
        if len(self._numbers) < len(self._names):
            raise ConfigError(f"actions with the same name: {', '.join(self._names)}")
        found = (self._numbers[name] for name in _NOOP_NAMES if name in self._numbers)
        self.noop: int | None = next(found, None)

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
            raise UnusableAnswerError("empty", "the action is empty")
        if self._names:
            number = self._numbers.get(_normalized(str(value)))
            if number is None:
                listed = ", ".join(self._names[:_LONGEST_LIST])
                raise UnusableAnswerError(
                    "unknown", f"there is no action {shorten(value)}; the actions are {listed}"
                )
            return number
        number = _whole_number(value)
        if not self._first <= number < self._first + self._count:
            raise UnusableAnswerError(
                "out_of_range", f"expected {self.description}, got {shorten(number)}"
            )
        return number

    def write(self, value: Any) -> str | int:
        number = int(value)
        return self._names[number - self._first] if self._names else number

    def random(self, rng: np.random.Generator) -> int:
        return int(self._first + rng.integers(self._count))


def _normalized(name: str) -> str:
    return " ".join(name.strip().strip("\"'`").casefold().split())


def _whole_number(value: object) -> int:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and value != int(value)):
            raise ValueError
        return int(value)  # type: ignore[call-overload, no-any-return]  # refused below
    except (ValueError, TypeError, OverflowError):
        raise UnusableAnswerError(
            "malformed", f"expected a whole number, got {shorten(value)}"
        ) from None


class _Buttons:
    """A ``MultiBinary``: the names of the bits that are set."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._numbers = {_normalized(name): n for n, name in enumerate(names)}
        self.noop: Array = np.zeros(len(names), np.int8)
        self.description = "a list of any of " + ", ".join(f'"{name}"' for name in names)
        self.schema = {"type": "array", "items": {"type": "string", "enum": names}}

    def read(self, value: object) -> Array:
        if not isinstance(value, list):
            raise UnusableAnswerError(
                "malformed", f"expected a list of names, got {shorten(value)}"
            )
        row = self.noop.copy()
        for name in value:
            if _normalized(str(name)) not in self._numbers:
                raise UnusableAnswerError(
                    "unknown", f"there is no {shorten(name)}{_did_you_mean(name, self._names)}"
                )
            row[self._numbers[_normalized(str(name))]] = 1
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
        rest = [choice.noop for choice in places.values()]
        self.noop = None if None in rest else np.array(rest, dtype)
        inner = "; ".join(f'"{name}": {choice.description}' for name, choice in places.items())
        self.description = f"an object with {inner}"
        self.schema = {
            "type": "object",
            "properties": {name: choice.schema for name, choice in places.items()},
            "additionalProperties": False,
        }

    def read(self, value: object) -> Array:
        if not isinstance(value, Mapping):
            raise UnusableAnswerError("malformed", f"expected an object, got {shorten(value)}")
        for name in value:
            if name not in self._places:
                raise UnusableAnswerError(
                    "unknown", f"there is no {shorten(name)}{_did_you_mean(name, self._places)}"
                )
        row = []
        for name, choice in self._places.items():
            if name not in value and choice.noop is None:
                raise UnusableAnswerError("malformed", f"{name!r} is missing")
            row.append(choice.read(value[name]) if name in value else choice.noop)
        return np.array(row, self._dtype)

    def write(self, value: Any) -> dict[str, str | int]:
        places = zip(self._places.items(), value, strict=True)
        return {name: choice.write(n) for (name, choice), n in places if n != choice.noop}

    def random(self, rng: np.random.Generator) -> Array:
        return np.array([choice.random(rng) for choice in self._places.values()], self._dtype)


class _Numbers:
    """A ``Box``: a number, or nested lists of numbers."""

    def __init__(self, box: spaces.Box) -> None:
        self._box = box
        zero = np.zeros(box.shape, box.dtype)
        self.noop = zero if box.contains(zero) else None
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
            raise UnusableAnswerError(
                "malformed", f"expected {self.description}, got {shorten(value)}"
            )
        if (row < self._box.low).any() or (row > self._box.high).any():
            raise UnusableAnswerError(
                "out_of_range", f"expected {self.description}, got {shorten(value)}"
            )
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
        self.noop = "" if text.min_length == 0 else None
        self.description = f"text of {text.min_length} to {text.max_length} characters"
        self.schema = {"type": "string"}

    def read(self, value: object) -> str:
        if not isinstance(value, str):
            raise UnusableAnswerError("malformed", f"expected text, got {shorten(value)}")
        if not self._text.contains(value):
            strange = next((c for c in value if c not in self._text.character_set), None)
            short, long = self._text.min_length, self._text.max_length
            fits = short <= len(value) <= long
            why = f"it contains {strange!r}" if fits else f"it has {len(value)}"
            raise UnusableAnswerError("out_of_range", f"expected {self.description}; {why}")
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
