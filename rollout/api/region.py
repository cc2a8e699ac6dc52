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
