"""One run of a sweep: it trains, plays its sets, and leaves both behind for good.

::

    runs/random-n16-s0/
        ...                  the run directory of the training
        evaluation-<digest>/ what was played, line by line, until all of it was
        evaluation.parquet   a row for each evaluated episode
        result.json          what came out; written last, so that where it is the run is done
    runs/random-n16-s0.log   what was said meanwhile
    runs/.random-n16-s0.run  digest of what is trained; locked by the process that works on it
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Fragment
from rollout.cli import Session, Stop
from rollout.config import PolicyConfig
from rollout.configuration.files import write_atomically
from rollout.data.tables import Table, read_table, write_table
from rollout.errors import DatasetError, GamutError, RunDirectoryError
from rollout.evaluate.experiment_plan import Job
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.scoreboard import COLUMNS
from rollout.host import PlayOptions
from rollout.host.hosting import pool_options
from rollout.observe.logs import about, log_losses, log_notices
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig

log = logging.getLogger(__name__)

TABLE, RESULT, SUMMARY = "evaluation.parquet", "result.json", "summary.json"

_LOCK_S = 60.0  # that a process whose driver was killed may take to notice and go
_LOCK_POLL_S = 0.2


class RunFailed(GamutError):  # noqa: N818 - reads as what happened
    """A run of a sweep came to nothing; another attempt may do better."""


def _anywhere(_: TrainConfig) -> None:
    """Has room for everything."""


@dataclass(frozen=True)
class Trainer:
    """How runs are trained and who plays what they learned; must survive pickling.

    Attributes:
        check: refuses, by an ``InputError``, what cannot be trained.
        train: trains in a run directory; as ``rollout.train.train.train``.
        player: who plays what was learned in a run directory.
        room: refuses, by an ``InputError``, what the cluster that was joined has no machines for.
    """

    check: Callable[[TrainConfig], object]
    train: Callable[[TrainConfig, Session], str | None]
    player: Callable[[Path], PolicyConfig]
    room: Callable[[TrainConfig], object] = _anywhere


def _check(config: TrainConfig) -> object:
    from rollout.train.plan import TrainPlan  # noqa: PLC0415 - only who trains needs it

    return TrainPlan.make(config)


def _train(config: TrainConfig, session: Session) -> str | None:
    from rollout.train.train import train  # noqa: PLC0415 - only who trains needs it

    return train(config, session)


def _room(config: TrainConfig) -> None:
    from rollout.train.plan import TrainPlan  # noqa: PLC0415 - as above
    from rollout.train.train import require_room  # noqa: PLC0415 - as above

    require_room(TrainPlan.make(config))


def _player(folder: Path) -> PolicyConfig:
    from rollout.train.checkpoint import find_checkpoint  # noqa: PLC0415 - as above

    return PolicyConfig(name="checkpoint", path=str(find_checkpoint(folder).path))


TRAINER = Trainer(_check, _train, _player, _room)
"""Trains by PPO, see ``rollout.train``."""


@dataclass(frozen=True)
class Outcome:
    """What came out of a run.

    Attributes:
        job: the run.
        table: a row for each evaluated episode.
        result: what ``result.json`` says.
    """

    job: Job
    table: Table
    result: dict[str, Any]


def outcome_of(job: Job) -> Outcome | None:
    """Returns what came out of a run; None if it is not done, or was done in another way.

    Raises:
        RunDirectoryError: its folder holds the training of another run.
    """
    _require_same(job)
    try:
        result = json.loads((job.folder / RESULT).read_text(encoding="utf-8"))
        digest = result["digest"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s: %s is damaged (%s); it is made anew", job.name, RESULT, error)
        return None
    if digest != job.digest:
        return None
    try:
        return Outcome(job, read_table(job.folder / TABLE), result)
    except DatasetError as error:
        log.warning("%s: %s; it is evaluated again", job.name, error)
        return None


def work(job: Job, trainer: Trainer, stop: Stop) -> None:
    """Trains and evaluates, from wherever an earlier attempt came to.

    Args:
        job: the run.
        trainer: how it is trained.
        stop: how to notice that it should stop.

    Raises:
        InputError: something does not fit; another attempt would fail alike.
        RunFailed: it ended short; another attempt goes on from there.
        KeyboardInterrupt: it was told to stop.
    """
    with _locked(job), about(run=job.name):
        if outcome_of(job) is not None:
            return
        trained = _trained(job, trainer, stop) if job.baseline is None else {}
        _evaluate(job, trainer, trained)


@contextlib.contextmanager
def _locked(job: Job) -> Iterator[None]:
    """Keeps two processes from one run: one may have outlived a driver that was killed."""
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_S
    with _mark(job).open("a+", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise RunFailed(
                        f"another process has been working on {job.folder} for {_LOCK_S:g} s; "
                        f"end it"
                    ) from None
                threading.Event().wait(_LOCK_POLL_S)
        if not _mark(job).read_text(encoding="utf-8"):
            file.write(job.trains)
            file.flush()
        yield


def _mark(job: Job) -> Path:
    """A file beside the folder of a run: what is made there, and the lock of who makes it."""
    return job.folder.with_name(f".{job.folder.name}.run")


def _require_same(job: Job) -> None:
    try:
        begun = _mark(job).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    if begun and begun != job.trains:
        raise RunDirectoryError(
            f"{job.folder} was begun with another configuration or task than this sweep's "
            f"{job.name} (digest {begun}, expected {job.trains}); undo the change, give the arm "
            f"another name, or choose another output"
        )


def _trained(job: Job, trainer: Trainer, stop: Stop) -> dict[str, Any]:
    """Trains, if that is not done, and returns the summary."""
    missing = trainer.train(job.config, Session(resume=True, stop=stop))
    if missing is not None:
        raise RunFailed(missing)
    path = job.folder / SUMMARY
    summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if summary.get("status") != "done":
        raise RunFailed(f"{path} does not say that the training is done")
    return summary


def _evaluate(job: Job, trainer: Trainer, trained: dict[str, Any]) -> None:
    began = time.monotonic()
    player = job.baseline or trainer.player(job.folder)
    journal = job.folder / f"evaluation-{job.digest}"
    for old in job.folder.glob("evaluation-*"):
        if old != journal:
            shutil.rmtree(old, ignore_errors=True)
    table = play_job(job, player, journal)
    write_table(
        job.folder / TABLE,
        table,
        {"run": job.name, "digest": job.digest, "player": player.options},
        docs={name: doc for name, (_, doc) in COLUMNS.items()},
    )
    result = {
        "run": job.name,
        "arm": job.arm,
        "n": job.n,
        "training_seed": job.training_seed,
        "trains": job.trains,
        "digest": job.digest,
        "set": None if job.states is None else job.states.describe(),
        "training": trained.get("results", {}),
        "player": {"name": player.name, **player.options},
        "scores": scores_of_sets(table),
        "lost": int((table["end"] == "lost").sum()),
        "evaluation_seconds": round(time.monotonic() - began, 2),
    }
    write_atomically(job.folder / RESULT, json.dumps(result, indent=2) + "\n")
    shutil.rmtree(journal, ignore_errors=True)


def legs_of(job: Job, player: PolicyConfig) -> list[Leg]:
    """Returns what a run plays: every set, with each way of acting."""
    recipe = player.build()
    e = job.evaluation
    return [
        Leg(job.player, recipe, name, states, actions, e.repeats(name, states.size))
        for name, states in job.sets.items()
        for actions in e.actions
    ]


def play_job(job: Job, player: PolicyConfig, journal: Path) -> Table:
    """Plays what a run is evaluated on, here, from wherever the journal has come to.

    Args:
        job: the run.
        player: who plays.
        journal: folder of what was played.
    """
    c, e = job.config, job.evaluation
    _, bridge, task = bridge_and_task(c.bridge, c.task)
    with Journal(journal) as kept:
        return play_legs(
            bridge,
            task,
            legs_of(job, player),
            seed=e.seed,
            metric=e.metric,
            width=e.width or c.width,
            pool=pool_options(job.config.host, bridge.spec),
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
            journal=kept,
            watch=_tell,
            arm=job.arm,
            n=job.n,
            training_seed=job.training_seed,
        )


def _tell(fragment: Fragment) -> None:
    log_notices(log, fragment.results)
    log_losses(log, fragment.losses)


def scores_of_sets(table: Table) -> dict[str, dict[str, float | None]]:
    """Returns the mean score by set and way of acting; None where no episode has one."""
    found: dict[str, dict[str, float | None]] = {}
    pairs = zip(table["set"].tolist(), table["actions"].tolist(), strict=True)
    for name, actions in dict.fromkeys(pairs):
        rows = (table["set"] == name) & (table["actions"] == actions)
        scores = [score for score in table["score"][rows].tolist() if not math.isnan(score)]
        found.setdefault(name, {})[actions] = sum(scores) / len(scores) if scores else None
    return found
