"""Collection: a policy plays a game, and what happens is recorded. The loop to read first.

::

    for fragment in fleet.play(schedule):     # first ready, first served
        recorder.append(fragment)             # finished episodes survive from here on
        tally.add(fragment)

Everything before the loop checks the input and builds the parts; everything after it writes down
what came out.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollout.api import Bridge, ColumnSpec, Fragment, PolicyRecipe, StateSet, Task
from rollout.cli import Session
from rollout.config import CollectConfig, resolved
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.errors import BudgetExhausted
from rollout.host import PlayOptions
from rollout.host.hosting import Fleet, HostPlan, LocalFleet, pool_options
from rollout.host.inference import InferenceOptions, open_inference
from rollout.host.schedule import Schedule
from rollout.host.session import ray_session, require_session
from rollout.observe.exporter import RayExporter
from rollout.observe.logs import about, log_losses, log_notices, set_up_logging
from rollout.observe.metrics import Metrics
from rollout.observe.progress import Progress, share, show_progress
from rollout.observe.wandb_mirror import WandbMirror, mirror_settings
from rollout.run_directory import RunDirectory, versions
from rollout.tally import Tally
from rollout.tasks import bridge_and_task

if TYPE_CHECKING:
    from rollout.host.inference_actors import InferenceActors

log = logging.getLogger(__name__)

_METRICS_EVERY_S = 1.0


@dataclass(frozen=True)
class Plan:
    """A configuration, built and checked; nothing is launched yet."""

    config: CollectConfig
    bridge: Bridge
    task: Task
    states: StateSet
    policy: PolicyRecipe
    extras: dict[str, ColumnSpec]

    @classmethod
    def make(cls, config: CollectConfig) -> Plan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in it does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        config = config.model_copy(update={"bridge": bridge_config})
        bridge.spec.require_width(config.width)
        states = config.state_set.take(task.state_space)
        policy: PolicyRecipe = config.policy.build()
        # Built once here, so that a policy that does not fit is told before anything is launched.
        built = policy.build(bridge.spec, task, seed=config.seed)
        return cls(config, bridge, task, states, policy, dict(built.extras))

    def hosting(self) -> HostPlan:
        """Returns what every player is built from."""
        c = self.config
        return HostPlan(
            self.bridge,
            self.task,
            self.policy,
            seed=c.seed,
            instances=c.instances,
            width=c.width,
            pool=pool_options(c.host, self.bridge.spec),
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, c.explore, c.host.retries),
        )


def collect(
    config: CollectConfig, session: Session, *, watch: Callable[[Fragment], None] | None = None
) -> str | None:
    """Plays and records what the configuration says.

    Args:
        config: what to play.
        session: how the script was called.
        watch: told of every fragment once it is recorded.

    Returns:
        None when all was done; else a sentence that says what is missing.

    Raises:
        InputError: the configuration is wrong; nothing was launched.
        KeyboardInterrupt: it was told to stop; what was played is saved.
    """
    plan = Plan.make(config)
    if config.actors or config.inference.actors:
        require_session(config.ray.address)
    with contextlib.ExitStack() as stack:
        opened = RunDirectory.opened(config.output, plan.config, resume=session.resume)
        run = stack.enter_context(opened)
        set_up_logging(config.log.level, run.log)
        stack.enter_context(about(run=run.run_id))
        recorder = stack.enter_context(_recorder(plan, run)) if config.recording.enabled else None
        job = _Job(plan, run, recorder)
        if job.done:
            log.info("nothing is left to do: %s", job.state())
            job.conclude("done")
            return None
        metrics = stack.enter_context(
            Metrics(run.metrics, constants={"resume_count": run.resume_count})
        )
        _mirror(plan, run, stack)
        progress = stack.enter_context(show_progress("collect", every_s=config.log.every_s))
        fleet, job.inference = stack.enter_context(_fleet(plan))
        metrics.listen(stack.enter_context(RayExporter(run.run_id, "collect")))
        session.stop.install()  # ray.init has put its own handler of SIGTERM in place
        return job.work(fleet, session, metrics, progress, watch)


class _Job:
    """One session of a collection: the loop, and what it writes down."""

    def __init__(self, plan: Plan, run: RunDirectory, recorder: DatasetWriter | None) -> None:
        self._plan, self._run, self._recorder = plan, run, recorder
        config = plan.config
        before = _Before.read(run) if recorder is not None else _Before()
        self.tally = Tally(
            plan.bridge.spec.name, env_steps=before.env_steps, episodes=len(before.finished)
        )
        self._schedule = Schedule(
            plan.states,
            seed=config.seed,
            episodes=config.episodes,
            finished=before.finished,
            attempts=before.attempts,
        )
        self._written = 0.0
        self.inference: InferenceActors | None = None

    @property
    def done(self) -> bool:
        """Whether a budget is used up."""
        c, t = self._plan.config, self.tally
        return (c.episodes is not None and t.episodes >= c.episodes) or (
            c.env_steps is not None and t.env_steps >= c.env_steps
        )

    def state(self) -> str:
        """Returns how far it is, in words."""
        return f"{self.tally.episodes} episodes, {self.tally.env_steps} steps"

    def work(
        self,
        fleet: Fleet,
        session: Session,
        metrics: Metrics,
        progress: Progress,
        watch: Callable[[Fragment], None] | None = None,
    ) -> str | None:
        """Plays until a budget is used up, a signal comes, or no game is left."""
        missing: str | None = None
        try:
            with session.stop.deferred():
                for fragment in fleet.play(self._schedule):
                    if self._recorder is not None:
                        self._recorder.append(fragment)
                    self.tally.add(fragment)
                    log_notices(log, fragment.results)
                    log_losses(log, [*fragment.losses, *self.tally.hear(fleet.news)])
                    self._show(metrics, progress)
                    if watch is not None:
                        watch(fragment)
                    if self.done or session.stop.requested:
                        break
        except KeyboardInterrupt:
            self.conclude("interrupted", fleet)
            raise
        except BudgetExhausted as error:
            missing = f"{error}. Saved: {self.state()}"
        abandoned = len(fleet.news.abandoned)
        if missing is None and abandoned:
            missing = (
                f"{abandoned} episodes were lost {self._plan.config.host.retries + 1} times each "
                f"and given up. Saved: {self.state()}"
            )
        self._show(metrics, progress, last=True)
        self.conclude("done" if missing is None else "ended short", fleet)
        return missing

    def _show(self, metrics: Metrics, progress: Progress, *, last: bool = False) -> None:
        now = time.monotonic()
        if now - self._written < _METRICS_EVERY_S and not last:
            return
        self._written = now
        c, t = self._plan.config, self.tally
        done = share((t.episodes, c.episodes), (t.env_steps, c.env_steps))
        queue = {} if self.inference is None else {"queue/inference": self.inference.queued}
        metrics.write(t.env_steps, {**t.metrics(), **queue, "done": done})
        progress.update(done, t.brief())

    def conclude(self, status: str, fleet: Fleet | None = None) -> None:
        """Closes the recording and writes ``summary.json``."""
        if self._recorder is not None:
            self._recorder.close()
            with Dataset(self._run.dataset) as dataset:
                self.tally.read_results(dataset)
        if fleet is not None:
            log_losses(log, self.tally.hear(fleet.news))
        decided = {} if self.inference is None else {"inference": self.inference.summary()}
        self._run.write_summary(
            {
                "status": status,
                "run_id": self._run.run_id,
                "resume_count": self._run.resume_count,
                "protocol": _protocol(self._plan),
                "results": self.tally.results(),
                "session": self.tally.session(),
                **decided,
                "versions": versions(),
            }
        )
        log.info("%s: %s in %s", status, self.state(), self._run.path)


@dataclass(frozen=True)
class _Before:
    """What earlier sessions of the run have recorded."""

    finished: frozenset[int] = frozenset()
    attempts: dict[int, int] | None = None
    env_steps: int = 0

    @classmethod
    def read(cls, run: RunDirectory) -> _Before:
        with Dataset(run.dataset) as dataset:
            finished, newest = dataset.finished()
            attempts = {e: a + 1 for e, a in newest.items() if e not in finished}
            return cls(finished, attempts, dataset.counts.steps)


def _recorder(plan: Plan, run: RunDirectory) -> DatasetWriter:
    c = plan.config
    quality = c.recording.quality
    named = {"auto": "raw", "jpeg": f"jpeg:{quality}"}
    manifest = describe_dataset(
        plan.bridge.spec,
        plan.task,
        bridge=c.bridge.name,
        bridge_options=c.bridge.options,
        policy=c.policy.name,
        policy_options=c.policy.options,
        extras=plan.extras,
        codec=named.get(c.recording.codec, c.recording.codec),
        codecs={k: named.get(v, v) for k, v in c.recording.codecs.items()},
        details=c.recording.details,
        code_version=str(versions()["gamut"]),
        run=run.run_id,
    )
    return DatasetWriter(
        run.dataset,
        manifest,
        fsync=c.recording.fsync,
        shard_bytes=c.recording.shard_mb << 20,
    )


@contextlib.contextmanager
def _fleet(plan: Plan) -> Iterator[tuple[Fleet, InferenceActors | None]]:
    """Launches the games, and the inference actors if there are any."""
    c = plan.config
    hosting = plan.hosting()
    with contextlib.ExitStack() as stack:
        fleet: Fleet
        if c.actors or c.inference.actors:
            stack.enter_context(ray_session(c.ray.address))
        options = InferenceOptions.of(c.inference)
        inference = stack.enter_context(open_inference(hosting, options, hosts=c.actors))
        if inference is not None:
            hosting = inference.plan
        if c.actors == 0:
            fleet = LocalFleet(hosting)
        else:
            # Ray decides about authentication when it is imported: not before the session has.
            from rollout.host.fleet import FleetOptions, RayFleet  # noqa: PLC0415

            fleet = RayFleet(hosting, FleetOptions(c.actors, c.host.max_in_flight, c.host.restarts))
        stack.callback(fleet.close)
        yield fleet, inference


def _mirror(plan: Plan, run: RunDirectory, stack: contextlib.ExitStack) -> None:
    settings = mirror_settings(
        plan.config.wandb,
        run.path,
        run.run_id,
        job_type="collect",
        config=resolved(plan.config),
        resume_count=run.resume_count,
    )
    if settings is not None:
        stack.callback(WandbMirror(run.metrics, settings).finish)


def _protocol(plan: Plan) -> dict[str, object]:
    """What a reader must know to repeat the numbers."""
    c = plan.config
    return {
        "bridge": c.bridge.name,
        "bridge_version": plan.bridge.spec.version,
        "bridge_options": c.bridge.options,
        "task": plan.task.name,
        "limit_steps": plan.task.limits.steps,
        "policy": c.policy.name,
        "policy_options": c.policy.options,
        "actions": "sampled" if c.explore else "deterministic",
        "seed": c.seed,
        "state_set": plan.states.describe(),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(episode,))",
        "lost_episodes": f"tried again up to {c.host.retries} times, never counted as results",
    }
