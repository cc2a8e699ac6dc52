"""The interface to whatever stores fragments."""

from __future__ import annotations

from typing import Protocol

from rollout.api.fragment import Fragment


class Recorder(Protocol):
    """Takes fragments in the order each instance played them.

    Once ``append`` has returned, every episode that ended in the fragment survives the death of
    this process; once ``flush`` has returned, every row survives even a failure of the machine.
    """

    def append(self, fragment: Fragment) -> None:
        """Stores a fragment.

        Raises:
            DatasetError: its columns are not those of the dataset.
            OutOfTurnError: the recorder was closed.
        """
        ...

    def flush(self) -> None:
        """Writes everything to disk (fsync)."""
        ...

    def close(self) -> None:
        """Finishes the recording. Idempotent."""
        ...
