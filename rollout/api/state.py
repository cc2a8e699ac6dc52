"""The state space of a game: named factors, exact sizes, a number for every state.

A *state* is one choice of a value for every factor: where an episode starts (the biome, the
weapon in hand, the seed of the terrain). The size of the space is the product of the factors'
sizes, an exact integer of any magnitude. The *index* of a state is its mixed-radix number, the
first factor being the most significant digit, so ``0 <= index < size`` numbers every state once.
A *region* is a sub-product of a space, with numbers of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from rollout.errors import StateError, UnknownNameError

Value: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class Factor:
    """One named dimension of a state space.

    Attributes:
        name: unique within its space.
        values: the values it can take, in the order of their digits. A ``range`` stands for as
            any number of integers without listing them.
        unit: unit of the values, empty for names.
        doc: the effect of the factor in the game.
    """

    name: str
    values: Sequence[Value]
    unit: str = ""
    doc: str = ""

    def __post_init__(self) -> None:
        if not self.values:
            raise StateError(f"factor {self.name!r} has no values; give it at least one")
        if not isinstance(self.values, range):
            object.__setattr__(self, "values", tuple(self.values))
            if len(self._digits) != len(self.values):
                raise StateError(f"factor {self.name!r} lists a value twice: {self.values}")

    @cached_property
    def size(self) -> int:
        """Number of values."""
        return length(self.values)

    @cached_property
    def _digits(self) -> dict[tuple[type, Value], int]:
        # Keyed by type as well, so that True and 1, or 1 and 1.0, stay different values.
        return {(type(v), v): i for i, v in enumerate(self.values)}

    def digit(self, value: Value) -> int:
        """Returns the digit of a value.

        Raises:
            StateError: the factor has no such value; the message lists those it has.
        """
        try:
            if not isinstance(self.values, range):
                return self._digits[type(value), value]
            if isinstance(value, int) and not isinstance(value, bool):
                return self.values.index(value)
        except (LookupError, ValueError, TypeError):
            pass  # TypeError: an unhashable value, e.g. a list from a file, is not a value either
        raise self._unknown(value)

    def _unknown(self, value: object) -> StateError:
        if isinstance(self.values, range):
            r = self.values
            valid = f"integers from {r.start} to {r[-1]}" + (f" by {r.step}" if r.step != 1 else "")
        else:
            error = UnknownNameError("value", str(value), map(str, self.values))
            valid = str(error).removeprefix(f"unknown value {str(value)!r}.").strip()
        return StateError(f"factor {self.name!r} has no value {value!r}. {valid}")

    def digits(self, values: Sequence[Value]) -> Sequence[int]:
        """Returns the digits of some values, ascending, each once.

        Equal sets of values give equal answers: a range if the digits are evenly spaced, which
        takes no memory, else a tuple.

        Raises:
            StateError: the factor has no such value.
        """
        if isinstance(values, range) and isinstance(self.values, range) and values:
            ends = self.digit(values[0]), self.digit(values[-1])
            step, rest = divmod(abs(values.step), abs(self.values.step))
            if rest and ends[0] != ends[1]:
                raise self._unknown(values[1])
            return canonical_range(range(min(ends), max(ends) + 1, max(step, 1)))
        if isinstance(values, range) and length(values) > self.size:
            raise StateError(f"factor {self.name!r} has {self.size} values, {values} has more")
        digits = tuple(sorted({self.digit(value) for value in values}))
        if digits:
            step = digits[1] - digits[0] if len(digits) > 1 else 1
            even = range(digits[0], digits[-1] + 1, step)
            if length(even) == len(digits) and all(map(operator.eq, even, digits)):
                return canonical_range(even)
        return digits

    def describe(self) -> dict[str, Any]:
        """Returns the factor as JSON-able data; equal factors give equal data."""
        return {
            "name": self.name,
            "values": describe_values(self.values),
            "unit": self.unit,
            "doc": self.doc,
        }


@dataclass(frozen=True, slots=True)
class State:
    """One state: its index in its space and the value of each factor."""

    index: int
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]


@dataclass(frozen=True)
class StateSpace:
    """The product of named factors."""

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "factors", tuple(self.factors))
        if not self.factors:
            raise StateError("a state space needs at least one factor")
        names = [f.name for f in self.factors]
        if len(set(names)) != len(names):
            raise StateError(f"a state space names a factor twice: {names}")

    @cached_property
    def size(self) -> int:
        """Exact number of states."""
        return math.prod(f.size for f in self.factors)

    def factor(self, name: str) -> Factor:
        """Returns the factor of that name.

        Raises:
            UnknownNameError: there is none.
        """
        for factor in self.factors:
            if factor.name == name:
                return factor
        raise UnknownNameError("factor", name, [f.name for f in self.factors])

    def digits(self, index: int) -> tuple[int, ...]:
        """Returns the digit of each factor of the state at ``index``."""
        index = operator.index(index)
        if not 0 <= index < self.size:
            raise StateError(
                f"state index {index} is out of range: this space has {self.size} states, "
                f"0 to {self.size - 1}"
            )
        return tuple(to_digits(index, [factor.size for factor in self.factors]))

    def index_of_digits(self, digits: Sequence[int]) -> int:
        """Returns the index of the state with these digits; the inverse of ``digits``."""
        return int(from_digits(digits, [factor.size for factor in self.factors]))

    def state(self, index: int) -> State:
        """Returns the state with this index.

        Raises:
            StateError: ``index`` is not in ``0 .. size-1``.
        """
        index = operator.index(index)
        digits = self.digits(index)
        return State(
            index, {f.name: f.values[d] for f, d in zip(self.factors, digits, strict=True)}
        )

    def index(self, values: Mapping[str, Value]) -> int:
        """Returns the index of the state with these factor values.

        Raises:
            StateError: a factor is missing, unknown, or has no such value.
        """
        for name in values:
            self.factor(name)
        missing = [f.name for f in self.factors if f.name not in values]
        if missing:
            raise StateError(f"a state needs a value for every factor; missing: {missing}")
        return self.index_of_digits([f.digit(values[f.name]) for f in self.factors])

    def restrict(self, values: Mapping[str, Sequence[Value]]) -> StateSpace:
        """Returns the space in which the named factors take only the given values.

        Raises:
            UnknownNameError: a factor does not exist.
            StateError: a value is not one of the factor's.
        """
        for name, allowed in values.items():
            self.factor(name).digits(allowed)
        return StateSpace(
            tuple(
                Factor(f.name, values[f.name], f.unit, f.doc) if f.name in values else f
                for f in self.factors
            )
        )

    def describe(self) -> list[dict[str, Any]]:
        """Returns the factors as JSON-able data."""
        return [f.describe() for f in self.factors]

    @cached_property
    def digest(self) -> str:
        """Digest of factors and values, 16 hex digits, the same for equal spaces."""
        plain = [{k: d[k] for k in ("name", "values")} for d in self.describe()]
        return digest(plain)

    def __iter__(self) -> Iterator[Factor]:
        return iter(self.factors)


def to_digits(number: Any, sizes: Sequence[int]) -> list[Any]:
    """Returns the mixed-radix digits of a number, or of each number of an array."""
    digits = []
    for size in reversed(sizes):
        number, digit = number // size, number % size
        digits.append(digit)
    return digits[::-1]


def from_digits(digits: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Returns the number with these digits; the inverse of ``to_digits``."""
    number = 0
    for digit, size in zip(digits, sizes, strict=True):
        number = number * size + digit
    return number


