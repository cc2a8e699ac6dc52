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

from rollout.api import Fragment, StateSet
from rollout.cli import Session
from rollout.config import PolicyConfig
from rollout.configuration.problems import wrong_in
from rollout.data.tables import Table, read_table, write_table
from rollout.errors import GamutError, RunDirectoryError
from rollout.evaluate.journal import Journal
from rollout.evaluate.legs import Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.files import locked, parse_json, read_document, set_aside, write_atomically
from rollout.host import PlayOptions
from rollout.observe.logs import about, log_losses, log_notices
from rollout.observe.run_files import read_json
from rollout.signals import Stop
from rollout.sweep.imitation_config import ClonedConfig, ImitationConfig
from rollout.sweep.plan import SweepRun, first_of
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig

log = logging.getLogger(__name__)

TABLE, RESULT, SUMMARY = "evaluation.parquet", "result.json", "summary.json"

_LOCK_S = 60.0  # time for a process whose driver was killed to notice it and exit


class RunFailed(GamutError):  # noqa: N818 - an event
    """A run of a sweep failed; another attempt may succeed."""


def _anywhere(_: TrainConfig) -> None:
    """Accepts every configuration: there is room for it."""


@dataclass(frozen=True)
class Trainer:
    """Functions that train runs and return their policies; must be picklable.

    Attributes:
        check: raises ``InputError`` for a configuration that cannot be trained.
        train: trains in a run directory; as ``rollout.train.train.train``.
        player: returns the policy trained in a run directory.
        room: raises ``InputError`` if the joined cluster has no machine for a configuration.
        in_order: a training visits the states of its set one after the other, as a ``Schedule``
            does, and its summary has episodes and visits. Then runs whose sets have more states
            than are visited share one training.
    """

    check: Callable[[TrainConfig], object]
    train: Callable[[TrainConfig, Session], str | None]
    player: Callable[[Path], PolicyConfig]
    room: Callable[[TrainConfig], object] = _anywhere
    in_order: bool = False


def _check(config: TrainConfig) -> Any:
    if isinstance(config, ImitationConfig):
        from rollout.sweep.imitation import check  # noqa: PLC0415 - as below

        return check(config)
    if isinstance(config, ClonedConfig):
        _check(config.imitation)
        config = config.training(None)
    from rollout.train.plan import TrainPlan  # noqa: PLC0415 - needed only for training

    return TrainPlan.make(config)


def _train(config: TrainConfig, session: Session) -> str | None:
    if isinstance(config, ImitationConfig):
        from rollout.sweep.imitation import learn  # noqa: PLC0415 - as above

        return learn(config, session)
    if isinstance(config, ClonedConfig):
        from rollout.sweep.imitation import learn_cloned  # noqa: PLC0415 - as above

        return learn_cloned(config, session)
    from rollout.train.train import train  # noqa: PLC0415 - needed only for training

    return train(config, session)


def _room(config: TrainConfig) -> None:
    if isinstance(config, ImitationConfig):
        return  # a run has no processes beside its own
    from rollout.train.train import require_room  # noqa: PLC0415 - as above

    require_room(_check(config))


def _player(folder: Path) -> PolicyConfig:
    from rollout.train.checkpoint import find_checkpoint  # noqa: PLC0415 - as above

    return PolicyConfig(name="checkpoint", path=str(find_checkpoint(folder).path))


TRAINER = Trainer(_check, _train, _player, _room, in_order=True)
"""Trains as ``gamut train`` does, see ``rollout.train``; from demonstrations, if it is told to."""


class VisitCounts(TypedDict):
    """Visits of states; see ``rollout.host.schedule.Visits.summary``."""

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
    shared: NotRequired[str]


class SetName(TypedDict):
    """Name of the training states, and their design unless they are a random sample."""

    name: str
    digest: str
    subset: NotRequired[str]


class Result(TypedDict):
    """The fields of ``result.json`` that are read; baselines have no training."""

    digest: str
    scores: dict[str, dict[str, float | None]]
    player: dict[str, Any]
    training: NotRequired[Training]
    set: NotRequired[SetName]


