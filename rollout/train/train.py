"""Training from fragments: runners play, learners update. The loop is ``Rounds.run``."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollout.cli import Session
from rollout.cluster.resources import require_resources
from rollout.errors import BudgetExhausted, NothingLegalError, RayUnavailable
from rollout.host.fleets import TuningHints
from rollout.host.hosting import log_launch
from rollout.host.schedule import Visits
from rollout.host.session import alone
from rollout.job import Job, open_job
from rollout.observe.logs import log_losses, log_notices
from rollout.observe.progress import share
from rollout.observe.run_files import read_json
from rollout.run_directory import as_begun, folder_of, require_new
from rollout.tally import Tally
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import (
    Checkpoint,
    any_checkpoint,
    find_checkpoint,
    newest_checkpoint,
)
from rollout.train.config import TrainConfig
from rollout.train.episodes import EpisodeLog
from rollout.train.plan import TrainPlan, check_others, others_of, protocol
from rollout.train.reading import explain
from rollout.train.rounds import Line, Rounds
from rollout.train.trainers import trainer
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
        KeyboardInterrupt: a signal ended it; a checkpoint was written first.
        Exception: a callback raised it; a checkpoint was written first.
    """
    begun = any_checkpoint(folder_of(config.output) / "checkpoints") if session.resume else None
    others = [] if begun is not None else others_of(config).values()
    first = next(map(find_checkpoint, others), None)
    config = as_begun(config, resume=session.resume)
    plan = TrainPlan.make(config, begun=begun, first=first)
    check_others(plan)
    if config.measured_s is not None and (config.measure != "auto" or alone(config.ray.address)):
        from rollout.train.speed import choose  # noqa: PLC0415 - only where it is asked for

        require_new(config.output)  # before games are launched
        plan = TrainPlan.make(choose(config), begun=begun, first=first)
    needs_ray = bool(plan.config.runners or plan.config.learners.count)
    with open_job("train", plan.config, session, needs_ray=needs_ray) as job:
        saved = newest_checkpoint(job.run.checkpoints, fallback=config.checkpoint.fallback)
        training = _Training(plan, job, saved, on_update)
        if training.done:
            training.conclude_again()
            return None
        training.open_log()
        until = -1 if saved is None else saved.env_steps
        job.lineage.add("used", *map(Path, others_of(plan.config).values()))
        job.report(mirrored={"state_set_digest": plan.states.digest}, until=until)
        with job.ray() as stack:
            if needs_ray:
                require_room(plan)
            new = begun is None and first is None
            policy = plan.config.policy if new else plan.decided_policy
            explain(policy, plan.bridge.spec.observation_space)
            log_launch(plan.hosting(), plan.config.runners)
            algorithm = trainer(plan)
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


