"""Inference actors: policies in Ray actors, that decide for all hosts together."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import ray
from ray.exceptions import (
    ActorDiedError,
    GetTimeoutError,
    ObjectLostError,
    RayActorError,
    RayTaskError,
)

from rollout.api import Start
from rollout.cluster.resources import Node, actor_options, read_nodes
from rollout.errors import BudgetExhausted, ConfigError, InputError
from rollout.host.batching import Counters, Question, Unreachable
from rollout.host.hosting import HostPlan
from rollout.host.inference import Answer, Hello, InferenceOptions, PolicyServer, ServerPulse
from rollout.host.routing import Gone, RemotePolicyRecipe

log = logging.getLogger(__name__)

_WATCH = "watch"  # concurrency group that answers while many questions wait
_POLL_S = 2.0  # how often the actors are looked after
_ARRIVAL_S = 900.0  # most time to come up: a cluster may have to start a machine, a model to load
_LAST_WORD_S = 5.0  # most time for the last counters, in the end
_POLICY_MARGIN_S = 30.0  # by so much a host may outlast its question before it counts as hung
_SPARE_THREADS = 8  # for questions whose askers have given up or died


class RayLink:
    """The way to a server in a Ray actor; travels to the hosts.

    Args:
        handle: of the actor.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._asked: Any = None  # an unanswered question for its pulse

    def __reduce__(self) -> tuple[type[RayLink], tuple[Any]]:
        return type(self), (self._handle,)

    def hello(self, timeout_s: float) -> Hello:
        """Returns what a new client must know; see ``Link``."""
        hello: Hello = _get(self._handle.hello.remote(), timeout_s)
        return hello

    def begin(self, starts: Sequence[Start], timeout_s: float) -> Answer:
        """Returns the memory of episodes that begin; see ``Link``."""
        answer: Answer = _get(self._handle.begin.remote(starts, timeout_s), timeout_s)
        return answer

    def act(self, question: Question, timeout_s: float) -> Answer:
        """Returns a decision; see ``Link``."""
        answer: Answer = _get(self._handle.act.remote(question, timeout_s), timeout_s)
        return answer

    def pulse(self, timeout_s: float) -> ServerPulse | None:
        """Returns its sign of life, or None if there was none; see ``Link``."""
        if self._asked is None:
            self._asked = self._handle.pulse.options(concurrency_group=_WATCH).remote()
        ready, _ = ray.wait([self._asked], num_returns=1, timeout=timeout_s)
        if not ready:
            return None
        asked, self._asked = self._asked, None
        try:
            pulse: ServerPulse = _get(asked, _LAST_WORD_S)
        except Gone:
            raise
        except Unreachable:
            return None
        return pulse


def _get(ref: Any, timeout_s: float) -> Any:
    """Returns what an actor answered, or raises what its policy raised."""
    try:
        return ray.get(ref, timeout=timeout_s)
    except RayTaskError as error:
        cause = getattr(error, "cause", None)
        raise cause if isinstance(cause, Exception) else error from error
    except GetTimeoutError as error:
        raise Unreachable(f"did not answer within {timeout_s:.3g} s") from error
    except ActorDiedError as error:  # only once its restarts are used up, else it is unavailable
        raise Gone(_short(error)) from error
    except (RayActorError, ObjectLostError) as error:  # an answer may die with its machine
        raise Unreachable(_short(error)) from error


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # An error of its constructor ends with what went wrong, any other begins with it.
    return (lines[-1 if "creation task" in lines[0] else 0] if lines else type(error).__name__)[
        :300
    ]


@dataclass
class _Member:
    """One inference actor, as the driver sees it."""

    number: int
    handle: Any
    link: RayLink
    heard: float  # when it last gave a sign of life, or was last killed
    pulse: ServerPulse | None = None  # the last one; None while it is to come up
    killed: str = ""  # name of the life that was ended by us; what it still says is not heard
    lives: dict[str, Counters] = field(default_factory=dict)  # last counters of each life
    gone: bool = False


