"""One run of a sweep: trains, evaluates, and keeps the results of both.

::

    runs/random-n16-s0/
        ...                  the run directory of the training
        evaluation-<digest>/ journal of the evaluation, until it is complete
        evaluation.parquet   a row for each evaluated episode
        result.json          the results; written last, so that it marks a finished run
    runs/random-n16-s0.log   the log of the run
    runs/.random-n16-s0.run  digest of what is trained
    runs/.random-n16-s0.lock locked by the process that works on the run
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rollout.api import Fragment
from rollout.cli import Session
from rollout.config import PolicyConfig
from rollout.configuration.problems import wrong_in
from rollout.data.tables import Table, read_table, write_table
from rollout.errors import GamutError, RunDirectoryError
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.files import locked, parse_json, set_aside, write_atomically
from rollout.host import PlayOptions
from rollout.observe.logs import about, log_losses, log_notices
from rollout.observe.run_files import read_json
from rollout.signals import Stop
from rollout.sweep.plan import Job
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig

log = logging.getLogger(__name__)

TABLE, RESULT, SUMMARY = "evaluation.parquet", "result.json", "summary.json"

_LOCK_S = 60.0  # time for a process whose driver was killed to notice it and exit


class RunFailed(GamutError):  # noqa: N818 - reads as what happened
    """A run of a sweep failed; another attempt may succeed."""


def _anywhere(_: TrainConfig) -> None:
    """Accepts every configuration: there is room for it."""


@dataclass(frozen=True)
class Trainer:
    """How runs are trained and their policies played; must be picklable.

    Attributes:
        check: raises ``InputError`` for a configuration that cannot be trained.
        train: trains in a run directory; as ``rollout.train.train.train``.
        player: returns the policy trained in a run directory.
        room: raises ``InputError`` if the joined cluster has no machine for a configuration.
    """

    check: Callable[[TrainConfig], object]
    train: Callable[[TrainConfig, Session], str | None]
    player: Callable[[Path], PolicyConfig]
    room: Callable[[TrainConfig], object] = _anywhere


def _check(config: TrainConfig) -> Any:
    from rollout.train.plan import TrainPlan  # noqa: PLC0415 - needed only for training

    return TrainPlan.make(config)


def _train(config: TrainConfig, session: Session) -> str | None:
    from rollout.train.train import train  # noqa: PLC0415 - needed only for training

    return train(config, session)


def _room(config: TrainConfig) -> None:
    from rollout.train.train import require_room  # noqa: PLC0415 - as above

    require_room(_check(config))


def _player(folder: Path) -> PolicyConfig:
    from rollout.train.checkpoint import find_checkpoint  # noqa: PLC0415 - as above

    return PolicyConfig(name="checkpoint", path=str(find_checkpoint(folder).path))


TRAINER = Trainer(_check, _train, _player, _room)
"""Trains as ``scripts/train.py`` does, see ``rollout.train``."""


class VisitCounts(TypedDict):
    """How often states were visited; see ``rollout.host.schedule.Visits.summary``."""

    min: int
    median: float
    max: int
    never: float


class Training(TypedDict):
    """Results of a training in its ``summary.json``."""

    env_steps: int
    episodes: int
    seconds: float
    visits: VisitCounts


class SetName(TypedDict):
    """Name of the training states."""

    name: str
    digest: str


class Result(TypedDict):
    """The fields of ``result.json`` that are read; baselines have no training."""

    digest: str
    scores: dict[str, dict[str, float | None]]
    player: dict[str, Any]
    training: NotRequired[Training]
    set: NotRequired[SetName]


_RESULT = TypeAdapter(Result)


@dataclass(frozen=True)
class Outcome:
    """The results of a run.

    Attributes:
        job: the run.
        table: a row for each evaluated episode.
        result: contents of ``result.json``.
    """

    job: Job
    table: Table
    result: Result


def outcome_of(job: Job) -> Outcome | None:
    """Returns the results of a run; None if it is unfinished or was done with other settings.

    A damaged file is renamed, and created again.

    Raises:
        RunDirectoryError: the folder contains the training of another run, or cannot be read.
    """
    _require_same(job)
    path = job.folder / RESULT
    try:
        # Baselines of version 0.1 have an empty training and set.
        found = {key: value for key, value in parse_json(path.read_bytes()).items() if value}
        result = _RESULT.validate_python(found)
        if job.baseline is None and not result.keys() >= {"training", "set"}:
            raise KeyError("training or set")
        if result["digest"] != job.digest:
            return None
        path = job.folder / TABLE
        return Outcome(job, read_table(path), result)
    except FileNotFoundError:
        return None
    except (OSError, KeyError, ValueError, AttributeError) as error:
        what = wrong_in(error) if isinstance(error, ValidationError) else error
        with contextlib.suppress(FileNotFoundError):
            log.warning(
                "%s: %s is damaged (%s); it is now %s, and the run is evaluated again",
                *(job.name, path.name, what, set_aside(path).name),
            )
        return None


def work(job: Job, trainer: Trainer, stop: Stop) -> None:
    """Trains and evaluates a run, continuing where an earlier attempt stopped.

    Raises:
        InputError: something does not fit; another attempt would fail in the same way.
        RunFailed: it ended early; another attempt continues from there.
        KeyboardInterrupt: it was told to stop.
    """
    with _locked(job), about(run=job.name):
        if outcome_of(job) is not None:
            return
        trained = _trained(job, trainer, stop) if job.baseline is None else {}
        _evaluate(job, trainer, trained)


@contextlib.contextmanager
def _locked(job: Job) -> Iterator[None]:
    """Keeps two processes from working on one run: one may outlive a driver that was killed."""
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(_mark(job).with_suffix(".lock"), _LOCK_S))
        except BlockingIOError as error:
            raise RunFailed(
                f"{error.strerror} has been working on {job.folder} for {_LOCK_S:g} s; end it"
            ) from None
        if not (_mark(job).exists() and _mark(job).stat().st_size):
            write_atomically(_mark(job), job.trains)
        yield


def _mark(job: Job) -> Path:
    """The file beside a run's folder with the digest of what is trained there."""
    return job.folder.with_name(f".{job.folder.name}.run")


