"""Prefix sets, list sets and sets given by indices; see ``docs/state-sets.md``.

A *prefix set* has training states from the first values of every factor, not from all of them. A
factor of ``s`` ordinary values keeps its first ``round(s ** a)``, at least one, in the order the
task lists them: all factors grow together. ``a`` is the least multiple of 2**-20 whose sub-product
has the required number of states of the *train* part. Of these the set takes the first N in a
random order of the sub-product. The division is the same as for every other set. Building a prefix
set takes about 50 microseconds per state; indexing and ``in`` take microseconds.

A *list set* follows MineStudio's branch ``mcu_zxy``, the code of MCU's Appendix D. There a training
set is the product of the first E entries of a list of equipment, the first S of a list of places of
sheep and the first O of a list of other animals; its number of states is E x S x O. What no list
decides, such as the terrain, is random. Each list is a product of factors, numbered like a state
space: the last factor varies fastest. The lengths follow those of the branch, see ``LIST_RUNS``,
geometrically interpolated, and no list exceeds its number of entries; the set for N has the least
lengths whose product is at least N. A state is one combination of entries, each in one state only.
The other factors are drawn from all their values, by a hash of the combination, such that the state
is a train state; so sets of one ``order`` that have all of their combinations are nested. Nothing
is stored; a state and ``in`` take less than a millisecond.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from functools import cache, cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollout.api.permutation import Permutation
from rollout.api.sets import TRAIN, Splits, StateSet
from rollout.api.state import digest, from_digits, to_digits
from rollout.errors import StateError, UnknownNameError

PREFIX = "prefix"
CHOSEN = "chosen"
"""Part of a set that is given by indices."""
MOST = 10_000_000
"""Maximum number of states in a prefix set: they are found one by one and stored."""

_STEPS = 2**20  # of the exponent ``a``, so that it is exact on every machine
_DECIMAL = Context(prec=60)  # decimal arithmetic is the same everywhere; powers of floats are not
_LARGEST_INT64 = 2**62  # spaces up to here are numbered in machine integers
_BATCH = 2**18
LISTS = "lists"
LIST_NAMES = ("equipment", "sheep", "other")
"""The three lists of the branch."""
LIST_RUNS = ((1, 1, 1), (100, 10, 10), (100, 100, 100), (771, 441, 577))
"""Lengths of the lists: those of its runs "10k" and "1million", and the whole lists.

