"""The generalization experiment: train on more and more states, and see the gap close.

::

    for ended in runs:                        # independent Ray tasks, whichever ends first
        outcomes[run] = what it scored        # kept in its own folder: never done again
        publish                               # results.parquet, report.md, generalization.png

One run is one arm, one number of training states N and one training seed. A sweep that was killed
goes on with ``--resume``; what is done is recognised by a digest of all that it was made from.

Source: MCU, Appendix D and Figure 7.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import shutil
import time
from collections.abc import Mapping
from typing import Any

from rollout.cli import Session
from rollout.config import resolved
from rollout.configuration.files import write_atomically
from rollout.data.tables import concatenate, write_table
from rollout.evaluate.curves import Point, curves
from rollout.evaluate.experiment_films import Shown, film_runs
from rollout.evaluate.experiment_job import TRAINER, Outcome, Trainer, outcome_of
from rollout.evaluate.experiment_plan import Job, SweepPlan
from rollout.evaluate.experiment_pool import Ended, run_here, run_on_ray
from rollout.evaluate.experiment_report import (
    digests_of,
    plain_points,
    report_of,
    sets_of,
    values_of,
)
from rollout.evaluate.report import publish, verdict
from rollout.evaluate.results import COLUMNS, SAMPLED, TEST, TRAIN
from rollout.evaluate.sweep_config import SweepConfig
from rollout.host.session import ray_session, require_session
from rollout.observe.exporter import RayExporter
from rollout.observe.logs import about, set_up_logging
from rollout.observe.media import Image, Media, Table, Video
from rollout.observe.metrics import Metrics, read_metrics
from rollout.observe.progress import Progress, show_progress
from rollout.observe.wandb_mirror import WandbMirror, mirror_settings
from rollout.run_directory import RunDirectory, versions

log = logging.getLogger(__name__)

SETS, BASELINE_TABLE, PICTURE = "sets.json", "baselines.parquet", "generalization.png"

_REFRESH_S = 30.0  # between reports of a sweep that is under way
_LOOK_S = 2.0  # between looks at how far the runs are
_TAIL = 65536  # bytes at the end of a run's metrics that hold a whole line


def sweep(config: SweepConfig, session: Session, *, trainer: Trainer = TRAINER) -> str | None:
    """Trains, evaluates and reports what the configuration says.

    Args:
        config: the sweep.
        session: how the script was called.
        trainer: how runs are trained.

    Returns:
        None when all was done; else a sentence that says what is missing.

    Raises:
        InputError: the configuration is wrong; nothing was launched.
        KeyboardInterrupt: it was told to stop; what was done is saved.
    """
    plan = SweepPlan.make(config, trainer.check)
    outcomes = {
        job.name: outcome
        for job in (*plan.jobs, *plan.baselines)
        if (outcome := outcome_of(job)) is not None
    }
    require_session(config.ray.address)
    with contextlib.ExitStack() as stack:
        opened = RunDirectory.opened(plan.config.output, plan.config, resume=session.resume)
        run = stack.enter_context(opened)
        set_up_logging(config.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        write_atomically(run.path / SETS, json.dumps(sets_of(plan), indent=2) + "\n")
        metrics = stack.enter_context(
            Metrics(run.metrics, constants={"resume_count": run.resume_count})
        )
        _mirror(plan, run, stack)
        progress = stack.enter_context(show_progress("sweep", every_s=config.log.every_s))
        return _Sweep(plan, run, trainer, outcomes, metrics, progress).work(session)


class _Sweep:
    """One session of a sweep."""

    def __init__(
        self,
        plan: SweepPlan,
        run: RunDirectory,
        trainer: Trainer,
        outcomes: dict[str, Outcome],
        metrics: Metrics,
        progress: Progress,
    ) -> None:
        self._plan, self._run, self._trainer = plan, run, trainer
        self._outcomes, self._failures = outcomes, dict[str, str]()
        self._metrics, self._progress = metrics, progress
        self._films: list[Shown] = []
        self._ran = False
        self._told = _told(run)
        self._began, self._published, self._looked = time.monotonic(), time.monotonic(), 0.0
        self._written = time.monotonic()
        self._steps_before = self._steps()

    def work(self, session: Session) -> str | None:
        """Runs what is left until all is done or a signal comes; then writes the report."""
        for outcome in list(self._outcomes.values()):
            self._tell(outcome)
        left = [
            job
            for job in (*self._plan.baselines, *self._plan.jobs)
            if job.name not in self._outcomes
        ]
        done = len(self._plan.jobs) + len(self._plan.baselines) - len(left)
        if done:
            log.info("%d runs are done already, %d are left", done, len(left))
        try:
            if left:
                self._run_all(left, session)
            self._films = film_runs(self._plan, self._outcomes, self._trainer, self._run.videos)
        except KeyboardInterrupt:
            self._conclude("interrupted")
            raise
        missing = self._missing()
        self._conclude("done" if missing is None else "ended short")
        return missing

    def _run_all(self, left: list[Job], session: Session) -> None:
        c = self._plan.config
        self._ran = True
        if c.parallel == 0:
            for ended in run_here(left, self._trainer, session.stop, retries=c.retries):
                set_up_logging(c.log.level, self._run.log)  # the run has put its own in place
                self._take(ended)
            return
        with ray_session(c.ray.address), contextlib.ExitStack() as stack:
            # All runs of an arm need the same; what none can have would fail run by run.
            for job in {job.arm: job for job in left if job.baseline is None}.values():
                self._trainer.room(job.config)
            exporter = stack.enter_context(RayExporter(self._run.run_id, "sweep"))
            self._metrics.listen(exporter)
            session.stop.install()  # ray.init has put its own handler of SIGTERM in place
            events = run_on_ray(
                left,
                self._trainer,
                parallel=c.parallel,
                retries=c.retries,
                stall_s=c.stall_s,
                stopping=lambda: session.stop.requested,
            )
            with session.stop.deferred(), contextlib.closing(events):
                for event in events:
                    if event is not None:
                        self._take(event)
                    self._show()

    def _take(self, ended: Ended) -> None:
        """Notes a run that is over."""
        name = ended.job.name
        if ended.failure:
            then = "it is tried again" if ended.again else "it is given up"
            log.warning("%s failed, %s: %s", name, then, ended.failure)
            self._failures[name] = ended.failure
            return
        outcome = outcome_of(ended.job)
        if outcome is None:
            self._failures[name] = "it left no result"
            return
        self._failures.pop(name, None)
        self._outcomes[name] = outcome
        self._tell(outcome)
        scores = {k: v.get(self._actions) for k, v in outcome.result["scores"].items()}
        known = [f"{k} {v:.3f}" for k, v in scores.items() if v is not None]
        log.info("%s: %s", name, ", ".join(known))
        if time.monotonic() - self._published > _REFRESH_S:
            self._publish()

    @property
    def _actions(self) -> str:
        given = self._plan.config.evaluate.actions
        return SAMPLED if SAMPLED in given else given[0]

    def _tell(self, outcome: Outcome) -> None:
        """Writes a line of metrics for a training run, once."""
        job = outcome.job
        if job.baseline is not None or (job.key, job.digest) in self._told:
            return
        self._told.add((job.key, job.digest))
        scores = {k: v.get(self._actions) for k, v in outcome.result["scores"].items()}
        values: dict[str, object] = {f"sweep/{name}": v for name, v in scores.items()}
        train, test = scores.get(TRAIN), scores.get(TEST)
        if train is not None and test is not None:
            values["sweep/gap"] = train - test
        about_ = {
            "sweep/arm": job.arm,
            "sweep/n": job.n,
            "sweep/training_seed": job.training_seed,
            "sweep/digest": job.digest,
        }
        self._metrics.write(self._steps_of(outcome), {**about_, **values})

    def _steps_of(self, *outcomes: Outcome) -> int:
        return sum(int(each.result["training"].get("env_steps", 0)) for each in outcomes)

    def _steps(self) -> int:
        """Steps that were trained for so far, in runs that are done and in those under way."""
        steps = 0
        for job in self._plan.jobs:
            outcome = self._outcomes.get(job.name)
            steps += _newest_steps(job) if outcome is None else self._steps_of(outcome)
        return steps

    def _show(self) -> None:
        """Moves the bar."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        total = sum(job.config.env_steps for job in self._plan.jobs)
        steps, seconds = self._steps(), now - self._began
        rate = (steps - self._steps_before) / seconds if seconds else 0.0
        left = "?" if rate <= 0 else _duration(max(0, total - steps) / rate)
        done = sum(job.name in self._outcomes for job in self._plan.jobs)
        shown = {"runs": f"{done}/{len(self._plan.jobs)}", "steps/s": round(rate), "left": left}
        self._progress.update(min(1.0, steps / total), shown)
        if now - self._written > _REFRESH_S:
            self._written = now
            self._metrics.write(steps, {"done": min(1.0, steps / total), "sweep/ended": done})

    def _missing(self) -> str | None:
        jobs = (*self._plan.baselines, *self._plan.jobs)
        names = [job.name for job in jobs if job.name not in self._outcomes]
        if not names:
            return None
        why = "; ".join(f"{name}: {self._failures.get(name, 'not begun')}" for name in names[:5])
        more = f"; and {len(names) - 5} more" if len(names) > 5 else ""
        return (
            f"{len(names)} of {len(jobs)} runs are missing ({why}{more}). The others are saved and "
            f"in the report; --resume tries again"
        )

    def _publish(self) -> dict[str, Any]:
        """Writes results, picture and report of what is there; returns the main figures."""
        videos = [(each.title, each.file) for each in self._films]
        data = report_of(self._plan, self._outcomes, self._failures, videos)
        publish(self._run.path, data)
        played = [self._outcomes[j.name] for j in self._plan.baselines if j.name in self._outcomes]
        if played:
            table = concatenate(outcome.table for outcome in played)
            write_table(self._run.path / BASELINE_TABLE, table, docs=COLUMNS)
        self._published = time.monotonic()
        points = curves(data.table, actions=data.actions, intervals=data.intervals)
        return {"verdict": verdict(data, points), "points": points}

    def _conclude(self, status: str) -> None:
        """Writes what came out, and says it."""
        found = self._publish()
        jobs = self._plan.jobs
        trained = [self._outcomes[job.name] for job in jobs if job.name in self._outcomes]
        if self._ran or not self._run.summary_file.exists():
            self._tell_points(found["points"], self._steps_of(*trained))
        self._run.write_summary(
            {
                "status": status,
                "run_id": self._run.run_id,
                "resume_count": self._run.resume_count,
                "verdict": found["verdict"],
                "results": {
                    "runs": len(trained),
                    "planned": len(jobs),
                    "env_steps": self._steps_of(*trained),
                    "episodes_evaluated": sum(len(o.table["score"]) for o in trained),
                    "missing": {
                        job.name: self._failures.get(job.name, "not begun")
                        for job in (*jobs, *self._plan.baselines)
                        if job.name not in self._outcomes
                    },
                },
                "points": plain_points(found["points"]),
                "sets": digests_of(self._plan),
                "films": [each.file for each in self._films],
                "session": {"seconds": round(time.monotonic() - self._began, 1)},
                "versions": versions(),
            }
        )
        self._looked = 0.0
        self._show()
        log.info("%s: %d of %d runs in %s", status, len(trained), len(jobs), self._run.path)
        log.info("%s", found["verdict"].replace("**", ""))

    def _tell_points(self, points: list[Point], steps: int) -> None:
        """Writes the curves into the metrics, and what can be seen."""
        for point in points:
            values = {k: v for k, v in values_of(point).items() if math.isfinite(v)}
            self._metrics.write(steps, {"sweep/n": point.n, **values})
        runs = sum(len(point.seeds) for point in points)
        self._metrics.write(steps, {"sweep/runs": runs}, media=self._media())

    def _media(self) -> Mapping[str, Media]:
        """The picture, the episodes and the films; copies, since media never change."""
        folder = self._run.path / "media"
        folder.mkdir(exist_ok=True)
        media: dict[str, Media] = {}
        for name, file in (("generalization", PICTURE), ("tables/episodes", "results.parquet")):
            source = self._run.path / file
            if source.exists():
                copy = folder / f"{source.stem}-{self._run.resume_count}{source.suffix}"
                shutil.copyfile(source, copy)
                media[name] = Image(copy) if copy.suffix == ".png" else Table(copy)
        fps = self._plan.config.videos.fps
        for each in self._films:
            media[each.name] = Video(self._run.path / each.file, fps, each.title)
        return media


