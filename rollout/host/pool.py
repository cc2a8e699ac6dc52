"""Instances under one roof: send commands, receive whatever is ready, replace what dies.

There is no barrier: ``recv`` returns as soon as one instance has something to say. Every command
has a deadline. An instance that fails is closed and launched anew within its restart budget, while
the others go on; the failure is an event, never an exception.
"""

from __future__ import annotations

import contextlib
import selectors
import shutil
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rollout.api import Bridge, BridgeSpec, Columns, Deadlines, Frame, Start
from rollout.api.fragment import Phase
from rollout.errors import ConfigError, GameError, GameTimeout, OutOfTurnError
from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle

Isolation = Literal["auto", "in_process", "subprocess"]
Kind = Literal["launched", "reset", "step", "failed"]

_GRACE_S = 0.25  # a game that keeps its own deadline gets this long to say so itself


@dataclass(slots=True)
class Event:
    """What an instance has to say.

    Attributes:
        instance: its number in the pool.
        kind: ``launched`` and every slot waits for a reset; ``reset`` and ``step`` carry a frame;
            ``failed``: every episode in it is lost.
        frame: as its instance returned it; valid until the next command to the instance.
        seconds: time the command took.
        phase: for ``failed``, what was being done.
        reason: for ``failed``, what went wrong.
        replaced: for ``failed``, whether a fresh copy is being launched.
    """

    instance: int
    kind: Kind
    frame: Frame | None = None
    seconds: float = 0.0
    phase: Phase = "step"
    reason: str = ""
    replaced: bool = True


@dataclass(slots=True)
class _Seat:
    """The place of one instance, which may be filled anew."""

    handle: Handle | None = None
    phase: Phase | None = None  # of the command in flight; None when it waits for one
    sent: float = 0.0
    deadline: float = float("inf")
    failures: int = 0
    incarnation: int = 0
    reset_slots: tuple[int, ...] = ()


