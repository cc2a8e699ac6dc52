"""What an evaluation has played, line by line, so that it survives being killed at any moment.

``episodes.jsonl`` has one line for every episode with a result, in the order in which they ended,
and one for every episode that was given up; ``losses.jsonl`` has one for every time an episode
was lost. Lines are only ever appended, each in one write; opening cuts off a last line that a
crash left unfinished. NaN is written as null.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, get_args

from rollout.api.fragment import End, Phase
from rollout.errors import DatasetError, OutOfTurnError

EPISODES, LOSSES = "episodes.jsonl", "losses.jsonl"


@dataclass(frozen=True, slots=True)
class Entry:
    """One episode of an evaluation, and what came of it.

    Attributes:
        player: name of who played.
        set: name of the set of states.
        actions: ``sampled`` or ``deterministic``.
        position: number of the state in its set.
        state: index of the state in the task's space, decimal: it may be beyond 64 bits.
        repeat: number of the episode among those of the state.
        episode_seed: randomness beyond the state.
        total_reward: undiscounted sum of rewards; NaN when it was given up.
        progress: last progress, 0 to 1, NaN if undefined.
        success: 1 or 0; NaN where the task decides nothing.
        length: completed steps.
        end: ``terminated``, ``truncated``, or ``lost`` when it was given up.
        attempts: how often it was begun, lost attempts included.
    """

    player: str
    set: str
    actions: str
    position: int
    state: str
    repeat: int
    episode_seed: int
    total_reward: float
    progress: float
    success: float
    length: int
    end: End
    attempts: int

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What makes it one episode of the evaluation."""
        return self.player, self.set, self.actions, self.position, self.repeat


@dataclass(frozen=True, slots=True)
class LossEntry:
    """An attempt at an episode that our machinery lost.

    Attributes:
        player: name of who played.
        set: name of the set of states.
        actions: ``sampled`` or ``deterministic``.
        position: number of the state in its set.
        state: index of the state in the task's space, decimal.
        repeat: number of the episode among those of the state.
        episode_seed: randomness beyond the state.
        phase: what was being done.
        reason: what went wrong.
        steps: completed steps.
    """

    player: str
    set: str
    actions: str
    position: int
    state: str
    repeat: int
    episode_seed: int
    phase: Phase
    reason: str
    steps: int

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Which episode of the evaluation it was an attempt at."""
        return self.player, self.set, self.actions, self.position, self.repeat


class Journal:
    """The two files of an evaluation, opened to be read and appended to.

    Args:
        folder: where they lie; files that do not exist are made.

    Raises:
        DatasetError: a line before the last is damaged.
        OSError: a file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:  # closes what was opened if the rest fails
            self._entries = _Lines(folder / EPISODES)
            stack.callback(self._entries.close)
            self._losses = _Lines(folder / LOSSES)
            stack.callback(self._losses.close)
            self.entries = tuple(_entry(data, place) for place, data in self._entries.read())
            self.losses = tuple(_loss(data, place) for place, data in self._losses.read())
            stack.pop_all()

    def append(self, entries: Iterable[Entry] = (), losses: Iterable[LossEntry] = ()) -> None:
        """Adds what has ended and what was lost; it survives the death of this process.

        Raises:
            OutOfTurnError: it was closed.
            OSError: the disk refuses; no part of a line stays.
        """
        self._losses.append([asdict(loss) for loss in losses])
        self._entries.append([asdict(entry) for entry in entries])

    def close(self) -> None:
        """Closes the files. Idempotent."""
        self._entries.close()
        self._losses.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Lines:
    """A file of JSON objects, one a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered, so that a line is in the hands of the kernel once write() has returned.
        self._file = path.open("a+b", buffering=0)

    def read(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Returns the lines with their places, having cut off one that was never finished."""
        self._file.seek(0)
        raw = self._file.read() or b""
        whole = raw.rfind(b"\n") + 1
        self._file.truncate(whole)
        lines: list[tuple[str, Mapping[str, Any]]] = []
        for number, line in enumerate(raw[:whole].splitlines(), start=1):
            place = f"{self._path}:{number}"
            try:
                data = json.loads(line)
            except ValueError as error:
                raise _damaged(place, error) from error
            if not isinstance(data, dict):
                raise _damaged(place, "not an object")
            lines.append((place, data))
        return lines

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        text = "".join(f"{json.dumps(_plain(row), allow_nan=False)}\n" for row in rows)
        if self._file.closed:
            raise OutOfTurnError(f"{self._path} was closed; something ended too late")
        data = text.encode()
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError:
            self._file.truncate(end)  # half a line would spoil the next one too
            raise

    def close(self) -> None:
        self._file.close()


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


def _entry(data: Mapping[str, Any], place: str) -> Entry:
    try:
        values = {**data, **{k: _number(data[k]) for k in ("total_reward", "progress", "success")}}
        entry = Entry(**values)
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(place, error) from error
    if entry.end not in get_args(End):
        raise _damaged(place, f"end {entry.end!r}")
    return entry


def _loss(data: Mapping[str, Any], place: str) -> LossEntry:
    try:
        return LossEntry(**data)
    except TypeError as error:
        raise _damaged(place, error) from error


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _damaged(place: str, what: object) -> DatasetError:
    return DatasetError(
        f"{place}: expected an episode of an evaluation, got something else ({what}); remove the "
        f"line, and --resume plays what it told of again"
    )
