"""A policy that sends its requests to servers, and the choice of the server. No Ray.

A host plays with a ``RemotePolicy``, which asks one of several servers with the same policy. All
state of a policy is in its memory columns, so every server can answer every request: if one has
died or hangs, another is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollout.api import BridgeSpec, Columns, Decision, Details, Start, Task
from rollout.configuration.sections import InferenceConfig
from rollout.errors import BudgetExhausted, PolicyUnavailable
from rollout.host.inference import Answer, Hello, ServerPulse, Unreachable
from rollout.host.policy_calls import PolicyInput, writable

_LOOK_S = 0.2  # interval between checks of servers that do not answer


class Gone(Unreachable):
    """A server has died and used up its restarts: it will not return."""


class Link(Protocol):
    """A connection to a server, which may be dead or on another machine."""

    def ask(self, method: str, *arguments: Any, timeout_s: float) -> Any:
        """Returns the answer of a method of ``PolicyServer`` other than ``pulse``.

        Raises:
            Unreachable: it did not answer within ``timeout_s``, or is not available.
            Gone: it will not return.
            Exception: an error of its policy.
        """
        ...

    def pulse(self, timeout_s: float) -> ServerPulse | None:
        """Returns its sign of life, or None if there was none within ``timeout_s``.

        An unanswered request is not repeated, so this may be called at any rate.

        Raises:
            Gone: it will not return.
        """
        ...


class Router:
    """Sends requests to one of several servers, and to another if that one does not answer.

    Each client prefers one server, so that clients are spread evenly. If it is not available, the
    client asks the one with the fewest waiting rows, as far as it knows.

    Args:
        links: connections to the servers.
        deadline_s: seconds to wait for an answer of any server.
        patience_s: seconds to wait for an answer of one server.
    """

    def __init__(self, links: Sequence[Link], deadline_s: float, patience_s: float) -> None:
        self._links, self._deadline_s, self._patience_s = links, deadline_s, patience_s
        self._queued = [0] * len(links)
        self._down: set[int] = set()
        self._gone: set[int] = set()
        self._client = 0
        self._reason = ""

    def set_client(self, client: int) -> None:
        """Sets the number of this client, which determines the server that it prefers."""
        self._client = client

    def ask(self, method: str, *arguments: Any) -> Any:
        """Returns the answer of a method of a server.

        Raises:
            PolicyUnavailable: no server answered within the deadline.
            BudgetExhausted: no server is left, and none will return.
            Exception: an error of the policy.
        """
        end = time.monotonic() + self._deadline_s
        while (left := end - time.monotonic()) > 0:
            number = self._choose()
            if number is None:
                threading.Event().wait(min(_LOOK_S, left))
                continue
            try:
                timeout_s = min(left, self._patience_s)
                answer = self._links[number].ask(method, *arguments, timeout_s=timeout_s)
            except Unreachable as error:
                self._lose(number, error)
                continue
            if isinstance(answer, Answer):
                self._queued[number] = answer.queued
            return answer
        raise PolicyUnavailable(
            f"no inference actor decided within {self._deadline_s:g} s; the last trouble: "
            f"{self._reason or 'none'}"
        )

    def _choose(self) -> int | None:
        """Returns the server to ask; None if none is available now."""
        up = [number for number in range(len(self._links)) if self._is_up(number)]
        if len(self._gone) == len(self._links):
            raise BudgetExhausted(
                f"all {len(self._links)} inference actors failed more often than they are "
                f"restarted (inference.restarts); the last one: {self._reason}"
            )
        if not up:
            return None
        turn, preferred = divmod(self._client, len(self._links))
        if preferred in up:
            return preferred
        # The clients of a dead server have the same information: they must not all choose one
        # server.
        return min(up, key=lambda n: (self._queued[n], (n - turn) % len(self._links)))

    def _is_up(self, number: int) -> bool:
        if number in self._gone:
            return False
        if number not in self._down:
            return True
        try:
            pulse = self._links[number].pulse(0.0)
        except Gone as error:
            self._lose(number, error)
            return False
        if pulse is None or pulse.deciding_s > self._patience_s:
            return False
        self._down.discard(number)
        self._queued[number] = pulse.counters.queued
        return True

    def _lose(self, number: int, error: Unreachable) -> None:
        self._reason = f"actor {number}: {error}"
        (self._gone if isinstance(error, Gone) else self._down).add(number)


@dataclass(frozen=True)
class RemotePolicyRecipe:
    """Recipe of a policy that asks servers; replaces the recipe of the servers' policy.

    Attributes:
        links: connections to the servers.
        options: how they decide.
    """

    links: tuple[Link, ...]
    options: InferenceConfig

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> RemotePolicy:
        """Returns the policy; the seed is not used, since the servers have their own.

        Raises:
            PolicyUnavailable: no server answered within the deadline.
            BudgetExhausted: none is left.
        """
        router = Router(self.links, self.options.deadline_s, self.options.patience_s)
        hello: Hello = router.ask("hello")
        router.set_client(hello.client)
        return RemotePolicy(router, hello)


class RemotePolicy:
    """Sends every decision to a server.

    Attributes:
        version: version of the policy that decided last.
        extras: extras of the policy.
        calls: as the policy's; those of several instances share batches at the server.
        name: the policy's, for messages.
    """

    def __init__(self, router: Router, hello: Hello) -> None:
        self.version, self.extras = hello.version, dict(hello.extras)
        self.calls, self.name = hello.calls, hello.name
        self._router = router
        self._start: Start | None = None

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the memory of slots with new episodes, ``{key: (len(starts), ...)}``.

        Raises:
            PolicyUnavailable: no server answered within the deadline.
            Exception: an error of the policy.
        """
        if self._start is None:
            self._start = starts[0]
        return writable(self._router.ask("begin", list(starts)).value)

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Chooses an action for every row; see ``rollout.api.Policy``.

        Raises:
            PolicyUnavailable: no server answered within the deadline.
            Exception: an error of the policy.
        """
        inputs = PolicyInput(observations, memory, details, explore, self._start)
        answer = self._router.ask("act", inputs)
        self.version, decision = answer.version, answer.value
        return Decision(
            writable(decision.actions),
            writable(decision.memory),
            writable(decision.extras),
            decision.stops,
        )