_RESULT = TypeAdapter(Result)


@dataclass(frozen=True)
class RunResult:
    """The results of a run.

    Attributes:
        run: the run.
        table: a row for each evaluated episode.
        result: contents of ``result.json``.
    """

    run: SweepRun
    table: Table
    result: Result


def folder_of_training(outcome: RunResult) -> Path:
    """Returns the run directory of the training, which runs of several N may share."""
    own = outcome.run.folder
    return own.with_name(outcome.result["training"].get("shared", own.name))


def outcome_of(run: SweepRun) -> RunResult | None:
    """Returns the results of a run; None if it is unfinished or was done with other settings.

    A damaged file is renamed, and created again.

    Raises:
        RunDirectoryError: the folder contains the training of another run, or cannot be read.
    """
    _require_same(run)
    path = run.folder / RESULT
    try:
        # Baselines of version 0.1 have an empty training and set.
        found = {key: value for key, value in parse_json(read_document(path)).items() if value}
        result = _RESULT.validate_python(found)
        if run.baseline is None and not result.keys() >= {"training", "set"}:
            raise KeyError("training or set")
        if result["digest"] != run.digest:
            return None
        path = run.folder / TABLE
        return RunResult(run, read_table(path), result)
    except FileNotFoundError:
        return None
    except (OSError, KeyError, ValueError, AttributeError) as error:
        what = wrong_in(error) if isinstance(error, ValidationError) else error
        with contextlib.suppress(FileNotFoundError):
            log.warning(
                "%s: %s is damaged (%s); it is now %s, and the run is evaluated again",
                run.name,
                path.name,
                what,
                set_aside(path).name,
            )
        return None


def work(run: SweepRun, stop: Stop, *, trainer: Trainer) -> None:
    """Trains and evaluates a run, continuing where an earlier attempt stopped.

    Raises:
        InputError: something does not fit; another attempt would fail in the same way.
        RunFailed: it ended early; another attempt continues from there.
        KeyboardInterrupt: a signal arrived.
    """
    with _locked(run), about(run=run.name):
        if outcome_of(run) is not None:
            return
        trained: tuple[Path, dict[str, Any]] = run.folder, {}
        if run.baseline is None:
            trained = _shared(run, trainer) or _trained(run, trainer, stop)
        _evaluate(run, trainer, *trained)


@contextlib.contextmanager
def _locked(run: SweepRun) -> Iterator[None]:
    """Keeps two processes from working on one run: one may outlive a driver that was killed."""
    run.folder.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locked(_mark(run).with_suffix(".lock"), _LOCK_S))
        except BlockingIOError as error:
            raise RunFailed(
                f"{error.strerror} has been working on {run.folder} for {_LOCK_S:g} s; end it"
            ) from None
        if not (_mark(run).exists() and _mark(run).stat().st_size):
            write_atomically(_mark(run), run.trains)
        yield


def _mark(run: SweepRun) -> Path:
    """Returns the file beside a run's folder with the digest of what is trained there."""
    return run.folder.with_name(f".{run.folder.name}.run")


def _require_same(run: SweepRun) -> None:
    try:
        begun = read_document(_mark(run)).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunDirectoryError(f"{_mark(run)} cannot be read: {error.strerror}") from error
    if begun and begun != run.trains:
        raise RunDirectoryError(
            f"{run.folder} was begun with another configuration or task than this sweep's "
            f"{run.name} (digest {begun}, expected {run.trains}); undo the change, give the arm "
            f"another name, or choose another output"
        )


def _trained(run: SweepRun, trainer: Trainer, stop: Stop) -> tuple[Path, dict[str, Any]]:
    """Trains unless that is finished; returns the run directory of the training and its results."""
    missing = trainer.train(run.config, Session(resume=True, stop=stop))
    if missing is not None:
        raise RunFailed(missing)
    results = _finished(run)
    if results is None:
        raise RunFailed(f"{run.folder / SUMMARY} does not say that the training is done")
    return run.folder, results


