"""The episodes of an evaluation, one line each; survives a kill at any moment.

``episodes.jsonl`` has one line for every episode with a result, in the order in which they ended,
and one for every episode that was abandoned; ``losses.jsonl`` has one for every lost attempt.
Lines are only appended, each in one write. Opening removes an incomplete last line, which a crash
leaves behind. NaN is written as null.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from rollout.api.fragment import End, Phase
from rollout.configuration.problems import wrong_in
from rollout.errors import DatasetError, OutOfTurnError

EPISODES, LOSSES = "episodes.jsonl", "losses.jsonl"

_Count = Annotated[int, Field(ge=0)]
_Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class Played:
    """Identifies an episode of an evaluation.

    Attributes:
        player: name of the player.
        set: name of the set of states.
        actions: ``sampled`` or ``deterministic``.
        position: number of the state in its set.
        state: index of the state in the task's space, decimal: it may be beyond 64 bits.
        repeat: number of the episode among those of the state.
        episode_seed: seed of everything that the state does not decide.
    """

    player: str
    set: str
    actions: str
    position: _Count
    state: str
    repeat: _Count
    episode_seed: int

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """What identifies the episode within the evaluation."""
        return self.player, self.set, self.actions, self.position, self.repeat


@dataclass(frozen=True, slots=True)
class Entry(Played):
    """One episode of an evaluation and its result.

    Attributes:
        total_reward: undiscounted sum of rewards; NaN if the episode was abandoned.
        progress: last progress, 0 to 1, NaN if undefined.
        success: 1 or 0; NaN where the task does not decide success.
        length: completed steps.
        end: ``terminated``, ``truncated``, or ``lost`` if the episode was abandoned.
        attempts: number of attempts, including lost ones.
    """

    total_reward: _Number
    progress: _Number
    success: _Number
    length: _Count
    end: End
    attempts: _Count


@dataclass(frozen=True, slots=True)
class LossEntry(Played):
    """A lost attempt at an episode.

    Attributes:
        phase: what the instance was doing.
        reason: what went wrong.
        steps: completed steps.
    """

    phase: Phase
    reason: str
    steps: _Count


class Journal:
    """The two files of an evaluation, opened for reading and appending.

    Args:
        folder: the folder of the files; files that do not exist are created.

    Raises:
        DatasetError: a line is damaged; the message gives its number.
        OSError: a file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:  # closes the open files if the rest fails
            self._entries = _Lines(folder / EPISODES)
            stack.callback(self._entries.close)
            self._losses = _Lines(folder / LOSSES)
            stack.callback(self._losses.close)
            self.entries = self._entries.read(TypeAdapter(Entry))
            self.losses = self._losses.read(TypeAdapter(LossEntry))
            stack.pop_all()

    def append(self, entries: Iterable[Entry] = (), losses: Iterable[LossEntry] = ()) -> None:
        """Appends episodes that ended and attempts that were lost; they survive a kill.

        Raises:
            OutOfTurnError: the journal is closed.
            OSError: writing failed; no part of a line remains.
        """
        self._losses.append(losses)
        self._entries.append(entries)

    def close(self) -> None:
        """Closes the files. Idempotent."""
        self._entries.close()
        self._losses.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Lines:
    """A file of JSON objects, one per line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Unbuffered, so that the kernel has a line as soon as write() returns.
        self._file = path.open("a+b", buffering=0)

    def read(self, kind: TypeAdapter[_E]) -> tuple[_E, ...]:
        """Returns the parsed lines and removes an incomplete last one from the file."""
        self._file.seek(0)
        *whole, rest = (self._file.read() or b"").split(b"\n")
        if rest[:1] not in (b"", b"{"):
            whole.append(rest)  # not the beginning of a line of ours: refused below
        found = []
        for number, line in enumerate(whole, start=1):
            try:
                found.append(kind.validate_json(line, strict=True))
            except ValidationError as error:
                raise DatasetError(
                    f"{self._path}:{number}: expected an episode of an evaluation, got something "
                    f"else ({wrong_in(error)}); remove the line, and --resume plays what it told "
                    f"of again"
                ) from error
        self._file.truncate(self._file.tell() - len(rest))
        return tuple(found)

    def append(self, rows: Iterable[Entry] | Iterable[LossEntry]) -> None:
        text = "".join(f"{json.dumps(_plain(asdict(row)), allow_nan=False)}\n" for row in rows)
        if self._file.closed:
            raise OutOfTurnError(f"{self._path} was closed; something ended too late")
        data = text.encode()
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) or 0 :]
        except OSError:
            self._file.truncate(end)  # an incomplete line would damage the next one too
            raise

    def close(self) -> None:
        self._file.close()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    for name, value in row.items():
        if isinstance(value, float) and math.isnan(value):
            row[name] = None
        elif isinstance(value, str):  # a game's text may contain lone surrogates
            row[name] = value.encode(errors="replace").decode()
    return row
