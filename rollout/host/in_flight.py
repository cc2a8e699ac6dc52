"""Decisions that take long: each instance's question is asked in a thread while others play on."""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from queue import SimpleQueue

from rollout.api import Decision, Policy, calls_of
from rollout.errors import BudgetExhausted, PolicyUnavailable
from rollout.host.choices import ask
from rollout.host.deciding import Question
from rollout.host.instances import Event
from rollout.host.pool import Pool

_LOOK_S = 1.0  # between looks at decisions that are pending


class InFlight:
    """Asks a policy for the actions of single instances, several at a time.

    Not thread-safe itself: one thread asks and collects. ``Policy.act`` is called in other threads.

    Args:
        policy: the policy; its ``act`` may be called in several threads at once.
        pool: the instances; its ``recv`` returns once there are answers.
    """

    def __init__(self, policy: Policy, pool: Pool) -> None:
        self._policy, self._pool = policy, pool
        self._calls = min(calls_of(policy), pool.instances)
        self._questions: SimpleQueue[tuple[int, Question] | None] = SimpleQueue()
        self._answers: deque[tuple[int, Decision | Exception]] = deque()
        self._asked: dict[int, tuple[int, float]] = {}  # instance and time, by ticket, oldest first
        self._ticket = 0
        self._threads = 0
        self._waitable, self._writer = os.pipe()
        pool.watch(self._waitable)
        self._closed = False

    @property
    def pending(self) -> int:
        """Number of instances that wait for an answer."""
        return len(self._asked)

    def ask(self, instance: int, question: Question) -> None:
        """Asks for an instance; its columns must not change until the answer is collected."""
        self._ticket += 1
        self._asked[self._ticket] = (instance, time.monotonic())
        if self._threads < min(self._calls, len(self._asked)):
            self._begin_thread()
        self._questions.put((self._ticket, question))

    def _begin_thread(self) -> None:
        self._threads += 1
        # A daemon: a call that hangs must not keep the process from ending.
        threading.Thread(target=self._serve, name="decision", daemon=True).start()

    def _serve(self) -> None:
        while (asked := self._questions.get()) is not None:
            ticket, q = asked
            answer: Decision | Exception
            try:
                answer = ask(self._policy, q.observations, q.memory, q.details, q.explore)
            except Exception as error:  # noqa: BLE001 - raised again where the answer is collected
                answer = error
            if self._closed:
                return
            self._answers.append((ticket, answer))
            os.write(self._writer, b"!")

    def receive(self, timeout_s: float | None) -> list[Event]:
        """Returns the next events of the pool; none if an answer is first.

        Args:
            timeout_s: longest wait in seconds; None, or more than a second, waits for a second.
        """
        timeout_s = _LOOK_S if timeout_s is None else min(max(timeout_s, 0.0), _LOOK_S)
        if self._pool.busy:
            return self._pool.recv(timeout_s=timeout_s)
        select.select([self._waitable], [], [], timeout_s)
        return []

    def collect(self, limit_s: float) -> list[tuple[int, Decision | BudgetExhausted]]:
        """Returns instances with their answers, without waiting.

        Those that have waited for longer than ``limit_s`` seconds get a ``PolicyUnavailable``.

        Raises:
            Exception: an error of the policy.
        """
        found: list[tuple[int, Decision | BudgetExhausted]] = []
        while self._answers:
            ticket, answer = self._answers.popleft()
            os.read(self._waitable, 1)
            asked = self._asked.pop(ticket, None)
            if asked is None:
                continue  # it was given up
            if isinstance(answer, Exception) and not isinstance(answer, BudgetExhausted):
                raise answer
            found.append((asked[0], answer))
        for ticket, (instance, since) in list(self._asked.items()):
            if time.monotonic() - since <= limit_s:
                break
            del self._asked[ticket]
            # A call cannot be ended from outside, so another thread takes the place of its own.
            self._begin_thread()
            late = PolicyUnavailable(f"the policy did not decide within {limit_s:g} s")
            found.append((instance, late))
        return found

    def close(self) -> None:
        """Drops all answers; threads end with their calls."""
        self._closed = True
        self._asked.clear()
        for _ in range(self._threads):
            self._questions.put(None)
        os.close(self._waitable)
        # The writing end stays open: a call that is in progress may still write to it.
