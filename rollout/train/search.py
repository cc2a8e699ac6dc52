"""A search over keys of a training run: trials of Ray Tune, each a run that goes on by itself."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

from rollout.cli import Session, Stop
from rollout.cluster.resources import require_bundles
from rollout.configuration.files import write_atomically
from rollout.errors import RunDirectoryError, UnknownNameError
from rollout.host.session import ray_session, require_session
from rollout.observe.exporter import RayExporter
from rollout.observe.logs import about, set_up_logging
from rollout.observe.metrics import Metrics, read_metrics
from rollout.observe.progress import Progress, share, show_progress
from rollout.observe.run_files import SUMMARY, read_about, read_json
from rollout.run_directory import RunDirectory, versions
from rollout.train.plan import TrainPlan
from rollout.train.search_config import SearchConfig, ends_of
from rollout.train.train import train

log = logging.getLogger(__name__)

SCORE, STEPS = "score", "env_steps"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.=,+-]+")
_NAME_LENGTH = 80
_LOCK_S = 60.0  # that a trial whose search was killed may take to notice and go


def search(config: SearchConfig, session: Session) -> str | None:
    """Trains what the configuration says, as often as it says.

    A trial is a run directory under ``trials/`` which goes on from its own newest checkpoint. The
    draws depend on the seed alone, so whoever resumes meets the same trials: those that are done
    only tell again what they measured.

    Args:
        config: what to train, and what to vary.
        session: how the script was called.

    Returns:
        None when all trials ended; else a sentence that says what is missing.

    Raises:
        InputError: the configuration is wrong; nothing was launched.
        KeyboardInterrupt: it was told to stop; trials go on from their checkpoints.
    """
    first = {name: ends_of(values)[0] for name, values in config.space.items()}
    plan = TrainPlan.make(config.trial(first, config.output))
    require_session(config.ray.address)
    with contextlib.ExitStack() as stack:
        opened = RunDirectory.opened(config.output, config, resume=session.resume)
        run = stack.enter_context(opened)
        set_up_logging(config.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        metrics = stack.enter_context(
            Metrics(run.metrics, constants={"resume_count": run.resume_count})
        )
        progress = stack.enter_context(show_progress("search", every_s=config.log.every_s))
        stack.enter_context(ray_session(config.ray.address))
        bundles = _bundles(plan)
        require_bundles(bundles, what="trial, with its runners and learners,")
        metrics.listen(stack.enter_context(RayExporter(run.run_id, "search")))
        session.stop.install()  # ray.init has put its own handler of SIGTERM in place
        config_here = config.model_copy(update={"output": run.path})
        try:
            trials = _fit(config_here, bundles, metrics, progress)
        except KeyboardInterrupt:
            _write_summary(config, run, "interrupted", {})
            raise
    return _conclude(config, run, trials)


def _bundles(plan: TrainPlan) -> list[dict[str, float]]:
    """Returns what a trial asks for: for itself, for each of its runners, for each learner."""
    c, needs = plan.config, plan.needs
    games = {name: amount * c.instances for name, amount in needs.custom.items()}
    runner = {"CPU": 1.0, "GPU": needs.gpus * c.instances, **games}
    learner = {"CPU": 1.0, "GPU": c.learners.gpus, **c.learners.resources}
    asked = [{"CPU": 1.0}, *[runner] * c.runners, *[learner] * c.learners.count]
    return [{name: amount for name, amount in each.items() if amount} for each in asked]


def _fit(
    config: SearchConfig,
    bundles: list[dict[str, float]],
    metrics: Metrics,
    progress: Progress,
) -> list[dict[str, Any]]:
    """Runs all trials; returns what became of each, the best first."""
    # Tune's own files, tables and boards would say again what run directories say.
    os.environ.setdefault("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    # A trial that fails before its first score is that trial's failure, not the search's.
    os.environ.setdefault("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")
    # Tune's own handler swallows Ctrl-C, and a search that was broken off would count as done.
    os.environ.setdefault("TUNE_DISABLE_SIGINT_HANDLER", "1")
    from ray import tune  # noqa: PLC0415 - takes a second, and only a search needs it
    from ray.tune.schedulers import ASHAScheduler  # noqa: PLC0415
    from ray.tune.search.basic_variant import BasicVariantGenerator  # noqa: PLC0415

    scheduler = None
    if config.asha is not None:
        scheduler = ASHAScheduler(
            time_attr=STEPS,
            metric=SCORE,
            mode=config.mode,
            # Beyond the budget: a trial that reaches it ends by itself, with its summary.
            max_t=10 * config.train.env_steps,
            grace_period=config.asha.grace_steps,
            reduction_factor=config.asha.reduction,
        )
    needs = tune.PlacementGroupFactory(bundles)

    def trial(point: Mapping[str, Any]) -> None:
        run_trial(config, point, _folder(tune.get_context().get_trial_id(), point), tune.report)

    class Watcher(_Watching, tune.Callback):  # type: ignore[misc] # Ray is untyped
        pass

    tuner = tune.Tuner(
        tune.with_resources(trial, needs),
        param_space={name: _domain(values) for name, values in config.space.items()},
        tune_config=tune.TuneConfig(
            num_samples=config.samples,
            scheduler=scheduler,
            search_alg=BasicVariantGenerator(random_state=config.seed),
            max_concurrent_trials=config.parallel,
        ),
        run_config=tune.RunConfig(
            name="tune",
            storage_path=str(config.output),
            verbose=0,
            failure_config=tune.FailureConfig(max_failures=config.retries),
            callbacks=[Watcher(config, metrics, progress)],
        ),
    )
    results = tuner.fit()
    sign = -1.0 if config.mode == "max" else 1.0
    trials = [_row(config, result) for result in results]
    return sorted(trials, key=lambda t: (t[SCORE] is None, sign * (t[SCORE] or 0.0)))


def run_trial(config: SearchConfig, point: Mapping[str, Any], name: str, report: Any) -> None:
    """Trains one trial, or goes on with it.

    Args:
        config: of the search.
        point: values of the keys that it varies.
        name: of the trial's folder.
        report: told ``{"score": ..., "env_steps": ...}`` of every update that has a score.

    Raises:
        RuntimeError: it ended short; the next try goes on from its checkpoint.
        UnknownNameError: it never measured the metric.
    """
    folder = config.output / "trials" / name
    metric, told = config.metric, False
    last: Mapping[str, Any] = {}

    def tell(env_steps: int, line: Mapping[str, Any]) -> None:
        nonlocal told, last
        last = line
        value = line.get(metric)
        if value is not None:
            told = True
            report({SCORE: float(value), STEPS: env_steps})

    # Whoever ends bad trials early judges the whole history, also that of earlier sessions.
    if (folder / "metrics.jsonl").exists():
        for line in read_metrics(folder / "metrics.jsonl"):
            tell(int(line[STEPS] or 0), line)
    missing = train(config.trial(point, folder), Session(True, Stop(), _LOCK_S), tell)
    if missing is not None:
        raise RuntimeError(missing)
    if not told:
        raise UnknownNameError("metric of metrics.jsonl", metric, last)


def _domain(values: Any) -> Any:
    from ray import tune  # noqa: PLC0415 - see ``_fit``

    if isinstance(values, list):
        return tune.grid_search(values)
    ((kind, given),) = values.items()
    if kind == "grid":
        return tune.grid_search(given)
    return tune.choice(given) if kind == "choice" else getattr(tune, kind)(*given)


def _name(point: Mapping[str, Any]) -> str:
    words = [
        f"{key.rpartition('.')[2]}={value:.4g}" if isinstance(value, float) else
        f"{key.rpartition('.')[2]}={value}"
        for key, value in point.items()
    ]  # fmt: skip
    return _NOT_IN_A_NAME.sub("-", ",".join(words)).strip("-")[:_NAME_LENGTH]


def _folder(trial_id: str, point: Mapping[str, Any]) -> str:
    return f"{trial_id.rpartition('_')[2]}-{_name(point)}"


def _row(config: SearchConfig, result: Any) -> dict[str, Any]:
    """What became of a trial."""
    said = result.metrics or {}
    steps = int(said.get(STEPS, 0))
    status = "done" if steps >= config.train.env_steps else "ended early"
    return {
        "trial": str(said.get("trial_id", "")),
        "point": dict(result.config or {}),
        SCORE: said.get(SCORE),
        STEPS: steps,
        "status": status if result.error is None else "failed",
        "error": "" if result.error is None else str(result.error).strip().splitlines()[-1],
    }


class _Watching:
    """Tells what trials say, while they run; ``_fit`` makes a callback of Tune's of it."""

    def __init__(self, config: SearchConfig, metrics: Metrics, progress: Progress) -> None:
        self._config, self._metrics, self._progress = config, metrics, progress
        self._steps: dict[str, int] = {}
        self._ended = 0

    def __getstate__(self) -> dict[str, Any]:
        """Nothing: Tune stores its callbacks, and this one has open files and no memory."""
        return {}

    def on_trial_result(
        self, iteration: int, trials: list[Any], trial: Any, result: Mapping[str, Any], **_: Any
    ) -> None:
        """Counts steps."""
        self._steps[trial.trial_id] = int(result.get(STEPS, 0))
        self._show(trials)

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        """Writes a line for a trial that ended."""
        self._ended += 1
        said = trial.last_result or {}
        values = {"search/trial": trial.trial_id, "search/score": said.get(SCORE)}
        values |= {f"search/{name}": _scalar(value) for name, value in trial.config.items()}
        self._metrics.write(sum(self._steps.values()), values)
        if int(said.get(STEPS, 0)) < self._config.train.env_steps:
            self._tell_early(trial)
        log.info("%s: %s", _name(trial.config), said.get(SCORE))
        self._show(trials)

    def _tell_early(self, trial: Any) -> None:
        """Writes the summary of a trial that was ended early, which it had no time to write."""
        place = self._config.output / "trials" / _folder(trial.trial_id, trial.config)
        with contextlib.suppress(RunDirectoryError):  # it was ended before it began
            session = len(read_about(place)["sessions"]) - 1
            if read_json(place / SUMMARY).get("resume_count") != session:
                summary = {"status": "ended early", "resume_count": session}
                write_atomically(place / SUMMARY, json.dumps(summary) + "\n")

    def _show(self, trials: list[Any]) -> None:
        budget = self._config.train.env_steps * max(len(trials), 1)
        steps = sum(self._steps.values())
        shown = {"trials": f"{self._ended}/{len(trials)}", "steps": steps}
        self._progress.update(share((steps, budget)), shown)


def _scalar(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) else str(value)


def _conclude(config: SearchConfig, run: RunDirectory, trials: list[dict[str, Any]]) -> str | None:
    """Writes ``summary.json``; returns what is missing."""
    failed = [trial for trial in trials if trial["status"] == "failed"]
    best = next((trial for trial in trials if trial[SCORE] is not None), None)
    status = "done" if not failed else "ended short"
    _write_summary(config, run, status, {"best": best, "trials": trials})
    if best is not None:
        log.info("best: %s with %s %.4g", _name(best["point"]), config.metric, best[SCORE])
    if failed:
        return f"{len(failed)} of {len(trials)} trials failed: {failed[0]['error']}"
    return None


def _write_summary(
    config: SearchConfig, run: RunDirectory, status: str, results: Mapping[str, Any]
) -> None:
    run.write_summary(
        {
            "status": status,
            "run_id": run.run_id,
            "resume_count": run.resume_count,
            "protocol": {
                "metric": config.metric,
                "mode": config.mode,
                "space": config.space,
                "samples": config.samples,
                "asha": None if config.asha is None else config.asha.model_dump(),
                "env_steps": config.train.env_steps,
            },
            "results": dict(results),
            "versions": versions(),
        }
    )
