"""Tells that a policy in this process takes long, and ends the run when it takes too long.

In actors, the supervisor does the same from outside; see ``rollout.host.actors``.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from rollout.api import Policy, waits_for_person
from rollout.errors import BudgetExhausted
from rollout.host.actors import Pulse
from rollout.host.choices import name_of

log = logging.getLogger(__name__)

_SIGNAL = signal.SIGURG  # ignored by default, so one that comes late does no harm
_WARN = 0.1  # fraction of the deadline after which a warning comes
_AGAIN_S = 1.0  # between signals: code of the policy may catch the exception
_GRACE_S = 10.0  # after which the code of the policy counts as uninterruptible


class PolicyWatch:
    """Watches a policy that is asked in the main thread of this process.

    After a tenth of the deadline a warning names the policy. After the whole deadline
    ``BudgetExhausted`` is raised in it, which a signal can do wherever Python code runs or waits
    for the system. In other threads, it only warns.

    Args:
        policy: the policy; one that waits for a person is not watched.
        pulse: tells how long it has been deciding.
        limit_s: deadline of a decision, in seconds.
    """

    def __init__(self, policy: Policy, pulse: Callable[[], Pulse], limit_s: float) -> None:
        self._what = f"the policy {name_of(policy)} has not decided"
        self._pulse, self._limit_s = pulse, limit_s
        self._warned = self._stuck = False
        self._closed = threading.Event()
        self._previous: Any = None
        self._ends = threading.current_thread() is threading.main_thread()
        if waits_for_person(policy):
            return
        if self._ends:
            self._previous = signal.signal(_SIGNAL, self._interrupt)
        threading.Thread(target=self._run, name="policy-watch", daemon=True).start()

    def _run(self) -> None:
        while not self._closed.wait(min(_AGAIN_S, _WARN * self._limit_s)):
            taken_s = self._pulse().deciding_s
            if taken_s >= _WARN * self._limit_s and not self._warned:
                self._warned = True
                said = "%s for %.3g s; its deadline is %g s (host.policy_s)"
                log.warning(said, self._what, taken_s, self._limit_s)
            if self._ends and taken_s >= self._limit_s:
                signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)
                if taken_s > self._limit_s + _GRACE_S and not self._stuck:
                    self._stuck = True
                    log.error(
                        "%s for %.0f s and its code cannot be interrupted; end this process with "
                        "kill -9: finished episodes are saved, continue with --resume",
                        *(self._what, taken_s),
                    )

    def _interrupt(self, _signum: int, _frame: FrameType | None) -> None:
        if not self._closed.is_set() and self._pulse().deciding_s >= self._limit_s:
            raise BudgetExhausted(
                f"{self._what} for {self._limit_s:g} s (host.policy_s); look for what it waits "
                f"for, then continue with --resume"
            )

    def close(self) -> None:
        """Ends the watch. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._previous is not None:
            signal.signal(_SIGNAL, self._previous)
