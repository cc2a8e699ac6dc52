"""What a model has seen and said in its episode: the memory of the policy."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rollout.api import Array, Columns, Start, StateSpace, Trial

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
        state: index of the state it began in; None where no examples are chosen by it.
        step: number of the next step.
        turns: the last turns, oldest first.
        kept: fields of answers that are kept, by name.
        last: the last action that was played, as text.
        problem: why the last answer could not be used; empty if it could.
        unusable: steps in a row without a usable answer.
        same: steps in a row after which nothing had changed.
        seen: digest of the last observation.
        calls: number of calls so far.
        episode: its number.
        log: marks the lines of this attempt in the log of the episode.
        earlier: how earlier episodes from the same state ended, oldest first.
        lessons: what the model wrote about them.
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
    episode: int = 0
    log: str = ""
    earlier: tuple[Trial, ...] = ()
    lessons: tuple[str, ...] = ()


def begin(starts: Sequence[Start], space: StateSpace | None, *, trials: bool) -> Columns:
    """Returns the memory of new episodes, a column of objects.

    Args:
        starts: how they begin.
        space: numbers their states; None for states without a number.
        trials: whether they know of earlier episodes and have logs.
    """
    found = []
    for start in starts:
        state = None if space is None else space.index(start.state.values)
        dialogue = Dialogue(seed=start.seed, state=state)
        if trials:
            dialogue = replace(
                dialogue, episode=start.episode, log=uuid.uuid4().hex, earlier=start.earlier
            )
        found.append(dialogue)
    return column(found)


def column(dialogues: Sequence[Any]) -> Columns:
    """Returns the memory with one dialogue, or 0 for no episode, per row."""
    rows: Array = np.zeros(len(dialogues), object)
    for number, dialogue in enumerate(dialogues):
        rows[number] = dialogue
    return {MEMORY: rows}
