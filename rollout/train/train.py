"""Training: plays, learns, writes down. The loop to read is ``_Job.work``."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rollout.cli import Session
from rollout.cluster.resources import require_resources
from rollout.config import resolved
from rollout.errors import BudgetExhausted, ConfigError
from rollout.host.schedule import Visits
from rollout.host.session import ray_session, require_session
from rollout.observe.aggregates import Aggregates
from rollout.observe.exporter import RayExporter
from rollout.observe.logs import about, log_losses, log_notices, set_up_logging
from rollout.observe.metrics import Metrics
from rollout.observe.progress import Progress, share, show_progress
from rollout.observe.wandb_mirror import WandbMirror, mirror_settings
from rollout.run_directory import RunDirectory, versions
from rollout.train.checkpoint import (
    Checkpoint,
    find_checkpoint,
    newest_checkpoint,
    prune,
    write_checkpoint,
)
from rollout.train.config import TrainConfig
from rollout.train.episodes import EpisodeLog
from rollout.train.plan import TrainPlan

log = logging.getLogger(__name__)


Watch = Callable[[int, Mapping[str, Any]], None]
"""Told of every update: env steps so far, and what ``metrics.jsonl`` says of it."""


def train(config: TrainConfig, session: Session, watch: Watch | None = None) -> str | None:
    """Trains what the configuration says, in a run directory of its own.

    Args:
        config: what to train, on what, for how long.
        session: how the script was called.
        watch: told of every update; what it raises ends the training.

    Returns:
        None when all was done; else a sentence that says what is missing.

    Raises:
        InputError: the configuration is wrong; nothing was launched.
        KeyboardInterrupt: it was told to stop; a checkpoint was written first.
    """
    plan = TrainPlan.make(config)
    _check_others(plan)
    with contextlib.ExitStack() as stack:
        require_session(config.ray.address)
        opened = RunDirectory.opened(
            config.output, plan.config, resume=session.resume, wait_s=session.wait_s
        )
        run = stack.enter_context(opened)
        set_up_logging(config.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        job = _Job(plan, run, newest_checkpoint(run.checkpoints), watch)
        if job.done:
            log.info("nothing is left to do: %d steps", job.env_steps)
            said = _said(run)
            if said.get("status") == "done":  # it still is, as who looks at this session is told
                run.write_summary({**said, "resume_count": run.resume_count})
            else:  # it was killed between its last checkpoint and its summary
                job.conclude("done")
            return None
        metrics = stack.enter_context(
            Metrics(run.metrics, constants={"resume_count": run.resume_count})
        )
        if config.episodes.write:
            job.episodes = stack.enter_context(EpisodeLog(run.path / "episodes.jsonl", job.update))
        _mirror(plan, run, stack)
        progress = stack.enter_context(show_progress("train", every_s=config.log.every_s))
        stack.enter_context(ray_session(config.ray.address))
        metrics.listen(stack.enter_context(RayExporter(run.run_id, "train")))
        require_room(plan)
        algorithm = _algorithm(plan)
        stack.callback(algorithm.stop)
        session.stop.install()  # ray.init has put its own handler of SIGTERM in place
        return job.work(algorithm, session, metrics, progress)


def require_room(plan: TrainPlan) -> None:
    """Checks that the cluster that was joined has machines for the games and the learners.

    Raises:
        ConfigError: it has not; nothing was launched.
    """
    config = plan.config
    if config.runners:
        require_resources(plan.needs, config.runners * config.instances)
    require_resources(config.learners.needs, config.learners.count, what="learner")


def _check_others(plan: TrainPlan) -> None:
    """Opens the checkpoints that training begins with or stays near to, and checks that they fit.

    Raises:
        CheckpointError: there is none, or it is damaged.
        ConfigError: it is of other spaces, or of another architecture; both sides are named.
    """
    c = plan.config
    for key, path in (
        ("initialize_from", c.initialize_from),
        ("ppo.reference.checkpoint", c.ppo.reference.checkpoint),
    ):
        if path is None:
            continue
        found = find_checkpoint(path)
        found.require_spaces(plan.bridge.spec)
        own = plan.network().state_dict()
        theirs = found.weights()
        ours = {k: tuple(v.shape) for k, v in own.items()}
        shapes = {k: tuple(v.shape) for k, v in theirs.items()}
        if ours != shapes:
            different = sorted(k for k in {*ours, *shapes} if ours.get(k) != shapes.get(k))
            first = different[0]
            name, options = found.policy
            raise ConfigError(
                f"{key}={path} is a network of another architecture: {len(different)} tensors "
                f"differ, e.g. {first}: {shapes.get(first, 'none')} there and "
                f"{ours.get(first, 'none')} here; it is {name} with {options}, and this run's "
                f"policy is {c.policy.name} with {c.policy.options}; make them the same"
            )


def _algorithm(plan: TrainPlan) -> Any:
    # RLlib takes seconds to import, and Ray decides about authentication when it is imported.
    from rollout.train.rllib.build import build  # noqa: PLC0415

    return build(plan)


class _Job:
    """One session of a training run: the loop, and what it writes down."""

    def __init__(
        self,
        plan: TrainPlan,
        run: RunDirectory,
        saved: Checkpoint | None,
        watch: Watch | None = None,
    ) -> None:
        self._plan, self._run, self._saved, self._watch = plan, run, saved, watch
        about_ = saved.about if saved is not None else {}
        self.env_steps = int(about_.get("env_steps", 0))
        self.update = int(about_.get("update", 0))
        self.episodes: EpisodeLog | None = None
        self._visits = Visits(plan.states)
        if "visits" in about_:
            self._visits.merge(about_["visits"])
        episodes = int(about_.get("episodes", 0))
        self._seconds = float(about_.get("seconds", 0.0))
        self._lost: Counter[str] = Counter(about_.get("lost", {}))
        self._abandoned: list[int] = list(about_.get("abandoned", []))
        self._dropped = int(about_.get("dropped_steps", 0))
        self._figures = Aggregates(env_steps=self.env_steps, episodes=episodes)
        self._began, self._steps_before = time.monotonic(), self.env_steps
        self._written = -1  # the update of the newest checkpoint

    @property
    def done(self) -> bool:
        """Whether the budget is used up."""
        return self.env_steps >= self._plan.config.env_steps

    def work(
        self, algorithm: Any, session: Session, metrics: Metrics, progress: Progress
    ) -> str | None:
        """Trains until the budget is used up, a signal comes, or no game is left."""
        self._begin(algorithm)
        missing: str | None = None
        try:
            with session.stop.deferred():
                while not self.done and not session.stop.requested:
                    algorithm.train()
                    self._note(algorithm.last, metrics, progress)
                    if self.update % self._plan.config.checkpoint.every == 0:
                        self._save(algorithm)
                self._save(algorithm)
        except KeyboardInterrupt:
            self.conclude("interrupted")
            raise
        except BudgetExhausted as error:
            self._note_losses(algorithm.last)
            self._save(algorithm)
            missing = f"{error}. Saved: update {self.update}, {self.env_steps} steps"
        self.conclude("done" if missing is None else "ended short")
        return missing

    def _begin(self, algorithm: Any) -> None:
        # From here on: what came before, launching the games, is no part of any rate.
        self._figures = Aggregates(env_steps=self.env_steps, episodes=self._figures.episodes)
        saved, first = self._saved, self._plan.config.initialize_from
        if saved is not None:
            algorithm.remember(saved.weights(), saved.optimizer())
            algorithm.go_to(saved.update, saved.env_steps, saved.about["positions"])
            self._written = saved.update
            log.info("goes on after update %d, %d steps", saved.update, saved.env_steps)
        elif first is not None:
            algorithm.remember(find_checkpoint(first).weights())

    def _note(self, now: Any, metrics: Metrics, progress: Progress) -> None:
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
            "train/learning_rate": now.lr,
            "train/staleness": now.staleness,
            "train/dropped_steps": self._dropped,
            "train/reference_coef": now.reference_coef,
            "seconds/sample": now.sample_s,
            "seconds/update": now.update_s,
        }
        values = self._figures.values()
        done = share((now.env_steps, self._plan.config.env_steps))
        lost = {f"lost/{phase}": count for phase, count in self._lost.items()}
        line = {**values, **trained, **own, "done": done, "lost": self._lost.total(), **lost}
        line |= now.hosts
        metrics.write(now.env_steps, line)
        if self._watch is not None:
            self._watch(now.env_steps, line)
        shown: dict[str, object] = {"update": now.update, "steps": now.env_steps}
        for name, key in (("steps/s", "rate/steps_per_s"), ("return", "episode/return")):
            if key in values:
                shown[name] = round(values[key], 2)
        progress.update(done, shown)

    def _note_losses(self, now: Any) -> None:
        for loss in now.losses:
            self._lost[loss.phase] += 1
        log_losses(log, now.losses)
        self._abandoned += [start.episode for start in now.abandoned]

    def _save(self, algorithm: Any) -> None:
        """Writes a checkpoint of the newest update, once."""
        if self._written == self.update or not self.update:
            return
        c = self._plan.config
        write_checkpoint(
            self._run.checkpoints,
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
                "policy": {"name": c.policy.name, "options": c.policy.options},
                "bridge": {
                    "name": c.bridge.name,
                    "options": c.bridge.options,
                    "version": self._plan.bridge.spec.version,
                },
                "task": self._plan.task.name,
                "state_set": self._plan.states.describe(),
                "run_id": self._run.run_id,
                "versions": versions(),
            },
            weights=algorithm.weights(),
            optimizer=algorithm.optimizer_state(),
            spec=self._plan.bridge.spec,
            reads=self._plan.reads,
        )
        prune(self._run.checkpoints, c.checkpoint.keep)
        self._written = self.update

    def conclude(self, status: str) -> None:
        """Writes ``summary.json``."""
        seconds = time.monotonic() - self._began
        steps = self.env_steps - self._steps_before
        self._run.write_summary(
            {
                "status": status,
                "run_id": self._run.run_id,
                "resume_count": self._run.resume_count,
                "protocol": _protocol(self._plan),
                "results": {
                    "env_steps": self.env_steps,
                    "episodes": self._figures.episodes,
                    "updates": self.update,
                    "seconds": round(self._seconds + seconds, 2),
                    "visits": self._visits.summary(),
                    "lost": dict(self._lost),
                    "episodes_given_up": self._abandoned,
                    "dropped_steps": self._dropped,
                    "last": {
                        k: v for k, v in self._figures.values().items() if k.startswith("episode/")
                    },
                },
                "session": {
                    "env_steps": steps,
                    "seconds": round(seconds, 2),
                    "env_steps_per_second": round(steps / max(seconds, 1e-9), 1),
                },
                "versions": versions(),
            }
        )
        log.info("%s: %d steps in %s", status, self.env_steps, self._run.path)


def _said(run: RunDirectory) -> dict[str, Any]:
    """What the summary of a session before this one says; nothing if there is none."""
    try:
        return dict(json.loads(run.summary_file.read_text()))
    except (OSError, ValueError, TypeError):
        return {}


def _mirror(plan: TrainPlan, run: RunDirectory, stack: contextlib.ExitStack) -> None:
    settings = mirror_settings(
        plan.config.wandb,
        run.path,
        run.run_id,
        job_type="train",
        config={**resolved(plan.config), "state_set_digest": plan.states.digest},
        resume_count=run.resume_count,
    )
    if settings is not None:
        stack.callback(WandbMirror(run.metrics, settings).finish)


def _protocol(plan: TrainPlan) -> dict[str, Any]:
    """What a reader must know to repeat the numbers."""
    c = plan.config
    return {
        "algorithm": "PPO",
        "bridge": c.bridge.name,
        "bridge_version": plan.bridge.spec.version,
        "bridge_options": c.bridge.options,
        "task": plan.task.name,
        "limit_steps": plan.task.limits.steps,
        "policy": c.policy.name,
        "policy_options": c.policy.options,
        "ppo": c.ppo.model_dump(mode="json"),
        "seed": c.seed,
        "state_set": plan.states.describe(),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(episode,))",
    }