def _finished(run: SweepRun) -> dict[str, Any] | None:
    """Returns the results of a run's training; None if it is not finished."""
    summary = read_json(run.folder / SUMMARY)
    return summary["results"] if summary.get("status") == "done" else None


def _shared(run: SweepRun, trainer: Trainer) -> tuple[Path, dict[str, Any]] | None:
    """Returns directory and results of the training with the largest N, if it is this one as well.

    A training that visits states in order never notices how many follow. So two trainings with the
    same seed are the same if their sets begin with the same states, and both have more of them than
    the training begins episodes.
    """
    larger = run.larger
    if not trainer.in_order or larger is None or _finished(run) is not None:
        return None
    results, most, own = _finished(larger), larger.states, run.states
    # Only random sets begin alike; comparing others would make them.
    if results is None or own is None or type(most) is not StateSet:
        return None
    if first_of(most, run.n).digest != own.digest:
        return None
    _require_same(larger)
    c = run.config
    _, bridge, _ = bridge_and_task(c.bridge, c.task)
    playing = c.instances * bridge.spec.choose_width(c.width)
    begun = results["episodes"] + sum(results.get("lost", {}).values()) + playing
    if isinstance(c, ClonedConfig):  # its clone has seen the first states
        begun = max(begun, c.imitation.collection.episodes)
    # A runner plays every ``runners``-th episode, and may be ahead of the others.
    if begun * max(1, c.runners) > run.n:
        return None
    log.info("%s has more states than its training visits: that is %s", run.name, larger.name)
    visits = {
        **results["visits"],
        "states": run.n,
        "min": 0,
        "median": float(2 * results["episodes"] > run.n),
        "max": 1,
        "never": 1 - results["episodes"] / run.n,
    }
    return larger.folder, {**results, "visits": visits, "shared": larger.name}


def _evaluate(run: SweepRun, trainer: Trainer, folder: Path, trained: dict[str, Any]) -> None:
    began = time.monotonic()
    player = run.baseline or trainer.player(folder)
    journal = run.folder / f"evaluation-{run.digest}"
    for old in run.folder.glob("evaluation-*"):
        if old != journal:
            shutil.rmtree(old, ignore_errors=True)
    c, e = run.config, run.evaluation
    _, bridge, task = bridge_and_task(c.bridge, c.task)
    with Journal(journal) as kept:
        table = play_legs(
            bridge,
            task,
            legs_of(run, player),
            seed=e.seed,
            metric=e.metric,
            width=bridge.spec.choose_width(e.width or c.width),
            host=c.host,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, retries=c.host.retries),
            journal=kept,
            watch=_log_fragment,
            arm=run.arm,
            n=run.n,
            training_seed=run.training_seed,
        )
    write_table(
        run.folder / TABLE,
        table,
        {"run": run.name, "digest": run.digest, "player": player.options},
        docs=COLUMN_DOCS,
    )
    result = {
        "run": run.name,
        "arm": run.arm,
        "n": run.n,
        "training_seed": run.training_seed,
        "trains": run.trains,
        "digest": run.digest,
        **({} if run.states is None else {"set": run.states.describe()}),
        **({"training": trained} if trained else {}),
        "player": {"name": player.name, **player.options},
        "scores": _scores_of_sets(table),
        "lost": int((table["end"] == "lost").sum()),
        "evaluation_seconds": round(time.monotonic() - began, 2),
    }
    write_atomically(run.folder / RESULT, json.dumps(result, indent=2) + "\n")
    shutil.rmtree(journal, ignore_errors=True)


def legs_of(run: SweepRun, player: PolicyConfig) -> list[Leg]:
    """Returns the legs of a run: every set, with each way of choosing actions."""
    recipe = player.build()
    e = run.evaluation
    return [
        Leg(run.name, recipe, name, states, actions, e.repeats(name, states.size))
        for name, states in run.sets.items()
        for actions in e.actions
    ]


def _log_fragment(fragment: Fragment) -> None:
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
