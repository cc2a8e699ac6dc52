"""Return types of the reader: episodes without their steps, with their steps, and windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
        end: terminated, truncated or lost.
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


def random_starts(
    refs: Sequence[EpisodeRef], length: int, stride: int, seed: int
) -> Iterator[tuple[EpisodeRef, int]]:
    """Yields random windows endlessly; every start on the stride is equally likely.

    Raises:
        DatasetError: no episode is long enough.
    """
    lengths = np.array([ref.length for ref in refs], np.int64)
    ends = np.cumsum(np.maximum(0, (lengths - length) // stride + 1))
    if len(ends) == 0 or ends[-1] == 0:
        raise DatasetError(
            f"none of the {len(refs)} episodes has {length} steps (the longest has "
            f"{max(lengths.tolist(), default=0)}); ask for shorter windows"
        )
    rng = np.random.default_rng(seed)
    while True:
        # Sampled in blocks: one call of the generator per window would cost as much as the look-up.
        for drawn in rng.integers(ends[-1], size=1024):
            at = int(np.searchsorted(ends, drawn, side="right"))
            before = int(ends[at - 1]) if at else 0
            yield refs[at], (int(drawn) - before) * stride
