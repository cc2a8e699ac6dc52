"""State sets: train, validation and test states that cannot overlap, at any size.

The states of a space are put in a random order by a keyed permutation, and the order is cut::

    position   0 ........ T ............. T+V .................................. size
               [   test   ] [ validation ] [                train                ]

A set of ``n`` states is the first ``n`` of its part, so the set for a larger ``n`` contains the
set for a smaller one. Nothing is stored: a set of 10^7 states of a space of 10^20 costs a few
hundred bytes, and whether a state belongs to it is answered by the inverse permutation.

A state keeps its index in the whole space, whatever ``hold_out`` and ``only`` remove, so that
results of different divisions can be joined. See ``docs/state-sets.md``.

Sources: OpenAI's Procgen and MCU, Appendix D, for sweeps over the number of training states;
Kirk et al. (2021), "A Survey of Zero-shot Generalisation", for interpolation and extrapolation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from rollout.api.permutation import Permutation
from rollout.api.state import Region, State, StateSpace, Value, describe_values, digest, length
from rollout.errors import StateError, TestStateError, UnknownNameError

TRAIN, VALIDATION, TEST, ALL, EXTRAPOLATION = "train", "validation", "test", "all", "extrapolation"
OUTSIDE = "outside"
"""Part of the states that ``only`` excludes; no set can be drawn from it."""


@dataclass(frozen=True)
class Splits:
    """Division of the states of a space for training and testing.

    Attributes:
        space: the task's state space.
        seed: chooses the permutation; other seeds give other test sets.
        validation: size of the validation part: a fraction below 1, or a number of states.
        test: size of the test part, likewise.
        hold_out: values removed from train, validation and test, by factor.
        only: the only values that factors may take, by factor, in every part.

    Raises:
        StateError: the parts are larger than the space, or a held-out value does not exist.
    """

    space: StateSpace
    seed: int = 0
    validation: float = 0.1
    test: float = 0.1
    hold_out: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    only: Mapping[str, Sequence[Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, values in self.only.items():
            if not length(self.space.factor(name).digits(values)):
                raise StateError(f"only.{name} lists no value; give at least one, or remove it")
        for name, values in self.hold_out.items():
            factor = self._inner.factor(name)
            taken = length(factor.digits(values))
            if not 0 < taken < factor.size:
                raise StateError(
                    f"hold_out.{name} must hold out some values and leave some: it holds out "
                    f"{taken} of {factor.size}"
                )
        if self.bounds[TRAIN][1] <= self.bounds[TRAIN][0]:
            raise StateError(
                f"test={self.test} and validation={self.validation} leave no state to train on: "
                f"the space has {self._ordinary.size} ordinary states; make them smaller"
            )

    @cached_property
    def _only(self) -> dict[str, Sequence[int]]:
        """Remaining digits by factor; a factor with all its values is omitted."""
        digits = {f.name: f.digits(self.only[f.name]) for f in self.space if f.name in self.only}
        return {n: d for n, d in digits.items() if length(d) < self.space.factor(n).size}

    @cached_property
    def _inner(self) -> StateSpace:
        """The space that is divided: the values that ``only`` keeps, in their original order."""
        kept = {
            f.name: _at(f.values, self._only[f.name]) for f in self.space if f.name in self._only
        }
        return self.space.restrict(kept)

    @cached_property
    def _ordinary(self) -> Region:
        return self._region(dict.fromkeys(self.hold_out, False))

    def _region(self, held: Mapping[str, bool]) -> Region:
        """The region where factor ``f`` takes only held-out (True) or ordinary (False) values."""
        choices = []
        for factor in self.space:
            name = factor.name
            kept = ((self._only[name], True),) if name in self._only else ()
            choices.append((*kept, (self._held[name], held[name])) if name in held else kept)
        return Region(self.space, tuple(choices))

    @cached_property
    def _held(self) -> dict[str, Sequence[int]]:
        """Held-out digits by factor, in the order of the factors: equal divisions, equal data."""
        return {
            f.name: f.digits(self.hold_out[f.name]) for f in self._inner if f.name in self.hold_out
        }

    @cached_property
    def bounds(self) -> dict[str, tuple[int, int]]:
        """First and one-past-last position of each part, in the permuted order."""
        total = self._ordinary.size
        test = _count(self.test, total, "test")
        validation = _count(self.validation, total, "validation")
        return {
            TEST: (0, test),
            VALIDATION: (test, test + validation),
            TRAIN: (test + validation, total),
            ALL: (0, total),
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parts from which sets can be drawn."""
        extra = [EXTRAPOLATION] if self.hold_out else []
        extra += [f"{EXTRAPOLATION}/{name}" for name in self.hold_out]
        return (TRAIN, VALIDATION, TEST, ALL, *extra)

    def _key(self, *parts: object) -> bytes:
        held = {name: describe_values(digits) for name, digits in self._held.items()}
        data: list[object] = [self.space.digest, self.seed, held, [str(p) for p in parts]]
        if self._only:  # nothing is added without it: the digests of published sets must stay
            data.append({name: describe_values(digits) for name, digits in self._only.items()})
        return digest(data).encode()

    @cached_property
    def _permutation(self) -> Permutation:
        return Permutation(self._ordinary.size, self._key("order"))

    def part_size(self, part: str) -> int:
        """Returns the number of states in a part.

        Raises:
            UnknownNameError: there is no such part.
        """
        if part not in self.names:
            raise UnknownNameError("split", part, self.names)
        if part in self.bounds:
            low, high = self.bounds[part]
            return high - low
        return self._extrapolation(part).size

    def _extrapolation(self, part: str) -> Region:
        factor = part.partition("/")[2]
        return self._region({n: factor in ("", n) for n in self.hold_out})

    def take(self, part: str, size: int | None = None, *, order: int = 0) -> StateSet:
        """Returns the first ``size`` states of a part.

        Args:
            part: one of ``names``.
            size: number of states; all of the part when None.
            order: another nested order of the same part, e.g. one per training seed. The part
                itself, and with it the test set, stays the same.

        Raises:
            UnknownNameError: there is no such part.
            StateError: the part has fewer states.
        """
        available = self.part_size(part)
        size = available if size is None else size
        if not 1 <= size <= available:
            raise StateError(
                f"a {part!r} set of {size} states was asked for, and the {part!r} part has "
                f"{available} (of {self._inner.size} in the space); ask for 1 to {available}"
            )
        return StateSet(self, part, size, order)

    def part_of(self, index: int) -> str:
        """Returns the part a state belongs to: train, validation, test, or an extrapolation part.

        States that mix held-out values of some factors with ordinary ones of others belong to no
        set, but are held out as well: for them the part is ``"extrapolation"``, too. For states
        that ``only`` excludes it is ``"outside"``.
        """
        if self._only and self._region({}).local(index) is None:
            return OUTSIDE
        local = self._ordinary.local(index)
        if local is not None:
            position = self._permutation.position(local)
            return next(p for p in (TEST, VALIDATION, TRAIN) if position < self.bounds[p][1])
        for name in self.hold_out:
            part = f"{EXTRAPOLATION}/{name}"
            if self._extrapolation(part).local(index) is not None:
                return part
        return EXTRAPOLATION

    def require_trainable(self, index: int) -> None:
        """Refuses a state that is held out.

        Raises:
            TestStateError: the state is not in the train part.
        """
        part = self.part_of(index)
        if part != TRAIN:
            raise TestStateError(
                f"state {index} belongs to the {part!r} part and must not be trained on; "
                f"draw training states from the {TRAIN!r} part"
            )

    def describe(self) -> dict[str, Any]:
        """Returns the division as JSON-able data, from which it can be built again."""
        return {
            "space": self.space.digest,
            "space_size": str(self.space.size),
            "seed": self.seed,
            "validation": self.validation,
            "test": self.test,
            "hold_out": {k: describe_values(v) for k, v in self.hold_out.items()},
            "only": {k: describe_values(v) for k, v in self.only.items()},
        }


