"""A search over configuration keys of training: trials of Ray Tune, each with a run directory."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rollout.cli import Session
from rollout.cluster.resources import require_bundles
from rollout.errors import RunDirectoryError, UnknownNameError
from rollout.files import write_atomically
from rollout.job import Job, open_job
from rollout.observe.metrics import Metrics, read_metrics
from rollout.observe.progress import Progress, share
from rollout.observe.run_files import SUMMARY, read_about, read_json
from rollout.signals import Stop
from rollout.train.plan import TrainPlan
from rollout.train.search_config import SEED, SearchConfig, drawn, ends_of
from rollout.train.train import train

log = logging.getLogger(__name__)

SCORE, STEPS = "score", "env_steps"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.=,+-]+")
_NAME_LENGTH = 80
_LOCK_S = 60.0  # time for a trial whose search was killed to notice it and exit


def search(config: SearchConfig, session: Session) -> str | None:
    """Runs the trials that the configuration describes.

    A trial is a run directory under ``trials/`` which continues from its own newest checkpoint. The
    samples depend on the seed alone, so a resumed search has the same trials; finished trials only
    report their results again.

    Returns:
        None if all trials ended; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal ended it; trials continue from their checkpoints on resume.
    """
    first = {name: ends_of(values)[0] for name, values in config.space.items()}
    plan = TrainPlan.make(config.trial(first, config.output))
    with open_job("search", config, session) as job:
        job.report()
        whole = _Search(config.model_copy(update={"output": job.run.path}), job)
        with job.ray():
            bundles = _bundles(plan)
            require_bundles(bundles, what="trial, with its runners and learners,")
            return job.finish(lambda: whole.play(bundles), whole.conclude)


class _Search:
    """One session of a search."""

    def __init__(self, config: SearchConfig, job: Job) -> None:
        self._config, self._job = config, job
        self._trials: list[dict[str, Any]] = []

    def play(self, bundles: list[dict[str, float]]) -> str | None:
        """Runs all trials."""
        log.info("loading Ray Tune and starting trials")
        self._trials = _fit(self._config, bundles, self._job.metrics, self._job.progress)
        failed = [trial for trial in self._trials if trial["status"] == "failed"]
        if not failed:
            return None
        return f"{len(failed)} of {len(self._trials)} trials failed: {failed[0]['error']}"

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a sentence on the best trial."""
        c, trials = self._config, self._trials
        best = next((trial for trial in trials if trial[SCORE] is not None), None)
        settings = by_setting(trials, c.mode) if SEED in c.space else []
        if settings and settings[0][SCORE] is not None:
            best = settings[0]
        self._job.write_summary(
            status,
            protocol={
                "metric": c.optimized,
                "mode": c.mode,
                "space": c.space,
                "samples": c.samples,
                "asha": None if c.asha is None else c.asha.model_dump(),
                "env_steps": c.train.env_steps,
            },
            results={
                "best": best,
                **({"settings": settings} if settings else {}),
                "trials": trials,
            }
            if trials
            else {},
        )
        if best is None:
            return f"{len(trials)} trials"
        found = f"best: {_name(best['point'])} with {c.optimized} {best[SCORE]:.4g}"
        return f"{len(trials)} trials, {found},"


