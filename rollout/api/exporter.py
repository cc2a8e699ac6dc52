"""Formats beside the store, in which recorded episodes are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rollout.api.types import Columns


class Exporter(Protocol):
    """Writes recorded episodes in another format; a frozen dataclass of options.

    The entry point in ``gamut.exporters`` names its class.
    """

    def check(self, dataset: Any, episodes: Sequence[Any], out: Path) -> None:
        """Checks that the format can hold the episodes.

        Args:
            dataset: the ``rollout.data.Dataset``.
            episodes: its ``EpisodeRef``; those that the format has no place for, as lost attempts,
                are left out.
            out: the file or folder to write.

        Raises:
            DatasetError: it cannot; the message says what is missing.
        """
        ...

    def write(self, dataset: Any, episodes: Sequence[Any], out: Path) -> int:
        """Checks and writes the episodes.

        Returns:
            how many frames, rows or episodes were written.

        Raises:
            DatasetError: the format cannot hold them.
            OSError: they cannot be written.
        """
        ...


@runtime_checkable
class ReadsBack(Protocol):
    """An ``Exporter`` whose files can be read."""

    def read(self, path: Path) -> Iterator[Columns]:
        """Yields the columns of each episode, ``(T, ...)`` by their names in the dataset."""
        ...
