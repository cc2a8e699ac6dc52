"""Sub-products of a state space: the remaining values of each factor, and a number per state."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rollout.api.state import StateSpace, from_digits, length, to_digits


@dataclass(frozen=True)
class Region:
    """A sub-product of a space: the remaining digits of each factor.

    Attributes:
        space: the space that contains it.
        digits: ``(digits, keep)`` for each factor: digits in ascending order, a range if they are
            evenly spaced, and whether they are kept or removed.
        outer: the region of a larger space that ``space`` is, if any: ``index`` and ``local`` then
            refer to the states of that larger space.
    """

    space: StateSpace
    digits: tuple[tuple[Sequence[int], bool], ...]
    outer: Region | None = None

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of remaining digits of each factor."""
        return tuple(
            length(listed) if keep else factor.size - length(listed)
            for factor, (listed, keep) in zip(self.space, self.digits, strict=True)
        )

    @cached_property
    def size(self) -> int:
        """Exact number of states."""
        return math.prod(self.sizes)

    def index(self, local: int) -> int:
        """Returns the index, in the whole space, of the region's state number ``local``."""
        digits = [
            listed[rank] if keep else _skip(listed, rank)
            for rank, (listed, keep) in zip(to_digits(local, self.sizes), self.digits, strict=True)
        ]
        index = self.space.index_of_digits(digits)
        return index if self.outer is None else self.outer.index(index)

    def local(self, index: int) -> int | None:
        """Returns the number, within the region, of a state of the space; None if it is outside.

        Raises:
            StateError: the space has no state with this index.
        """
        inner = index if self.outer is None else self.outer.local(index)
        if inner is None:
            return None
        own = []
        for digit, (listed, keep) in zip(self.space.digits(inner), self.digits, strict=True):
            rank = _rank(listed, digit)
            if (rank < length(listed) and listed[rank] == digit) != keep:
                return None
            own.append(rank if keep else digit - rank)
        return int(from_digits(own, self.sizes))


def _rank(ascending: Sequence[int], digit: int) -> int:
    """How many are smaller than ``digit``; as ``bisect``, for ranges of any length."""
    if isinstance(ascending, range):
        return length(range(ascending.start, min(digit, ascending.stop), ascending.step))
    return bisect_left(ascending, digit)


def _skip(removed: Sequence[int], rank: int) -> int:
    """The ``rank``-th of 0, 1, 2, ... without the ascending ``removed``."""
    low, high = 0, length(removed)
    while low < high:
        middle = (low + high) // 2
        if removed[middle] - middle <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + low
