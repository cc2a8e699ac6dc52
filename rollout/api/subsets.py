"""Other state sets: prefix sets, and sets given by a list of indices (``choose``).

A *prefix set* has training states from the first values of every factor, not from all of them. The
rule of MCU's experiment (Appendix D) is another one: ``rollout.api.lists``. See
``docs/state-sets.md`` for both.

**Rule.** A factor of ``s`` ordinary values keeps its first ``round(s ** a)``, at least one, in the
order the task lists them: all factors grow together. ``a`` is the least multiple of 2**-20 whose
sub-product has the required number of states of the *train* part. Of these the set takes the first
N in a random order of the sub-product. The division is the same as for every other set.

Building a prefix set takes about 50 microseconds per state; indexing and ``in`` take microseconds.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api.permutation import Permutation
from rollout.api.sets import TRAIN, Splits, StateSet
from rollout.api.state import digest, from_digits, to_digits
from rollout.errors import StateError

PREFIX = "prefix"
CHOSEN = "chosen"
"""What the part of a set is called that is given by indices."""
MOST = 10_000_000
"""Maximum number of states in a prefix set: they are found one by one and stored."""

_STEPS = 2**20  # of the exponent ``a``, so that it is exact on every machine
_DECIMAL = Context(prec=60)  # decimal arithmetic is the same everywhere; powers of floats are not
_LARGEST_INT64 = 2**62  # spaces up to here are numbered in machine integers
_BATCH = 2**18


@dataclass(frozen=True)
class PrefixStates(StateSet):
    """Train states among the first values of every factor; made by ``take_prefix``.

    Attributes:
        lengths: number of ordinary values that each factor keeps, in the order of the factors.
    """

    lengths: tuple[int, ...] = ()

    @cached_property
    def _within(self) -> Permutation:
        """The random order of the sub-product."""
        key = self.splits._key(PREFIX, self.lengths, self.order)
        return Permutation(math.prod(self.lengths), key)

    @cached_property
    def _found(self) -> tuple[NDArray[Any], int]:
        """Ordinary numbers of the states, in order, and the position of the last one in the order.

        Fewer than ``size`` if the sub-product does not have as many train states.
        """
        ordinary, total = self.splits._ordinary, math.prod(self.lengths)
        low, high = self.splits.bounds[TRAIN]
        kind = np.int64 if ordinary.size <= _LARGEST_INT64 else np.object_
        share = (high - low) / ordinary.size
        parts: list[NDArray[Any]] = []
        missing, place, last = self.size, 0, -1
        while missing > 0 and place < total:
            count = min(_BATCH, total - place, int(1.1 * missing / share) + 64)
            places = np.arange(count, dtype=kind) + place
            digits = to_digits(self._within.many(places), self.lengths)
            numbers = from_digits(digits, ordinary.sizes)
            positions = self.splits._permutation.many(numbers, inverse=True)
            train = np.asarray((positions >= low) & (positions < high), bool)
            at = np.flatnonzero(train)[:missing]
            if len(at):
                last = place + int(at[-1])
            parts.append(numbers[at])
            missing -= len(at)
            place += count
        return np.concatenate(parts), last

    @property
    def available(self) -> int:
        """Number of states: ``size``, or fewer if the sub-product does not have as many."""
        return len(self._found[0])

    def _index(self, k: int) -> int:
        return self.splits._ordinary.index(int(self._found[0][k]))

    def _has(self, index: int) -> bool:
        ordinary = self.splits._ordinary
        local = ordinary.local(index)
        low, high = self.splits.bounds[TRAIN]
        if local is None or not low <= self.splits._permutation.position(local) < high:
            return False
        digits = to_digits(local, ordinary.sizes)
        if any(digit >= kept for digit, kept in zip(digits, self.lengths, strict=True)):
            return False
        number = from_digits(digits, self.lengths)
        return self._within.position(number) <= self._found[1]

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that name exactly this ordered set of states."""
        return digest([super().digest, PREFIX, [str(kept) for kept in self.lengths]])

    @property
    def name(self) -> str:
        """Readable name: part, design, size, and the digest that makes it exact."""
        return f"{self.part}-{PREFIX}-{self.size}-{self.digest[:8]}"

    def describe(self) -> dict[str, Any]:
        """Returns the set as JSON-able data, with how many values each factor keeps."""
        names = [factor.name for factor in self.splits.space]
        kept = {n: str(k) for n, k in zip(names, self.lengths, strict=True)}
        return {**super().describe(), "subset": PREFIX, "prefix": kept}


