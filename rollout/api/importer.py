"""Datasets of other formats, from which recorded episodes are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from gymnasium import spaces

from rollout.api.bridge import ColumnSpec
from rollout.api.types import Columns


@dataclass(frozen=True)
class SourceSpec:
    """What a dataset of another format holds.

    Attributes:
        name: name of the dataset or its task.
        observation_space: flat ``Dict``.
        action_space: flat ``Dict``.
        episodes: upper bound of the numbers of its episodes.
        goal: what the agent was to do, in words.
        signals: what the game reports, by key.
        extras: what the policy adds, by key.
        about: other JSON-able facts, kept in the metadata of the task.
        manifest: text of ``dataset.json`` if Gamut exported it; all else is then ignored.
    """

    name: str
    observation_space: spaces.Dict
    action_space: spaces.Dict
    episodes: int
    goal: str = ""
    signals: Mapping[str, ColumnSpec] = field(default_factory=dict)
    extras: Mapping[str, ColumnSpec] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    manifest: str = ""


@dataclass(frozen=True)
class SourceEpisode:
    """One episode of a dataset of another format.

    Attributes:
        file: the file that holds it, relative to the source.
        number: its number there.
        columns: ``(T, ...)`` by their names in a dataset of Gamut: ``observation/KEY``,
            ``action/KEY``, ``reward``, ``signal/KEY``, ``extra/KEY``, ``details``, and, where they
            are known, ``progress``, ``outcome``, ``tick``, ``version``, ``wall_time``, ``latency``.
        final_observations: ``{KEY: (...)}`` after the last action; empty if the source has none.
        final_details: likewise for details.
        end: how it ended; None if the source does not say that it ended.
        about: what is known of it: ``episode``, ``attempt``, ``state``, ``state_set``, ``seed``,
            ``policy``, ``instance``.
    """

    file: str
    number: int
    columns: Columns
    end: Literal["terminated", "truncated"] | None
    final_observations: Columns = field(default_factory=dict)
    final_details: Any = None
    about: Mapping[str, Any] = field(default_factory=dict)


class Flaw(NamedTuple):
    """Why an episode cannot be imported.

    Attributes:
        file: the file, relative to the source.
        episode: its number there; None if the whole file cannot be read.
        step: the first step that is wrong; None if the episode as a whole is.
        problem: what was expected and what came.
    """

    file: str
    episode: int | None
    step: int | None
    problem: str

    def __str__(self) -> str:
        episode = "" if self.episode is None else f", episode {self.episode}"
        step = "" if self.step is None else f", step {self.step}"
        return f"{self.file}{episode}{step}: {self.problem}"


class Importer(Protocol):
    """Reads the episodes of another format; a frozen dataclass of options.

    The entry point in ``gamut.importers`` names its class. Sources are only read.
    """

    def describe(self, source: Path) -> SourceSpec:
        """Returns what a source holds.

        Raises:
            DatasetError: it is not of this format, or cannot be read at all.
        """
        ...

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields each episode, or why it cannot be read, in the order of the source."""
        ...
