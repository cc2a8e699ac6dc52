"""The supervisor of a set of actors: launches them and replaces those that fail or hang. No Ray.

One supervises the hosts of a collection or an evaluation (``rollout.host.ray_fleet``), one the
runners of a training (``rollout.train.rllib.runners``) and one the inference actors
(``rollout.host.inference_actors``). They differ only in the requests to their actors.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from rollout.api.fragment import Phase
from rollout.configuration.sections import HostConfig
from rollout.errors import BudgetExhausted
from rollout.host.supervision import Health, Machines
from rollout.observe.logs import kind_of, log_trace

log = logging.getLogger(__name__)

POLL_S = 2.0
"""Seconds between two checks of silent actors."""

STALL_MARGIN_S = 30.0
"""Added to the longest deadline of a game before its actor counts as hung."""

ARRIVAL_S = 900.0
"""Deadline for a new actor's first pulse: a cluster may have to start a machine for it."""

_ANSWER_S = 30.0  # deadline for the first pulse of a living actor, which names its machine


class ActorLost(Exception):  # noqa: N818 - reads as what happened
    """An actor has died, or a result was lost with its machine.

    Attributes:
        trace: the traceback of its constructor, if that raised an error; otherwise empty.
    """

    def __init__(self, reason: str, trace: str = "") -> None:
        super().__init__(reason)
        self.trace = trace


@dataclass(frozen=True, slots=True)
class Pulse:
    """A sign of life of an actor.

    Attributes:
        progress: a number that changes with every event.
        deciding_s: duration of the policy's current call, in seconds; 0 while it is idle.
    """

    progress: int
    deciding_s: float


class Launcher(Protocol):
    """Interface to launch and kill actors and to request results; see ``RayLauncher``."""

    def launch(self, number: int, incarnation: int, avoid: Sequence[str]) -> Any:
        """Returns the handle of a new actor, which is on none of the machines in ``avoid``."""
        ...

    def request_pulse(self, handle: Any) -> Any:
        """Returns a reference to the machine and the pulse of an actor, a pair."""
        ...

    def wait(self, references: Sequence[Any], timeout_s: float) -> list[Any]:
        """Returns the references that are ready, at least one unless the timeout passes."""
        ...

    def get(self, reference: Any) -> Any:
        """Returns a result, or raises the actor's error.

        Raises:
            ActorLost: the result does not exist and never will.
        """
        ...

    def kill(self, handle: Any) -> None:
        """Kills an actor, whatever its state."""
        ...

    def machines(self) -> Sequence[str]:
        """Returns the living machines with the resources of an actor, used or not."""
        ...

    def missing_resources(self) -> str:
        """Returns the requested resources that no machine has, for messages."""
        ...


@dataclass(eq=False)
class Actor:
    """The supervisor's record of one actor.

    Attributes:
        number: number of the actor, which its replacements keep.
        health: the record of its failures.
        handle: handle of the running actor; None while there is none.
        incarnation: number of its replacements.
        requests: references to pending requests, oldest first.
        pulse: the last pulse; None until the actor has sent one.
        last_progress: when its progress last changed, or when it last had no request.
        due: when it is launched again; None while it runs, and once it is abandoned.
        quarantined: whether its next launch waits for the end of a quarantine.
    """

    number: int
    health: Health
    handle: Any = None
    incarnation: int = 0
    requests: deque[Any] = field(default_factory=deque)
    pulse: Pulse | None = None
    last_progress: float = 0.0
    due: float | None = None
    quarantined: bool = False
    launched: float = 0.0
    machine: str = ""  # empty until known
    pulse_request: Any = None  # reference to its next pulse

    @property
    def available(self) -> bool:
        """True if it runs, or will run after a short pause at most."""
        return self.handle is not None or (self.due is not None and not self.quarantined)


