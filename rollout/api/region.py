"""Sub-products of a state space: the remaining values of each factor, and a number per state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rollout.api.state import StateSpace, length


@dataclass(frozen=True)
class Region:
    """A sub-product of a space: the remaining digits of each factor.

    ``digits[i]`` is ``None`` for all of factor ``i``; otherwise ``(digits, keep)``: the digits in
    ascending order, a range if they are evenly spaced, which are kept or removed.

    Attributes:
        space: the space that contains it.
        digits: the remaining digits of each factor.
        outer: the region of a larger space that ``space`` is, if any: ``index`` and ``local`` then
            refer to the states of that larger space.
    """

    space: StateSpace
    digits: tuple[tuple[Sequence[int], bool] | None, ...]
    outer: Region | None = None

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of remaining digits of each factor."""
        sizes = [factor.size for factor in self.space.factors]
        for i, choice in enumerate(self.digits):
            if choice is not None:
                sizes[i] = length(choice[0]) if choice[1] else sizes[i] - length(choice[0])
        return tuple(sizes)

    @cached_property
    def size(self) -> int:
        """Exact number of states."""
        return math.prod(self.sizes)

    def index(self, local: int) -> int:
        """Returns the index, in the whole space, of the region's state number ``local``."""
        digits = []
        for size, choice in zip(reversed(self.sizes), reversed(self.digits), strict=True):
            local, digit = divmod(local, size)
            if choice is not None:
                digit = choice[0][digit] if choice[1] else _skip(choice[0], digit)
            digits.append(digit)
        index = self.space.index_of_digits(digits[::-1])
        return index if self.outer is None else self.outer.index(index)

    def local(self, index: int) -> int | None:
        """Returns the number, within the region, of a state of the space; None if it is outside.

        Raises:
            StateError: the space has no state with this index.
        """
        inner = index if self.outer is None else self.outer.local(index)
        if inner is None:
            return None
        number = 0
        for digit, size, choice in zip(
            self.space.digits(inner), self.sizes, self.digits, strict=True
        ):
            own = digit
            if choice is not None:
                at = _rank(choice[0], digit)
                listed = at < length(choice[0]) and choice[0][at] == digit
                if listed != choice[1]:
                    return None
                own = at if choice[1] else digit - at
            number = number * size + own
        return number


def _rank(ascending: Sequence[int], digit: int) -> int:
    """How many are smaller than ``digit``; as ``bisect``, for ranges of any length."""
    low, high = 0, length(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < digit:
            low = middle + 1
        else:
            high = middle
    return low


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