@dataclass(frozen=True)
class PoolOptions:
    """How instances are hosted.

    Attributes:
        isolation: ``in_process``, ``subprocess``, or ``auto`` for what the bridge asks for.
        restarts: how often one seat may be filled anew before it is given up.
        deadlines: seconds for each phase; None for the bridge's own.
        keep_workdirs: whether the folders of dead instances are left for inspection.
    """

    isolation: Isolation = "auto"
    restarts: int = 5
    deadlines: Deadlines | None = None
    keep_workdirs: bool = False


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
    """

    bridge: Bridge
    workdir: Path
    instances: int = 1
    width: int = 1
    options: PoolOptions = PoolOptions()
    make_handle: HandleFactory | None = None
    spec: BridgeSpec = field(init=False)
    deadlines: Deadlines = field(init=False)
    _seats: list[_Seat] = field(init=False)
    _selector: selectors.BaseSelector = field(init=False)
    _closed: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.spec = self.bridge.spec
        if not 1 <= self.width <= self.spec.max_width:
            raise ConfigError(
                f"width={self.width}: one instance of {self.spec.name} holds 1 to "
                f"{self.spec.max_width} slots"
            )
        if self.instances < 1:
            raise ConfigError(f"instances={self.instances}: expected at least 1")
        self.deadlines = self.options.deadlines or self.spec.deadlines
        if self.make_handle is None:
            isolation = self.options.isolation
            kind = self.spec.process if isolation == "auto" else isolation
            self.make_handle = InProcessHandle if kind == "in_process" else SubprocessHandle
        self._seats = [_Seat() for _ in range(self.instances)]
        self._selector = selectors.DefaultSelector()

    def launch(self) -> None:
        """Asks every instance to start; each answers with a ``launched`` event."""
        for number in range(self.instances):
            self._launch(number)

    def _launch(self, number: int) -> None:
        seat = self._seats[number]
        folder = self.workdir / f"instance-{number:04d}-{seat.incarnation:03d}"
        assert self.make_handle is not None
        seat.handle = self.make_handle(
            self.bridge, folder, _free_ports(self.spec.ports), self.width
        )
        self._begin(number, "start", self.deadlines.start_s)
        self._try(number, lambda h: h.launch(self.deadlines.start_s))
        if seat.handle.waitable is not None:
            self._selector.register(seat.handle.waitable, selectors.EVENT_READ, number)

    def incarnation(self, instance: int) -> int:
        """Returns how often the instance has been replaced."""
        return self._seats[instance].incarnation

    def waiting(self, instance: int) -> bool:
        """Returns whether the instance is up and waits for a command."""
        seat = self._seats[instance]
        return seat.handle is not None and seat.phase is None

    def reset(self, instance: int, slots: Sequence[int], starts: Sequence[Start]) -> None:
        """Asks for new episodes in some slots; answered by a ``reset`` event.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        self._require_waiting(instance)
        self._begin(instance, "reset", self.deadlines.reset_s)
        self._try(instance, lambda h: h.reset(slots, starts, self.deadlines.reset_s))

    def send(self, instance: int, actions: Columns) -> None:
        """Asks for a step of all slots; answered by a ``step`` event.

        Raises:
            OutOfTurnError: the instance is busy or not running.
        """
        self._require_waiting(instance)
        self._begin(instance, "step", self.deadlines.step_s)
        self._try(instance, lambda h: h.step(actions, self.deadlines.step_s))

    def _require_waiting(self, instance: int) -> None:
        seat = self._seats[instance]
        if seat.handle is None or seat.phase is not None:
            raise OutOfTurnError(
                f"instance {instance} is "
                + (f"busy with a {seat.phase}" if seat.phase else "not running")
                + "; wait for its event from recv first"
            )

    def _begin(self, number: int, phase: Phase, timeout_s: float) -> None:
        seat = self._seats[number]
        seat.phase, seat.sent = phase, time.monotonic()
        seat.deadline = seat.sent + timeout_s + _GRACE_S

    def _try(self, number: int, call: Callable[[Handle], None]) -> None:
        """Gives a command. A game that is already gone is noticed by ``recv``, as any other."""
        handle = self._seats[number].handle
        assert handle is not None
        try:
            call(handle)
        except GameError:
            self._seats[number].deadline = 0.0

    @property
    def busy(self) -> bool:
        """Whether any command is in flight."""
        return any(s.phase is not None for s in self._seats)

    @property
    def alive(self) -> int:
        """Number of instances that run or are being launched."""
        return sum(s.handle is not None for s in self._seats)

    def recv(self, *, timeout_s: float | None = None) -> list[Event]:
        """Returns the events that are ready, at least one unless time runs out.

        Instances that run in this process give one event per call, so that the caller can answer
        it before the next one plays.

        Args:
            timeout_s: most seconds to wait; None waits for the nearest deadline.

        Raises:
            OutOfTurnError: no command is in flight, so no event could ever come.
        """
        if self.instances == 1 and self._runs_here(self._seats[0]):
            return [self._collect(0)]
        end = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        while True:
            pending = [(n, s) for n, s in enumerate(self._seats) if s.phase is not None]
            if not pending:
                raise OutOfTurnError("recv was called with no command in flight; send one first")
            local = [n for n, s in pending if self._runs_here(s)]
            if len(local) < len(pending):
                nearest = min(s.deadline for _, s in pending)
                ready = self._ready(0.0 if local else min(nearest, end) - time.monotonic())
                if ready:
                    return [self._collect(n) for n in ready]
            if local:
                # The one that has waited longest, so that none starves.
                return [self._collect(min(local, key=lambda n: self._seats[n].sent))]
            now = time.monotonic()
            overdue = [n for n, s in pending if s.deadline <= now]
            if overdue:
                return [self._overdue(n) for n in overdue]
            if now >= end:
                return []

    def _ready(self, pause_s: float) -> list[int]:
        """Instances in other processes that have answered, after a wait of at most ``pause_s``."""
        numbers = []
        for key, _ in self._selector.select(max(0.0, pause_s)):
            if self._seats[key.data].phase is not None:
                numbers.append(key.data)
            else:
                # It died while nobody was asking; the next command to it will find that out.
                self._selector.unregister(key.fileobj)
        return sorted(numbers)

    @staticmethod
    def _runs_here(seat: _Seat) -> bool:
        return seat.phase is not None and seat.handle is not None and seat.handle.waitable is None

    def _collect(self, number: int) -> Event:
        seat = self._seats[number]
        assert seat.handle is not None
        assert seat.phase is not None
        begun = time.monotonic() if seat.handle.waitable is None else seat.sent
        try:
            frame = seat.handle.result()
        except GameError as error:
            return self._fail(number, str(error))
        seconds = time.monotonic() - begun
        kind: Kind = "launched" if seat.phase == "start" else seat.phase  # type: ignore[assignment] # start, reset or step here
        seat.phase = None
        return Event(number, kind, frame, seconds)

    def _overdue(self, number: int) -> Event:
        seat = self._seats[number]
        if seat.deadline == 0.0:
            return self._fail(number, "the game's process is gone")
        limit = seat.deadline - seat.sent - _GRACE_S
        error = GameTimeout(f"no answer to {seat.phase} within {limit:g} s")
        return self._fail(number, str(error))

    def _fail(self, number: int, reason: str) -> Event:
        """Buries an instance and, within its budget, launches its successor."""
        seat = self._seats[number]
        phase: Phase = seat.phase or "step"
        handle, seat.handle, seat.phase = seat.handle, None, None
        assert handle is not None
        took = time.monotonic() - seat.sent
        notice = handle.death_notice()
        self._let_go(handle)
        handle.close(0.0)
        self._clean(number)
        seat.failures += 1
        seat.incarnation += 1
        replaced = seat.failures <= self.options.restarts and not self._closed
        if replaced:
            self._launch(number)
        return Event(number, "failed", None, took, phase, f"{reason} [{notice}]", replaced=replaced)

    def _let_go(self, handle: Handle) -> None:
        if handle.waitable is not None:
            with contextlib.suppress(KeyError):  # it may have died before
                self._selector.unregister(handle.waitable)

    def _clean(self, number: int) -> None:
        if not self.options.keep_workdirs:
            folder = f"instance-{number:04d}-{self._seats[number].incarnation:03d}"
            shutil.rmtree(self.workdir / folder, ignore_errors=True)

    def close(self) -> None:
        """Ends every instance and what it started. Idempotent; never raises."""
        self._closed = True
        for number, seat in enumerate(self._seats):
            handle, seat.handle, seat.phase = seat.handle, None, None
            if handle is not None:
                self._let_go(handle)
                handle.close(self.deadlines.close_s)
                self._clean(number)
        self._selector.close()


def _free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held open until all are chosen."""
    held = [socket.socket() for _ in range(count)]
    try:
        for s in held:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in held]
    finally:
        for s in held:
            s.close()
