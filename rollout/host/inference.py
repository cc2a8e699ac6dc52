"""Policies that decide for many hosts: how they are configured, and what serves one. No Ray here.

An *inference actor* is a ``PolicyServer`` in a Ray actor (``rollout.host.inference_actors``); the
hosts that ask it have a ``RemotePolicy`` in the place of a policy of their own
(``rollout.host.routing``), and those questions that arrive together are decided together
(``rollout.host.batching``).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rollout.api import BridgeSpec, ColumnSpec, PolicyRecipe, Start, Task
from rollout.errors import InputError
from rollout.host.batching import Batcher, Counters, Question

if TYPE_CHECKING:
    from rollout.config import InferenceConfig
    from rollout.host.hosting import HostPlan
    from rollout.host.inference_actors import InferenceActors


@dataclass(frozen=True)
class InferenceOptions:
    """How many inference actors there are, and how they decide.

    Attributes:
        actors: number of actors; 0 for none, so that each host has a policy of its own.
        batch: rows at which an actor waits for no more requests.
        wait_s: longest time a request waits for others.
        cpus: processors of each.
        gpus: GPUs of each.
        deadline_s: deadline for a decision, from whichever actor.
        restarts: how often each may be restarted.
    """

    actors: int = 0
    batch: int = 64
    wait_s: float = 0.005
    cpus: float = 1.0
    gpus: float = 0.0
    deadline_s: float = 300.0
    restarts: int = 5

    @classmethod
    def of(cls, config: InferenceConfig) -> InferenceOptions:
        """Returns the options of a configuration."""
        return cls(
            config.actors,
            config.batch,
            config.wait_ms / 1000.0,
            config.cpus,
            config.gpus,
            config.deadline_s,
            config.restarts,
        )

    @property
    def patience_s(self) -> float:
        """How long one actor may take: half the deadline, so that there is time for another."""
        return self.deadline_s / 2


@dataclass(frozen=True, slots=True)
class Hello:
    """What a server says to a new client.

    Attributes:
        client: number of the client among those of the server.
        version: of the policy.
        extras: of the policy.
    """

    client: int
    version: int
    extras: Mapping[str, ColumnSpec]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answers.

    Attributes:
        value: a decision, or the memory of episodes that begin.
        version: of the policy that decided.
        queued: rows that wait at the server.
    """

    value: Any
    version: int
    queued: int


@dataclass(frozen=True, slots=True)
class ServerPulse:
    """A sign of life of a server.

    Attributes:
        name: another for each life of a server.
        pid: of its process.
        busy_s: for how long its policy has been deciding the present batch.
        counters: what it has decided.
    """

    name: str
    pid: int
    busy_s: float
    counters: Counters


class PolicyServer:
    """A policy and its batcher: what an inference actor is made of.

    Every method may be called by many threads at once. Where the policy cannot be built because
    of wrong input, e.g. a file that is missing on the machine, every method raises that error.

    Args:
        recipe: of the policy.
        spec: of the game.
        task: that is played.
        seed: of the policy; the same for all servers, since any of them may go on with an episode.
        options: how it decides.
    """

    def __init__(
        self,
        recipe: PolicyRecipe,
        spec: BridgeSpec,
        task: Task,
        seed: int,
        options: InferenceOptions,
    ) -> None:
        self._name, self._clients = uuid4().hex, itertools.count()
        self._wrong: InputError | None = None
        try:
            self._policy = recipe.build(spec, task, seed=seed)
        except InputError as error:
            self._wrong = error
        else:
            self._batcher = Batcher(self._policy, batch=options.batch, wait_s=options.wait_s)

    def hello(self) -> Hello:
        """Returns what a new client must know; counts it."""
        self._require_policy()
        return Hello(next(self._clients), self._policy.version, dict(self._policy.extras))

    def begin(self, starts: Sequence[Start], timeout_s: float) -> Answer:
        """Returns the memory of episodes that begin; see ``Batcher.initial_memory``."""
        self._require_policy()
        return self._answer(self._batcher.initial_memory(starts, timeout_s=timeout_s))

    def act(self, question: Question, timeout_s: float) -> Answer:
        """Returns a decision; see ``Batcher.act``."""
        self._require_policy()
        return self._answer(self._batcher.act(question, timeout_s=timeout_s))

    def pulse(self) -> ServerPulse:
        """Returns a sign of life."""
        self._require_policy()
        batcher = self._batcher
        return ServerPulse(self._name, os.getpid(), batcher.busy_s(), batcher.counters())

    def _answer(self, value: Any) -> Answer:
        return Answer(value, self._policy.version, self._batcher.counters().queued)

    def _require_policy(self) -> None:
        if self._wrong is not None:
            raise self._wrong


@contextlib.contextmanager
def open_inference(
    plan: HostPlan, options: InferenceOptions, *, hosts: int
) -> Iterator[InferenceActors | None]:
    """Launches the inference actors of a plan, and ends them in the end.

    Args:
        plan: what is played; the plan for the hosts is then ``InferenceActors.plan``.
        options: how many there are; Ray must run if there is one.
        hosts: number of Ray actors that will play; 0 for one player in this process.

    Yields:
        the actors; None if there are none.

    Raises:
        InputError: the cluster does not have what they need, or the policy cannot be built there.
        BudgetExhausted: they do not come up.
    """
    if options.actors == 0:
        yield None
        return
    # Ray decides about authentication when it is imported: not before the session has.
    from rollout.host.inference_actors import InferenceActors  # noqa: PLC0415

    actors = InferenceActors(plan, options, hosts=hosts)
    try:
        actors.wait()
        yield actors
    finally:
        actors.close()
