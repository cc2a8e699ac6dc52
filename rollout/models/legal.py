"""Legal actions of a step in words, by the masks of a game; see ``rollout.api.masks``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import MASK, BridgeSpec, Columns
from rollout.api.masks import legal_values, masks_of
from rollout.api.types import Bools
from rollout.models.grammar import Row, UnusableAnswerError

_LONGEST_LIST = 64  # names that a problem lists


@dataclass(frozen=True)
class _Choice:
    """One choice of an action column: the names of its values, and its place in a row."""

    column: str
    place: int
    name: str
    values: tuple[str, ...]
    first: int
    bit: bool

    def chosen(self, row: Row) -> int:
        return int(np.ravel(row[self.column])[self.place]) - self.first

    def text(self, legal: Bools, most: int | None = None) -> str:
        if self.bit:
            return f"{self.name} must be {'in it' if legal[1] else 'left out'}"
        names = [name for name, may in zip(self.values, legal, strict=True) if may]
        listed = ", ".join(names[:most]) + (", ..." if most and len(names) > most else "")
        return f"{self.name}: {listed}" if self.name else listed


class LegalActions:
    """The legal actions of each step; false where the game has no masks.

    Args:
        spec: the game.
    """

    def __init__(self, spec: BridgeSpec) -> None:
        self._spec = spec
        self._masks = masks_of(spec.observation_space, spec.action_space)
        self._choices = {key: tuple(self._of(key.removeprefix(MASK))) for key in self._masks}

    def __bool__(self) -> bool:
        return bool(self._masks)

    def _of(self, column: str) -> Iterator[_Choice]:
        leaf, labels = self._spec.action_space.spaces[column], self._spec.action_labels
        whole = "" if len(self._spec.action_space.spaces) == 1 else f'"{column}"'
        if isinstance(leaf, spaces.Discrete):
            yield _choice(column, 0, whole, labels.get(column), int(leaf.n), int(leaf.start))
            return
        bit = isinstance(leaf, spaces.MultiBinary)
        sizes = self._masks[MASK + column]
        starts = np.ravel(getattr(leaf, "start", 0)) + np.zeros(len(sizes), np.int64)
        names = labels.get(column) or [str(n) for n in range(len(sizes))]
        for place, (name, size, start) in enumerate(zip(names, sizes, starts, strict=True)):
            shown = f'{whole} "{name}"'.strip()
            given = labels.get(f"{column}/{name}")
            yield _choice(column, place, shown, given, size, int(start), bit=bit)

    def text(self, observations: Columns, row: int) -> str:
        """Returns what is legal of the choices that are restricted; empty if none is."""
        found = self._restricted(observations, row)
        return "; ".join(choice.text(legal) for choice, legal in found)

    def require(self, action: Row, observations: Columns, row: int) -> None:
        """Checks that an action is legal.

        Raises:
            UnusableAnswerError: it is not.
        """
        for choice, legal in self._restricted(observations, row):
            if not legal[choice.chosen(action)]:
                what = choice.values[choice.chosen(action)]
                raise UnusableAnswerError(
                    "illegal",
                    f"{what} is not legal now; legal: {choice.text(legal, _LONGEST_LIST)}",
                )

    def nearest(
        self, action: Row, observations: Columns, row: int, rng: np.random.Generator
    ) -> Row:
        """Returns an action whose illegal choices are drawn among the legal ones."""
        changed: dict[str, Any] = {}
        for choice, legal in self._restricted(observations, row):
            if legal[choice.chosen(action)]:
                continue
            column = choice.column
            value = np.array(changed.get(column, action[column]))
            value.reshape(-1)[choice.place] = choice.first + rng.choice(np.flatnonzero(legal))
            changed[column] = value if value.ndim else int(value)
        return {**action, **changed}

    def _restricted(self, observations: Columns, row: int) -> Iterator[tuple[_Choice, Bools]]:
        for key, sizes in self._masks.items():
            legal = legal_values(observations[key][row][None], sizes)[0]
            parts = np.split(legal, np.cumsum(sizes)[:-1])
            for choice, own in zip(self._choices[key], parts, strict=True):
                if not own.all():
                    yield choice, own


def _choice(
    column: str, place: int, name: str, values: Any, count: int, first: int, *, bit: bool = False
) -> _Choice:
    if bit:
        names: tuple[str, ...] = (f"leaving out {name}", name)
    elif values:
        names = tuple(f'"{value}"' for value in values)
    else:
        names = tuple(str(first + n) for n in range(count))
    return _Choice(column, place, name, names, first, bit)
