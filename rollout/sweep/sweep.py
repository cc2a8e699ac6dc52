"""A sweep: trains on more and more states and measures how the generalization gap shrinks.

::

    for attempt in run_on_ray(runs):          # in the order in which the runs end
        outcomes[run.name] = outcome_of(run)  # kept in the run's own folder, never repeated
        publish(...)                          # results.parquet, report.md, generalization.png

A run is one arm, one number of training states N and one training seed. A sweep that was killed
continues with ``--resume``; finished runs are recognised by a digest of all their inputs.

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
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rollout.api import Bridge
from rollout.cli import Session
from rollout.data.tables import concatenate, write_table
from rollout.errors import BudgetExhausted, DatasetError
from rollout.evaluate.journal import note_opening
from rollout.evaluate.legs import TEST, TRAIN, Legs
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.evaluate.videos import EpisodeVideo, best_and_worst, record
from rollout.files import parse_json, read_document, write_atomically
from rollout.job import Job, open_job
from rollout.observe.logs import set_up_logging
from rollout.observe.metrics import Image, Media, Table, Video, read_metrics
from rollout.observe.progress import Throttle
from rollout.observe.run_files import METRICS, newest_lines
from rollout.observe.run_status import duration
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import SAMPLED, Point, of_other_run
from rollout.sweep.plan import SweepPlan, SweepRun
from rollout.sweep.pool import RunAttempt, run_here, run_on_ray
from rollout.sweep.report import publish, verdict
from rollout.sweep.run import (
    TRAINER,
    RunResult,
    Trainer,
    folder_of_training,
    legs_of,
    outcome_of,
    work,
)
from rollout.sweep.summary import (
    SweepReport,
    digests_of,
    find_inert,
    plain_figures,
    report_of,
    sets_of,
    values_of,
)

log = logging.getLogger(__name__)

SETS, BASELINE_TABLE, PICTURE = "sets.json", "baselines.parquet", "generalization.png"
VIDEOS = "films.json"

_REPORT_S = 30.0  # between reports, and lines of metrics, while the sweep is in progress
_PROGRESS_S = 2.0  # between checks of the progress of the runs


def sweep(config: SweepConfig, session: Session, *, trainer: Trainer = TRAINER) -> str | None:
    """Runs a sweep.

    Args:
        config: the sweep.
        session: arguments of the script beside the configuration.
        trainer: trains the runs.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal arrived; what was done is saved.
    """
    plan = SweepPlan.make(config, trainer.check)
    outcomes = {
        run.name: outcome for run in plan.everything if (outcome := outcome_of(run)) is not None
    }
    with open_job("sweep", plan.config, session) as job:
        write_atomically(job.run.path / SETS, json.dumps(sets_of(plan), indent=2) + "\n")
        group = plan.config.output.name
        job.report(mirrored={"set_digests": digests_of(plan)}, group=group)
        whole = _Sweep(plan, job, trainer, outcomes)
        return job.finish(whole.play, whole.conclude)


class _Sweep:
    """One session of a sweep."""

    def __init__(
        self, plan: SweepPlan, job: Job, trainer: Trainer, outcomes: dict[str, RunResult]
    ) -> None:
        self._plan, self._job, self._run, self._trainer = plan, job, job.run, trainer
        self._outcomes, self._failures = outcomes, dict[str, str]()
        self._videos: list[SweepVideo] = []
        self._ran = False
        lines = read_metrics(self._run.metrics)
        # Digests of the runs that have a line of metrics.
        self._logged = {line["sweep/digest"] for line in lines if "sweep/digest" in line}
        self._began = time.monotonic()
        self._progress = Throttle(_PROGRESS_S)
        self._report, self._metrics = (Throttle(_REPORT_S, at_once=False) for _ in range(2))
        self._steps_before, self._done_before = self._steps(), len(self._trained())

    def play(self) -> str | None:
        """Executes the remaining runs until all are done or a signal arrives; records videos."""
        for outcome in self._outcomes.values():
            self._log(outcome)
        _suggest_seeds(self._plan)
        left = [run for run in self._plan.everything if run.name not in self._outcomes]
        if self._outcomes:
            log.info("%d runs are done already, %d are left", len(self._outcomes), len(left))
        if left:
            self._run_all(left)
        find_inert(self._run.path, self._plan.base)  # unless that was done before the runs
        self._videos = record_runs(self._plan, self._outcomes, self._trainer, self._run.videos)
        return self._missing_runs()

    def _run_all(self, left: list[SweepRun]) -> None:
        c, stop = self._plan.config, self._job.stop
        self._ran, make = True, partial(work, trainer=self._trainer)
        log.info("training and evaluating %d runs", len(left))
        if c.parallel == 0:
            self._begin(len(left))
            for ended in run_here(left, make, stop, retries=c.retries):
                set_up_logging(c.log.level, self._run.log)  # the run has installed its own logging
                self._record(ended)
            return
        with self._job.ray():
            # All runs of an arm have the same needs; unmet ones would make every run fail.
            for run in {run.arm: run for run in left if run.baseline is None}.values():
                self._trainer.room(run.config)
            self._begin(len(left))
            events = run_on_ray(
                left,
                make,
                parallel=c.parallel,
                retries=c.retries,
                stall_s=c.stall_s,
                stopping=lambda: stop.requested,
            )
            with stop.deferred(), contextlib.closing(events):
                for attempt in events:
                    if attempt is not None:
                        self._record(attempt)
                    if self._progress.due():
                        self._show()

    def _begin(self, runs: int) -> None:
        find_inert(self._run.path, self._plan.base)
        if self._plan.config.evaluate.split == TEST:
            note_opening(self._run.path, f"{runs} runs")

    def _record(self, attempt: RunAttempt[SweepRun]) -> None:
        """Records an attempt at a run that has ended."""
        name = attempt.run.name
        if attempt.failure:
            then = "it is tried again" if attempt.again else "it is given up"
            log.warning("%s failed, %s: %s", name, then, attempt.failure)
            self._failures[name] = attempt.failure
            return
        outcome = outcome_of(attempt.run)
        if outcome is None:
            self._failures[name] = "it left no result"
            return
        self._failures.pop(name, None)
        self._outcomes[name] = outcome
        self._log(outcome)
        known = [f"{k} {v:.3f}" for k, v in self._scores_of(outcome).items() if v is not None]
        log.info("%s: %s", name, ", ".join(known))
        if self._report.due():
            self._publish()

    def _scores_of(self, outcome: RunResult) -> dict[str, float | None]:
        """Returns the score on each set, with sampled actions if there are such results."""
        given = self._plan.config.evaluate.actions
        actions = SAMPLED if SAMPLED in given else given[0]
        sets = outcome.result["scores"].items()
        return {name: scores.get(actions) for name, scores in sets if not of_other_run(name)}

    def _log(self, outcome: RunResult) -> None:
        """Writes a line of metrics for a training run, once."""
        run = outcome.run
        if run.baseline is not None or run.digest in self._logged:
            return
        self._logged.add(run.digest)
        scores = self._scores_of(outcome)
        values: dict[str, object] = {
            "sweep/arm": run.arm,
            "sweep/n": run.n,
            "sweep/training_seed": run.training_seed,
            "sweep/digest": run.digest,
            **{f"sweep/{name}": score for name, score in scores.items()},
        }
        train, test = scores.get(TRAIN), scores.get(TEST)
        if train is not None and test is not None:
            values["sweep/gap"] = train - test
        self._job.metrics.write(self._steps_of(outcome), values)

    def _steps_of(self, *outcomes: RunResult) -> int:
        return sum(each.result["training"]["env_steps"] for each in outcomes)

    def _steps(self) -> int:
        """Returns the training steps so far, of finished runs and of those in progress."""
        steps = 0
        for run in self._plan.runs:
            outcome = self._outcomes.get(run.name)
            steps += _newest_steps(run) if outcome is None else self._steps_of(outcome)
        return steps

    def _trained(self) -> list[RunResult]:
        """Returns the results of the training runs that are finished."""
        names = (run.name for run in self._plan.runs)
        return [self._outcomes[name] for name in names if name in self._outcomes]

    def _show(self) -> None:
        """Updates the progress display, and from time to time the metrics."""
        runs, done = self._plan.runs, len(self._trained())
        total = sum(run.config.env_steps for run in runs)
        steps, seconds = self._steps(), time.monotonic() - self._began
        rate = (steps - self._steps_before) / seconds if seconds else 0.0
        amounts = steps, total, rate
        if not all(run.config.env_steps for run in runs):  # the steps of demonstrations vary
            speed = (done - self._done_before) / seconds if seconds else 0.0
            amounts = done, len(runs), speed
        part, left = _progress_of(*amounts, done=done == len(runs))
        shown = {"runs": f"{done}/{len(runs)}", "steps/s": round(rate), "left": left}
        self._job.progress.update(part, shown)
        if self._metrics.due():
            self._job.metrics.write(steps, {"done": part, "sweep/ended": done})

    def _missing(self) -> dict[str, str]:
        """Returns the reason for each run without a result."""
        names = [run.name for run in self._plan.everything if run.name not in self._outcomes]
        return {name: self._failures.get(name, "not begun") for name in names}

    def _missing_runs(self) -> str | None:
        """Returns a sentence on the runs without a result; None if there are none."""
        missing = [f"{name}: {why}" for name, why in self._missing().items()]
        if not missing:
            return None
        more = f"; and {len(missing) - 5} more" if len(missing) > 5 else ""
        return (
            f"{len(missing)} of {len(self._plan.everything)} runs are missing "
            f"({'; '.join(missing[:5])}{more}). The others are saved and in the report; --resume "
            f"tries again"
        )

    def _publish(self) -> SweepReport:
        """Writes results, figure and report so far; returns the data of the report."""
        videos = [(each.title, each.file) for each in self._videos]
        data = report_of(self._plan, self._outcomes, self._failures, videos)
        publish(self._run.path, data)
        played = [self._outcomes[j.name] for j in self._plan.baselines if j.name in self._outcomes]
        if played:
            table = concatenate(outcome.table for outcome in played)
            write_table(self._run.path / BASELINE_TABLE, table, docs=COLUMN_DOCS)
        return data

    def conclude(self, status: str) -> str:
        """Writes report and summary; returns a status sentence."""
        data = self._publish()
        finding = verdict(data)
        runs = self._plan.runs
        trained = self._trained()
        if self._ran or not self._run.summary_file.exists():
            self._log_points(data.points, self._steps_of(*trained))
        self._job.write_summary(
            status,
            verdict=finding,
            results={
                "runs": len(trained),
                "planned": len(runs),
                "env_steps": self._steps_of(
                    *(o for o in trained if folder_of_training(o) == o.run.folder)
                ),
                "episodes_evaluated": sum(len(o.table["score"]) for o in trained),
                "missing": self._missing(),
            },
            points=plain_figures(data.points),
            decomposition=plain_figures(data.parts),
            sets=digests_of(self._plan),
            films=[each.file for each in self._videos],
            session={"seconds": round(time.monotonic() - self._began, 1)},
        )
        self._show()
        log.info("%s", finding.replace("**", ""))
        return f"{len(trained)} of {len(runs)} runs"

    def _log_points(self, points: list[Point], steps: int) -> None:
        """Writes the curves and media as lines of metrics."""
        for point in points:
            values = {k: v for k, v in values_of(point).items() if math.isfinite(v)}
            self._job.metrics.write(steps, {"sweep/n": point.n, **values})
        runs = sum(len(point.seeds) for point in points)
        self._job.metrics.write(steps, {"sweep/runs": runs}, media=self._media())

    def _media(self) -> Mapping[str, Media]:
        """Returns the figure, the episodes and the videos, copied: media files must not change."""
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
        for each in self._videos:
            media[each.name] = Video(self._run.path / each.file, fps, each.title)
        return media


def _suggest_seeds(plan: SweepPlan) -> None:
    """Says what is simpler than a sweep in which only the seed varies."""
    if len({(run.arm, run.n) for run in plan.runs}) > 1:
        return
    seeds = [run.training_seed for run in sorted(plan.runs, key=lambda run: run.training_seed)]
    log.info(
        "sizes has one number of states, so there is no curve over it: gamut train with seeds=%s "
        "trains these seeds in one run, and gamut plot draws their learning curves",
        seeds,
    )


def _newest_steps(run: SweepRun) -> int:
    """Returns the steps of a run so far, from its own metrics; 0 if it has none."""
    if not run.config.env_steps:
        return 0  # metrics of a training on a dataset count each step in every epoch
    lines, _ = newest_lines(run.folder / METRICS)
    steps = lines[-1].get("env_steps") if lines else None
    return steps if isinstance(steps, int) else 0


def _progress_of(steps: int, total: int, rate: float, *, done: bool) -> tuple[float, str]:
    """Returns the fraction of a sweep that is done, and the remaining time as text.

    Args:
        steps: training steps so far, or finished runs.
        total: of all runs.
        rate: per second.
        done: all runs have been evaluated, which has no steps.
    """
    if steps >= total and not done:
        return 0.99, "evaluation"
    left = duration(max(0, total - steps) / rate) if rate > 0 else "?"
    return min(1.0 if done else 0.99, steps / total), left


class SweepVideo(NamedTuple):
    """A video of an evaluated episode of a sweep.

    Attributes:
        title: description of its contents.
        file: path relative to the folder of the sweep.
        name: name among the media of the metrics.
    """

    title: str
    file: str
    name: str


def record_runs(
    plan: SweepPlan, outcomes: Mapping[str, RunResult], trainer: Trainer, folder: Path
) -> list[SweepVideo]:
    """Records episodes of the first arm and seed with largest and smallest N, once.

    A run that cannot be recorded causes a warning.

    Args:
        plan: the sweep.
        outcomes: its finished runs, by name.
        trainer: makes the players of trained policies.
        folder: folder of the videos, with a subfolder per run.
    """
    shown: list[SweepVideo] = []
    arm = plan.base.arm
    by_key = {outcome.run.key: outcome for outcome in outcomes.values()}
    for n in dict.fromkeys((max(arm.sizes), min(arm.sizes))):
        outcome = by_key.get((arm.name, n, arm.seeds[0]))
        if plan.video_bridge is None or outcome is None:
            continue
        name = outcome.run.name
        try:
            made = _videos_of(plan, plan.video_bridge, outcome, trainer, folder / name)
        except (BudgetExhausted, DatasetError, OSError) as error:
            log.warning("no video of %s was recorded: %s", name, error)
            continue
        for each in made:
            again = "" if each.same else ", another run of it"
            title = f"N = {n:,}, held-out state {each.state}, {each.rank}: score {each.score:.3g}"
            file = f"{folder.name}/{name}/{each.file}"
            shown.append(SweepVideo(title + again, file, f"videos/n{n}/{each.rank}"))
    return shown


def _videos_of(
    plan: SweepPlan, bridge: Bridge, outcome: RunResult, trainer: Trainer, folder: Path
) -> list[EpisodeVideo]:
    run, videos, base = outcome.run, plan.config.videos, plan.base
    asked = {"digest": run.digest, "videos": videos.model_dump(mode="json")}
    done = folder / VIDEOS
    if done.exists():
        try:
            before = parse_json(read_document(done))
            if before["asked"] == asked:
                return [EpisodeVideo(**each) for each in before["films"]]
        except (ValueError, LookupError, TypeError) as error:
            log.warning("%s is damaged (%s); its videos are recorded again", done, error)
        shutil.rmtree(folder)
    shown = (TEST, run.evaluation.actions[0])
    players = legs_of(run, trainer.player(folder_of_training(outcome)))
    own = tuple(leg for leg in players if (leg.set_name, leg.actions) == shown)
    legs = Legs(own, base.task.state_space, run.evaluation.seed)
    recorded = list(
        record(
            bridge,
            base.bridge.spec,
            base.task,
            legs,
            best_and_worst(legs, outcome.table, videos.best, videos.worst),
            folder,
            metric=run.evaluation.metric,
            video=videos,
            host=run.config.host,
        )
    )
    made = {"asked": asked, "films": [asdict(each) for each in recorded]}
    write_atomically(done, json.dumps(made, indent=2) + "\n")
    return recorded