def by_setting(trials: Sequence[Mapping[str, Any]], mode: str) -> list[dict[str, Any]]:
    """Returns the mean score of each setting over its seeds, the best first.

    Args:
        trials: results of trials, whose points have a seed.
        mode: whether the highest ("max") or the lowest score is the best.

    Returns:
        for each setting ``point`` (without the seed), ``score`` (the mean, None where a seed has no
        score), ``low`` and ``high`` (the least and the largest score), ``seeds`` (those with one).
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        point = {name: value for name, value in trial["point"].items() if name != SEED}
        groups.setdefault(json.dumps(point, sort_keys=True), []).append(trial)
    rows: list[dict[str, Any]] = []
    for setting, members in groups.items():
        scores = [trial[SCORE] for trial in members if trial[SCORE] is not None]
        whole = len(scores) == len(members)
        rows.append(
            {
                "point": json.loads(setting),
                SCORE: statistics.fmean(scores) if whole else None,
                "low": min(scores, default=None),
                "high": max(scores, default=None),
                "seeds": sorted(t["point"][SEED] for t in members if t[SCORE] is not None),
            }
        )
    return _best_first(rows, mode)


def _best_first(rows: Iterable[dict[str, Any]], mode: str) -> list[dict[str, Any]]:
    sign = -1.0 if mode == "max" else 1.0
    return sorted(rows, key=lambda row: (row[SCORE] is None, sign * (row[SCORE] or 0.0)))


def _bundles(plan: TrainPlan) -> list[dict[str, float]]:
    """Returns the resources of a trial: of itself, each of its runners and each learner."""
    c, needs = plan.config, plan.needs
    games = {name: amount * c.instances for name, amount in needs.custom.items()}
    runner = {"CPU": 1.0, "GPU": needs.gpus * c.instances, **games}
    learner = {"CPU": 1.0, "GPU": c.learners.gpus, **c.learners.resources}
    asked = [{"CPU": 1.0}, *[runner] * c.runners, *[learner] * c.learners.count]
    return [{name: amount for name, amount in each.items() if amount} for each in asked]


def _fit(
    config: SearchConfig, bundles: list[dict[str, float]], metrics: Metrics, progress: Progress
) -> list[dict[str, Any]]:
    """Runs all trials; returns their results, the best first."""
    # Tune's own files, tables and boards would duplicate what run directories contain.
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    # A trial that fails before its first score must not fail the whole search.
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")
    # Tune's own handler swallows Ctrl-C, and an interrupted search would count as done.
    os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")
    from ray import tune  # noqa: PLC0415 - slow to import, and only a search needs it
    from ray.tune.schedulers import ASHAScheduler  # noqa: PLC0415
    from ray.tune.search.basic_variant import BasicVariantGenerator  # noqa: PLC0415

    scheduler = None
    if config.asha is not None:
        scheduler = ASHAScheduler(
            time_attr=STEPS,
            metric=SCORE,
            mode=config.mode,
            # Above the budget: a trial that reaches its budget ends by itself, with its summary.
            max_t=10 * config.train.env_steps,
            grace_period=config.asha.grace_steps,
            reduction_factor=config.asha.reduction,
        )
    needs = tune.PlacementGroupFactory(bundles)

    def trial(point: Mapping[str, Any]) -> None:
        run_trial(config, point, _folder(tune.get_context().get_trial_id(), point), tune.report)

    class Watcher(_TrialProgress, tune.Callback):  # type: ignore[misc] # Ray is untyped
        pass

    tuner = tune.Tuner(
        tune.with_resources(trial, needs),
        param_space={name: _domain(tune, values) for name, values in config.space.items()},
        tune_config=tune.TuneConfig(
            num_samples=config.samples,
            scheduler=scheduler,
            # Of this generator, Tune ignores max_concurrent_trials.
            search_alg=BasicVariantGenerator(
                max_concurrent=config.parallel or 0,
                random_state=config.seed,
                # All seeds of a setting have the same drawn values.
                constant_grid_search=SEED in config.space,
            ),
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(config.output),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=config.retries),
            callbacks=[Watcher(config, metrics, progress)],
        ),
    )
    logging.getLogger("ray.tune.analysis.experiment_analysis").addFilter(_is_needed)
    results = tuner.fit()
    return _best_first((_row(config, result) for result in results), config.mode)


def _is_needed(record: logging.LogRecord) -> bool:
    """Returns False for messages on files that are not written."""
    # Tune looks for the files that its loggers write, which are turned off above. Of each trial
    # we read its last result alone, which Tune keeps elsewhere.
    return not record.getMessage().startswith("Failed to fetch metrics for")


def run_trial(config: SearchConfig, point: Mapping[str, Any], name: str, report: Any) -> None:
    """Trains one trial, or continues its training.

    ``report`` is called with ``{"score": ..., "env_steps": ...}`` once for every step with a score.

    Raises:
        RuntimeError: it ended early; the next attempt continues from its checkpoint.
        UnknownNameError: the metric was never measured.
    """
    folder = config.output / "trials" / name
    metric, reported = config.optimized, -1
    last: Mapping[str, Any] = {}

    def report_line(env_steps: int, line: Mapping[str, Any]) -> None:
        nonlocal reported, last
        last = {**last, **line}  # a validation has a line of its own
        value = line.get(metric)
        if value is not None and env_steps > reported:
            reported = env_steps
            report({SCORE: float(value), STEPS: env_steps})

    def report_recorded() -> None:
        if (folder / "metrics.jsonl").exists():
            for line in read_metrics(folder / "metrics.jsonl"):
                report_line(int(line[STEPS] or 0), line)

    report_recorded()  # early stopping considers the whole history, including earlier sessions
    session = Session(True, Stop(), _LOCK_S)
    callbacks = [lambda record: report_line(record.env_steps, record.metrics)]
    missing = train(config.trial(point, folder), session, callbacks)
    if missing is not None:
        raise RuntimeError(missing)
    report_recorded()  # callbacks do not get the validation after one of them ended it
    if reported < 0:
        raise UnknownNameError("metric of metrics.jsonl", metric, last)


def _domain(tune: Any, values: Any) -> Any:
    kind, given = drawn(values)
    if kind == "grid":
        return tune.grid_search(given)
    return tune.choice(given) if kind == "choice" else getattr(tune, kind)(*given)


def _name(point: Mapping[str, Any]) -> str:
    shown = ((key, f"{v:.4g}" if isinstance(v, float) else v) for key, v in point.items())
    words = ",".join(f"{key.rpartition('.')[2]}={value}" for key, value in shown)
    return _NOT_IN_A_NAME.sub("-", words).strip("-")[:_NAME_LENGTH]


def _folder(trial_id: str, point: Mapping[str, Any]) -> str:
    return f"{trial_id.rpartition('_')[2]}-{_name(point)}"


def _row(config: SearchConfig, result: Any) -> dict[str, Any]:
    """Returns the results of a trial, JSON-able."""
    said = result.metrics or {}
    steps = int(said.get(STEPS, 0))
    point = dict(result.config or {})
    place = config.output / "trials" / _folder(str(said.get("trial_id", "")), point)
    # A trial that its patience or a callback has ended is done with fewer steps.
    done = steps >= config.train.env_steps or read_json(place / SUMMARY).get("status") == "done"
    status = "done" if done else "ended early"
    return {
        "trial": str(said.get("trial_id", "")),
        "point": point,
        SCORE: said.get(SCORE),
        STEPS: steps,
        "status": status if result.error is None else "failed",
        "error": "" if result.error is None else str(result.error).strip().splitlines()[-1],
    }


class _TrialProgress:
    """Reports the progress of trials; ``_fit`` makes a Tune callback of it."""

    def __init__(self, config: SearchConfig, metrics: Metrics, progress: Progress) -> None:
        self._config, self._metrics, self._progress = config, metrics, progress
        self._steps: dict[str, int] = {}
        self._ended = 0

    def __getstate__(self) -> dict[str, Any]:
        # Tune stores its callbacks, and this one has open files and no state.
        return {}

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: Mapping[str, Any], **_: Any
    ) -> None:
        self._steps[trial.trial_id] = int(result.get(STEPS, 0))
        self._show(trials)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """Writes a metrics line for a trial that ended."""
        self._ended += 1
        said = trial.last_result or {}
        values = {"search/trial": trial.trial_id, "search/score": said.get(SCORE)}
        values |= {
            f"search/{name}": v if isinstance(v, bool | int | float | str) else str(v)
            for name, v in trial.config.items()
        }
        self._metrics.write(sum(self._steps.values()), values)
        if int(said.get(STEPS, 0)) < self._config.train.env_steps:
            self._write_early(trial)
        log.info("%s: %s", _name(trial.config), said.get(SCORE))
        self._show(trials)

    def _write_early(self, trial: Any) -> None:
        """Writes the summary of a trial that was stopped early and could not write it."""
        place = self._config.output / "trials" / _folder(trial.trial_id, trial.config)
        with contextlib.suppress(RunDirectoryError):  # it was stopped before it started
            session = len(read_about(place)["sessions"]) - 1
            if read_json(place / SUMMARY).get("resume_count") != session:
                summary = {"status": "ended early", "resume_count": session}
                write_atomically(place / SUMMARY, json.dumps(summary) + "\n")

    def _show(self, trials: list[Any]) -> None:
        budget = self._config.train.env_steps * max(len(trials), 1)
        steps = sum(self._steps.values())
        shown = {"trials": f"{self._ended}/{len(trials)}", "steps": steps}
        self._progress.update(share((steps, budget)), shown)
