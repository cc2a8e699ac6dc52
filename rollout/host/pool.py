"""Instances under one roof: send commands, receive whatever is ready, replace what dies.

There is no barrier: ``recv`` returns as soon as one instance has something to say. Every command
has a deadline. An instance that fails is killed and launched anew by the rules of its supervision,
while the others go on; the failure is an event, never an exception.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rollout.api import Bridge, BridgeSpec, Columns, Deadlines, Start
from rollout.api.fragment import Phase
from rollout.errors import ConfigError, GameError, OutOfTurnError
from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle
from rollout.host.seats import NEVER, Event, Game, Kind, Seat, Undertaker, free_ports
from rollout.host.supervision import BootSlots, Health, PoolOptions, Supervision
from rollout.observe.hosts import HostFigures

_GRACE_S = 0.25  # a game that keeps its own deadline gets this long to say so itself
_BOOT_POLL_S = 0.1  # how often a place among those that come up is asked for
_LOOK_S = 5.0  # how often memory is measured
_LAG_S = 1.0  # woken this much too late, we did not run ourselves, and nor may the games have
_CLOSE_MARGIN_S = 2.0  # beyond the deadline of a polite end, for it to be forced

HandleFactory = Callable[[Bridge, Path, Sequence[int], int], Handle]


@dataclass
class Pool:
    """``instances`` copies of one game, ``width`` slots each.

    Args:
        bridge: the recipe.
        workdir: folder under which every instance gets its own.
        instances: number of copies.
        width: slots of each.
        options: how they are hosted.
        make_handle: another way to run an instance, e.g. in a Ray actor.

    Attributes:
        rules: of its supervision.
        counts: what was done to games: ``failed``, ``quarantined``, ``recycled``, ``spared`` (a
            spare took over).
    """

    bridge: Bridge
    workdir: Path
    instances: int = 1
    width: int = 1
    options: PoolOptions = field(default_factory=PoolOptions)
    make_handle: HandleFactory | None = None
    spec: BridgeSpec = field(init=False)
    deadlines: Deadlines = field(init=False)
    rules: Supervision = field(init=False)
    counts: Counter[str] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self.spec = self.bridge.spec
        self.spec.require_width(self.width)
        if self.instances < 1:
            raise ConfigError(f"instances={self.instances}: expected at least 1")
        self.deadlines = self.options.deadlines or self.spec.deadlines
        if self.make_handle is None:
            isolation = self.options.isolation
            kind = self.spec.process if isolation == "auto" else isolation
            self.make_handle = InProcessHandle if kind == "in_process" else SubprocessHandle
        self.rules = rules = self.options.rules
        # Spares sit behind the instances; all that happens to them is the same, but nobody is told.
        self._seats = [Seat(Health(rules)) for _ in range(self.instances + rules.spares)]
        self._boots = BootSlots(rules.boots, self.spec.name) if rules.boots else None
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        self._undertaker = Undertaker(self.options.keep_workdirs)
        self._news: deque[Event] = deque()  # that no game had to be asked for
        self._here: deque[int] = deque()  # seats that run here with a command, the oldest first
        self._next_due = NEVER
        self._looked = time.monotonic()
        self._closed = False

    def launch(self) -> None:
        """Asks every instance to start; each answers with a ``launched`` event."""
        now = self._next_due = time.monotonic()
        for seat in self._seats:
            seat.due = now
        self._fill(now)

    # -- filling seats -------------------------------------------------------------------------

    def _fill(self, now: float) -> None:
        """Launches what is due, as far as there are places to come up."""
        if now < self._next_due:
            return
        for number, seat in enumerate(self._seats):
            if seat.game is None and seat.due is not None and seat.due <= now:
                self._seat_one(number, seat)
        self._next_due = min((s.due for s in self._seats if s.due is not None), default=NEVER)

    def _seat_one(self, number: int, seat: Seat) -> None:
        spare = self._spare() if number < self.instances else None
        if spare is not None:
            seat.game, spare.game, spare.due = spare.game, None, time.monotonic()
            spare.incarnation += 1  # folders are named after it
            assert seat.game is not None
            self._let_go(seat.game)
            self.counts["spared"] += 1
            self._news.append(Event(number, "launched"))
        else:
            seat.game = self._new_game(number, seat)
            if seat.game is None:
                return  # too many come up just now; it stays due
            self._begin(seat, "start", self.deadlines.start_s)
            self._try(number, seat, lambda h: h.launch(self.deadlines.start_s))
        if seat.game.handle.waitable is not None:
            self._selector.register(seat.game.handle.waitable, selectors.EVENT_READ, number)
        seat.due, seat.resting, seat.episodes = None, False, 0

    def _spare(self) -> Seat | None:
        """A spare whose game is up and waits."""
        spares = range(self.instances, len(self._seats))
        return next((self._seats[n] for n in spares if self.waiting(n)), None)

    def _new_game(self, number: int, seat: Seat) -> Game | None:
        place = None
        if self._boots is not None and self.make_handle is not InProcessHandle:
            place = self._boots.take()
            if place is None:
                return None
        folder = self.workdir / f"instance-{number:04d}-{seat.incarnation:03d}"
        assert self.make_handle is not None
        handle = self.make_handle(self.bridge, folder, free_ports(self.spec.ports), self.width)
        return Game(handle, folder, time.monotonic(), boot=place)

    # -- commands ------------------------------------------------------------------------------

    def incarnation(self, instance: int) -> int:
        """Returns how often the instance has been replaced."""
        return self._seats[instance].incarnation

    def waiting(self, instance: int) -> bool:
        """Returns whether the instance is up and waits for a command."""
        seat = self._seats[instance]
        return seat.game is not None and seat.phase is None

    def reset(self, instance: int, slots: Sequence[int], starts: Sequence[Start]) -> None:
        """Asks for new episodes in some slots; answered by a ``reset`` event.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        seat, timeout_s = self._waiting_seat(instance), self.deadlines.reset_s
        self._begin(seat, "reset", timeout_s)
        self._try(instance, seat, lambda h: h.reset(slots, starts, timeout_s))

    def send(self, instance: int, actions: Columns) -> None:
        """Asks for a step of all slots; answered by a ``step`` event.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        seat, timeout_s = self._waiting_seat(instance), self.deadlines.step_s
        self._begin(seat, "step", timeout_s)
        self._try(instance, seat, lambda h: h.step(actions, timeout_s))

    def played(self, instance: int, episodes: int) -> None:
        """Notes that so many episodes ended in an instance; see ``Supervision``."""
        seat = self._seats[instance]
        seat.episodes += episodes
        seat.health.in_a_row = 0

    def worn(self, instance: int) -> bool:
        """Returns whether an instance that waits is to be recycled before it plays on."""
        return self._seats[instance].worn(self.rules, time.monotonic())

    def recycle(self, instance: int) -> None:
        """Replaces a healthy instance, none of whose slots plays; a ``launched`` event follows.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        seat = self._waiting_seat(instance)
        game, seat.game = seat.game, None
        assert game is not None
        self._let_go(game)
        self._undertaker.retire(game, self.deadlines.close_s)
        seat.incarnation += 1
        self.counts["recycled"] += 1
        self._plan(seat, time.monotonic())

    def _waiting_seat(self, instance: int) -> Seat:
        seat = self._seats[instance]
        if seat.game is None or seat.phase is not None:
            raise OutOfTurnError(
                f"instance {instance} is "
                + (f"busy with a {seat.phase}" if seat.phase else "not running")
                + "; wait for its event from recv first"
            )
        return seat

    def _begin(self, seat: Seat, phase: Phase, timeout_s: float) -> None:
        seat.phase, seat.sent, seat.trouble = phase, time.monotonic(), ""
        seat.deadline = seat.sent + timeout_s + _GRACE_S

    def _try(self, number: int, seat: Seat, call: Callable[[Handle], None]) -> None:
        """Gives a command. A game that is already gone is noticed by ``recv``, as any other."""
        assert seat.game is not None
        try:
            call(seat.game.handle)
        except GameError as error:
            seat.deadline, seat.trouble = 0.0, str(error)
        if seat.runs_here:
            self._here.append(number)

    # -- events --------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether anything will be heard: a command is in flight, or a game is to come up."""
        return bool(self._news) or any(s.expects for s in self._seats[: self.instances])

    @property
    def alive(self) -> int:
        """Number of instances that run or are about to be launched."""
        return sum(s.alive for s in self._seats[: self.instances])

    def figures(self, waiting: int = 0) -> HostFigures:
        """Returns how its games fare; memory is 0 without a cap, or in process."""
        ready = sum(s.game is not None and s.game.up for s in self._seats[: self.instances])
        used = sum(s.game.memory_mb for s in self._seats if s.game is not None)
        return HostFigures(self.instances, ready, waiting, used, dict(self.counts))

    def recv(self, *, timeout_s: float | None = None) -> list[Event]:
        """Returns the events that are ready, at least one unless time runs out.

        Instances that run in this process give one event per call, so that the caller can answer
        it before the next one plays.

        Args:
            timeout_s: most seconds to wait; None waits for the nearest deadline.

        Raises:
            OutOfTurnError: no command is in flight, so no event could ever come.
        """
        if len(self._seats) == 1 and self._seats[0].runs_here:
            return [self._collect(0)]
        end = NEVER if timeout_s is None else time.monotonic() + timeout_s
        while True:
            now = time.monotonic()
            self._fill(now)
            self._measure(now)
            if self._news:
                events = list(self._news)
                self._news.clear()
                return events
            if not self.busy:
                raise OutOfTurnError("recv was called with no command in flight; send one first")
            # What becomes of spares is nobody's news.
            events = [e for e in self._hear(end) if e.instance < self.instances]
            if events or time.monotonic() >= end:
                return events

    def _hear(self, end: float) -> list[Event]:
        """Waits for the next thing to happen, at most until ``end``."""
        while self._here and not self._seats[self._here[0]].runs_here:
            self._here.popleft()
        if self._here:
            # The one that has waited longest, so that none starves.
            ready = self._ready(0.0) if self._selector.get_map() else []
            return [self._collect(n) for n in ready or [self._here.popleft()]]
        pending = [(n, s) for n, s in enumerate(self._seats) if s.phase is not None]
        wake = min([s.deadline for _, s in pending] + [self._next_wake(), end])
        ready = self._ready(wake - time.monotonic())
        if (late := time.monotonic() - wake) > _LAG_S:
            for _, seat in pending:
                seat.deadline += late
        if ready:
            return [self._collect(n) for n in ready]
        now = time.monotonic()
        return [self._overdue(n) for n, s in pending if s.deadline <= now]

    def _next_wake(self) -> float:
        """When to look up although no game answers: soon, to see for how long we did not run."""
        now = time.monotonic()
        # If it is due and was not launched, too many come up just now.
        return min(now + _LAG_S, max(self._next_due, now + _BOOT_POLL_S))

    def _ready(self, pause_s: float) -> list[int]:
        """Seats in other processes that have answered, after a wait of at most ``pause_s``."""
        numbers = []
        for key, _ in self._selector.select(None if pause_s == NEVER else max(0.0, pause_s)):
            seat = self._seats[key.data]
            if seat.phase is None and key.data < self.instances:
                # It died while nobody was asking; the next command to it will find that out.
                self._selector.unregister(key.fileobj)
            else:
                seat.phase = seat.phase or "start"  # of a spare that died: nobody would ask it
                numbers.append(key.data)
        return sorted(numbers)

    def _collect(self, number: int) -> Event:
        seat = self._seats[number]
        game = seat.game
        assert game is not None
        assert seat.phase is not None
        if seat.trouble and seat.runs_here:  # it has nothing to answer
            return self._fail(number, seat.trouble)
        begun = time.monotonic() if game.handle.waitable is None else seat.sent
        try:
            frame = game.handle.result()
        except GameError as error:
            return self._fail(number, str(error))
        seconds = time.monotonic() - begun
        if seat.phase == "start":
            game.up = True
            game.arrived()
        kind: Kind = "launched" if seat.phase == "start" else seat.phase  # type: ignore[assignment] # start, reset or step here
        seat.phase = None
        return Event(number, kind, frame, seconds)

    def _overdue(self, number: int) -> Event:
        seat = self._seats[number]
        if seat.deadline == 0.0:
            return self._fail(number, seat.trouble)
        limit = seat.deadline - seat.sent - _GRACE_S
        return self._fail(number, f"no answer to {seat.phase} within {limit:g} s")

    def _measure(self, now: float) -> None:
        """Measures memory from time to time, and kills what is over its cap."""
        cap = self.rules.memory_mb
        if cap is None or now < self._looked + _LOOK_S:
            return
        self._looked = now
        for number, seat in enumerate(self._seats):
            measure = getattr(seat.game and seat.game.handle, "memory_mb", None)
            if seat.game is None or measure is None:
                continue
            seat.game.memory_mb = used = float(measure())
            # An instance that waits dies at its next command; nobody gives a spare one.
            if used >= cap and (seat.phase is not None or number >= self.instances):
                at = len(self._news)  # before the news that a spare took over
                event = self._fail(number, f"{used:.0f} MB of memory, over its cap of {cap:g} MB")
                if number < self.instances:
                    self._news.insert(at, event)

    # -- ends ----------------------------------------------------------------------------------

    def _fail(self, number: int, reason: str) -> Event:
        """Buries an instance and plans for its successor."""
        seat = self._seats[number]
        phase: Phase = seat.phase or "step"
        game, seat.game, seat.phase = seat.game, None, None
        assert game is not None
        now = time.monotonic()
        notice = game.handle.death_notice()
        self._let_go(game)
        self._undertaker.bury(game)
        seat.incarnation += 1
        self.counts["failed"] += 1
        pause = seat.health.failed(now, now - game.launched if game.up else 0.0)
        rest = seat.health.rest() if pause is None else None
        if self._closed:
            return Event(number, "failed", None, now - seat.sent, phase, reason, replaced=False)
        if pause is not None:
            self._plan(seat, now + pause)
        elif rest is not None:
            self.counts["quarantined"] += 1
            self._plan(seat, now + rest, resting=True)
            notice += f"; its place rests for {rest:g} s"
        return Event(
            *(number, "failed", None, now - seat.sent, phase, f"{reason} [{notice}]"),
            replaced=pause is not None,
        )

    def _plan(self, seat: Seat, due: float, *, resting: bool = False) -> None:
        seat.due, seat.resting = due, resting
        self._next_due = min(self._next_due, due)
        self._fill(time.monotonic())

    def _let_go(self, game: Game) -> None:
        game.arrived()
        if game.handle.waitable is not None:
            with contextlib.suppress(KeyError):  # it may have died before
                self._selector.unregister(game.handle.waitable)

    def close(self) -> None:
        """Ends every instance and what it started. Idempotent; never raises."""
        self._closed = True
        for seat in self._seats:
            game, seat.game, seat.phase, seat.due = seat.game, None, None, None
            if game is not None:
                self._let_go(game)
                self._undertaker.retire(game, self.deadlines.close_s)
        self._undertaker.wait(self.deadlines.close_s + _CLOSE_MARGIN_S)
        self._selector.close()