def _require_same(job: Job) -> None:
    try:
        begun = _mark(job).read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunDirectoryError(f"{_mark(job)} cannot be read: {error.strerror}") from error
    if begun and begun != job.trains:
        raise RunDirectoryError(
            f"{job.folder} was begun with another configuration or task than this sweep's "
            f"{job.name} (digest {begun}, expected {job.trains}); undo the change, give the arm "
            f"another name, or choose another output"
        )


def _trained(job: Job, trainer: Trainer, stop: Stop) -> dict[str, Any]:
    """Trains unless that is finished, and returns the summary."""
    missing = trainer.train(job.config, Session(resume=True, stop=stop))
    if missing is not None:
        raise RunFailed(missing)
    path = job.folder / SUMMARY
    summary = read_json(path)
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
    c, e = job.config, job.evaluation
    _, bridge, task = bridge_and_task(c.bridge, c.task)
    with Journal(journal) as kept:
        table = play_legs(
            *(bridge, task, legs_of(job, player)),
            seed=e.seed,
            metric=e.metric,
            width=e.width or c.width,
            host=c.host,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
            journal=kept,
            watch=_tell,
            arm=job.arm,
            n=job.n,
            training_seed=job.training_seed,
        )
    write_table(
        job.folder / TABLE,
        table,
        {"run": job.name, "digest": job.digest, "player": player.options},
        docs=COLUMN_DOCS,
    )
    result = {
        "run": job.name,
        "arm": job.arm,
        "n": job.n,
        "training_seed": job.training_seed,
        "trains": job.trains,
        "digest": job.digest,
        **({} if job.states is None else {"set": job.states.describe()}),
        **({"training": trained["results"]} if trained else {}),
        "player": {"name": player.name, **player.options},
        "scores": _scores_of_sets(table),
        "lost": int((table["end"] == "lost").sum()),
        "evaluation_seconds": round(time.monotonic() - began, 2),
    }
    write_atomically(job.folder / RESULT, json.dumps(result, indent=2) + "\n")
    shutil.rmtree(journal, ignore_errors=True)


def legs_of(job: Job, player: PolicyConfig) -> list[Leg]:
    """Returns the legs of a run: every set, with each way of choosing actions."""
    recipe = player.build()
    e = job.evaluation
    return [
        Leg(job.name, recipe, name, states, actions, e.repeats(name, states.size))
        for name, states in job.sets.items()
        for actions in e.actions
    ]


def _tell(fragment: Fragment) -> None:
    log_notices(log, fragment.results)
    log_losses(log, fragment.losses)


def _scores_of_sets(table: Table) -> dict[str, dict[str, float | None]]:
    """Returns the mean score by set and way of acting; None where no episode has a score."""
    found: dict[str, dict[str, float | None]] = {}
    pairs = zip(table["set"].tolist(), table["actions"].tolist(), strict=True)
    for name, actions in dict.fromkeys(pairs):
        rows = (table["set"] == name) & (table["actions"] == actions)
        scores = [score for score in table["score"][rows].tolist() if not math.isnan(score)]
        found.setdefault(name, {})[actions] = sum(scores) / len(scores) if scores else None
    return found
