"""The steps of an evaluation as a dataset in its run directory, for its page and for judges."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from rollout.api import Fragment, Loss, Start
from rollout.data import Dataset, DatasetWriter, EpisodeRef, Manifest

FOLDER = "dataset"
"""Name of the dataset in the run directory, as of a collection."""


class Recording(AbstractContextManager["Recording"]):
    """Records fragments; a later session of the run continues.

    The results are in the journal of the evaluation, which decides what is played again. An episode
    that is played again, after a kill or when it was given up, is a further attempt in the dataset.

    Args:
        folder: the dataset, new or existing.
        manifest: what is recorded.

    Raises:
        DatasetError: the dataset has other contents.
        DiskFullError: the disk is full.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._writer = DatasetWriter(folder, manifest)
        with Dataset(folder) as dataset:
            self._begun = {e: newest + 1 for e, newest in dataset.finished()[1].items()}

    def append(self, fragment: Fragment) -> None:
        """Records the steps and the losses of a fragment.

        Raises:
            DiskFullError: the disk is full.
        """
        if self._begun:
            fragment = replace(
                fragment,
                starts=tuple(map(self._renumbered, fragment.starts)),
                results=tuple(
                    replace(r, start=self._renumbered(r.start)) for r in fragment.results
                ),
                losses=tuple(map(self._renumbered_loss, fragment.losses)),
            )
        self._writer.append(fragment)

    def _renumbered(self, start: Start) -> Start:
        return replace(start, attempt=start.attempt + self._begun.get(start.episode, 0))

    def _renumbered_loss(self, loss: Loss) -> Loss:
        return replace(loss, start=self._renumbered(loss.start))

    def close(self) -> None:
        """Completes the dataset. Idempotent.

        Raises:
            DiskFullError: the disk is full; the next session completes it.
        """
        self._writer.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def recorded_episodes(dataset: Dataset) -> Mapping[int, EpisodeRef]:
    """Returns the newest attempt of each episode that has a result, else the newest lost one."""
    refs = dataset.episodes(include_lost=True)
    return {ref.episode: ref for ref in sorted(refs, key=lambda r: (r.end != "lost", r.attempt))}
