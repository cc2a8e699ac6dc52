"""A training with several seeds: one run directory, with an ordinary run for each seed.

::

    runs/seed-0/        the run directory of ``gamut train --set seed=0``
    runs/seed-0.log     what it printed
    runs/seed-1/ ...
    curves.png ...      learning curves over the seeds, as of ``gamut plot``
    summary.json        the results of every seed; written last

The seeds run side by side, as those of a sweep do. A session that was killed continues with
``--resume``: seeds that are done are not repeated, the others continue from their checkpoints.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from rollout.cli import Session
from rollout.config import RunConfig, load_config, resolved
from rollout.errors import ConfigError, InputError
from rollout.job import Job, open_job
from rollout.observe.metrics import Image, Media
from rollout.observe.progress import Throttle
from rollout.observe.run_files import METRICS, SUMMARY, newest_lines, newest_values, read_json
from rollout.observe.run_status import duration
from rollout.run_directory import absolute
from rollout.signals import Stop
from rollout.sweep.plan import RUNS
from rollout.sweep.pool import RunAttempt, run_on_ray
from rollout.sweep.run import RunFailed
from rollout.train.checkpoint import find_checkpoint
from rollout.train.config import SeededConfig, TrainConfig
from rollout.train.jobs import job_of
from rollout.train.plan import TrainPlan, check_others, others_of
from rollout.train.train import require_room

log = logging.getLogger(__name__)

_RETRIES = 2  # of a seed that failed
_LOCK_S = 60.0  # time for a process whose driver was killed to notice it and exit
_PROGRESS_S, _METRICS_S = 2.0, 30.0


@dataclass(frozen=True)
class SeedRun:
    """The training of one seed.

    Attributes:
        seed: the seed.
        folder: its run directory, absolute.
        config: its configuration.
    """

    seed: int
    folder: Path
    config: Any  # a SeededConfig

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def processes(self) -> int:
        """Number of processes that it needs, its own among them."""
        c = self.config
        return 1 + sum(getattr(c, name, 0) for name in ("runners", "actors")) + self._learners

    @property
    def gpus(self) -> float:
        """GPUs of its own process."""
        return 0.0 if self._learners else float(getattr(self.config.learners, "gpus", 0.0))

    @property
    def _learners(self) -> int:
        return int(getattr(self.config.learners, "count", self.config.learners))


def train_seeds(
    config: SeededConfig, session: Session, on_update: Sequence[object] = ()
) -> str | None:
    """Trains every seed of a configuration.

    Args:
        config: the configuration, with ``seeds``.
        session: how the program was called.
        on_update: none: callbacks of several seeds are named in ``callbacks``.

    Returns:
        None if all seeds are done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was trained.
        KeyboardInterrupt: a signal arrived; the seeds continue from their checkpoints on resume.
    """
    if on_update:
        raise ConfigError(
            "on_update: with seeds each training has a process of its own, and cannot call this "
            "one; name a function in callbacks=[module:function]"
        )
    config = config.model_copy(update={"output": absolute(config.output)})
    runs = seed_runs(config, config.output)
    plan = None
    if isinstance(config, TrainConfig):
        first = next(map(find_checkpoint, others_of(config).values()), None)
        plan = TrainPlan.make(runs[0].config, first=first)
        check_others(plan)
    with open_job("train", config, session) as job:
        runs = seed_runs(config, job.run.path)
        job.report(mirrored={}, group=config.output.name)
        whole = _Seeds(config, runs, plan, job)
        return job.finish(whole.play, whole.conclude)


def seed_runs(config: SeededConfig, folder: Path) -> list[SeedRun]:
    """Returns the training of each seed of a configuration, in the order of its seeds."""
    return [
        SeedRun(seed, place, _config_of(config, seed, place))
        for seed in config.seeds or ()
        for place in [folder / RUNS / f"seed-{seed}"]
    ]


def _config_of(config: SeededConfig, seed: int, folder: Path) -> RunConfig:
    group = config.wandb.group or config.output.name
    wandb = config.wandb.model_copy(update={"group": group, "name": f"{group}/{folder.name}"})
    own: dict[str, Any] = {"seeds": None, "seed": seed, "output": folder, "wandb": wandb}
    if isinstance(config, TrainConfig):
        threads = config.learners.threads or 1  # as many runs as processors run at once
        learners = config.learners.model_copy(update={"threads": threads})
        own |= {"measure": None, "learners": learners}
    return config.model_copy(update=own)


def train_seed(run: SeedRun, stop: Stop) -> None:
    """Trains one seed, continuing where an earlier attempt stopped.

    Raises:
        InputError: something does not fit; another attempt would fail in the same way.
        RunFailed: it ended early; another attempt continues from there.
        KeyboardInterrupt: a signal arrived.
    """
    function, _ = job_of(resolved(run.config))
    missing = function(run.config, Session(resume=True, stop=stop, wait_s=_LOCK_S))
    if missing is not None:
        raise RunFailed(missing)


def results_of(run: SeedRun) -> dict[str, Any] | None:
    """Returns the results of a seed; None if it is not done, or was done with a smaller budget."""
    summary = read_json(run.folder / SUMMARY)
    if summary.get("status") != "done":
        return None
    try:
        begun = load_config(type(run.config), run.folder / "config.yaml")
    except InputError:
        return None  # what is wrong with it is said where it is opened
    grown = (key for key in run.config.may_grow if key != "seeds")
    if any(_value(begun, key) != _value(run.config, key) for key in grown):
        return None
    return dict(summary.get("results") or {})


def _value(config: RunConfig, key: str) -> Any:
    return reduce(getattr, key.split("."), config)


class _Seeds:
    """One session of a training with several seeds."""

    def __init__(
        self, config: SeededConfig, runs: list[SeedRun], plan: TrainPlan | None, job: Job
    ) -> None:
        self._config, self._runs, self._plan, self._job = config, runs, plan, job
        found = {run.name: results_of(run) for run in runs}
        self._results = {name: each for name, each in found.items() if each is not None}
        self._failures: dict[str, str] = {}
        self._ran = False
        self._began = time.monotonic()
        self._progress = Throttle(_PROGRESS_S)
        self._metrics = Throttle(_METRICS_S, at_once=False)
        self._done_before = self._done()

    def play(self) -> str | None:
        """Trains the seeds that are left, until all are done or a signal arrives."""
        left = [run for run in self._runs if run.name not in self._results]
        if self._results:
            log.info("%d seeds are done already, %d are left", len(self._results), len(left))
        if left:
            self._ran = True
            log.info("training %d seeds", len(left))
            with self._job.ray():
                if self._plan is not None:
                    require_room(self._plan)
                self._train(left)
        return self._missing_seeds()

    def _train(self, left: list[SeedRun]) -> None:
        stop = self._job.stop
        events = run_on_ray(
            left,
            train_seed,
            parallel=None,
            retries=_RETRIES,
            stall_s=None,  # a training of one seed may be silent as long as it likes, too
            stopping=lambda: stop.requested,
        )
        with stop.deferred(), contextlib.closing(events):
            for attempt in events:
                if attempt is not None:
                    self._record(attempt)
                if self._progress.due():
                    self._show()

    def _record(self, attempt: RunAttempt[SeedRun]) -> None:
        name = attempt.run.name
        if attempt.failure:
            if attempt.invalid and not self._steps():  # of every seed, and before anything is lost
                raise ConfigError(f"{name}: {attempt.failure.partition(': ')[2]}")
            then = "it is tried again" if attempt.again else "it is given up"
            log.warning("%s failed, %s: %s", name, then, attempt.failure)
            self._failures[name] = attempt.failure
            return
        results = results_of(attempt.run)
        if results is None:
            self._failures[name] = f"its {SUMMARY} does not say that it is done"
            return
        self._failures.pop(name, None)
        self._results[name] = results
        log.info("%s is done, %d of %d", name, len(self._results), len(self._runs))

    def _values(self, run: SeedRun) -> Mapping[str, Any]:
        return newest_values(newest_lines(run.folder / METRICS)[0])

    def _steps(self) -> int:
        """Returns the steps of all seeds so far."""
        found = (self._values(run).get("env_steps") for run in self._runs)
        return sum(steps for steps in found if isinstance(steps, int))

    def _done(self) -> float:
        """Returns the fraction of all seeds that is done."""
        shares = [
            1.0 if run.name in self._results else self._values(run).get("done") or 0.0
            for run in self._runs
        ]
        return sum(shares) / len(shares)

    def _show(self) -> None:
        """Updates the progress display, and from time to time the metrics."""
        part, steps, ended = self._done(), self._steps(), len(self._results)
        rate = (part - self._done_before) / max(time.monotonic() - self._began, 1e-9)
        left = duration((1.0 - part) / rate) if rate > 0 else "?"
        shown = {"seeds": f"{ended}/{len(self._runs)}", "steps": steps, "left": left}
        self._job.progress.update(part, shown)
        if self._metrics.due():
            self._job.metrics.write(steps, {"done": part, "seeds/ended": ended})

    def _missing(self) -> dict[str, str]:
        """Returns the reason for each seed that is not done."""
        names = [run.name for run in self._runs if run.name not in self._results]
        return {name: self._failures.get(name, "not done") for name in names}

    def _missing_seeds(self) -> str | None:
        missing = [f"{name}: {why}" for name, why in self._missing().items()]
        if not missing:
            return None
        return (
            f"{len(missing)} of {len(self._runs)} seeds are not done ({'; '.join(missing)}). The "
            f"others are saved; --resume tries again"
        )

    def conclude(self, status: str) -> str:
        """Writes the summary, and the learning curves; returns a status sentence."""
        steps, whole = self._steps(), self._job.run
        before = read_json(whole.summary_file)
        if not self._ran and before.get("status") == status == "done":  # there was nothing to do
            whole.write_summary({**before, "resume_count": whole.resume_count})
            return f"{len(self._results)} of {len(self._runs)} seeds"
        found = {} if status == "interrupted" else self._curves()
        self._job.write_summary(
            status,
            protocol={"seeds": [run.seed for run in self._runs]},
            results={
                "env_steps": steps,
                "seeds": {
                    run.name: {"seed": run.seed, **self._results[run.name]}
                    for run in self._runs
                    if run.name in self._results
                },
                "missing": self._missing(),
                **found,
            },
            session={"seconds": round(time.monotonic() - self._began, 1)},
        )
        self._show()
        return f"{len(self._results)} of {len(self._runs)} seeds"

    def _curves(self) -> dict[str, Any]:
        """Draws the learning curves and mirrors them; returns the figures at their ends."""
        from rollout.sweep.learning import curves_of, last_of, named_runs  # noqa: PLC0415 - SciPy
        from rollout.sweep.learning_figure import draw_curves  # noqa: PLC0415 - loads matplotlib

        try:
            drawn = curves_of(named_runs([self._job.run.path]))
        except InputError as error:
            log.warning("no learning curves were drawn: %s", error)
            return {}
        run, last = self._job.run, last_of(drawn)
        picture, _ = draw_curves(drawn, run.path / "curves")
        if self._ran:
            copy = run.path / "media" / f"curves-{run.resume_count}.png"  # media must not change
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(picture, copy)
            values = {f"seeds/{name}": each["iqm"] for name, each in last.items()}
            media: dict[str, Media] = {"curves": Image(copy)}
            self._job.metrics.write(self._steps(), {"done": self._done(), **values}, media=media)
        return {"last": last}