class _Training(Rounds):
    """One session of a training with runners, which play, and learners."""

    def __init__(
        self,
        plan: TrainPlan,
        job: Job,
        saved: Checkpoint | None,
        on_update: Sequence[Callback],
    ) -> None:
        config = plan.config
        super().__init__(job, saved, config.checkpoint, on_update, config.callbacks)
        about: Mapping[str, Any] = saved.about if saved is not None else {}
        self._plan, self._saved = plan, saved
        self._algorithm: Any = None
        self._episodes: EpisodeLog | None = None
        self._visits = Visits(plan.states)
        if "visits" in about:
            self._visits.merge(about["visits"])
        self._tally = Tally(
            env_steps=self.env_steps,
            episodes=int(about.get("episodes", 0)),
            lost=about.get("lost"),
            abandoned=about.get("abandoned", ()),
        )
        self._dropped = int(about.get("dropped_steps", 0))
        self._advice = TuningHints(plan.hosting(), config.runners, "runners")
        self._validation: Validation | None = None
        if plan.validation is not None:
            folder = job.run.checkpoints
            self._validation = Validation(plan, plan.validation, folder, self.number)

    @property
    def ended_by(self) -> str:
        """``env_steps``, ``validation.patience`` or ``callback`` with its name; see ``Rounds``."""
        if reason := super().ended_by:
            return reason
        if self.env_steps >= self._plan.config.env_steps:
            return "env_steps"
        validation = self._validation
        return "validation.patience" if validation is not None and validation.exhausted else ""

    @property
    def best(self) -> int | None:
        """See ``Rounds``."""
        best = None if self._validation is None else self._validation.history.best
        return None if best is None else best["update"]

    @property
    def done(self) -> bool:
        """True if nothing is left to do, not even the validation of the last weights."""
        return bool(self.ended_by) and not self._due(last=True)

    def _due(self, *, last: bool) -> bool:
        if self._validation is None:
            return False
        return self._validation.due(self.number, self.env_steps, last=last)

    def conclude_again(self) -> None:
        """Writes the summary of a session that has nothing to do."""
        run = self.job.run
        state = f"{self.env_steps} steps, ended by {self.ended_by}"
        log.info("nothing is left to do: %s", state)
        summary = read_json(run.summary_file)
        if summary.get("status") == "done":
            run.write_summary({**summary, "resume_count": run.resume_count})
        else:  # killed between its last checkpoint and its summary
            self.conclude("done")

    def open_log(self) -> None:
        """Opens ``episodes.jsonl`` if it is to be written; the job closes it."""
        if self._plan.config.episodes.write:
            self._episodes = EpisodeLog(self.job.run.path / "episodes.jsonl", self.number)
            self.job.stack.callback(self._episodes.close)

    def begin(self, algorithm: Any) -> None:
        """Takes an algorithm whose games are launched, and restores the state of the run."""
        self._algorithm = algorithm
        self._tally.restart_rates()
        saved, first = self._saved, self._plan.config.initialize_from
        if saved is not None:
            state = saved.optimizer()
            in_flight = state.pop("in_flight", {})  # checkpoints of version 0.1 lack it
            algorithm.remember(saved.weights(), state)
            positions = dict(saved.about["positions"])
            algorithm.go_to(saved.update, saved.env_steps, positions, in_flight)
        elif first is not None:
            algorithm.remember(find_checkpoint(first).weights())

    def train(self) -> None:
        """Trains until the budget is used up, a signal arrives or no game is left."""
        self.run(None, self._update, self._validate, after_checkpoint=True)

    def _update(self) -> Line:
        """Plays and learns; returns a line of metrics."""
        try:
            self._algorithm.train()
        except (BudgetExhausted, NothingLegalError):  # nothing was learned, but steps were played
            self._count(self._algorithm.last)
            raise
        except Exception:
            self._whole = False
            raise
        now, budget = self._algorithm.last, self._plan.config.env_steps
        self._count(now)
        self.env_steps = now.env_steps
        self._visits.add(now.results)
        if self._episodes is not None:
            self._episodes.write(now.update, now.env_steps, now.results, now.signals)
        self._dropped += now.dropped_steps
        done = share((now.env_steps, budget))
        line = {
            **self._tally.metrics(),
            **{f"train/{k}": v for k, v in now.figures.items() if not math.isnan(v)},
            "train/staleness": now.staleness,
            "train/dropped_steps": self._dropped,
            "seconds/sample": now.sample_s,
            "seconds/update": now.update_s,
            "done": done,
            **now.hosts,
        }
        self._advice.update(line, now.update_s / max(now.sample_s + now.update_s, 1e-9))
        shown = {"update": now.update, "steps": now.env_steps, **self._tally.brief()}
        self.job.progress.update(done, shown)
        return line

    def _count(self, now: Any) -> None:
        """Counts and logs what was played for an update."""
        self._tally.count(now.fresh_steps, now.results, now.losses)
        self._tally.abandoned += [start.episode for start in now.abandoned]
        log_notices(log, now.results)
        log_losses(log, now.losses)

    def _validate(self, last: bool) -> Line:
        """Validates the weights if it is time to; returns the values of its metrics line."""
        stop, progress = self.job.stop, self.job.progress
        if self._validation is None or not self._due(last=last):
            return {}
        self.save()  # the validation of a killed session is repeated from here
        done = share((self.env_steps, self._plan.config.env_steps))
        return self._validation.run(
            self.number,
            self.env_steps,
            self.weights(),
            self._algorithm.open_fleet,
            watch=lambda x: progress.update(
                done, {"update": self.number, "steps": self.env_steps, "validated": f"{x:.0%}"}
            ),
            stopping=lambda: stop.requested,
        )

    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network, by name."""
        return dict(self._algorithm.weights())

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``Rounds``."""
        plan, algorithm = self._plan, self._algorithm
        bridge = plan.config.bridge
        return {
            "episodes": self._tally.episodes,
            "positions": algorithm.positions(),
            "visits": self._visits.state(),
            "lost": dict(self._tally.lost),
            "abandoned": self._tally.abandoned,
            "dropped_steps": self._dropped,
            "policy": {
                "name": plan.config.policy.name,
                "options": plan.decided_policy.options,
            },
            "bridge": {
                "name": bridge.name,
                "options": bridge.options,
                "version": plan.bridge.spec.version,
            },
            "task": plan.task.name,
            "state_set": plan.states.describe(),
        }, {
            "optimizer": {**algorithm.optimizer_state(), "in_flight": algorithm.in_flight()},
            "spec": plan.bridge.spec,
            "reads": plan.reads,
        }

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``, and a checkpoint if it ended short; returns a sentence."""
        if status == "ended short":
            try:
                self.save()
            except RayUnavailable as error:  # the weights are lost with their learner
                log.warning("no checkpoint of update %d: %s", self.number, error)
        figures, validation = self._tally.figures(), self._validation
        settings = protocol(self._plan)
        if validation is not None:
            settings["validation"] = validation.protocol()
        self.job.write_summary(
            status,
            protocol=settings,
            results={
                "env_steps": self.env_steps,
                "episodes": self._tally.episodes,
                "updates": self.number,
                "ended_by": self.ended_by or None,
                **({} if validation is None else {"validation": validation.summary()}),
                "seconds": round(self.seconds, 2),
                "visits": self._visits.summary(),
                "lost": dict(self._tally.lost),
                "episodes_given_up": self._tally.abandoned,
                "dropped_steps": self._dropped,
                "last": {k: v for k, v in figures.items() if k.startswith("episode/")},
            },
            session=self._tally.speed(),
        )
        return f"update {self.number}, {self.env_steps} steps"
