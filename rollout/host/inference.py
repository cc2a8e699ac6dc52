"""A server that decides for many hosts with one policy. No Ray here.

An *inference actor* is a ``PolicyServer`` in a Ray actor (``rollout.host.inference_actors``). Its
hosts use a ``RemotePolicy`` instead of their own policy (``rollout.host.routing``). Requests that
arrive together are decided together (``rollout.host.batching``).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollout.api import (
    BridgeSpec,
    ColumnSpec,
    PolicyRecipe,
    Start,
    Task,
    Trainable,
    calls_of,
    figures_of,
)
from rollout.configuration.sections import InferenceConfig
from rollout.errors import InputError
from rollout.host.actors import Pulse
from rollout.host.batching import Batcher, Counters
from rollout.host.choices import POLICY_CODE, ask, name_of, read_only
from rollout.host.deciding import Question, writable


@dataclass(frozen=True, slots=True)
class Hello:
    """A server's reply to a new client.

    Attributes:
        client: number of the client at this server.
        version: version of the policy.
        extras: extras of the policy.
        calls: how many questions of one client it answers at once.
        name: name of the policy, for messages.
    """

    client: int
    version: int
    extras: Mapping[str, ColumnSpec]
    calls: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's reply to a question.

    Attributes:
        value: a decision, or the memory of new episodes.
        version: version of the policy that decided.
        queued: rows that wait at the server.
    """

    value: Any
    version: int
    queued: int


@dataclass(frozen=True, slots=True)
class ServerPulse(Pulse):
    """A sign of life of a server; ``deciding_s`` is the age of the current batch.

    Attributes:
        pid: process id.
        counters: statistics of its decisions.
        wrong: why its policy cannot be built; None if it can.
        figures: figures of its policy, see ``rollout.api.Reporting``.
    """

    pid: int
    counters: Counters
    wrong: InputError | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


class PolicyServer:
    """A policy with a batcher: the contents of an inference actor.

    All methods are thread-safe. If the policy cannot be built because of invalid input, e.g. a file
    that is missing on the machine, every question raises that error.

    Args:
        recipe: recipe of the policy.
        spec: spec of the game.
        task: the task.
        seed: seed of the policy; the same for all servers, since any of them may continue an
            episode.
        options: how it decides.
    """

    def __init__(
        self,
        recipe: PolicyRecipe,
        spec: BridgeSpec,
        task: Task,
        seed: int,
        options: InferenceConfig,
    ) -> None:
        self._clients, self._progress, self._batches = itertools.count(), 0, 0
        self._wrong: InputError | None = None
        try:
            with POLICY_CODE:
                self._policy = recipe.build(spec, task, seed=seed)
        except InputError as error:
            self._wrong = error
        else:
            wait_s = options.wait_ms / 1000.0
            self._batcher = Batcher(self._policy, batch=options.batch, wait_s=wait_s)

    def hello(self, timeout_s: float) -> Hello:
        """Registers a new client and returns what it must know, at once."""
        del timeout_s
        self._require_policy()
        p = self._policy
        return Hello(next(self._clients), p.version, dict(p.extras), calls_of(p), name_of(p))

    def begin(self, starts: Sequence[Start], timeout_s: float) -> Answer:
        """Returns the memory of new episodes; see ``Batcher.initial_memory``."""
        self._require_policy()
        return self._answer(self._batcher.initial_memory(starts, timeout_s=timeout_s))

    def act(self, question: Question, timeout_s: float) -> Answer:
        """Returns a decision; see ``Batcher.act``. A concurrent policy decides in this thread."""
        self._require_policy()
        if calls_of(self._policy) > 1:
            q = question
            seen = {key: read_only(array) for key, array in q.observations.items()}
            decision = ask(self._policy, seen, writable(q.memory), q.details, q.explore)
            return self._answer(decision)
        return self._answer(self._batcher.act(question, timeout_s=timeout_s))

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights of a trainable policy."""
        self._require_policy()
        if isinstance(self._policy, Trainable):
            self._policy.load(weights, version)

    def pulse(self) -> ServerPulse:
        """Returns a sign of life. Progress stops only while one batch is being decided."""
        if self._wrong is not None:
            return ServerPulse(0, 0.0, os.getpid(), Counters(), self._wrong)
        busy_s, counters = self._batcher.busy_s(), self._batcher.counters()
        if not busy_s or counters.batches != self._batches:
            self._progress, self._batches = self._progress + 1, counters.batches
        figures = figures_of(self._policy)
        return ServerPulse(self._progress, busy_s, os.getpid(), counters, figures=figures)

    def _answer(self, value: Any) -> Answer:
        return Answer(value, self._policy.version, self._batcher.counters().queued)

    def _require_policy(self) -> None:
        if self._wrong is not None:
            raise self._wrong