class InferenceActors:
    """The inference actors of a run, and whoever looks after them.

    An actor that dies is restarted by Ray; one that hangs, or whose policy does not come to an end
    with a batch, is killed, which restarts it too. Hosts ask the others meanwhile.

    Attributes:
        plan: what the hosts are built from; their policy asks the actors.

    Args:
        plan: what is played, with the policy that the actors are to have. They have the seed of
            the first host, so that they decide what a single host would decide by itself.
        options: how many there are, and how they decide.
        hosts: number of Ray actors that play; 0 for one player in this process.

    Raises:
        ConfigError: the cluster does not have what they need.
    """

    def __init__(self, plan: HostPlan, options: InferenceOptions, *, hosts: int) -> None:
        nodes = read_nodes()
        require_room(options, plan.needs.gpus * plan.instances * hosts, nodes)
        self._options = options
        actor = ray.remote(
            num_cpus=_processors(plan, options, hosts, nodes),
            num_gpus=options.gpus,
            max_restarts=options.restarts,
            max_task_retries=0,  # whoever asked asks another
            max_concurrency=2 * max(1, hosts) + _SPARE_THREADS,
            concurrency_groups={_WATCH: 1},
        )(PolicyServer)
        seed, now = _seed(plan), time.monotonic()
        self._members = []
        for number in range(options.actors):
            handle = actor.remote(plan.policy, plan.bridge.spec, plan.task, seed, options)
            self._members.append(_Member(number, handle, RayLink(handle), now))
        links = tuple(RayLink(member.handle) for member in self._members)
        self.plan = _with_remote_policy(plan, RemotePolicyRecipe(links, options))
        self._lock = threading.Lock()
        self._closing = threading.Event()
        # The thread says what it sees as whoever made it would: with the name of the run.
        context = contextvars.copy_context()
        self._watch = threading.Thread(target=context.run, args=(self._look_after,), daemon=True)

    def wait(self) -> None:
        """Waits until all have come up, and begins to look after them.

        Raises:
            InputError: the policy cannot be built there.
            BudgetExhausted: they do not come up.
        """
        end = time.monotonic() + _ARRIVAL_S
        for member in self._members:
            while member.pulse is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise BudgetExhausted(
                        f"inference actor {member.number} did not come up within {_ARRIVAL_S:.0f} s"
                    )
                try:
                    self._hear(member, min(_POLL_S, left))
                except InputError as error:
                    raise ConfigError(f"inference actor {member.number}: {error}") from error
                except Gone as error:
                    raise BudgetExhausted(
                        f"inference actor {member.number} did not come up: {error}"
                    ) from error
        self._watch.start()

    def _hear(self, member: _Member, timeout_s: float) -> None:
        """Takes the pulse of an actor, if there is one within that time."""
        with self._lock:
            pulse = member.link.pulse(timeout_s)
            if pulse is None or pulse.name == member.killed:
                return
            if member.lives and pulse.name not in member.lives:
                log.warning("inference actor %d was restarted", member.number)
            member.lives[pulse.name] = pulse.counters
            member.pulse, member.heard = pulse, time.monotonic()

    def _look_after(self) -> None:
        looked = time.monotonic()
        while not self._closing.wait(_POLL_S):
            away, looked = time.monotonic() - looked, time.monotonic()
            for member in self._members:
                if away > 2 * _POLL_S:
                    member.heard += away  # we were kept: that is not the actors' doing
                if not member.gone:
                    self._judge(member)

    def _judge(self, member: _Member) -> None:
        """Restarts an actor that has hung, however deep."""
        try:
            self._hear(member, 0.0)
        except Gone as error:
            member.gone = True
            log.error("inference actor %d is gone for good: %s", member.number, error)
            return
        except InputError as error:  # a file of the policy that has gone since
            member.gone = True
            log.error("inference actor %d has no policy any more: %s", member.number, error)
            return
        patience = self._options.patience_s
        silent = time.monotonic() - member.heard
        if member.pulse is None:
            limit, what = max(patience, _ARRIVAL_S), "did not come up again"
        elif member.pulse.busy_s > patience:
            limit, what = 0.0, "does not come to an end with a batch"
        else:
            limit, what = patience, "gives no sign of life"
        if silent >= limit:
            log.warning("inference actor %d %s; it is restarted", member.number, what)
            member.killed = member.pulse.name if member.pulse is not None else member.killed
            member.pulse, member.heard = None, time.monotonic()
            ray.kill(member.handle, no_restart=False)

    @property
    def queued(self) -> int:
        """Requests that wait for a decision, when the actors were last heard of."""
        return sum(list(m.lives.values())[-1].queued for m in self._members if m.lives)

    def summary(self) -> dict[str, Any]:
        """Returns what they have decided, for ``summary.json``.

        Returns:
            sums over all actors and all their lives, ``mean_batch_rows``, the number of
            ``restarts`` and the ``requests_per_actor``. What an actor decided in the last seconds
            before it died is not counted.
        """
        for member in self._members:
            with contextlib.suppress(Unreachable, InputError):
                # Twice: the first answer may be to a question that was asked a while ago.
                for _ in range(0 if member.gone else 2):
                    self._hear(member, _LAST_WORD_S)
        lives = [list(member.lives.values()) for member in self._members]
        every = [counters for each in lives for counters in each]
        total = {key: sum(getattr(c, key) for c in every) for key in asdict(Counters())}
        for key in ("largest_batch", "longest_queue"):
            total[key] = max((getattr(c, key) for c in every), default=0)
        total["queued"] = sum(each[-1].queued for each in lives if each)
        return {
            "actors": len(self._members),
            "restarts": sum(max(0, len(each) - 1) for each in lives),
            **total,
            "busy_s": round(total["busy_s"], 2),
            "mean_batch_rows": round(total["rows"] / max(1, total["batches"]), 2),
            "requests_per_actor": [sum(c.requests for c in each) for each in lives],
        }

    def close(self) -> None:
        """Ends every actor."""
        self._closing.set()
        if self._watch.is_alive():
            self._watch.join(timeout=2 * _POLL_S)
        for member in self._members:
            ray.kill(member.handle)


