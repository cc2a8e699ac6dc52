"""Collection: a policy plays a game, and its episodes are recorded. Read this loop first.

::

    for fragment in fleet.play(schedule):     # whichever is ready first
        recorder.append(fragment)             # from here on, finished episodes are safe
        monitor.observe(fragment)             # counts, logs, metrics

The code before the loop checks the input and builds the parts; the code after it writes the
results.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace

from rollout.api import (
    Bridge,
    ColumnSpec,
    EpisodeResult,
    Fragment,
    PolicyRecipe,
    StateSet,
    Task,
    calls_of,
    trials_of,
)
from rollout.cli import Session
from rollout.config import CollectConfig
from rollout.data import Dataset, DatasetWriter, EpisodeRef, Manifest, describe_dataset
from rollout.data.calls import usage_of
from rollout.data.quotas import QuotaRecorder, Quotas, read_dropped
from rollout.data.sizes import SizeEstimate, in_units
from rollout.data.uploading import Uploader
from rollout.errors import ConfigError
from rollout.estimate import Estimate
from rollout.host import PlayOptions
from rollout.host.fleets import Fleet, TuningHints, check_inference, open_fleet
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.job import Job, open_job
from rollout.monitor import Monitor, given_up
from rollout.observe.progress import share
from rollout.run_directory import address_of, as_begun, folder_of, versions
from rollout.tally import Tally
from rollout.tasks import bridge_and_task

_SHARD_S = 300.0  # after which steps are copied to an address, however few they are

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CollectPlan:
    """A configuration that is built and checked; nothing has been launched."""

    config: CollectConfig
    bridge: Bridge
    task: Task
    states: StateSet
    policy: PolicyRecipe
    extras: dict[str, ColumnSpec]

    @classmethod
    def make(cls, config: CollectConfig) -> CollectPlan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        policy: PolicyRecipe = config.policy.build()
        if trials_of(policy):
            raise ConfigError(
                f"policy {config.policy.name} is to be told of its earlier episodes from the same "
                f"state, which evaluations only do: use gamut evaluate with "
                f"episodes_per_state, or leave its key reflect out"
            )
        episodes, calls = config.own_episodes, calls_of(policy)
        width = bridge.spec.choose_width(config.width, episodes=episodes, calls=calls)
        config = config.model_copy(update={"bridge": bridge_config, "width": width})
        states = config.state_set.take(task.state_space)
        check_inference(policy, config.inference)
        Quotas(config.quotas)  # refuses conditions that are none
        # Built once here, so that a policy that does not fit is refused before any launch.
        built = policy.build(bridge.spec, task, seed=config.seed)
        return cls(config, bridge, task, states, policy, dict(built.extras))

    def hosting(self) -> HostPlan:
        """Returns the plan from which every host is built."""
        c = self.config
        return HostPlan(
            self.bridge,
            self.task,
            self.policy,
            seed=c.seed,
            instances=c.instances,
            width=self.bridge.spec.choose_width(c.width),
            host=c.host,
            play=PlayOptions(c.fragment.steps, c.fragment.seconds, c.explore, c.host.retries),
        )

    def manifest(self, run: str = "") -> Manifest:
        """Returns the description of the dataset of a run."""
        c = self.config
        named = {"auto": "raw", "jpeg": f"jpeg:{c.recording.quality}"}
        named["h264"] = f"h264:{c.recording.crf}"
        return describe_dataset(
            self.bridge.spec,
            self.task,
            bridge=c.bridge.name,
            bridge_options=c.bridge.options,
            policy=c.policy.name,
            policy_options=c.policy.options,
            extras=self.extras,
            codec=named.get(c.recording.codec, c.recording.codec),
            codecs={k: named.get(v, v) for k, v in c.recording.codecs.items()},
            details=c.recording.details,
            code_version=str(versions()["gamut"]),
            run=run,
        )

    def size(self) -> SizeEstimate | None:
        """Returns what the recording will take; None without one.

        Raises:
            InputError: the disk has no room for it.
        """
        c = self.config
        if not c.recording.enabled:
            return None
        folder = folder_of(c.output) / "dataset"
        most = [c.own_episodes, sum(c.quotas.values()) if c.quotas else None]
        size = SizeEstimate.of(
            self.manifest(),
            folder,
            episodes=min((n for n in most if n is not None), default=None),
            env_steps=c.env_steps,
            limit_steps=self.task.limits.steps,
            budget_bytes=c.recording.disk_budget,
        )
        size.require_room(c.recording.shard_bytes, folder)
        return size


def collect(
    config: CollectConfig, session: Session, *, watch: Callable[[Fragment], None] | None = None
) -> str | None:
    """Plays episodes of a policy and records them.

    ``watch`` is called with every fragment after it is recorded.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal arrived; what was played is saved.
    """
    plan = CollectPlan.make(as_begun(config, resume=session.resume))
    size = plan.size()
    needs_ray = bool(config.actors or config.inference.actors)
    with open_job("collect", plan.config, session, needs_ray=needs_ray) as job:
        recorder = uploader = None
        if size is not None:
            log.info("%s", size)
            size.warn_of(config.disk_budget)
            copied = config.recording.upload or address_of(job.run.path)
            recorder = job.stack.enter_context(
                DatasetWriter(
                    job.run.dataset,
                    plan.manifest(job.run.run_id),
                    fsync=config.recording.fsync,
                    shard_bytes=config.recording.shard_bytes,
                    shard_s=_SHARD_S if copied else None,
                )
            )
            if address := config.recording.upload:
                uploader = job.stack.enter_context(Uploader(recorder.layout, address))
                recorder.rolled = uploader.wake
        collection = _Collection(plan, job, recorder, size, uploader, session.estimate)
        if collection.full() or collection.done:
            missing = collection.missing()
            state = collection.conclude("ended short" if missing else "done")
            log.info("nothing is left to do: %s", state)
            return missing
        job.lineage.add("used", plan.policy)
        job.report(mirrored={})
        with job.ray() as stack:
            hosting = plan.hosting()
            if session.estimate is not None:
                hosting = replace(hosting, instances=1)  # for its one episode
            opening = open_fleet(
                hosting,
                actors=config.actors,
                inference=config.inference,
                folder=job.run.path,
            )
            fleet, inference = stack.enter_context(opening)
            collection.monitor.follow(fleet, inference)
            return job.finish(lambda: collection.play(fleet, watch), collection.conclude)


class _Collection:
    """One session of a collection: its loop and its results."""

    def __init__(
        self,
        plan: CollectPlan,
        job: Job,
        recorder: DatasetWriter | None,
        size: SizeEstimate | None,
        uploader: Uploader | None,
        estimate: Estimate | None,
    ) -> None:
        self._plan, self._job, self._recorder, self._size = plan, job, recorder, size
        self._uploader, self._estimate = uploader, estimate
        self._played: list[EpisodeResult] = []  # of this session, for an estimate
        self._full: str | None = None
        config = plan.config
        self._quotas = Quotas(config.quotas)
        self._keep: QuotaRecorder | None = None
        steps, finished, attempts = 0, frozenset[int](), dict[int, int]()
        if recorder is not None:  # what earlier sessions of the run recorded, or dropped
            with Dataset(job.run.dataset) as dataset:
                steps, (finished, newest) = dataset.counts.steps, dataset.finished()
                for ref in dataset.episodes():
                    self._quotas.count(ref)
            if config.quotas:
                dropped = read_dropped(job.run.dropped)
                steps += sum(ref.length for ref in dropped)
                finished |= {ref.episode for ref in dropped}
                self._keep = job.stack.enter_context(
                    QuotaRecorder(recorder, self._quotas, job.run.dropped)
                )
            attempts = {e: a + 1 for e, a in newest.items() if e not in finished}
        self._tally = Tally(env_steps=steps, episodes=len(finished), keeps=recorder is None)
        self.monitor = Monitor(
            job,
            self._tally,
            self._share,
            TuningHints(plan.hosting(), config.actors),
            self._figures,
        )
        number, parts = config.place
        self._schedule = Schedule(
            plan.states,
            seed=config.seed,
            episodes=config.episodes if estimate is None else number,  # its first one alone
            finished=finished,
            attempts=attempts,
            stride=parts,
            offset=number - 1,
        )

    @property
    def done(self) -> bool:
        """True if a budget is used up, or every quota is met."""
        return self._share() >= 1.0

    @property
    def unmet(self) -> str | None:
        """A sentence if a budget is used up before every quota is met, else None."""
        unmet = self._quotas.unmet()
        if not unmet or not self.done:
            return None
        return (
            f"a budget is used up before every quota is met: there are {unmet}; raise episodes or "
            f"env_steps and add --resume. Saved: {self._state}"
        )

    def full(self) -> str | None:
        """Returns a sentence if the disk budget is used up before the run is done, else None."""
        budget = self._plan.config.recording.disk_budget
        if self._recorder is None or budget is None or self.done:
            return None
        if self._recorder.fills(budget):
            self._full = (
                f"the disk budget is used up: {in_units(self._recorder.nbytes)} of "
                f"{in_units(budget)}; to go on, raise recording.disk_budget_gb and add --resume. "
                f"Saved: {self._state}"
            )
        return self._full

    def _share(self) -> float:
        c, t = self._plan.config, self._tally
        parts = [(t.episodes, c.own_episodes), (t.env_steps, c.env_steps)]
        return share(*parts, *([self._quotas.progress] if c.quotas else []))

    @property
    def _state(self) -> str:
        return f"{self._tally.episodes} episodes, {self._tally.env_steps} steps"

    def _figures(self) -> dict[str, float]:
        """What the recording takes, for a line of metrics."""
        figures = self._recorder.figures() if self._recorder else {}
        return {f"recording/{name}": value for name, value in figures.items()}

    def play(self, fleet: Fleet, watch: Callable[[Fragment], None] | None) -> str | None:
        """Plays until a budget is used up, a signal arrives or no game is left."""
        stop = self._job.stop
        observers: list[Callable[[Fragment], None]] = [self.monitor.observe]
        if self._recorder is not None:
            observers.insert(0, (self._keep or self._recorder).append)
        if watch is not None:
            observers.append(watch)
        if self._estimate is not None:
            observers.append(lambda fragment: self._played.extend(fragment.results))
        with stop.deferred():
            for fragment in fleet.play(self._schedule):
                for observe in observers:
                    observe(fragment)
                if self.done or self.full() or stop.requested:
                    break
        missing = self.missing(len(fleet.news.abandoned))
        if self._estimate is None:
            return missing
        return self._estimated(self._estimate) or missing or f"no episode has ended. {self._state}"

    def _estimated(self, estimate: Estimate) -> str:
        """Tells what the played episodes cost; returns a sentence, empty if there are none."""
        c, played = self._plan.config, [r for r in self._played if r.end != "lost"]
        usages, lengths = [r.usage for r in played], [r.length for r in played]
        if self._recorder is not None:  # all sessions of the run
            self._recorder.close()
            with Dataset(self._job.run.dataset) as dataset:
                refs = dataset.episodes()
                known = {ref.episode for ref in refs}
                dropped = [r for r in played if r.start.episode not in known]
                usages = [usage_of(dataset, ref) for ref in refs] + [r.usage for r in dropped]
                lengths = [ref.length for ref in refs] + [r.length for r in dropped]
        else:
            estimate.kept = False
        if not lengths:
            return ""
        whole = [c.own_episodes, c.env_steps and math.ceil(c.env_steps / statistics.fmean(lengths))]
        estimate.add(
            f"{c.policy.name} on {self._plan.task.name}",
            usages,
            min(n for n in whole if n is not None),
        )
        return f"the other episodes were not played, only an estimate was asked for. {self._state}"

    def missing(self, abandoned: int = 0) -> str | None:
        """Ends the recording, and returns a sentence on what is missing, if anything is.

        Args:
            abandoned: number of episodes that were given up in this session.
        """
        lacking = ""
        if self._recorder is not None and self._uploader is not None:
            with self._job.stop.deferred():
                self._recorder.close()
            lacking = self._uploader.finish()
        ended = (
            self._full
            or self.unmet
            or given_up(
                abandoned,
                self._plan.config.host.retries,
                f"; raise it if the game fails now and then, not in these states alone). Saved: "
                f"{self._state}",
            )
        )
        return "; ".join(filter(None, (ended, lacking))) or None

    def conclude(self, status: str) -> str:
        """Closes the recording and writes ``summary.json``; returns a status sentence."""
        recording: dict[str, object] = {}
        if self._recorder is None or self._size is None:
            results = self._tally.results()
        else:
            self._recorder.close()
            recording = {
                **self._recorder.figures(),
                "estimate": self._size.describe(),
                "ended": self._full or self.unmet,
            }
            if self._uploader is not None:
                self._uploader.close()
                recording["upload"] = self._uploader.describe()
            dropped: list[EpisodeRef] = []
            if self._keep is not None:
                self._keep.close()
                dropped = read_dropped(self._job.run.dropped)
                recording |= {"quotas": self._quotas.counts, "dropped": len(dropped)}
            with Dataset(self._job.run.dataset) as dataset:
                results = self._tally.results(dataset, dropped)
                self._job.lineage.add("made", dataset)
        if self.monitor.end():
            self.monitor.show(last=True)
        self._job.write_summary(
            status,
            protocol=_protocol(self._plan),
            results=results,
            session=self._tally.session(),
            recording=recording,
            **self.monitor.decided,
        )
        return self._state


def _protocol(plan: CollectPlan) -> dict[str, object]:
    """Returns everything needed to reproduce the figures."""
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
        "part": c.part,
        "state_set": plan.states.describe(),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(episode,))",
        "lost_episodes": f"tried again up to {c.host.retries} times, never counted as results",
    }