The branch has no run below 10,000 states: there the lengths are an interpolation from one state.
"""

_LIST_STEPS = 2**12  # between two runs
_BEYOND = 10**30  # for lists that are longer than those of the branch: all grow alike
_TRIES = 1024
_RARE = 1e-12  # probability that a combination has no train state among its tries


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
        """Digest of this ordered set of states, 16 hex digits."""
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
    splits.take(TRAIN, size)  # raises the error of an invalid size
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
    """Returns the given lengths, in the order of the factors."""
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
    """Returns the number of values of each factor at the exponent ``step / 2**20``."""
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


@dataclass(frozen=True)
class ListStates(StateSet):
    """Train states with the first entries of three lists; made by ``take_lists``.

    Attributes:
        lists: names of the factors of each list.
        lengths: number of entries that each list keeps.
        shuffled: whether the entries of each list are in a random order, which ``order`` chooses.
        cut: the lists that keep their first entries; states have random entries of the others.
    """

    lists: tuple[tuple[str, ...], ...] = ()
    lengths: tuple[int, ...] = ()
    shuffled: bool = False
    cut: tuple[str, ...] = LIST_NAMES

    @cached_property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the factors of each list among all, then those of all other factors."""
        names = [factor.name for factor in self.splits.space]
        listed = [tuple(map(names.index, each)) for each in self.lists]
        return (*listed, tuple(sorted(set(range(len(names))) - set(chain(*listed)))))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of entries of each list, then of combinations of all other factors."""
        sizes = self.splits._ordinary.sizes
        return tuple(math.prod(sizes[place] for place in each) for each in self._places)

    @cached_property
    def _within(self) -> Permutation:
        """The random order of the combinations."""
        key = self.splits._key(LISTS, self.lists, self.lengths, self.order)
        return Permutation(math.prod(self.lengths), key)

    @cached_property
    def _free(self) -> Permutation:
        """Draws the values of all other factors; it does not depend on the lengths."""
        return Permutation(math.prod(self.sizes), self.splits._key(LISTS, self.lists, self.order))

    @cached_property
    def _entries(self) -> tuple[Permutation, ...]:
        """The order of each list if it is shuffled; it does not depend on the lengths."""
        return tuple(
            Permutation(entries, self.splits._key(LISTS, name, each, self.order))
            for name, each, entries in zip(LIST_NAMES, self.lists, self.sizes, strict=False)
        )

    def _number(self, entries: Sequence[int]) -> int:
        """Returns the ordinary number of the state with these entries of the lists."""
        sizes = self.splits._ordinary.sizes
        low, high = self.splits.bounds[self.part]
        *most, rest = self.sizes
        whole = [size if n not in self.cut else 1 for n, size in zip(LIST_NAMES, most, strict=True)]
        first = from_digits((*entries, 0), self.sizes)
        for attempt in range(min(rest, _TRIES)):
            drawn, part = divmod(self._free(first + attempt) % (math.prod(whole) * rest), rest)
            drawn_entries = zip(LIST_NAMES, entries, to_digits(drawn, whole), strict=True)
            parts = [own if name in self.cut else other for name, own, other in drawn_entries]
            parts.append(part)
            digits = [0] * len(sizes)
            for places, part in zip(self._places, parts, strict=True):
                own = to_digits(part, [sizes[place] for place in places])
                for place, digit in zip(places, own, strict=True):
                    digits[place] = digit
            number = int(from_digits(digits, sizes))
            if low <= self.splits._permutation.position(number) < high:
                return number
        raise StateError(
            f"state set {self.name}: no {self.part} state has the entries {list(entries)}"
        )

    def _index(self, k: int) -> int:
        entries = to_digits(self._within(k), self.lengths)
        return self.splits._ordinary.index(self._number(self._shuffled(entries)))

    def _has(self, index: int) -> bool:
        ordinary = self.splits._ordinary
        local = ordinary.local(index)
        if local is None:
            return False
        low, high = self.splits.bounds[self.part]
        digits = to_digits(local, ordinary.sizes)
        entries = [
            from_digits([digits[place] for place in each], [ordinary.sizes[p] for p in each])
            for each in self._places[:-1]
        ]
        if not low <= self.splits._permutation.position(local) < high:
            return False
        if self.shuffled:
            entries = [order.position(e) for order, e in zip(self._entries, entries, strict=True)]
        kept = zip(LIST_NAMES, entries, self.lengths, strict=True)
        own = [(e,) if name in self.cut else range(length) for name, e, length in kept]
        return any(
            self._within.position(from_digits(listed, self.lengths)) < self.size
            and self._number(self._shuffled(listed)) == local
            for listed in product(*own)
            if all(e < length for e, length in zip(listed, self.lengths, strict=True))
        )

    def _shuffled(self, entries: Sequence[int]) -> Sequence[int]:
        """Returns the entries at these positions of the lists."""
        if not self.shuffled:
            return entries
        return [order(e) for order, e in zip(self._entries, entries, strict=True)]

    def of_part(self, part: str, size: int) -> ListStates:
        """Returns states of another part with the entries of this set, each combination once.

        Args:
            part: ``test`` or ``validation``.
            size: number of states; all combinations if there are fewer.

        Raises:
            StateError: too few values remain for the factors in no list.
        """
        made = replace(self, part=part, size=min(size, math.prod(self.lengths)))
        made._require_free(made.size)
        return made

    def _require_free(self, size: int) -> None:
        """Checks that the factors in no list let each combination be in a state of the part."""
        free = self.sizes[-1]
        share = self.splits.part_size(self.part) / self.splits._ordinary.size
        if (1 - share) ** min(free, _TRIES) * size > _RARE:
            larger = f"{self.part} larger" if self.part != TRAIN else "test and validation smaller"
            raise StateError(
                f"the factors in no list have {free} combinations of values, too few to find a "
                f"{self.part} state for each of {size} combinations of entries; take factors out "
                f"of state_set.{LISTS}, or make {larger}"
            )

    @cached_property
    def digest(self) -> str:
        """Digest of this ordered set of states, 16 hex digits."""
        lengths = [str(kept) for kept in self.lengths]
        design = ["shuffled"] if self.shuffled else []
        design += ["cut", *self.cut] if self.cut != LIST_NAMES else []
        return digest(
            [super().digest, LISTS, [list(each) for each in self.lists], lengths, *design]
        )

    @property
    def name(self) -> str:
        """Readable name: part, design, size, and the digest that makes it exact."""
        return f"{self.part}-{LISTS}-{self.size}-{self.digest[:8]}"

    def describe(self) -> dict[str, Any]:
        """Returns the set as JSON-able data, with the factors and the length of each list."""
        return {
            **super().describe(),
            "subset": LISTS,
            "lists": dict(zip(LIST_NAMES, map(list, self.lists), strict=True)),
            "lengths": dict(zip(LIST_NAMES, map(str, self.lengths), strict=True)),
            **({"shuffled": True} if self.shuffled else {}),
            **({"cut": list(self.cut)} if self.cut != LIST_NAMES else {}),
        }


def take_lists(
    splits: Splits,
    size: int,
    lists: Mapping[str, Sequence[str]],
    *,
    order: int = 0,
    shuffled: bool = False,
    cut: Sequence[str] = LIST_NAMES,
) -> ListStates:
    """Returns a training set from the first entries of three lists.

    Args:
        splits: the division of the space; it and its other sets do not change.
        size: number of states.
        lists: the factors of each of the lists ``LIST_NAMES``.
        order: another random order, with other values of the factors that are in no list.
        shuffled: put the entries of each list in a random order, which ``order`` chooses too.
        cut: the lists that keep their first entries. States have random entries of the others, and
            two of a set may be the same by chance.

    Raises:
        UnknownNameError: a list or a factor does not exist.
        StateError: a list is missing or empty, a factor is in two, the lists have fewer
            combinations than ``size``, or too few values remain for the factors in no list.
    """
    splits.take(TRAIN, size)  # raises the error of an invalid size
    for name in cut:
        _require_list(name, "cut")
    whole = ListStates(splits, TRAIN, size, order, _checked(splits, lists))
    *most, _ = whole.sizes
    if math.prod(most) < size:
        have = ", ".join(
            f"{name} {entries:,}" for name, entries in zip(LIST_NAMES, most, strict=True)
        )
        raise StateError(
            f"a list set of {size} states was requested, and the lists have {math.prod(most)} "
            f"combinations ({have}); ask for 1 to {math.prod(most)}, or name more factors"
        )
    whole._require_free(size)
    steps = range(len(LIST_RUNS) * _LIST_STEPS)
    step = bisect_left(steps, size, key=lambda at: math.prod(_lengths(most, at)))
    lengths = _lengths(most, step)
    chosen = tuple(name for name in LIST_NAMES if name in cut)
    return ListStates(splits, TRAIN, size, order, whole.lists, lengths, shuffled, chosen)


def _require_list(name: str, key: str) -> None:
    """Checks that a key names one of the lists."""
    if name not in LIST_NAMES:
        raise UnknownNameError(f"list in state_set.{key}", name, LIST_NAMES)


def _checked(splits: Splits, lists: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Returns the factors of each list, in the order of ``LIST_NAMES``."""
    for name in lists:
        _require_list(name, LISTS)
    named = tuple(tuple(lists.get(name, ())) for name in LIST_NAMES)
    every = [factor for each in named for factor in each]
    for factor in every:
        splits.space.factor(factor)
    if not all(named) or len(set(every)) != len(every):
        given = dict(zip(LIST_NAMES, map(list, named), strict=True))
        raise StateError(
            f"state_set.{LISTS}: expected the factors of each of {', '.join(LIST_NAMES)}, every "
            f"factor in one list at most, got {given}"
        )
    return named


def _lengths(most: Sequence[int], step: int) -> tuple[int, ...]:
    """Returns the lengths of the lists at a step; none decreases with it, up to the whole lists."""
    ends = (*LIST_RUNS, tuple(_BEYOND * entries for entries in LIST_RUNS[-1]))
    run = min(step // _LIST_STEPS, len(LIST_RUNS) - 1)
    kept = []
    for entries, low, high in zip(most, ends[run], ends[run + 1], strict=True):
        with localcontext(prec=60):  # decimals are the same everywhere; powers of floats are not
            within = Decimal(step - run * _LIST_STEPS) / _LIST_STEPS
            grown = low * ((Decimal(high) / low).ln() * within).exp()
            kept.append(min(entries, int(grown + Decimal("0.5"))))
    return tuple(kept)