def _seed(plan: HostPlan) -> int:
    """The seed that ``HostPlan.build`` gives the policy of the first host."""
    sequence = np.random.SeedSequence(plan.seed, spawn_key=(0, 0, 0))
    return int(sequence.generate_state(1, np.uint64)[0] >> 1)


def _with_remote_policy(plan: HostPlan, recipe: RemotePolicyRecipe) -> HostPlan:
    """A host must not be taken for hung while its question has time."""
    rules = plan.pool.rules
    least = recipe.options.deadline_s + _POLICY_MARGIN_S
    rules = replace(rules, policy_s=max(rules.policy_s, least))
    return replace(plan, policy=recipe, pool=replace(plan.pool, supervision=rules))


def _grows(nodes: Sequence[Node]) -> bool:
    return any(node.group for node in nodes)


def _processors(
    plan: HostPlan, options: InferenceOptions, hosts: int, nodes: Sequence[Node]
) -> float:
    """Processors of each actor: what was asked for, or an equal part of what the hosts leave.

    Hosts that find no processor free would wait for ever, so the actors ask for none in the end.
    """
    if _grows(nodes):
        return options.cpus
    left = sum(node.has("CPU") for node in nodes)
    if hosts:
        placed = actor_options(plan.needs, hosts, instances=plan.instances, nodes=nodes)
        left -= hosts * float(placed["num_cpus"])
    # Ray counts in ten-thousandths.
    return math.floor(min(options.cpus, max(left, 0.0) / options.actors) * 1e4) / 1e4


def require_room(options: InferenceOptions, taken: float, nodes: Sequence[Node]) -> None:
    """Checks that a cluster has the GPUs and processors that inference actors need.

    Args:
        options: how many there are, and what they need.
        taken: GPUs that the games need.
        nodes: machines of the cluster.

    Raises:
        ConfigError: no machine has what one actor needs, or all together have too few GPUs.
    """
    for key, resource, amount in (
        ("inference.gpus", "GPU", options.gpus),
        ("inference.cpus", "CPU", options.cpus),
    ):
        most = max((node.has(resource) for node in nodes), default=0.0)
        if amount > most:
            raise ConfigError(
                f"{key}={amount:g}: the biggest machine of the cluster has {most:g} {resource}s; "
                f"ask for {most:g} at most, or add a bigger machine"
            )
    need, total = options.gpus * options.actors, sum(node.has("GPU") for node in nodes)
    if options.gpus and need + taken > total and not _grows(nodes):
        games = f" beside the {taken:g} of the games" if taken else ""
        raise ConfigError(
            f"inference.actors={options.actors} with inference.gpus={options.gpus:g} need "
            f"{need:g} GPUs{games}, and the cluster has {total:g}; ask for fewer actors, or for a "
            f"fraction of a GPU each"
        )
