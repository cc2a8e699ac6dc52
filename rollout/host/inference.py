"""The server that decides for many hosts with one policy, and its dynamic batching. No Ray.

An *inference actor* is a ``PolicyServer`` in a Ray actor (``rollout.host.inference_actors``). Its
hosts play with a ``RemotePolicy`` in place of their own policy (``rollout.host.routing``). Requests
that arrive within a short time are answered by one call of the policy, and each caller gets its own
rows. Rows are independent and all state is in the memory that comes with them, so results do not
depend on which requests share a call.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from rollout.api import (
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Policy,
    PolicyRecipe,
    Start,
    Task,
    Trainable,
    calls_of,
    figures_of,
)
from rollout.configuration.sections import InferenceConfig
from rollout.errors import GamutError, InputError
from rollout.host.actors import Pulse
from rollout.host.policy_calls import (
    POLICY_CODE,
    PolicyInput,
    act_together,
    call_policy,
    policy_name,
    read_only,
    split_rows,
    writable,
)

_BEGIN = "begin"  # kind of the requests for the memory of new episodes
_IDLE_S = 5.0  # the thread wakes up this often without requests


class Unreachable(GamutError):  # noqa: N818 - reads as what happened
    """No answer arrived in time, or the policy is not available; another server may answer."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Statistics of all decisions so far.

    Attributes:
        requests: answered requests, including those for new episodes.
        rows: rows of these requests.
        batches: calls of the policy.
        largest_batch: maximum rows per call.
        queued: rows that wait now.
        longest_queue: maximum rows that ever waited.
        failures: calls that raised.
        busy_s: total time of the calls, in seconds.
    """

    requests: int = 0
    rows: int = 0
    batches: int = 0
    largest_batch: int = 0
    queued: int = 0
    longest_queue: int = 0
    failures: int = 0
    busy_s: float = 0.0


@dataclass(slots=True)
class _Request:
    """A request that waits for its answer."""

    payload: Any  # the starts of episodes, or a PolicyInput
    rows: int
    arrived: float
    due: float  # when it stops waiting for other requests
    answer: Future[Any] = field(default_factory=Future)


class Batcher:
    """Joins concurrent requests into batches for a policy.

    One thread calls the policy. A call that fails is repeated for each of its requests separately,
    so that a request fails only by its own fault.

    Args:
        policy: the policy.
        batch: rows at which a batch stops waiting; a larger request is not split.
        wait_s: longest time that a request waits for others, in seconds.
    """

    def __init__(self, policy: Policy, *, batch: int, wait_s: float) -> None:
        self._policy, self._batch, self._wait_s = policy, batch, wait_s
        self._groups: dict[Hashable, deque[_Request]] = {}
        self._counters = Counters()
        self._busy_since: float | None = None
        self._has_begun = False  # whether the policy has seen the beginning of an episode
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="policy", daemon=True)
        self._thread.start()

    def act(self, inputs: PolicyInput, *, timeout_s: float) -> Decision:
        """Returns the decision of the policy; waits for it, and for other requests to join.

        Raises:
            Unreachable: it took longer than ``timeout_s``, or the batcher was closed.
            Exception: an error of the policy.
        """
        request = self._submit(inputs.kind, inputs, inputs.rows, self._wait_s)
        answer: Decision = _answer(request, timeout_s)
        return answer

    def initial_memory(self, starts: Sequence[Start], *, timeout_s: float) -> Columns:
        """Returns the memory of slots with new episodes.

        Raises:
            Unreachable: it took longer than ``timeout_s``, or the batcher was closed.
            Exception: an error of the policy.
        """
        request = self._submit(_BEGIN, list(starts), len(starts), 0.0)
        answer: Columns = _answer(request, timeout_s)
        return answer

    def _submit(self, kind: Hashable, payload: Any, rows: int, wait_s: float) -> _Request:
        now = time.monotonic()
        request = _Request(payload, rows, now, now + wait_s)
        with self._changed:
            if self._closed:
                raise Unreachable("the policy was closed")
            self._groups.setdefault(kind, deque()).append(request)
            queued = self._counters.queued + rows
            longest = max(self._counters.longest_queue, queued)
            self._counters = replace(self._counters, queued=queued, longest_queue=longest)
            self._changed.notify()
        return request

    def counters(self) -> Counters:
        """Returns the statistics so far."""
        return self._counters

    def busy_s(self) -> float:
        """Returns how long the current call has been running, in seconds; 0 when idle."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def close(self) -> None:
        """Stops deciding; requests that wait raise ``Unreachable``."""
        with self._changed:
            self._closed = True
            left = [request for group in self._groups.values() for request in group]
            self._groups.clear()
            self._changed.notify()
        for request in left:
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_exception(Unreachable("the policy was closed"))

    def _serve(self) -> None:
        while not self._closed:
            kind, requests = self._next()
            waiting = [r for r in requests if r.answer.set_running_or_notify_cancel()]
            if waiting:
                self._decide(self._begin if kind == _BEGIN else self._act, waiting)
            self._busy_since = None

    def _next(self) -> tuple[Hashable, list[_Request]]:
        """Waits for a batch that is full or due; the one that has waited longest comes first."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                ready = [kind for kind, group in self._groups.items() if self._is_ready(group, now)]
                if ready:
                    kind = min(ready, key=lambda each: self._groups[each][0].arrived)
                    self._busy_since = now
                    return kind, self._take(kind)
                due = min((group[0].due for group in self._groups.values()), default=now + _IDLE_S)
                self._changed.wait(due - now)
        return None, []

    def _is_ready(self, group: deque[_Request], now: float) -> bool:
        return group[0].due <= now or sum(r.rows for r in group) >= self._batch

    def _take(self, kind: Hashable) -> list[_Request]:
        group, rows = self._groups[kind], 0
        taken: list[_Request] = []
        while group and (not taken or rows + group[0].rows <= self._batch):
            rows += group[0].rows
            taken.append(group.popleft())
        if not group:
            del self._groups[kind]
        self._counters = replace(self._counters, queued=self._counters.queued - rows)
        return taken

    def _decide(
        self, decide: Callable[[list[_Request]], list[Any]], requests: list[_Request]
    ) -> None:
        """Decides, updates the statistics and answers; repeats a call that failed one by one."""
        began, rows = time.monotonic(), sum(r.rows for r in requests)
        answers: list[Any] = []
        failure: BaseException | None = None
        try:
            answers = decide(requests)
        except BaseException as error:  # noqa: BLE001 - a policy may raise anything; callers get it
            failure = error
        with self._changed:
            c = self._counters
            self._counters = replace(
                c,
                requests=c.requests + len(answers),
                rows=c.rows + (rows if answers else 0),
                batches=c.batches + 1,
                largest_batch=max(c.largest_batch, rows),
                failures=c.failures + (failure is not None),
                busy_s=c.busy_s + time.monotonic() - began,
            )
        if failure is None:
            for request, answer in zip(requests, answers, strict=True):
                request.answer.set_result(answer)
        elif len(requests) == 1:
            requests[0].answer.set_exception(failure)
        else:
            for request in requests:
                self._decide(decide, [request])

    def _begin(self, requests: list[_Request]) -> list[Any]:
        starts = [start for request in requests for start in request.payload]
        with POLICY_CODE:
            memory = self._policy.initial_memory(starts)
        self._has_begun = True
        return split_rows("memory", memory, [request.rows for request in requests])

    def _act(self, requests: list[_Request]) -> list[Any]:
        inputs: list[PolicyInput] = [request.payload for request in requests]
        known = next((each.start for each in inputs if each.start is not None), None)
        if not self._has_begun and known is not None:
            with POLICY_CODE:
                self._policy.initial_memory([known])
            self._has_begun = True
        return act_together(self._policy, inputs)


def _answer(request: _Request, timeout_s: float) -> Any:
    """Waits for the answer to a request."""
    answer = request.answer
    try:
        return answer.result(timeout_s)
    except TimeoutError:
        # Withdrawn, so that it is not decided in vain; unless it has just been decided, or the
        # policy itself raised the error.
        if not answer.cancel() and answer.done():
            return answer.result(0)
    raise Unreachable(f"the policy did not decide within {timeout_s:g} s")


@dataclass(frozen=True, slots=True)
class Hello:
    """A server's reply to a new client.

    Attributes:
        client: number of the client at this server.
        version: version of the policy.
        extras: extras of the policy.
        calls: number of requests of one client that it answers at once.
        name: name of the policy, for messages.
    """

    client: int
    version: int
    extras: Mapping[str, ColumnSpec]
    calls: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's reply to a request.

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
        error: the error that building its policy raised; None if it was built.
        figures: figures of its policy, see ``rollout.api.Reporting``.
    """

    pid: int
    counters: Counters
    error: InputError | None = None
    figures: Mapping[str, float] = field(default_factory=dict)


