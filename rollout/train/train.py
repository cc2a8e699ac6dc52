"""Training: plays, learns and records. The main loop is ``_Training.train``."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rollout.cli import Session
from rollout.cluster.resources import require_resources
from rollout.errors import BudgetExhausted, RayUnavailable
from rollout.host.fleets import TuningHints
from rollout.host.hosting import log_launch
from rollout.host.schedule import Visits
from rollout.job import Job, open_job
from rollout.observe.aggregates import Aggregates
from rollout.observe.logs import log_losses, log_notices
from rollout.observe.progress import share
from rollout.observe.run_files import read_json
from rollout.run_directory import as_begun, folder_of, versions
from rollout.train import callbacks as calls
from rollout.train.callbacks import Callback, Named
from rollout.train.checkpoint import (
    Checkpoint,
    any_checkpoint,
    find_checkpoint,
    newest_checkpoint,
    prune,
    write_checkpoint,
)
from rollout.train.config import TrainConfig
from rollout.train.episodes import EpisodeLog
from rollout.train.plan import TrainPlan, check_others, others_of, protocol
from rollout.train.reading import explain
from rollout.train.validation import Validation

log = logging.getLogger(__name__)


def train(config: TrainConfig, session: Session, on_update: Sequence[Callback] = ()) -> str | None:
    """Runs the training that the configuration describes, in its own run directory.

    Args:
        config: the configuration.
        session: how the script was called.
        on_update: called after every update, after the ``callbacks`` of the configuration.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: it was told to stop; a checkpoint was written first.
        Exception: a callback raised it; a checkpoint was written first.
    """
    begun = any_checkpoint(folder_of(config.output) / "checkpoints") if session.resume else None
    others = [] if begun is not None else others_of(config).values()
    first = next(map(find_checkpoint, others), None)
    plan = TrainPlan.make(as_begun(config, resume=session.resume), begun=begun, first=first)
    check_others(plan)
    with open_job("train", plan.config, session) as job:
        run = job.run
        saved = newest_checkpoint(run.checkpoints, fallback=config.checkpoint.fallback)
        summary = read_json(run.summary_file)
        callbacks = [*calls.load_callbacks(config.callbacks), *map(calls.with_name, on_update)]
        training = _Training(plan, job, saved, callbacks, summary)
        if training.done:
            log.info(
                "nothing is left to do: %d steps, ended by %s",
                *(training.env_steps, training.ended_by),
            )
            if summary.get("status") == "done":  # the summary of this session says so too
                run.write_summary({**summary, "resume_count": run.resume_count})
            else:  # killed between its last checkpoint and its summary
                training.conclude("done")
            return None
        if config.episodes.write:
            training.episodes = EpisodeLog(run.path / "episodes.jsonl", training.update)
            job.stack.callback(training.episodes.close)
        until = -1 if saved is None else saved.env_steps
        job.report(mirrored={"state_set_digest": plan.states.digest}, until=until)
        with job.ray() as stack:
            require_room(plan)
            new = begun is None and first is None
            policy = plan.config.policy if new else plan.decided_policy
            explain(policy, plan.bridge.spec.observation_space)
            log.info("loading RLlib")
            # It takes seconds to import, and Ray decides about authentication when it is imported.
            from rollout.train.rllib.algorithm import build  # noqa: PLC0415

            log_launch(plan.hosting(), config.runners)
            algorithm = build(plan)
            stack.callback(algorithm.stop)
            training.begin(algorithm)
            return job.finish(training.train, training.conclude)


def require_room(plan: TrainPlan) -> None:
    """Checks that the joined cluster has machines for the games and the learners.

    Raises:
        ConfigError: it has not; nothing was launched.
    """
    config = plan.config
    if config.runners:
        require_resources(plan.needs, config.runners * config.instances)
    require_resources(config.learners.needs, config.learners.count, what="learner")


class _Training:
    """One session of a training run: its loop and its results."""

    def __init__(
        self,
        plan: TrainPlan,
        job: Job,
        saved: Checkpoint | None,
        callbacks: Sequence[Named],
        summary: Mapping[str, Any],
    ) -> None:
        self._plan, self._job, self._saved, self._callbacks = plan, job, saved, callbacks
        about_: Mapping[str, Any] = saved.about if saved is not None else {}
        self.env_steps = int(about_.get("env_steps", 0))
        self.update = int(about_.get("update", 0))
        # Name of the callback that ended it.
        self._stopped_by = calls.ended_by(callbacks, summary, self.update)
        self.episodes: EpisodeLog | None = None
        self._algorithm: Any = None
        self._visits = Visits(plan.states)
        self._advice = TuningHints(plan.hosting(), plan.config.runners, "runners")
        if "visits" in about_:
            self._visits.merge(about_["visits"])
        episodes = int(about_.get("episodes", 0))
        self._seconds = float(about_.get("seconds", 0.0))
        self._lost: Counter[str] = Counter(about_.get("lost", {}))
        self._abandoned: list[int] = list(about_.get("abandoned", []))
        self._dropped = int(about_.get("dropped_steps", 0))
        self._figures = Aggregates(env_steps=self.env_steps, episodes=episodes)
        self._began, self._steps_before = time.monotonic(), self.env_steps
        self._written = -1 if saved is None else self.update  # update of the newest checkpoint
        self._validation: Validation | None = None
        if plan.validation is not None:
            folder = job.run.checkpoints
            self._validation = Validation(plan, plan.validation, folder, self.update)

    @property
    def ended_by(self) -> str:
        """What has ended the training; empty if nothing has.

        ``env_steps``, ``validation.patience``, or ``callback`` with its name.
        """
        if self._stopped_by:
            return f"callback {self._stopped_by}"
        if self.env_steps >= self._plan.config.env_steps:
            return "env_steps"
        validation = self._validation
        return "validation.patience" if validation is not None and validation.exhausted else ""

    @property
    def done(self) -> bool:
        """Whether nothing is left to do, not even the validation of the last weights."""
        return bool(self.ended_by) and not self._due(last=True)

    def _due(self, *, last: bool) -> bool:
        if self._validation is None:
            return False
        return self._validation.due(self.update, self.env_steps, last=last)

    def begin(self, algorithm: Any) -> None:
        """Takes an algorithm whose games are launched, and restores the state of the run."""
        self._algorithm = algorithm
        # Rates are measured from here on, without the time for launching the games.
        self._figures = Aggregates(env_steps=self.env_steps, episodes=self._figures.episodes)
        saved, first = self._saved, self._plan.config.initialize_from
        if saved is not None:
            state = saved.optimizer()
            in_flight = state.pop("in_flight", {})  # checkpoints of version 0.1 lack it
            algorithm.remember(saved.weights(), state)
            positions = dict(saved.about["positions"])
            algorithm.go_to(saved.update, saved.env_steps, positions, in_flight)
            log.info("continues from update %d, %d steps", saved.update, saved.env_steps)
        elif first is not None:
            algorithm.remember(find_checkpoint(first).weights())

    def train(self) -> str | None:
        """Trains until the budget is used up, a signal arrives or no game is left."""
        stop = self._job.stop
        with stop.deferred():
            if line := self._validate():  # which the last session was killed in
                self._tell(line)
            while not self.ended_by and not stop.requested:
                self._update()
                line = self._note(self._algorithm.last)
                if self.update % self._plan.config.checkpoint.every == 0:
                    self._save()
                line |= self._validate()
                self._tell(line)
            self._save()
            self._validate()  # if a callback ended it
        if self.ended_by:
            log.info("the training was ended by %s", self.ended_by)
        return None

    def _update(self) -> None:
        try:
            self._algorithm.train()
        except BudgetExhausted:
            self._note_losses(self._algorithm.last)
            self._rescue()
            raise

    def _validate(self) -> dict[str, Any]:
        """Validates the weights if it is time to; returns the values of its metrics line."""
        stop, algorithm, progress = self._job.stop, self._algorithm, self._job.progress
        if self._validation is None or stop.requested or not self._due(last=bool(self.ended_by)):
            return {}
        self._save()  # the validation of a killed session is repeated from here
        done = share((self.env_steps, self._plan.config.env_steps))
        values = self._validation.run(
            self.update,
            self.env_steps,
            algorithm.weights(),
            algorithm.open_fleet,
            watch=lambda x: progress.update(
                done, {"update": self.update, "steps": self.env_steps, "validated": f"{x:.0%}"}
            ),
            stopping=lambda: stop.requested,
        )
        if values:
            self._job.metrics.write(self.env_steps, values)
        return values

    def _note(self, now: Any) -> dict[str, Any]:
        self.update, self.env_steps = now.update, now.env_steps
        self._figures.add_steps(now.fresh_steps)
        self._figures.add_episodes(now.results)
        self._visits.add(now.results)
        if self.episodes is not None:
            self.episodes.write(now.update, now.env_steps, now.results, now.signals)
        self._dropped += now.dropped_steps
        log_notices(log, now.results)
        self._note_losses(now)
        trained = {f"train/{k}": v for k, v in now.figures.items() if not math.isnan(v)}
        own = {
            "train/update": now.update,
            "train/staleness": now.staleness,
            "train/dropped_steps": self._dropped,
            "seconds/sample": now.sample_s,
            "seconds/update": now.update_s,
        }
        values = self._figures.values()
        done = share((now.env_steps, self._plan.config.env_steps))
        lost = {f"lost/{phase}": count for phase, count in self._lost.items()}
        line = {**values, **trained, **own, "done": done, "lost": self._lost.total(), **lost}
        line |= now.hosts
        self._advice.update(line, now.update_s / max(now.sample_s + now.update_s, 1e-9))
        self._job.metrics.write(now.env_steps, line)
        shown = {"update": now.update, "steps": now.env_steps, **self._figures.brief()}
        self._job.progress.update(done, shown)
        return line

    def _tell(self, line: Mapping[str, Any]) -> None:
        """Calls the callbacks; their errors end the training, with everything saved."""
        record = calls.UpdateRecord(
            self.update,
            self.env_steps,
            MappingProxyType(dict(line)),
            self._job.run.path,
            self._algorithm.weights,
        )
        try:
            self._stopped_by = calls.call_all(self._callbacks, record)
        except Exception:
            self._save()
            self.conclude("ended short")
            raise

    def _note_losses(self, now: Any) -> None:
        self._lost.update(loss.phase for loss in now.losses)
        log_losses(log, now.losses)
        self._abandoned += [start.episode for start in now.abandoned]

    def _save(self) -> None:
        """Writes a checkpoint of the newest update, unless it is written already."""
        if self._written == self.update or not self.update or self._algorithm is None:
            return
        c, algorithm = self._plan.config, self._algorithm
        write_checkpoint(
            self._job.run.checkpoints,
            {
                "update": self.update,
                "env_steps": self.env_steps,
                "episodes": self._figures.episodes,
                "seconds": self._seconds + time.monotonic() - self._began,
                "positions": algorithm.positions(),
                "visits": self._visits.state(),
                "lost": dict(self._lost),
                "abandoned": self._abandoned,
                "dropped_steps": self._dropped,
                "policy": {"name": c.policy.name, "options": self._plan.decided_policy.options},
                "bridge": {
                    "name": c.bridge.name,
                    "options": c.bridge.options,
                    "version": self._plan.bridge.spec.version,
                },
                "task": self._plan.task.name,
                "state_set": self._plan.states.describe(),
                "run_id": self._job.run.run_id,
                "versions": versions(),
            },
            weights=algorithm.weights(),
            optimizer={**algorithm.optimizer_state(), "in_flight": algorithm.in_flight()},
            spec=self._plan.bridge.spec,
            reads=self._plan.reads,
        )
        best = None if self._validation is None else self._validation.history.best
        kept = None if best is None else best["update"]
        prune(self._job.run.checkpoints, c.checkpoint.keep, best=kept)
        self._written = self.update

    def _rescue(self) -> None:
        """Writes a checkpoint, unless the weights are lost with their learner."""
        try:
            self._save()
        except RayUnavailable as error:
            log.warning("no checkpoint of update %d: %s", self.update, error)

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        if status == "ended short":
            self._rescue()
        seconds = time.monotonic() - self._began
        steps = self.env_steps - self._steps_before
        figures, validation = self._figures.values(), self._validation
        told = protocol(self._plan)
        if validation is not None:
            told["validation"] = validation.protocol()
        self._job.write_summary(
            status,
            protocol=told,
            results={
                "env_steps": self.env_steps,
                "episodes": self._figures.episodes,
                "updates": self.update,
                "ended_by": self.ended_by or None,
                **({} if validation is None else {"validation": validation.summary()}),
                "seconds": round(self._seconds + seconds, 2),
                "visits": self._visits.summary(),
                "lost": dict(self._lost),
                "episodes_given_up": self._abandoned,
                "dropped_steps": self._dropped,
                "last": {k: v for k, v in figures.items() if k.startswith("episode/")},
            },
            session={
                "env_steps": steps,
                "seconds": round(seconds, 2),
                "env_steps_per_second": round(steps / max(seconds, 1e-9), 1),
            },
        )
        return f"update {self.update}, {self.env_steps} steps"
