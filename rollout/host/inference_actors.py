"""Inference actors: policies in Ray actors that decide for all hosts."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import uuid4

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rollout.api import Resources, calls_of, keeps_files
from rollout.api.fragment import Phase
from rollout.cluster.resources import Node, actor_options, grows, read_nodes, require_resources
from rollout.configuration.sections import InferenceConfig
from rollout.errors import ConfigError
from rollout.host.actors import POLL_S, Actor, ActorLost, Supervisor
from rollout.host.hosting import HostPlan
from rollout.host.inference import Counters, PolicyServer, ServerPulse, Unreachable
from rollout.host.ray_actors import RayLauncher, Watched, fetch
from rollout.host.routing import Gone, RemotePolicyRecipe
from rollout.observe.hosts import sum_figures

log = logging.getLogger(__name__)

_LOOKUP_S = 0.5  # how often the name of a replacement is looked up
_LAST_PULSE_S = 5.0  # timeout for a pulse that is ready, and for the last counters at the end
_POLICY_MARGIN_S = 30.0  # added to the timeout of a request before its host counts as hung
_SPARE_THREADS = 8  # for requests of hosts that have stopped waiting or died


class InferenceServer(Watched, PolicyServer):
    """A policy server in an actor."""


class RayLink:
    """A connection to a server in a named Ray actor; picklable. See ``routing.Link``.

    Args:
        prefix: of the actor's names; the number of its incarnation follows.

    Attributes:
        gone: why it was abandoned; set where its supervisor runs, and empty elsewhere.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix, self.gone = prefix, ""
        self._handle: Any = None
        self._looked = -_LOOKUP_S
        self._pulse_request: Any = None  # the reference to a pulse that was asked for

    def __reduce__(self) -> tuple[type[RayLink], tuple[str]]:
        return type(self), (self._prefix,)

    def ask(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """See ``Link``."""
        call = getattr(self._find(), method)
        return self._fetch(call.remote(*arguments, timeout_s), timeout_s)

    def pulse(self, timeout_s: float) -> ServerPulse | None:
        """See ``Link``."""
        try:
            if self._pulse_request is None:
                self._pulse_request = RayLauncher.request_pulse(self._find())
            if not ray.wait([self._pulse_request], timeout=timeout_s)[0]:
                return None
            request, self._pulse_request = self._pulse_request, None
            pulse: ServerPulse
            _, pulse = self._fetch(request, _LAST_PULSE_S)
        except Gone:
            raise
        except Unreachable:
            return None
        return pulse

    def _find(self) -> Any:
        """Returns the handle of the newest incarnation."""
        if self.gone:
            raise Gone(self.gone)
        if self._handle is None:
            now = time.monotonic()
            if now - self._looked < _LOOKUP_S:
                raise Unreachable("it is being replaced")
            self._looked = now
            names = [n for n in ray.util.list_named_actors() if n.startswith(self._prefix)]
            try:
                self._handle = ray.get_actor(max(names, key=lambda n: int(n.rpartition("-")[2])))
            except ValueError as error:  # there is none, or it has just died
                raise Unreachable("it is being replaced") from error
        return self._handle

    def _fetch(self, reference: Any, timeout_s: float) -> Any:
        try:
            return fetch(reference, timeout_s)
        except ActorLost as error:
            self._handle = None  # it may have been replaced
            raise Unreachable(str(error)) from error


class InferenceActors:
    """The inference actors of a run, and the thread that supervises them.

    An actor that fails or hangs is replaced under a new name, which the hosts look up; meanwhile
    they ask the other actors.

    Attributes:
        plan: plan of the hosts, whose policy asks the actors.

    Args:
        plan: plan with the policy of the actors. They get the seed of the first host, so that they
            decide as a single host would by itself.
        options: number of actors and how they decide.
        hosts: number of Ray actors that play; 0 for one player in this process.

    Raises:
        ConfigError: the cluster lacks the required resources.
    """

    def __init__(self, plan: HostPlan, options: InferenceConfig, *, hosts: int) -> None:
        nodes = read_nodes()
        require_room(options, plan.needs.gpus * plan.instances * hosts, nodes)
        name = f"gamut-inference-{uuid4().hex}"
        self._links = tuple(RayLink(f"{name}-{number}-") for number in range(options.actors))
        # A host must not count as hung while it may wait for an answer.
        policy_s = max(plan.host.policy_s, options.deadline_s + _POLICY_MARGIN_S)
        self.plan = replace(
            plan,
            policy=RemotePolicyRecipe(self._links, options),
            host=plan.host.model_copy(update={"policy_s": policy_s}),
        )
        self._load_s = options.deadline_s
        self._counters: dict[tuple[int, int], Counters] = {}  # by number and incarnation
        arguments = (plan.policy, plan.bridge.spec, plan.task, plan.policy_seed(0, 0), options)
        placement = {
            "num_cpus": _processors(plan, options, hosts, nodes),
            "num_gpus": options.gpus,
            "max_concurrency": 2 * max(1, hosts) + _SPARE_THREADS,
        }
        if calls_of(plan.policy) > 1:  # every instance waits in a thread of its own
            placement["max_concurrency"] += plan.instances * max(1, hosts)
        if keeps_files(plan.policy):
            here = ray.get_runtime_context().get_node_id()
            placement["scheduling_strategy"] = NodeAffinitySchedulingStrategy(here, soft=False)
        self.supervisor = Supervisor(
            RayLauncher(InferenceServer, lambda number, incarnation: arguments, placement, name),
            options.actors,
            plan.host,
            restarts=options.restarts,
            stall_s=options.patience_s,
            policy_s=options.patience_s,
            name="inference actor",
            failed=self._failed,
            serving=True,
        )
        self._lock, self._closing = threading.Lock(), threading.Event()
        # The thread logs with the name of the run, like its creator.
        context = contextvars.copy_context()
        self._watch = threading.Thread(target=context.run, args=(self._supervise,), daemon=True)

    def wait(self) -> None:
        """Waits until all actors are ready, and begins to supervise them.

        Raises:
            ConfigError: the policy cannot be built on them.
            BudgetExhausted: they failed to start.
        """
        while len(self._answering()) < len(self._links):
            self._closing.wait(POLL_S / 20)
            self.supervisor.poll()
            self.supervisor.require_available()
        for actor, pulse in self._answering():
            if pulse.error is not None:
                raise ConfigError(f"inference actor {actor.number}: {pulse.error}")
        self._watch.start()

    def _answering(self) -> list[tuple[Actor, ServerPulse]]:
        """Returns the actors with a pulse, and their last pulses."""
        return [(a, a.pulse) for a in self.supervisor.actors if isinstance(a.pulse, ServerPulse)]

    def _supervise(self) -> None:
        while not self._closing.wait(POLL_S):
            with self._lock:
                self.supervisor.poll()
                self._count()

    def _count(self) -> None:
        for actor, pulse in self._answering():
            if actor.handle is not None:
                self._counters[actor.number, actor.incarnation] = pulse.counters

    def _failed(self, actor: Actor, reason: str, phase: Phase) -> None:
        if actor.due is None:
            self._links[actor.number].gone = reason

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Loads new weights into all running actors; an actor replaced later has the old ones.

        Every decision is recorded with the version that made it.
        """
        shared = ray.put(dict(weights))
        handles = [a.handle for a in self.supervisor.actors if a.handle is not None]
        ray.wait(
            [handle.load.remote(shared, version) for handle in handles],
            num_returns=len(handles),
            timeout=self._load_s,
        )

    @property
    def queued(self) -> int:
        """Number of requests that waited for a decision at the last pulse of the actors."""
        return sum(pulse.counters.queued for _, pulse in self._answering())

    def values(self) -> dict[str, float]:
        """Returns the queue and the figures of the policy at the last pulse, for metrics."""
        figures = sum_figures(p.figures for _, p in self._answering())
        return {**figures, "queue/inference": self.queued}

    def summary(self) -> dict[str, Any]:
        """Returns statistics of their decisions, for ``summary.json``.

        Returns:
            the number of actors and of their restarts, the sums of ``Counters``, the mean number of
            rows per batch, and the requests by actor. Decisions in the last seconds before an actor
            failed are not counted.
        """
        with self._lock:
            self._update_pulses()
            self._count()
        total, requests = asdict(Counters()), [0] * len(self._links)
        for (number, _), counters in self._counters.items():
            requests[number] += counters.requests
            for key, value in asdict(counters).items():
                largest = key in {"largest_batch", "longest_queue"}
                total[key] = max(total[key], value) if largest else total[key] + value
        return {
            "actors": len(self._links),
            "restarts": sum(actor.incarnation for actor in self.supervisor.actors),
            **total,
            "queued": self.queued,
            "busy_s": round(total["busy_s"], 2),
            "mean_batch_rows": round(total["rows"] / max(1, total["batches"]), 2),
            "requests_per_actor": requests,
        }

    def _update_pulses(self) -> None:
        """Updates the pulses of the actors that answer within a few seconds."""
        launcher = self.supervisor.launcher
        running = [actor for actor in self.supervisor.actors if actor.handle is not None]
        requests = {launcher.request_pulse(actor.handle): actor for actor in running}
        end = self.supervisor.clock() + _LAST_PULSE_S
        while requests and (left := end - self.supervisor.clock()) > 0:
            for reference in launcher.wait(list(requests), left):
                actor = requests.pop(reference)
                with contextlib.suppress(ActorLost):
                    actor.machine, actor.pulse = launcher.get(reference)

    def close(self) -> None:
        """Ends every actor."""
        self._closing.set()
        if self._watch.is_alive():
            self._watch.join(timeout=2 * POLL_S)
        self.supervisor.close()


def _processors(
    plan: HostPlan, options: InferenceConfig, hosts: int, nodes: Sequence[Node]
) -> float:
    """Returns the processors of each actor: as configured, or an equal share of the remaining ones.

    Hosts without a free processor would wait forever, so if none remain, the actors request none.
    """
    if grows(nodes):
        return options.cpus
    left = sum(node.has("CPU") for node in nodes)
    if hosts:
        placed = actor_options(plan.needs, hosts, instances=plan.instances, nodes=nodes)
        left -= hosts * float(placed["num_cpus"])
    # Ray counts in units of 1/10,000.
    return math.floor(min(options.cpus, max(left, 0.0) / options.actors) * 1e4) / 1e4


def require_room(options: InferenceConfig, taken: float, nodes: Sequence[Node]) -> None:
    """Checks that a cluster has the GPUs and processors that inference actors need.

    Args:
        options: number of actors and their needs.
        taken: GPUs that the games need.
        nodes: machines of the cluster.

    Raises:
        ConfigError: no machine has the resources of one actor, or the cluster has too few GPUs.
    """
    what = "inference actor (inference.cpus, inference.gpus)"
    for cpus, gpus in ((0.0, options.gpus), (options.cpus, 0.0)):  # it may get fewer processors
        needs = Resources(cpus=cpus, gpus=gpus, memory_mb=0)
        require_resources(needs, 1, nodes=nodes, what=what)
    need, total = options.gpus * options.actors, sum(node.has("GPU") for node in nodes)
    if options.gpus and need + taken > total and not grows(nodes):
        games = f" beside the {taken:g} of the games" if taken else ""
        raise ConfigError(
            f"inference.actors={options.actors} with inference.gpus={options.gpus:g} need "
            f"{need:g} GPUs{games}, and the cluster has {total:g}; ask for fewer actors, or for a "
            f"fraction of a GPU each"
        )
