"""State sets given by a list of indices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rollout.api.sets import Splits, StateSet
from rollout.api.state import State, digest
from rollout.errors import StateError

CHOSEN = "chosen"
"""What the part of such a set is called."""


@dataclass(frozen=True)
class ChosenStates(StateSet):
    """The states with these indices, in this order; made by ``choose``."""

    indices: tuple[int, ...] = ()

    @cached_property
    def _places(self) -> frozenset[int]:
        return frozenset(self.indices)

    def __getitem__(self, k: int) -> State:
        k = operator.index(k)
        if not 0 <= k < self.size:
            raise StateError(f"state set {self.name} has states 0 to {self.size - 1}, got {k}")
        return self.splits.space.state(self.indices[k])

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int | np.integer) and int(index) in self._places

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