@dataclass
class Supervisor:
    """Keeps ``count`` actors running.

    An actor is replaced if it dies, does not appear, makes no progress for ``stall_s``, or if its
    policy decides for longer than ``policy_s``. If it failed before, a pause comes first. It is
    abandoned after more than ``restarts`` failures within the window. Machines on which actors keep
    failing get no new actors for a while.

    Args:
        launcher: launches the actors.
        count: number of actors.
        host: how actors are supervised.
        restarts: restart budget of each actor.
        stall_s: longest time without progress, in seconds.
        policy_s: longest time for a decision of the policy, in seconds.
        name: name of an actor, for messages.
        failed: called with the actor, the reason and the phase of each failure.
        serving: whether others send requests to the actors, so that actors without a request of
            ours are watched too.
        clock: returns monotonic seconds.
    """

    launcher: Launcher
    count: int
    host: HostConfig
    restarts: int
    stall_s: float
    policy_s: float
    name: str
    failed: Callable[[Actor, str, Phase], None]
    serving: bool = False
    clock: Callable[[], float] = time.monotonic
    actors: list[Actor] = field(init=False)

    def __post_init__(self) -> None:
        self._machines, self._reason = Machines(self.host), ""
        self._polled, self._looked = self.clock(), float("-inf")
        self._waiting = False  # whether it was logged that no machine has what actors ask for
        self.actors = [Actor(n, Health(self.host, self.restarts)) for n in range(self.count)]
        for actor in self.actors:
            self.launch(actor)

    @property
    def _key(self) -> str:
        """The key of ``restarts``."""
        return "inference.restarts" if self.serving else "host.actor_restarts"

    def launch(self, actor: Actor) -> None:
        """Launches an actor that is not running."""
        actor.launched = actor.last_progress = now = self.clock()
        avoid = self._machines.quarantined(now)
        actor.handle = self.launcher.launch(actor.number, actor.incarnation, avoid)
        actor.pulse_request = self.launcher.request_pulse(actor.handle)
        actor.pulse, actor.machine, actor.due, actor.quarantined = None, "", None, False

    def withdraw(self, actor: Actor) -> None:
        """Kills an actor without counting a failure; ``launch`` starts it again."""
        self.launcher.kill(actor.handle)
        actor.handle = None
        actor.requests.clear()

    def poll(self) -> None:
        """Launches the actors that are due, and replaces those that hang. Must be called often."""
        now = self.clock()
        away, self._polled = now - self._polled, now
        for actor in self.actors:
            if actor.due is not None and actor.due <= now:
                self.launch(actor)
        watched = [a for a in self.actors if a.handle is not None and (a.requests or self.serving)]
        asked = [a.pulse_request for a in watched if a.pulse_request is not None]
        answered = set(self.launcher.wait(asked, 0.0)) if asked else set[Any]()  # in one call
        for actor in self.actors:
            if actor.handle is None:
                continue
            if away > 2 * POLL_S:
                actor.last_progress += away  # the caller was busy and did not check the actors
            if actor.requests or self.serving:
                self._read_pulse(actor, now, answered)
            else:
                actor.last_progress = now
            if actor.handle is not None:
                self._replace_if_hung(actor, now)
        self._log_waiting(now)

    def _log_waiting(self, now: float) -> None:
        """Logs once that actors wait for resources that no machine has."""
        late = [a for a in self.actors if a.handle and not a.pulse and now - a.launched > POLL_S]
        if not late or now - self._looked < POLL_S:
            return
        self._looked = now
        machines, quarantined = self.launcher.machines(), self._machines.quarantined(now)
        before, self._waiting = self._waiting, set(machines) <= set(quarantined)
        if self._waiting and not before:
            what = "%d %s waiting for %s; no machine %shas it; started once one joins the cluster"
            names = self.name if len(late) == 1 else f"{self.name}s"
            which = "outside quarantine " if machines else ""
            log.warning(what, len(late), names, self.launcher.missing_resources(), which)

    def _read_pulse(self, actor: Actor, now: float, answered: Collection[Any]) -> None:
        """Reads the pulse of an actor, and requests the next one once it is silent.

        Args:
            actor: the actor.
            now: monotonic seconds.
            answered: requests for pulses that are done.
        """
        if actor.pulse_request is None:
            if self.serving or now - actor.last_progress > POLL_S:
                actor.pulse_request = self.launcher.request_pulse(actor.handle)
        elif actor.pulse_request in answered:
            request, actor.pulse_request = actor.pulse_request, None
            before = actor.pulse
            try:
                actor.machine, actor.pulse = self.launcher.get(request)
            except ActorLost as error:
                log_trace(log, error.trace)
                if not actor.requests:  # otherwise its oldest request fails for the same reason
                    self.fail(actor, str(error))
                return
            if before is None or actor.pulse.progress != before.progress:
                actor.last_progress = now

    def _replace_if_hung(self, actor: Actor, now: float) -> None:
        """Replaces an actor that does not appear or makes no progress."""
        phase: Phase = "actor"
        limit, what = self.stall_s, "nothing moved"
        if actor.pulse is None:
            limit, what = max(limit, ARRIVAL_S), "its actor did not appear"
        elif actor.pulse.deciding_s > 0.0:
            limit, phase, what = self.policy_s, "policy", "its policy has not decided"
        if now - actor.last_progress > limit:
            self.fail(actor, f"{what} for {limit:.0f} s", phase=phase)

    def wait(self) -> list[Actor]:
        """Returns the actors whose oldest request is done, at least one unless it times out."""
        heads = {actor.requests[0]: actor for actor in self.actors if actor.requests}
        now = self.clock()
        pauses = [actor.due - now for actor in self.actors if actor.due is not None]
        timeout_s = max(0.0, min([POLL_S, *pauses]))
        return [heads[reference] for reference in self.launcher.wait(list(heads), timeout_s)]

    def take(self, actor: Actor) -> Any:
        """Returns the result of an actor's oldest request; None if the actor has failed.

        Raises:
            Exception: an error of the actor, unless its games are exhausted: then the actor is put
                into quarantine, as a single game would be, unless its machine is.
        """
        reference = actor.requests.popleft()
        try:
            result = self.launcher.get(reference)
        except ActorLost as error:
            log_trace(log, error.trace)
            self.fail(actor, str(error))
            return None
        except BudgetExhausted as error:
            log_trace(log, error.trace)
            self.fail(actor, str(error), exhausted=True)
            return None
        actor.last_progress, actor.pulse = self.clock(), actor.pulse or Pulse(0, 0.0)
        return result

    def fail(
        self, actor: Actor, reason: str, *, phase: Phase = "actor", exhausted: bool = False
    ) -> None:
        """Kills an actor that failed, and plans its replacement.

        Args:
            actor: a running actor that failed.
            reason: the reason, for messages.
            phase: the phase in which it failed.
            exhausted: whether none of its games may be launched any more.
        """
        now, self._reason = self.clock(), reason
        elsewhere = self._record_machine_failure(actor, now, exhausted=exhausted)
        lived_s = 0.0 if actor.pulse is None else now - actor.launched
        pause = actor.health.failed(now, lived_s)
        self.withdraw(actor)
        if exhausted and not elsewhere and pause is not None:
            rest = self.host.quarantine_s
            pause, actor.quarantined = (None if rest is None else max(pause, rest)), True
        if pause is None:
            what = "%s %d failed: %s; it is abandoned after more than %d failures (%s)"
            log.error(what, self.name, actor.number, reason, self.restarts, self._key)
        else:
            when = f" in {pause:g} s" if pause else ""
            what = "%s %d failed: %s; it is replaced%s"
            kind = kind_of(self.name, reason)
            log.warning(what, self.name, actor.number, reason, when, extra=kind)
            actor.incarnation += 1
            actor.due = now + pause
        self.failed(actor, reason, phase)
        if actor.due is not None and actor.due <= now:
            self.launch(actor)

    def _record_machine_failure(self, actor: Actor, now: float, *, exhausted: bool) -> bool:
        """Records a failure of an actor's machine; returns True if it is in quarantine now.

        An actor whose games are exhausted is alive, and counts as the maximum number of failures.
        Its result may arrive before its first pulse, which is awaited to know the machine.
        """
        patience_s = _ANSWER_S if exhausted else 0.0
        request = actor.pulse_request
        if not actor.machine and request is not None and self.launcher.wait([request], patience_s):
            with suppress(ActorLost):
                actor.machine, _ = self.launcher.get(request)
        weight = (self.host.machine_failures or 1) if exhausted else 1
        alive = self.launcher.machines()
        if not self._machines.failed(actor.machine, now, alive, weight=weight):
            return False
        log.warning("machine %s gets no new actors for a while: they fail there", actor.machine)
        return True

    def require_available(self) -> None:
        """Checks that an actor runs, or will run after a short pause at most.

        Raises:
            BudgetExhausted: all are abandoned or in quarantine.
        """
        if not any(actor.available for actor in self.actors):
            raise BudgetExhausted(
                f"all {self.count} {self.name}s failed more than {self.restarts} times "
                f"({self._key}; raise it if they fail now and then) or are in quarantine "
                f"(host.quarantine_s={self.host.quarantine_s}); the last failure: {self._reason}"
            )

    def close(self) -> None:
        """Kills every actor."""
        for actor in self.actors:
            actor.due = None
            if actor.handle is not None:
                self.withdraw(actor)