class PolicyServer:
    """A policy with a batcher: the contents of an inference actor.

    All methods are thread-safe. If the policy cannot be built because of invalid input, e.g. a file
    that is missing on the machine, every request raises that error.

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
        self._error: InputError | None = None
        try:
            with POLICY_CODE:
                self._policy = recipe.build(spec, task, seed=seed)
        except InputError as error:
            self._error = error
        else:
            wait_s = options.wait_ms / 1000.0
            self._batcher = Batcher(self._policy, batch=options.batch, wait_s=wait_s)

    def hello(self, timeout_s: float) -> Hello:
        """Registers a new client and returns its number and the properties of the policy."""
        del timeout_s
        self._require_policy()
        p = self._policy
        return Hello(next(self._clients), p.version, dict(p.extras), calls_of(p), policy_name(p))

    def begin(self, starts: Sequence[Start], timeout_s: float) -> Answer:
        """Returns the memory of new episodes; see ``Batcher.initial_memory``."""
        self._require_policy()
        return self._answer(self._batcher.initial_memory(starts, timeout_s=timeout_s))

    def act(self, inputs: PolicyInput, timeout_s: float) -> Answer:
        """Returns a decision; see ``Batcher.act``. A concurrent policy decides in this thread."""
        self._require_policy()
        if calls_of(self._policy) > 1:
            inputs.observations = {k: read_only(v) for k, v in inputs.observations.items()}
            inputs.memory = writable(inputs.memory)
            return self._answer(call_policy(self._policy, inputs))
        return self._answer(self._batcher.act(inputs, timeout_s=timeout_s))

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights of a trainable policy."""
        self._require_policy()
        if isinstance(self._policy, Trainable):
            self._policy.load(weights, version)

    def pulse(self) -> ServerPulse:
        """Returns a sign of life. Progress stops only while one batch is being decided."""
        if self._error is not None:
            return ServerPulse(0, 0.0, os.getpid(), Counters(), self._error)
        busy_s, counters = self._batcher.busy_s(), self._batcher.counters()
        if not busy_s or counters.batches != self._batches:
            self._progress, self._batches = self._progress + 1, counters.batches
        figures = figures_of(self._policy)
        return ServerPulse(self._progress, busy_s, os.getpid(), counters, figures=figures)

    def _answer(self, value: Any) -> Answer:
        return Answer(value, self._policy.version, self._batcher.counters().queued)

    def _require_policy(self) -> None:
        if self._error is not None:
            raise self._error
