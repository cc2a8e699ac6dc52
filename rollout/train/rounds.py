"""The loop of all trainings: epochs over a dataset, or updates from what is played.

::

    for each round:
        make                 # plays or reads, and learns
        validate             # if it is due; after the checkpoint where the best one is kept
        metrics              # before the checkpoint: a line without one is made again
        checkpoint           # if it is due
        callbacks            # which may end the training
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from rollout.api import Bridge, StateSet, Task
from rollout.job import Job
from rollout.observe.run_files import read_json
from rollout.run_directory import versions
from rollout.train.callbacks import (
    Callback,
    Named,
    UpdateRecord,
    call_all,
    ended_by,
    load_callbacks,
    with_name,
)
from rollout.train.checkpoint import Checkpoint, prune, write_checkpoint
from rollout.train.config import SaveConfig

log = logging.getLogger(__name__)

Line: TypeAlias = dict[str, Any]
"""Values of a line of metrics by their names."""


def _no_validation(last: bool) -> Line:
    return {}


@dataclass(frozen=True, kw_only=True)
class GamePlan:
    """The parts of a training on a game, built from its configuration and checked.

    Attributes:
        bridge: the game.
        task: the task.
        recipe: recipe of the policy.
        algorithm: how it learns.
        validation: the states of validations; None for none.
    """

    bridge: Bridge
    task: Task
    recipe: Any
    algorithm: Any
    validation: StateSet | None = None


class Rounds(ABC):
    """One session of a training.

    Args:
        job: the job.
        saved: the checkpoint to continue from; None to begin.
        saving: when checkpoints are written.
        on_update: called after every round, after the callbacks of the configuration.
        callbacks: names of the callbacks of the configuration.

    Attributes:
        number: rounds so far.
        env_steps: steps that were played or learned from so far.
        last: values of the last round.
    """

    def __init__(
        self,
        job: Job,
        saved: Checkpoint | None,
        saving: SaveConfig,
        on_update: Sequence[Callback] = (),
        callbacks: Sequence[str] = (),
    ) -> None:
        self.job, self._saving = job, saving
        self._versions = versions()  # of the code that runs, whatever is edited meanwhile
        self._callbacks: list[Named] = [*load_callbacks(callbacks), *map(with_name, on_update)]
        self.number = self.env_steps = 0
        self._before_s, self._began = 0.0, time.monotonic()
        self._written = -1  # round of the newest checkpoint
        # Whether the weights are those of the newest round, whose line of metrics is written.
        self._whole = True
        self.last: Line = {}
        if saved is not None:
            self.number = self._written = saved.update
            self.env_steps = saved.env_steps
            self._before_s = float(saved.about.get("seconds", 0.0))
        # Name of the callback that ended it.
        self._stopped_by = ended_by(self._callbacks, read_json(job.run.summary_file), self.number)

    @property
    def ended_by(self) -> str:
        """Reason why no further round is made, as in ``summary.json``; empty if there is none."""
        return f"callback {self._stopped_by}" if self._stopped_by else ""

    @property
    def best(self) -> int | None:
        """Round of the best checkpoint, which is kept; None if checkpoints are not compared."""
        return None

    @property
    def seconds(self) -> float:
        """Seconds of all sessions."""
        return self._before_s + time.monotonic() - self._began

    def run(
        self,
        total: int | None,
        make: Callable[[], Line | None],
        validate: Callable[[bool], Line] = _no_validation,
        *,
        number: str = "train/update",
        after_checkpoint: bool = False,
    ) -> None:
        """Makes the rounds that are left; a signal ends it.

        Args:
            total: number of rounds; None if only ``ended_by`` ends it.
            make: makes a round and counts its steps; returns a line of metrics, None if a signal
                came before the round was whole.
            validate: called after every round, with whether its weights are the last; returns
                values of metrics, nothing if no validation is due.
            number: name of the number of rounds in a line of metrics.
            after_checkpoint: whether validations follow the checkpoint and have lines of their own,
                so that one in which a session was killed is repeated; otherwise their values are
                part of the line of the round.
        """
        stop, stopped_before = self.job.stop, self._stopped_by

        def at_end() -> bool:
            return bool(self.ended_by) or (total is not None and self.number >= total)

        def validate_apart() -> Line:
            line = {} if stop.requested else validate(at_end())
            if line:
                self.job.metrics.write(self.env_steps, {**line, number: self.number})
            return line

        with stop.deferred():
            if self.number:
                log.info("continues from update %d, %d steps", self.number, self.env_steps)
            if after_checkpoint and (line := validate_apart()):
                self._call(line)
            while not at_end() and not stop.requested:
                made = make()
                if made is None:
                    return
                self.number, self._whole = self.number + 1, False
                if not after_checkpoint:
                    made |= validate(at_end())
                self.job.metrics.write(self.env_steps, {**made, number: self.number})
                self.last, self._whole = made, True
                if self.number % self._saving.every == 0:
                    self.save()
                more = validate_apart() if after_checkpoint else {}
                self._call({**made, **more})
            self.save()
            if self._stopped_by and not stopped_before:
                validate_apart()  # the last weights
        if self.ended_by:
            log.info("the training was ended by %s", self.ended_by)

    def _call(self, line: Mapping[str, Any]) -> None:
        """Calls the callbacks; their errors end the training, with a checkpoint written."""
        values = MappingProxyType(dict(line))
        path = self.job.run.path
        record = UpdateRecord(self.number, self.env_steps, values, path, self.weights)
        try:
            self._stopped_by = call_all(self._callbacks, record)
        except Exception:
            self.save()
            raise

    def save(self) -> None:
        """Writes a checkpoint of the newest round, unless it is written already or not whole."""
        if self._written == self.number or not self.number or not self._whole:
            return
        about, parts = self.checkpoint()
        place = write_checkpoint(
            self.job.run.checkpoints,
            {
                "update": self.number,
                "env_steps": self.env_steps,
                "seconds": self.seconds,
                **about,
                "run_id": self.job.run.run_id,
                "versions": self._versions,
            },
            weights=self.weights(),
            **parts,
        )
        self.job.lineage.add("made", place)
        prune(self.job.run.checkpoints, self._saving.keep, best=self.best)
        self._written = self.number

    @abstractmethod
    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network, by name."""

    @abstractmethod
    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns facts for ``checkpoint.json``, and arguments of ``write_checkpoint``."""
