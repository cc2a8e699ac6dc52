"""Trainings in rounds: epochs over a dataset, or updates from groups of episodes.

::

    for each round:
        make()            # plays or reads, and learns
        validate          # if it is due
        metrics           # before the checkpoint: a line without one is made again, not the reverse
        checkpoint        # if it is due
        callbacks         # which may end the training
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rollout.job import Job
from rollout.observe.run_files import read_json
from rollout.run_directory import versions
from rollout.train.callbacks import Callback, Named, UpdateRecord, call_all, ended_by, with_name
from rollout.train.checkpoint import Checkpoint, prune, write_checkpoint
from rollout.train.config import SaveConfig

log = logging.getLogger(__name__)


class Rounds(ABC):
    """One session of a training in rounds.

    Args:
        job: the job.
        saved: the checkpoint to continue from; None to begin.
        saving: when checkpoints are written.
        on_update: called after every round.

    Attributes:
        number: rounds so far.
        env_steps: steps that were played or learned from so far.
        last: values of the last round.
        ended_by: what has ended the training before its last round, as in ``summary.json``.
    """

    def __init__(
        self,
        job: Job,
        saved: Checkpoint | None,
        saving: SaveConfig,
        on_update: Sequence[Callback] = (),
    ) -> None:
        self.job, self._saving = job, saving
        self._callbacks: list[Named] = [with_name(callback) for callback in on_update]
        self.number = self.env_steps = 0
        self._before_s, self._began = 0.0, time.monotonic()
        self._written = -1
        self.last: dict[str, float] = {}
        if saved is not None:
            self.number = self._written = saved.update
            self.env_steps = saved.env_steps
            self._before_s = float(saved.about.get("seconds", 0.0))
            log.info("continues from %d", self.number)
        name = ended_by(self._callbacks, read_json(job.run.summary_file), self.number)
        self.ended_by = f"callback {name}" if name else ""

    @property
    def seconds(self) -> float:
        """Seconds of all sessions."""
        return self._before_s + time.monotonic() - self._began

    def run(
        self,
        total: int,
        make: Callable[[], dict[str, float] | None],
        validate: Callable[[], dict[str, float]] = dict,
        *,
        number: str = "train/update",
    ) -> None:
        """Makes the rounds that are left; a signal ends it.

        Args:
            total: number of rounds.
            make: makes a round and counts its steps; returns a line of metrics, None if a signal
                came before the round was whole.
            validate: called after every round; returns more of the line.
            number: name of the number of rounds in the line.
        """
        stop = self.job.stop
        with stop.deferred():
            while self.number < total and not stop.requested and not self.ended_by:
                line = make()
                if line is None:
                    return
                self.number += 1
                line |= validate()
                self.job.metrics.write(self.env_steps, {**line, number: self.number})
                self.last = line
                if self.number % self._saving.every == 0 or self.number == total:
                    self.save()
                self._tell(line)

    def _tell(self, line: Mapping[str, float]) -> None:
        """Calls the callbacks; their errors end the training, with everything saved."""
        record = UpdateRecord(
            self.number,
            self.env_steps,
            MappingProxyType(dict(line)),
            self.job.run.path,
            self.weights,
        )
        try:
            if name := call_all(self._callbacks, record):
                self.ended_by = f"callback {name}"
                self.save()
                log.info("the training was ended by %s", self.ended_by)
        except Exception:
            self.save()
            raise

    def save(self) -> None:
        """Writes a checkpoint of the newest round, unless it is written already."""
        if self._written == self.number:
            return
        about, parts = self.checkpoint()
        write_checkpoint(
            self.job.run.checkpoints,
            {
                "update": self.number,
                "env_steps": self.env_steps,
                "seconds": self.seconds,
                **about,
                "run_id": self.job.run.run_id,
                "versions": versions(),
            },
            weights=self.weights(),
            **parts,
        )
        prune(self.job.run.checkpoints, self._saving.keep)
        self._written = self.number

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network, by name."""

    @abstractmethod
    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns what a checkpoint tells besides the round, and arguments that write it."""
