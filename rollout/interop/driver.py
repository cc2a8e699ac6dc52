"""The thread that plays the games of all clients on one pool: each has a seat, one instance.

Clients put requests into a queue and wait for a future; the thread sends them to the pool and
serves whichever instance is ready first, so that a slow game delays no other.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections import OrderedDict, deque
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from rollout.api import Columns, Details, Frame, Start, Task, details_for_policies
from rollout.api.fragment import End, EpisodeResult
from rollout.errors import GamutError, OutOfTurnError
from rollout.host.instances import Event
from rollout.host.pool import Pool
from rollout.host.referee import NOT_FINITE, Referee, Ruling
from rollout.interop.failures import GameLost

_LOOK_S = 1.0  # between two looks at whether it shall end
_END_S = 30.0  # for a step that runs in this process
_LOSSES = 4096  # starts whose attempts are counted

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Played:
    """What a reset or a step led to, before it is shown to a client.

    Attributes:
        start: start of the episode.
        step: number of its completed steps.
        columns: the observations, ``(1, ...)`` each, copied.
        details: without what only evaluators may see.
        ruling: of a step; None after a reset.
        result: of the step that ended the episode.
    """

    start: Start
    step: int
    columns: Columns
    details: Details
    ruling: Ruling | None = None
    result: EpisodeResult | None = None


Answer: TypeAlias = "Future[Played]"
State: TypeAlias = Literal["launching", "waiting", "busy", "resting"]


@dataclass(slots=True)
class Seat:
    """One instance of the pool.

    Attributes:
        referee: judges its episodes.
        state: what its game does; it is resting while none will be launched soon.
        start: of the reset that is requested or pending.
        actions: of the pending step.
        answer: to the client that waits; None if none does.
        reason: the last failure.
    """

    referee: Referee
    state: State = "launching"
    start: Start | None = None
    actions: Columns = field(default_factory=dict)
    answer: Answer | None = None
    reason: str = ""


class Driver(threading.Thread):
    """Plays on the seats until it is stopped.

    Args:
        pool: instances of width 1; the thread launches them and alone uses them until it has ended.
        task: the task.
    """

    def __init__(self, pool: Pool, task: Task) -> None:
        super().__init__(name="games", daemon=True)
        self.pool = pool
        self.seats = [Seat(Referee(task, 1, n)) for n in range(pool.instances)]
        self._task = task
        self._requests: deque[tuple[int, Start | Columns, Answer]] = deque()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._idle = select.poll()  # not select.select, which fails above 1,024 descriptors
        self._idle.register(self._wake, select.POLLIN)
        self._ending, self._lock, self._stopped = threading.Event(), threading.Lock(), False
        self._losses: OrderedDict[tuple[int, int], int] = OrderedDict()
        self._trouble = ""
        pool.watch(self._wake)

    def ask(self, seat: int, what: Start | Columns) -> Answer:
        """Requests a reset to a start, or a step with actions ``(1, ...)``; one at a time a seat.

        Raises:
            OutOfTurnError: it has been stopped.
        """
        answer: Answer = Future()
        answer.set_running_or_notify_cancel()  # so that no client can take the answer back
        with self._lock:
            if self._ending.is_set():
                raise OutOfTurnError("the games are closed; open others")
            self._requests.append((seat, what, answer))
            os.eventfd_write(self._wake, 1)
        return answer

    def stop(self) -> None:
        """Ends the thread and all games; what still waits for an answer gets an error.

        Idempotent.
        """
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._ending.set()
            os.eventfd_write(self._wake, 1)
        if self.is_alive():
            self.join(_END_S)
        self.pool.close()
        self._refuse_all()
        os.close(self._wake)

    def _refuse_all(self) -> None:
        with self._lock:
            self._ending.set()
            waiting = [seat.answer for seat in self.seats] + [each for *_, each in self._requests]
            self._requests.clear()
        for answer in waiting:
            if answer is not None and not answer.done():
                answer.set_exception(OutOfTurnError("the games were closed; open others"))

    def run(self) -> None:
        """Serves requests and events."""
        try:
            self.pool.launch()
            self._play()
        except Exception:
            log.exception("the games end by an error of ours; please report it")
        finally:
            self._refuse_all()

    def _play(self) -> None:
        while True:
            self._take_requests()
            if self._ending.is_set():  # after the wake-up call of ``stop`` was read
                return
            if not self.pool.busy:
                self._idle.poll(1000 * _LOOK_S)
                continue
            try:
                events = self.pool.recv(timeout_s=_LOOK_S)
            except GamutError as error:  # a game that refuses its input; its time will run out
                self._trouble = f"; an error before: {error}"
                log.warning("a game raised %s: %s", type(error).__name__, error)
                continue
            for event in events:
                self._handle(event)

    def _take_requests(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        while self._requests:
            number, what, answer = self._requests.popleft()
            seat = self.seats[number]
            seat.answer = answer
            try:
                self._begin(number, seat, what)
            except GamutError as error:
                self._fail(seat, error)

    def _begin(self, number: int, seat: Seat, what: Start | Columns) -> None:
        if not isinstance(what, Start):
            self.pool.send(number, what)
            seat.actions, seat.state = what, "busy"
            return
        if seat.referee.active[0]:  # an episode that its client has left: not a result
            seat.referee.finish(0, "truncated", 0)
        attempt = self._losses.get((what.state.index, what.seed), 0)
        seat.start = replace(what, attempt=attempt)
        self._reset(number)

    def _reset(self, number: int) -> None:
        """Begins the requested episode as soon as the game waits for it."""
        seat = self.seats[number]
        if seat.start is None:
            return
        if seat.state == "resting":
            self._lose(seat, f"the game rests after failures: {seat.reason}", "start")
        elif seat.state == "waiting" and self.pool.due_for_recycling(number):
            seat.state = "launching"
            self.pool.recycle(number)
        elif seat.state == "waiting":
            self.pool.reset(number, [0], [seat.start])
            seat.state = "busy"

    def _handle(self, event: Event) -> None:
        seat = self.seats[event.instance]
        if event.kind == "failed":
            self._on_failure(event, seat)
            return
        seat.state = "waiting"
        try:
            if event.kind == "launched":
                self._reset(event.instance)
            elif event.kind == "reset":
                self._on_reset(event, seat)
            else:
                self._on_step(event, seat)
        except Exception as error:  # noqa: BLE001 - an evaluator may raise anything; others play on
            seat.start, seat.referee = None, Referee(self._task, 1, event.instance)
            self._fail(seat, error)

    def _on_reset(self, event: Event, seat: Seat) -> None:
        frame, start = event.frame, seat.start
        assert frame is not None
        assert start is not None
        seat.start = None
        seat.referee.reset([0], [start], frame)
        columns, details = _shown(frame)
        self._answer(seat, Played(start, 0, columns, details))

    def _on_step(self, event: Event, seat: Seat) -> None:
        frame, start = event.frame, seat.referee.starts[0]
        assert frame is not None
        assert start is not None
        ruling = seat.referee.judge(seat.actions, frame)
        step, result = int(seat.referee.steps[0]), None
        if ruling.broken:
            self._count(start)
            seat.referee.finish(0, "lost", 0)
            self._lose(seat, NOT_FINITE, "step")
            return
        if ruling.ended:
            self.pool.played(event.instance, 1)
            self._losses.pop((start.state.index, start.seed), None)
            end: End = "terminated" if ruling.terminated[0] else "truncated"
            raw = None if frame.details is None else frame.details[0]
            result = seat.referee.finish(0, end, int(ruling.verdict.outcome[0]), raw)
        columns, details = _shown(frame)
        self._answer(seat, Played(start, step, columns, details, ruling, result))

    def _on_failure(self, event: Event, seat: Seat) -> None:
        reason, self._trouble = event.reason + self._trouble, ""
        seat.state, seat.reason = "launching" if event.replaced else "resting", reason
        playing = seat.start or seat.referee.starts[0]
        if seat.referee.active[0]:
            seat.referee.finish(0, "lost", 0)
        seat.referee = Referee(self._task, 1, event.instance)
        if playing is None:
            return
        attempt = self._count(playing)
        if seat.start is not None and event.replaced and attempt <= self.pool.host.retries:
            seat.start = replace(seat.start, attempt=attempt)  # nothing of it was shown
            return
        self._lose(seat, reason, event)

    def _count(self, start: Start) -> int:
        """Counts a lost attempt at an episode; returns the number of the next one."""
        key, attempt = (start.state.index, start.seed), start.attempt + 1
        self._losses[key] = attempt
        self._losses.move_to_end(key)
        if len(self._losses) > _LOSSES:
            self._losses.popitem(last=False)
        return attempt

    def _lose(self, seat: Seat, reason: str, at: Event | Literal["start", "step"]) -> None:
        seat.start = None
        if isinstance(at, str):
            self._fail(seat, GameLost(reason, at))
        else:
            self._fail(seat, GameLost(reason, at.phase, at.trace))

    def _fail(self, seat: Seat, error: BaseException) -> None:
        answer, seat.answer = seat.answer, None
        if answer is not None:
            answer.set_exception(error)

    def _answer(self, seat: Seat, played: Played) -> None:
        answer, seat.answer = seat.answer, None
        if answer is not None:
            answer.set_result(played)


def _shown(frame: Frame) -> tuple[Columns, Details]:
    columns = {key: column.copy() for key, column in frame.observations.items()}
    return columns, {} if frame.details is None else details_for_policies(frame.details[0])
