"""Return types of the reader: episodes without their steps, with their steps, and windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rollout.api import Array, Outcome
from rollout.api.fragment import End
from rollout.errors import DatasetError

_SET_NAME = re.compile(r"(.+)-\d+-[0-9a-f]{8}")


class Piece(NamedTuple):
    """Consecutive rows of a shard."""

    shard: int
    row_start: int
    rows: int


@dataclass(frozen=True)
class EpisodeRef:
    """One episode of a dataset, without its steps.

    Attributes:
        episode: its number.
        attempt: number of earlier, lost attempts.
        task: name of the task.
        state: index of its start state.
        state_set: set the state was drawn from.
        seed: randomness beyond the state.
        policy: name of the policy.
        version_first: weights that chose its first action; -1 without a step.
        version_last: weights that chose its last action.
        instance: game instance.
        slot: slot of the instance.
        length: completed steps.
        total_reward: undiscounted sum of rewards.
        progress: last progress, 0 to 1, NaN if undefined.
        outcome: decision of the evaluator.
        end: terminated, truncated or lost; of ``Dataset.unfinished``, unfinished or damaged.
        seconds: from the first observation to the end.
        started: when its first action was sent.
        phase: of a lost episode, the phase of the failure.
        reason: of a lost episode, the cause.
        pieces: positions of its steps.
    """

    episode: int
    attempt: int
    task: str
    state: int
    state_set: str
    seed: int
    policy: str
    version_first: int
    version_last: int
    instance: int
    slot: int
    length: int
    total_reward: float
    progress: float
    outcome: Outcome
    end: End
    seconds: float
    started: datetime
    phase: str | None
    reason: str | None
    pieces: tuple[Piece, ...]

    @cached_property
    def offsets(self) -> Array:
        """First step of each piece, and the length at the end."""
        return np.concatenate([[0], np.cumsum([p.rows for p in self.pieces], dtype=np.int64)])

    def rows(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Yields shard, first row and row after the last of steps ``start`` to ``stop``."""
        first = int(np.searchsorted(self.offsets, start, side="right")) - 1
        for k in range(first, len(self.pieces)):
            offset, piece = int(self.offsets[k]), self.pieces[k]
            if offset >= stop:
                break
            low = piece.row_start + max(start - offset, 0)
            yield piece.shard, low, piece.row_start + min(stop - offset, piece.rows)


@dataclass(frozen=True)
class Episode:
    """The steps of one episode.

    Attributes:
        ref: the episode.
        columns: ``{column: (T, ...)}``.
        final_observations: ``{key: (...)}`` after the last action, keys as in the observation
            space; empty if the end was not seen.
        final_details: data without a fixed shape after the last action.
    """

    ref: EpisodeRef
    columns: dict[str, Array]
    final_observations: dict[str, Array]
    final_details: Any = None


@dataclass(frozen=True)
class Window:
    """Consecutive steps of one episode.

    Attributes:
        ref: the episode.
        start: number of the first step.
        columns: ``{column: (length, ...)}``.
    """

    ref: EpisodeRef
    start: int
    columns: dict[str, Array]


@dataclass(frozen=True)
class Counts:
    """Numbers of episodes of each kind, and of steps in all of them."""

    terminated: int
    truncated: int
    lost: int
    unfinished: int
    damaged: int
    steps: int


class FinishedEpisodes(NamedTuple):
    """The episodes that a resumed run does not play again.

    Attributes:
        episodes: numbers of the episodes that ended and were not lost.
        attempts: highest attempt of every episode that has a step or was lost.
    """

    episodes: frozenset[int]
    attempts: dict[int, int]


def part_of_set(name: str) -> str:
    """Returns the part in the name of a state set: ``train`` of ``train-1000-ab12cd34``."""
    match = _SET_NAME.fullmatch(name)
    return match[1] if match else name.partition("-")[0]


def ref_of(row: Mapping[str, Any]) -> EpisodeRef:
    """Returns the episode of a row of the index.

    Raises:
        DatasetError: its state is no number, or its outcome is unknown.
    """
    known = dict(row)
    try:
        known["state"], known["outcome"] = int(known["state"]), Outcome(known["outcome"])
    except ValueError as error:
        raise DatasetError(f"episode {known['episode']} is damaged: {error}") from error
    known["pieces"] = tuple(Piece(**piece) for piece in known["pieces"])
    return EpisodeRef(**known)
