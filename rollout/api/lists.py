"""List sets: training sets by the rule of MCU's own code, entries of three lists (``take_lists``).

In MineStudio's branch ``mcu_zxy``, behind MCU's Appendix D, a training set is the product of the
first E entries of a list of equipment, the first S of a list of places of sheep and the first O of
a list of other animals; its number of states is E x S x O. What no list decides, such as the
terrain, is random. ``docs/state-sets.md`` compares this with random sets.

**Rule.** Each list is a product of factors, numbered like a state space: the last factor varies
fastest. The lengths follow those of the branch, see ``RUNS``, geometrically interpolated, and no
list exceeds its number of entries; the set for N has the least lengths whose product is at least
N. A state is one combination of entries, each in one state only. The other factors are drawn from
all their values, by a hash of the combination, such that the state is a train state; so sets of
one ``order`` that have all of their combinations are nested.

Nothing is stored; a state and ``in`` take less than a millisecond.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from itertools import chain
from typing import Any

from rollout.api.permutation import Permutation
from rollout.api.sets import TRAIN, Splits, StateSet
from rollout.api.state import digest, from_digits, to_digits
from rollout.errors import StateError, UnknownNameError

LISTS = "lists"
NAMES = ("equipment", "sheep", "other")
"""The three lists of the branch."""
RUNS = ((1, 1, 1), (100, 10, 10), (100, 100, 100), (771, 441, 577))
"""Lengths of the lists: those of its runs "10k" and "1million", and the whole lists.

The branch has no run below 10,000 states: there the lengths are an interpolation from one state.
"""

_STEPS = 2**12  # between two runs
_BEYOND = 10**30  # for lists that are longer than those of the branch: all grow alike
_TRIES = 256
_RARE = 1e-12  # probability that a combination has no train state among its tries


@dataclass(frozen=True)
class ListStates(StateSet):
    """Train states with the first entries of three lists; made by ``take_lists``.

    Attributes:
        lists: names of the factors of each list.
        lengths: number of entries that each list keeps.
    """

    lists: tuple[tuple[str, ...], ...] = ()
    lengths: tuple[int, ...] = ()

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

    def _number(self, entries: Sequence[int]) -> int:
        """The ordinary number of the state with these entries of the lists."""
        sizes = self.splits._ordinary.sizes
        low, high = self.splits.bounds[TRAIN]
        *_, free = self.sizes
        first = from_digits((*entries, 0), self.sizes)
        for attempt in range(min(free, _TRIES)):
            parts = (*entries, self._free(first + attempt) % free)
            digits = [0] * len(sizes)
            for places, part in zip(self._places, parts, strict=True):
                own = to_digits(part, [sizes[place] for place in places])
                for place, digit in zip(places, own, strict=True):
                    digits[place] = digit
            number = int(from_digits(digits, sizes))
            if low <= self.splits._permutation.position(number) < high:
                return number
        raise StateError(f"state set {self.name}: no train state has the entries {list(entries)}")

    def _index(self, k: int) -> int:
        entries = to_digits(self._within(k), self.lengths)
        return self.splits._ordinary.index(self._number(entries))

    def _has(self, index: int) -> bool:
        ordinary = self.splits._ordinary
        local = ordinary.local(index)
        if local is None:
            return False
        digits = to_digits(local, ordinary.sizes)
        entries = [
            from_digits([digits[place] for place in each], [ordinary.sizes[p] for p in each])
            for each in self._places[:-1]
        ]
        if any(entry >= kept for entry, kept in zip(entries, self.lengths, strict=True)):
            return False
        place = self._within.position(from_digits(entries, self.lengths))
        return place < self.size and self._number(entries) == local

    @cached_property
    def digest(self) -> str:
        """Digest of this ordered set of states, 16 hex digits."""
        lengths = [str(kept) for kept in self.lengths]
        return digest([super().digest, LISTS, [list(each) for each in self.lists], lengths])

    @property
    def name(self) -> str:
        """Readable name: part, design, size, and the digest that makes it exact."""
        return f"{self.part}-{LISTS}-{self.size}-{self.digest[:8]}"

    def describe(self) -> dict[str, Any]:
        """Returns the set as JSON-able data, with the factors and the length of each list."""
        return {
            **super().describe(),
            "subset": LISTS,
            "lists": dict(zip(NAMES, map(list, self.lists), strict=True)),
            "lengths": dict(zip(NAMES, map(str, self.lengths), strict=True)),
        }


def take_lists(
    splits: Splits, size: int, lists: Mapping[str, Sequence[str]], *, order: int = 0
) -> ListStates:
    """Returns a training set from the first entries of three lists.

    Args:
        splits: the division of the space; it and its other sets do not change.
        size: number of states.
        lists: the factors of each of the lists ``NAMES``.
        order: another random order, with other values of the factors that are in no list.

    Raises:
        UnknownNameError: a list or a factor does not exist.
        StateError: a list is missing or empty, a factor is in two, the lists have fewer
            combinations than ``size``, or too few values remain for the factors in no list.
    """
    splits.take(TRAIN, size)  # says what is wrong with the size
    whole = ListStates(splits, TRAIN, size, order, _checked(splits, lists))
    *most, free = whole.sizes
    if math.prod(most) < size:
        have = ", ".join(f"{name} {entries:,}" for name, entries in zip(NAMES, most, strict=True))
        raise StateError(
            f"a list set of {size} states was requested, and the lists have {math.prod(most)} "
            f"combinations ({have}); ask for 1 to {math.prod(most)}, or name more factors"
        )
    share = splits.part_size(TRAIN) / splits._ordinary.size
    if (1 - share) ** min(free, _TRIES) * size > _RARE:
        raise StateError(
            f"the factors in no list have {free} combinations of values, too few to find a train "
            f"state for each of {size} combinations of entries; take factors out of state_set."
            f"{LISTS}, or make test and validation smaller"
        )
    steps = range(len(RUNS) * _STEPS)
    step = bisect_left(steps, size, key=lambda at: math.prod(_lengths(most, at)))
    return ListStates(splits, TRAIN, size, order, whole.lists, _lengths(most, step))


def _checked(splits: Splits, lists: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """The factors of each list, in the order of ``NAMES``."""
    for name in lists:
        if name not in NAMES:
            raise UnknownNameError(f"list in state_set.{LISTS}", name, NAMES)
    named = tuple(tuple(lists.get(name, ())) for name in NAMES)
    every = [factor for each in named for factor in each]
    for factor in every:
        splits.space.factor(factor)
    if not all(named) or len(set(every)) != len(every):
        raise StateError(
            f"state_set.{LISTS}: expected the factors of each of {', '.join(NAMES)}, every factor "
            f"in one list at most, got {dict(zip(NAMES, map(list, named), strict=True))}"
        )
    return named


def _lengths(most: Sequence[int], step: int) -> tuple[int, ...]:
    """Lengths of the lists at a step; none decreases with it, up to the whole lists."""
    ends = (*RUNS, tuple(_BEYOND * entries for entries in RUNS[-1]))
    run = min(step // _STEPS, len(RUNS) - 1)
    kept = []
    for entries, low, high in zip(most, ends[run], ends[run + 1], strict=True):
        with localcontext(prec=60):  # decimals are the same everywhere; powers of floats are not
            within = Decimal(step - run * _STEPS) / _STEPS
            grown = low * ((Decimal(high) / low).ln() * within).exp()
            kept.append(min(entries, int(grown + Decimal("0.5"))))
    return tuple(kept)