def _told(run: RunDirectory) -> set[tuple[tuple[str, int, int], str]]:
    """Which runs have a line of metrics already."""
    names = ("sweep/arm", "sweep/n", "sweep/training_seed", "sweep/digest")
    told: set[tuple[tuple[str, int, int], str]] = set()
    for line in read_metrics(run.metrics):
        if all(name in line for name in names):
            arm, n, seed, digest = (line[name] for name in names)
            told.add(((str(arm), int(n or 0), int(seed or 0)), str(digest)))
    return told


def _newest_steps(job: Job) -> int:
    """How far a run is, as its own metrics tell."""
    try:
        with (job.folder / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().split(b"\n")
        return int(json.loads(lines[-2])["env_steps"])
    except (OSError, IndexError, ValueError, KeyError, TypeError):
        return 0  # it has not begun, or this is no whole line


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def _mirror(plan: SweepPlan, run: RunDirectory, stack: contextlib.ExitStack) -> None:
    wandb = plan.config.wandb
    grouped = wandb.model_copy(update={"group": wandb.group or plan.config.output.name})
    settings = mirror_settings(
        grouped,
        run.path,
        run.run_id,
        job_type="sweep",
        config={**resolved(plan.config), "set_digests": digests_of(plan)},
        resume_count=run.resume_count,
    )
    if settings is not None:
        stack.callback(WandbMirror(run.metrics, settings).finish)
