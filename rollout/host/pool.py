"""Many instances of one game: send commands, receive what is ready, restart what fails.

There is no barrier: ``recv`` returns as soon as one instance has an event. Every command has a
timeout. A game that fails is killed and restarted by the rules of ``HostConfig`` while the others
continue; the failure is an event, never an exception.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from rollout.api import Bridge, BridgeSpec, Columns, Deadlines, Start
from rollout.api.fragment import Phase
from rollout.configuration.sections import HostConfig
from rollout.errors import ConfigError, GameError, OutOfTurnError
from rollout.host.channel import Incomplete
from rollout.host.frames import describe
from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle
from rollout.host.instances import NEVER, Event, Game, GameCloser, Kind, PooledInstance, free_ports
from rollout.host.interpreter import interpreter_of
from rollout.host.supervision import Health, LaunchLimit
from rollout.observe.hosts import HostFigures

_GRACE_S = 0.25  # time for a game with its own timeout to report it
_LAUNCH_POLL_S = 0.1  # interval between requests for a permit to launch
_INSPECT_S = 5.0  # between two looks at the processes of the games
_LAG_S = 1.0  # a wake-up later than this means that the machine was suspended
_CLOSE_MARGIN_S = 2.0  # after the timeout of a graceful end, for a forced one

HandleFactory = Callable[[Bridge, Path, Sequence[int], int], Handle]


@dataclass
class Pool:
    """``instances`` instances of one game, with ``width`` slots each.

    Args:
        bridge: the recipe.
        workdir: folder that contains the folder of every instance.
        instances: number of instances.
        width: slots of each.
        host: how games are supervised.
        make_handle: another way to run an instance, for tests.

    Attributes:
        counts: events of games: ``failed``, ``quarantined``, ``recycled``, ``spared`` (replaced by
            a spare).
    """

    bridge: Bridge
    workdir: Path
    instances: int = 1
    width: int = 1
    host: HostConfig = field(default_factory=HostConfig)
    make_handle: HandleFactory | None = None
    spec: BridgeSpec = field(init=False)
    deadlines: Deadlines = field(init=False)
    counts: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self.spec = self.bridge.spec
        self.spec.require_width(self.width)
        if self.instances < 1:
            raise ConfigError(f"instances={self.instances}: expected at least 1")
        self.deadlines = self.host.deadlines(self.spec.deadlines)
        if self.make_handle is None:
            here = self.host.plays_in_process(self.spec.process)
            python = interpreter_of(self.host.python, self.bridge)
            own = partial(SubprocessHandle, python=python)
            self.make_handle = InProcessHandle if here else own
        # Spares follow the instances in the list; they are treated alike, but have no events.
        count, limit = self.instances + self.host.spares, self.host.concurrent_launches
        pooled = (PooledInstance(Health(self.host, self.host.restarts)) for _ in range(count))
        self._pooled = list(pooled)
        self._limit = LaunchLimit(limit, self.spec.name) if limit else None
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        self._closer = GameCloser()
        self._events: deque[Event] = deque()  # that are not the result of a command
        self._here: deque[int] = deque()  # instances with a command that runs here, oldest first
        self._next_due = NEVER
        self._inspected = time.monotonic()
        self._closed = self._woken = False

    def launch(self) -> None:
        """Requests the launch of every instance; each replies with a ``launched`` event."""
        now = self._next_due = time.monotonic()
        for pooled in self._pooled:
            pooled.due = now
        self._launch_due(now)

    def _launch_due(self, now: float) -> None:
        """Launches the games that are due, as far as the limit on launches allows."""
        if now < self._next_due:
            return
        for number, pooled in enumerate(self._pooled):
            if pooled.game is None and pooled.due is not None and pooled.due <= now:
                self._launch_or_swap(number, pooled)
        self._next_due = min((s.due for s in self._pooled if s.due is not None), default=NEVER)

    def _launch_or_swap(self, number: int, pooled: PooledInstance) -> None:
        spare = self._spare() if number < self.instances else None
        if spare is not None:
            pooled.game, spare.game, spare.due = spare.game, None, time.monotonic()
            spare.incarnation += 1  # folders are named after it
            assert pooled.game is not None
            self._unregister(pooled.game)
            self.counts["spared"] += 1
            self._events.append(Event(number, "launched"))
        else:
            pooled.game = self._new_game(number, pooled)
            if pooled.game is None:
                return  # too many are being launched; it remains due
            self._command(number, "start", self.deadlines.start_s)
        if pooled.game.handle.waitable is not None:
            self._selector.register(pooled.game.handle.waitable, selectors.EVENT_READ, number)
        pooled.due, pooled.quarantined, pooled.episodes = None, False, 0

    def _spare(self) -> PooledInstance | None:
        """Returns a spare whose game is launched and waits; None if there is none."""
        spares = range(self.instances, len(self._pooled))
        return next((self._pooled[n] for n in spares if self.waiting(n)), None)

    def _new_game(self, number: int, pooled: PooledInstance) -> Game | None:
        permit = None
        if self._limit is not None and self.make_handle is not InProcessHandle:
            permit = self._limit.acquire()
            if permit is None:
                return None
        folder = self.workdir / f"instance-{number:04d}-{pooled.incarnation:03d}"
        assert self.make_handle is not None
        handle = self.make_handle(self.bridge, folder, free_ports(self.spec.ports), self.width)
        return Game(handle, folder, time.monotonic(), permit=permit)

    # -- commands ------------------------------------------------------------------------------

    def incarnation(self, instance: int) -> int:
        """Returns how often the instance has been replaced."""
        return self._pooled[instance].incarnation

    def waiting(self, instance: int) -> bool:
        """Returns whether the instance is launched and waits for a command."""
        pooled = self._pooled[instance]
        return pooled.game is not None and pooled.phase is None

    def reset(self, instance: int, slots: Sequence[int], starts: Sequence[Start]) -> None:
        """Requests new episodes in some slots; a ``reset`` event follows.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        self._command(instance, "reset", self.deadlines.reset_s, slots, starts)

    def send(self, instance: int, actions: Columns) -> None:
        """Requests a step of all slots; a ``step`` event follows.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        self._command(instance, "step", self.deadlines.step_s, actions)

    def played(self, instance: int, episodes: int) -> None:
        """Records the number of episodes that ended in an instance."""
        pooled = self._pooled[instance]
        pooled.episodes += episodes
        pooled.health.in_a_row = 0

    def due_for_recycling(self, instance: int) -> bool:
        """Returns whether the game of a waiting instance should be replaced now."""
        return self._pooled[instance].due_for_recycling(self.host, time.monotonic())

    def recycle(self, instance: int) -> None:
        """Replaces a healthy instance without playing slots; a ``launched`` event follows.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        pooled, game = self._waiting_instance(instance)
        self._unregister(game)
        self._closer.close(game, self.deadlines.close_s)
        pooled.game, pooled.incarnation = None, pooled.incarnation + 1
        self.counts["recycled"] += 1
        self._plan(pooled, time.monotonic())

    def _waiting_instance(self, instance: int) -> tuple[PooledInstance, Game]:
        pooled = self._pooled[instance]
        if (game := pooled.game) is None or pooled.phase is not None:
            doing = f"busy with a {pooled.phase}" if pooled.phase else "not running"
            raise OutOfTurnError(f"instance {instance} is {doing}; wait for its event first")
        return pooled, game

    def _command(self, number: int, phase: Phase, timeout_s: float, *arguments: Any) -> None:
        """Sends a command. ``recv`` notices a game that has already ended, as any failure."""
        pooled, game = self._waiting_instance(number)
        pooled.phase, pooled.sent, pooled.send_error = phase, time.monotonic(), ""
        pooled.deadline = pooled.sent + timeout_s + _GRACE_S
        send = getattr(game.handle, "launch" if phase == "start" else phase)
        try:
            send(*arguments, timeout_s)
        except GameError as error:
            pooled.deadline, pooled.send_error = 0.0, str(error)
        if game.handle.waitable is None:
            self._here.append(number)

    # -- events --------------------------------------------------------------------------------

    def watch(self, descriptor: int) -> None:
        """Registers a file descriptor; ``recv`` returns once it is readable, without events."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    @property
    def busy(self) -> bool:
        """True if an event will follow: a command is pending, or a game will be launched."""
        return bool(self._events) or any(s.expects for s in self._pooled[: self.instances])

    @property
    def alive(self) -> int:
        """Number of instances that run or are about to be launched."""
        return sum(s.alive for s in self._pooled[: self.instances])

    def figures(self, waiting: int = 0) -> HostFigures:
        """Returns the state of its games; memory is 0 without a memory limit, or in process."""
        ready = sum(s.game is not None and s.game.up for s in self._pooled[: self.instances])
        used = sum(s.game.memory_mb for s in self._pooled if s.game is not None)
        return HostFigures(self.instances, ready, waiting, used, dict(self.counts))

    def recv(self, *, timeout_s: float | None = None) -> list[Event]:
        """Returns the events that are ready, at least one unless the timeout passes.

        Instances in this process give one event per call, so that the caller can handle it before
        the next one plays.

        Args:
            timeout_s: longest wait in seconds; None waits for the nearest timeout.

        Raises:
            OutOfTurnError: no command is pending, so no event could come.
        """
        if len(self._pooled) == 1 and self._pooled[0].runs_here:
            self._here.clear()
            return self._collect_all([0])
        end = NEVER if timeout_s is None else time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            self._launch_due(now)
            self._inspect_games(now)
            if self._events:
                events = list(self._events)
                self._events.clear()
                return events
            if not self.busy:
                raise OutOfTurnError("recv was called with no command in flight; send one first")
            # Spares have no events.
            events = [e for e in self._next_events(end) if e.instance < self.instances]
            if events or self._woken or time.monotonic() >= end:
                self._woken = False
                return events

    def _next_events(self, end: float) -> list[Event]:
        """Waits for the next event, at most until ``end``."""
        while self._here and not self._pooled[self._here[0]].runs_here:
            self._here.popleft()
        if self._here:
            # The one that has waited longest comes first, so that none starves.
            ready = self._select(0.0) if self._selector.get_map() else []
            return self._collect_all(ready or [self._here.popleft()])
        pending = [(n, s) for n, s in enumerate(self._pooled) if s.phase is not None]
        wake = min([s.deadline for _, s in pending] + [self._next_wake(), end])
        ready = self._select(wake - time.monotonic())
        if (late := time.monotonic() - wake) > _LAG_S:
            for _, pooled in pending:
                pooled.deadline += late
        if ready and (events := self._collect_all(ready)):
            return events
        now = time.monotonic()
        return [self._time_out(n) for n, s in pending if s.deadline <= now]

    def _next_wake(self) -> float:
        """Returns the time to wake up without an event, at most a second ahead.

        A later return shows for how long this process did not run.
        """
        now = time.monotonic()
        # If it is due and not launched, too many are being launched.
        return min(now + _LAG_S, max(self._next_due, now + _LAUNCH_POLL_S))

    def _select(self, pause_s: float) -> list[int]:
        """Returns instances in other processes that replied within ``pause_s`` seconds."""
        numbers, wait_s = [], None if pause_s == NEVER else max(0.0, pause_s)
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                self._woken = True
                continue
            pooled = self._pooled[key.data]
            if pooled.phase is None and key.data < self.instances:
                # It died without a pending command; the next command will notice that.
                self._selector.unregister(key.fileobj)
            else:
                pooled.phase = pooled.phase or "start"  # of a spare that died unnoticed
                numbers.append(key.data)
        return sorted(numbers)

    def _collect_all(self, numbers: Sequence[int]) -> list[Event]:
        """Returns the events of those instances whose results are complete."""
        return [event for n in numbers if (event := self._collect(n)) is not None]

    def _collect(self, number: int) -> Event | None:
        pooled = self._pooled[number]
        game = pooled.game
        assert game is not None
        assert pooled.phase is not None
        if pooled.send_error and pooled.runs_here:  # it has nothing to reply
            return self._fail(number, pooled.send_error)
        begun = time.monotonic() if game.handle.waitable is None else pooled.sent
        try:
            frame = game.handle.result()
        except Incomplete:
            return None
        except GameError as error:
            return self._fail(number, describe(error), error.trace)
        seconds = time.monotonic() - begun
        if pooled.phase == "start":
            game.up = True
            game.release()
        if pooled.phase == "step":
            pooled.health.steps += 1
        kind: Kind = "launched" if pooled.phase == "start" else pooled.phase  # type: ignore[assignment] # start, reset or step here
        pooled.phase = None
        return Event(number, kind, frame, seconds)

    def _time_out(self, number: int) -> Event:
        pooled = self._pooled[number]
        if pooled.deadline == 0.0:
            return self._fail(number, pooled.send_error)
        limit = pooled.deadline - pooled.sent - _GRACE_S
        return self._fail(number, f"no answer to {pooled.phase} within {limit:g} s")

    def _inspect_games(self, now: float) -> None:
        """Inspects the games at intervals; kills those that are stopped or use too much memory."""
        if now < self._inspected + _INSPECT_S:
            return
        self._inspected = now
        for number, pooled in enumerate(self._pooled):
            fault = "" if pooled.game is None else pooled.game.fault(self.host.memory_mb)
            # A waiting instance dies at its next command; a spare gets no commands.
            if fault and (pooled.phase is not None or number >= self.instances):
                at = len(self._events)  # before the event of the spare that replaced it
                event = self._fail(number, fault)
                if number < self.instances:
                    self._events.insert(at, event)

    def _fail(self, number: int, reason: str, trace: str = "") -> Event:
        """Kills the game of an instance and schedules the next one."""
        pooled = self._pooled[number]
        phase: Phase = pooled.phase or "step"
        game, pooled.game, pooled.phase = pooled.game, None, None
        assert game is not None
        now = time.monotonic()
        notice = game.handle.death_notice()
        self._unregister(game)
        self._closer.kill(game)
        pooled.incarnation += 1
        self.counts["failed"] += 1
        pause = pooled.health.failed(now, now - game.launched if game.up else 0.0)
        rest = self.host.quarantine_s if pause is None else None
        if self._closed:
            return Event(number, "failed", None, now - pooled.sent, phase, reason, replaced=False)
        if pause is not None:
            self._plan(pooled, now + pause)
        elif rest is not None:
            self.counts["quarantined"] += 1
            self._plan(pooled, now + rest, quarantined=True)
            notice += f"; the instance is in quarantine for {rest:g} s"
        return Event(
            number,
            "failed",
            seconds=now - pooled.sent,
            phase=phase,
            reason=f"{reason} [{notice}]",
            trace=trace,
            replaced=pause is not None,
        )

    def _plan(self, pooled: PooledInstance, due: float, *, quarantined: bool = False) -> None:
        pooled.due, pooled.quarantined = due, quarantined
        self._next_due = min(self._next_due, due)
        self._launch_due(time.monotonic())

    def _unregister(self, game: Game) -> None:
        game.release()
        if game.handle.waitable is not None:
            with contextlib.suppress(KeyError):  # it may have died before
                self._selector.unregister(game.handle.waitable)

    def close(self) -> None:
        """Ends every instance and all its subprocesses. Idempotent; never raises."""
        self._closed = True
        for pooled in self._pooled:
            game, pooled.game, pooled.phase, pooled.due = pooled.game, None, None, None
            if game is not None:
                self._unregister(game)
                self._closer.close(game, self.deadlines.close_s)
        self._closer.wait(self.deadlines.close_s + _CLOSE_MARGIN_S)
        self._selector.close()