def take_prefix(
    splits: Splits, size: int, lengths: Mapping[str, int] | None = None, *, order: int = 0
) -> PrefixStates:
    """Returns a training set drawn from the first values of every factor.

    Args:
        splits: the division of the space; it and its other sets do not change.
        size: number of states.
        lengths: how many values some factors keep; the others grow by the rule of this module.
        order: another random order of the sub-product, e.g. one for each training seed.

    Raises:
        UnknownNameError: ``lengths`` names a factor that does not exist.
        StateError: a factor has fewer values than ``lengths`` asks for, or the sub-product has
            fewer train states than ``size``, or ``size`` is below 1 or above ``MOST``.
    """
    splits.take(TRAIN, size)  # says what is wrong with the size
    if size > MOST:
        raise StateError(
            f"a prefix set of {size} states was requested, but its states are stored one by one: "
            f"{MOST} at most; use a smaller one, or a random set, which has no such limit"
        )
    fixed = _fixed(splits, lengths or {})
    made: dict[tuple[int, ...], PrefixStates] = {}

    @cache
    def at(step: int) -> PrefixStates:
        kept = _grown(splits._ordinary.sizes, fixed, step)
        return made.setdefault(kept, PrefixStates(splits, TRAIN, size, order, kept))

    def states(step: int) -> int:
        return math.prod(at(step).lengths)

    def fits(step: int) -> bool:
        return states(step) >= size and at(step).available == size

    # Only a few sub-products are searched for train states: those of about the expected size.
    low = bisect_left(range(_STEPS), size, key=states)
    wanted = size * splits._ordinary.size // splits.part_size(TRAIN) + 1
    while not fits(high := bisect_left(range(_STEPS), wanted, lo=low, key=states)):
        if high == _STEPS:
            raise _too_small(at(high), fixed)
        low, wanted = high + 1, max(wanted, states(high)) * 5 // 4 + 1
    return at(low + bisect_left(range(low, high), True, key=fits))


def _fixed(splits: Splits, lengths: Mapping[str, int]) -> tuple[int | None, ...]:
    """The lengths that were given, in the order of the factors."""
    names = [factor.name for factor in splits.space]
    for name, kept in lengths.items():
        splits.space.factor(name)
        there = splits._ordinary.sizes[names.index(name)]
        if not 1 <= kept <= there:
            raise StateError(
                f"prefix.{name}={kept}: expected 1 to {there}, the number of values of {name!r} "
                f"that are available for training"
            )
    return tuple(lengths.get(name) for name in names)


def _grown(sizes: tuple[int, ...], fixed: tuple[int | None, ...], step: int) -> tuple[int, ...]:
    """Number of values of each factor at the exponent ``step / 2**20``."""
    kept = []
    for size, given in zip(sizes, fixed, strict=True):
        if given is not None or step == _STEPS:
            kept.append(size if given is None else given)
        else:
            exponent = _DECIMAL.divide(_DECIMAL.multiply(_ln(size), step), _STEPS)
            half_up = _DECIMAL.add(_DECIMAL.exp(exponent), Decimal("0.5"))
            kept.append(min(size, max(1, int(half_up))))
    return tuple(kept)


@cache
def _ln(size: int) -> Decimal:
    return _DECIMAL.ln(Decimal(size))


def _too_small(states: PrefixStates, fixed: tuple[int | None, ...]) -> StateError:
    factors = states.splits.space.factors
    given = {f.name: kept for f, kept in zip(factors, fixed, strict=True) if kept is not None}
    return StateError(
        f"a prefix set of {states.size} states was requested, and with the lengths {given} the "
        f"sub-product has {math.prod(states.lengths)} states, {states.available} of them in the "
        f"{TRAIN!r} part; ask for 1 to {states.available}, or give a factor more values"
    )


@dataclass(frozen=True)
class ChosenStates(StateSet):
    """The states with these indices, in this order; made by ``choose``."""

    indices: tuple[int, ...] = ()

    @cached_property
    def _places(self) -> frozenset[int]:
        return frozenset(self.indices)

    def _index(self, k: int) -> int:
        return self.indices[k]

    def _has(self, index: int) -> bool:
        return index in self._places

    def require_trainable(self) -> None:
        """Refuses a set with held-out states; see ``StateSet``."""
        for index in self.indices:
            self.splits.require_trainable(index)

    @cached_property
    def digest(self) -> str:
        """Digest of this ordered set of states, 16 hex digits."""
        return digest([self.splits.space.digest, CHOSEN, [str(i) for i in self.indices]])

    def describe(self) -> dict[str, Any]:
        """Returns the set as JSON-able data, with the index of every state."""
        return {**super().describe(), "indices": [str(index) for index in self.indices]}


def choose(splits: Splits, indices: Sequence[int]) -> ChosenStates:
    """Returns the set of the states with these indices.

    Raises:
        StateError: there are none, one is given twice, or one is out of range.
    """
    chosen = tuple(operator.index(index) for index in indices)
    if not chosen or len(set(chosen)) != len(chosen):
        raise StateError(f"expected different indices of states, at least one, got {chosen}")
    for index in chosen:
        splits.space.digits(index)
    return ChosenStates(splits, CHOSEN, len(chosen), 0, chosen)