@dataclass(frozen=True)
class StateSet:
    """A frozen, ordered set of states; nested in every larger set of the same part and order.

    ``set[k]`` is its ``k``-th state and ``index in set`` tests membership; both take microseconds
    and no memory. Built by ``Splits.take``.
    """

    splits: Splits
    part: str
    size: int
    order: int = 0

    @cached_property
    def _base(self) -> tuple[Region, Permutation, int, int]:
        """Region, its permutation, and the first position and length of the part in it."""
        if self.part in self.splits.bounds:
            low, high = self.splits.bounds[self.part]
            return self.splits._ordinary, self.splits._permutation, low, high - low
        region = self.splits._extrapolation(self.part)
        key = self.splits._key("order", self.part)
        return region, Permutation(region.size, key), 0, region.size

    @cached_property
    def _shuffle(self) -> Permutation | None:
        # "all" spans the three parts, so its first states would be test states: always shuffle.
        if self.order == 0 and self.part != ALL:
            return None
        key = self.splits._key("shuffle", self.part, self.order)
        return Permutation(self._base[3], key)

    def __getitem__(self, k: int) -> State:
        k = operator.index(k)
        if not 0 <= k < self.size:
            raise StateError(f"state set {self.name} has states 0 to {self.size - 1}, got {k}")
        return self.splits.space.state(self._index(k))

    def _index(self, k: int) -> int:
        """Returns the index of the ``k``-th state."""
        region, permutation, low, _ = self._base
        k = k if self._shuffle is None else self._shuffle(k)
        return region.index(permutation(low + k))

    def __contains__(self, index: object) -> bool:
        # Indices read from a dataset are numpy integers: returning False for one would hide a leak.
        if not isinstance(index, int | np.integer) or not 0 <= index < self.splits.space.size:
            return False
        return self._has(int(index))

    def _has(self, index: int) -> bool:
        """Returns whether the state with this index belongs to the set."""
        region, permutation, low, length = self._base
        local = region.local(index)
        if local is None:
            return False
        k = permutation.position(local) - low
        if not 0 <= k < length:
            return False
        k = k if self._shuffle is None else self._shuffle.position(k)
        return k < self.size

    def __iter__(self) -> Iterator[State]:
        return map(self.__getitem__, range(self.size))

    def draw(self, rng: np.random.Generator) -> State:
        """Returns a uniformly random state of the set."""
        bits = self.size.bit_length()
        while True:  # rejection keeps it exactly uniform at any size; two draws on average
            k = int.from_bytes(rng.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
            if k < self.size:
                return self[k]

    def require_trainable(self) -> None:
        """Refuses a set with held-out states.

        Raises:
            TestStateError: the set is not drawn from the train part.
        """
        if self.part != TRAIN:
            raise TestStateError(
                f"state set {self.name} is drawn from the {self.part!r} part and must not be "
                f"trained on; use split {TRAIN!r}"
            )

    @cached_property
    def digest(self) -> str:
        """Digest of this ordered set of states, 16 hex digits."""
        return digest(
            [
                self.splits._key("order").decode(),
                [str(n) for part in (TEST, VALIDATION) for n in self.splits.bounds[part]],
                [self.part, str(self.size), self.order],
            ]
        )

    @property
    def name(self) -> str:
        """Readable name of part, size, and the digest that makes it exact."""
        return f"{self.part}-{self.size}-{self.digest[:8]}"

    def describe(self) -> dict[str, Any]:
        """Returns the set as JSON-able data: its division, part, size, order and digest."""
        return {
            "name": self.name,
            "digest": self.digest,
            "part": self.part,
            "size": str(self.size),
            "order": self.order,
            "splits": self.splits.describe(),
        }


def _at(values: Sequence[Value], digits: Sequence[int]) -> Sequence[Value]:
    """Returns the values with these ascending digits; a range of a range remains a range."""
    if isinstance(values, range) and isinstance(digits, range):
        return values[digits.start : digits.stop : digits.step]
    return tuple(values[digit] for digit in digits)


def _count(amount: float, total: int, name: str) -> int:
    """Returns the number of states given by a fraction below 1 or by a count."""
    finite = not isinstance(amount, bool) and math.isfinite(amount)
    if not finite or amount < 0 or (amount >= 1 and amount != int(amount)):
        raise StateError(
            f"{name}={amount!r}: expected a fraction from 0 up to (not including) 1, "
            f"or a whole number of states"
        )
    count = int(Fraction(str(amount)) * total) if amount < 1 else int(amount)
    if count > total:
        raise StateError(f"{name}={amount}: the space has only {total} ordinary states")
    return count
