"""The results of an evaluation on disk, one line each; they survive a kill at any moment.

``episodes.jsonl`` has one line for every episode with a result, in the order in which they ended,
and one for every episode that was abandoned; ``losses.jsonl`` has one for every lost attempt.
Lines are only appended, each in one write. Opening removes an incomplete last line, which a crash
leaves behind. NaN is written as null.

``test_openings.jsonl`` has a line for every session of a job that set out to play test states;
each costs a claim some of its worth.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from rollout.api import clean_text
from rollout.api.fragment import End, Phase
from rollout.configuration.problems import wrong_in
from rollout.errors import DatasetError
from rollout.files import LineFile, read_lines
from rollout.observe.run_files import parse

log = logging.getLogger(__name__)

EPISODES, LOSSES, OPENINGS = "episodes.jsonl", "losses.jsonl", "test_openings.jsonl"

_Count = Annotated[int, Field(ge=0)]
_Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
_E = TypeVar("_E")


@dataclass(frozen=True, slots=True)
class EpisodeKey:
    """Identity of an episode of an evaluation; ``scoreboard.COLUMNS`` describes the fields."""

    player: str
    set: str
    actions: str
    position: _Count
    state: str
    repeat: _Count
    episode_seed: int

    @property
    def key(self) -> tuple[str, str, str, int, int]:
        """Player, set, actions, position and repeat, which are unique in an evaluation."""
        return self.player, self.set, self.actions, self.position, self.repeat


@dataclass(frozen=True, slots=True)
class Entry(EpisodeKey):
    """One episode of an evaluation and its result; ``scoreboard.COLUMNS`` describes the fields."""

    total_reward: _Number
    progress: _Number
    success: _Number
    length: _Count
    end: End
    attempts: _Count
    calls: _Count = 0
    unusable: _Count = 0
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    usd: float = 0.0
    unpriced: _Count = 0
    invalid: _Count = 0
    notes: dict[str, Any] = field(default_factory=dict)  # see rollout.evaluate.notes


@dataclass(frozen=True, slots=True)
class LossEntry(EpisodeKey):
    """A lost attempt at an episode.

    Attributes:
        phase: phase of the instance at that time.
        reason: description of the failure.
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
        with ExitStack() as opened:
            self._entries = opened.enter_context(closing(LineFile(folder / EPISODES)))
            self._losses = opened.enter_context(closing(LineFile(folder / LOSSES)))
            self.entries = _read(self._entries, TypeAdapter(Entry))
            self.losses = _read(self._losses, TypeAdapter(LossEntry))
            opened.pop_all()

    def append(self, entries: Iterable[Entry] = (), losses: Iterable[LossEntry] = ()) -> None:
        """Appends episodes that ended and attempts that were lost; they survive a kill.

        Raises:
            OutOfTurnError: the journal is closed.
            OSError: writing failed; no part of a line remains.
        """
        for file, rows in ((self._losses, losses), (self._entries, entries)):
            file.append("".join(f"{json.dumps(_plain(row), allow_nan=False)}\n" for row in rows))

    def close(self) -> None:
        """Closes the files. Idempotent."""
        self._entries.close()
        self._losses.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read(file: LineFile, kind: TypeAdapter[_E]) -> tuple[_E, ...]:
    """Returns the parsed lines and removes an incomplete last one from the file."""
    found = []
    for number, line in enumerate(read_lines(file.path), start=1):
        if line.startswith(b"{") and not line.endswith(b"\n"):
            break
        try:
            found.append(kind.validate_json(line, strict=True))
        except ValidationError as error:
            raise DatasetError(
                f"{file.path}:{number}: expected an episode of an evaluation, got something else "
                f"({wrong_in(error)}); remove the line, and --resume plays that episode again"
            ) from error
    file.cut()
    return tuple(found)


def _plain(row: EpisodeKey) -> dict[str, Any]:
    plain = asdict(row)
    for name, value in plain.items():
        if isinstance(value, float) and math.isnan(value):
            plain[name] = None
        elif isinstance(value, str):
            plain[name] = clean_text(value)
    return plain


def note_opening(folder: Path, about: str) -> None:
    """Records that a session opens test states, and logs it.

    Args:
        folder: the run directory.
        about: description of the players.
    """
    line = {"time": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", "played": about}
    with closing(LineFile(folder / OPENINGS)) as file:
        file.cut()  # an incomplete line of a session that was killed
        file.append(json.dumps(line) + "\n")
    log.info(
        "opens test states (session %d of this run that does): choose settings on the "
        "validation states",
        len(openings(folder)),
    )


def openings(folder: Path) -> list[str]:
    """Returns the times (UTC) at which sessions of a job opened test states."""
    try:
        lines = list(read_lines(folder / OPENINGS))
    except FileNotFoundError:
        return []
    # A damaged line counts as an opening too.
    return [str((parse(line) or {}).get("time", "at an unknown time")) for line in lines]
