"""What a model has seen and said in its episode: the memory of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollout.api import Array, Columns, Start

MEMORY = "dialogue"


@dataclass(frozen=True)
class Turn:
    """One earlier step: the message about its observation, its picture, and the answer."""

    asked: str
    picture: bytes
    answered: str


@dataclass(frozen=True)
class Dialogue:
    """The memory of one episode.

    Attributes:
        seed: of the episode.
        state: index of the state it began in; None for an episode that is an example itself.
        step: number of the next step.
        turns: the last turns, oldest first.
        kept: fields of answers that are kept, by name.
        last: the last action that was played, as text.
        problem: why the last answer could not be used; empty if it could.
        unusable: steps in a row without a usable answer.
        same: steps in a row after which nothing had changed.
        seen: digest of the last observation.
        calls: number of calls so far.
    """

    seed: int = 0
    state: int | None = None
    step: int = 0
    turns: tuple[Turn, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    last: str = ""
    problem: str = ""
    unusable: int = 0
    same: int = 0
    seen: bytes = b""
    calls: int = 0


def begin(starts: Sequence[Start]) -> Columns:
    """Returns the memory of new episodes, a column of objects."""
    return column([Dialogue(seed=start.seed, state=start.state.index) for start in starts])


def column(dialogues: Sequence[Any]) -> Columns:
    """Returns the memory with one dialogue, or 0 for no episode, per row."""
    rows: Array = np.zeros(len(dialogues), object)
    for number, dialogue in enumerate(dialogues):
        rows[number] = dialogue
    return {MEMORY: rows}