def factor_from_data(data: Mapping[str, Any]) -> Factor:
    """Returns the factor that ``Factor.describe`` described."""
    values = data["values"]
    if isinstance(values, Mapping):
        values = range(*values["range"])
    return Factor(data["name"], values, data.get("unit", ""), data.get("doc", ""))


def digest(data: object) -> str:
    """Returns sixteen hex digits of the SHA-256 of JSON-able data in canonical form."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def describe_values(values: Sequence[Value]) -> Any:
    """Returns values of a factor as JSON-able data; equal values give equal data."""
    if not isinstance(values, range):
        return list(values)
    values = canonical_range(values)
    return {"range": [values.start, values.stop, values.step]}


def canonical_range(values: range) -> range:
    """Returns the canonical form of a non-empty range; Python allows several."""
    step = values.step if length(values) > 1 else 1
    return range(values[0], values[-1] + (1 if step > 0 else -1), step)


def length(values: Sequence[Any]) -> int:
    """Returns the number of values, also of a range too long for ``len``."""
    # len() of a range beyond sys.maxsize raises OverflowError; its arithmetic does not.
    if isinstance(values, range):
        return max(0, -(-(values.stop - values.start) // values.step))
    return len(values)


@dataclass(frozen=True)
class Region:
    """A sub-product of a space: the remaining digits of each factor.

    Attributes:
        space: the space that contains it.
        choices: for each factor ``(digits, keep)``, in the order in which they apply: digits in
            ascending order, a range if they are evenly spaced, and whether they are kept or
            removed. Those of a second choice count what the first one leaves.
    """

    space: StateSpace
    choices: tuple[tuple[tuple[Sequence[int], bool], ...], ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of remaining digits of each factor."""
        sizes = []
        for factor, choices in zip(self.space, self.choices, strict=True):
            size = factor.size
            for listed, keep in choices:
                size = length(listed) if keep else size - length(listed)
            sizes.append(size)
        return tuple(sizes)

    @cached_property
    def size(self) -> int:
        """Exact number of states."""
        return math.prod(self.sizes)

    def index(self, local: int) -> int:
        """Returns the index, in the whole space, of the region's state number ``local``."""
        digits = to_digits(local, self.sizes)
        for i, choices in enumerate(self.choices):
            for listed, keep in reversed(choices):
                digits[i] = listed[digits[i]] if keep else _skip(listed, digits[i])
        return self.space.index_of_digits(digits)

    def local(self, index: int) -> int | None:
        """Returns the number, within the region, of a state of the space; None if it is outside.

        Raises:
            StateError: the space has no state with this index.
        """
        digits = list(self.space.digits(index))
        for i, choices in enumerate(self.choices):
            for listed, keep in choices:
                rank = _rank(listed, digits[i])
                if (rank < length(listed) and listed[rank] == digits[i]) != keep:
                    return None
                digits[i] = rank if keep else digits[i] - rank
        return int(from_digits(digits, self.sizes))


def _rank(ascending: Sequence[int], digit: int) -> int:
    """Returns the number of digits smaller than ``digit``; ``bisect`` for ranges of any length."""
    if isinstance(ascending, range):
        return length(range(ascending.start, min(digit, ascending.stop), ascending.step))
    return bisect_left(ascending, digit)


def _skip(removed: Sequence[int], rank: int) -> int:
    """Returns the ``rank``-th of 0, 1, 2, ... without the ascending ``removed``."""
    low, high = 0, length(removed)
    while low < high:
        middle = (low + high) // 2
        if removed[middle] - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low
