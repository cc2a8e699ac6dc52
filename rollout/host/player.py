"""The playing loop: plays a policy on a pool of instances and returns fragments.

One step of data: ``start -> reset -> frame -> policy.act -> step -> frame -> referee -> row``.
The instance that is ready first is served next; instances that are ready together share one call of
the policy, unless its decisions take long (``ThreadedCalls``). An episode ends exactly once:
terminated, truncated or lost. A lost one is retried from the same start on the first instance that
is free.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollout.api import Decision, Fragment, Loss, Policy, Start, Task, calls_of, figures_of
from rollout.api.fragment import Phase
from rollout.api.masks import MaskCheck
from rollout.errors import BudgetExhausted, GamutError, NothingLegalError, PolicyUnavailable
from rollout.host.builder import FragmentBuilder
from rollout.host.instances import Event
from rollout.host.policy_calls import PolicyCaller, PolicyInput, ThreadedCalls
from rollout.host.pool import Pool
from rollout.host.referee import NOT_FINITE, Referee
from rollout.host.states import InstanceState, InstanceStates, Track
from rollout.host.supervision import exhausted
from rollout.observe.hosts import HostFigures


@dataclass(frozen=True)
class PlayOptions:
    """Options of a player.

    Attributes:
        steps: maximum number of steps in a fragment.
        seconds: a fragment is returned after this time even if it is not full; None waits.
        explore: whether the policy samples.
        retries: number of retries of a lost episode.
        prompt: whether a fragment is returned as soon as none of its slots plays, so that finished
            episodes are safe at once; otherwise only when it is full, or nothing is left to play.
        gather_s: how long a fragment may wait for others, to be sent together, in seconds.
    """

    steps: int = 64
    seconds: float | None = None
    explore: bool = True
    retries: int = 20
    prompt: bool = True
    gather_s: float = 0.5


_USUAL = PlayOptions()


class Player:
    """Plays one policy on one pool.

    Attributes:
        starts: queue of the episodes that wait for a free slot.
        abandoned: episodes that were lost in all their attempts.
        idle_failures: instance and event of failures by which no episode was lost.
        progress: a counter of all events and of checks of pending decisions; it stands still if the
            host hangs.
    """

    def __init__(
        self,
        pool: Pool,
        task: Task,
        policy: Policy,
        options: PlayOptions = _USUAL,
        *,
        first_instance: int = 0,
    ) -> None:
        self.pool, self.task, self.policy, self.options = pool, task, policy, options
        self.starts: deque[Start] = deque()
        self.abandoned: list[Start] = []
        self.idle_failures: list[tuple[int, Event]] = []
        self.progress = 0
        self._first = first_instance
        self._caller = PolicyCaller(policy, pool.spec, pool.width)
        self._threaded: ThreadedCalls | None = None
        if calls_of(policy) > 1 and pool.instances > 1:
            self._threaded = ThreadedCalls(policy, pool)
        self._games_s, self._own_s, self._mark = 0.0, 0.0, time.monotonic()
        self._ready: deque[Fragment] = deque()
        self._states = InstanceStates(pool.instances)
        self._vacant = set(range(pool.instances))  # instances with free slots
        self._tracks = [self._new_track(i) for i in range(pool.instances)]
        self._last_failure: Event | None = None
        self._nothing_legal = MaskCheck(pool.spec.observation_space, pool.spec.action_space)
        self._policy_error: GamutError | None = None  # after which no policy decides
        pool.launch()

    def _new_track(self, number: int) -> Track:
        referee = Referee(self.task, self.pool.width, self._first + number)
        return Track(referee, self._new_builder(number), deque(range(self.pool.width)))

    def _new_builder(self, number: int) -> FragmentBuilder:
        return FragmentBuilder(
            self.pool.spec,
            dict(self.policy.extras),
            width=self.pool.width,
            steps=self.options.steps,
            instance=self._first + number,
            incarnation=self.pool.incarnation(number),
        )

    @property
    def deciding_since(self) -> float | None:
        """Beginning of the policy's current call, monotonic seconds; None while none runs."""
        return self._caller.since

    @property
    def figures(self) -> HostFigures:
        """The state of its games, and the time that it has spent."""
        state = self.pool.figures(len(self.starts))
        own = figures_of(self.policy)
        return replace(state, games_s=self._games_s, own_s=self._own_s, policy=own)

    def offer(self, starts: Iterable[Start]) -> None:
        """Adds episodes to the queue."""
        self.starts.extend(starts)

    def next_fragment(self) -> Fragment | None:
        """Returns the next complete fragment of any instance.

        Returns:
            None once every episode in the queue has ended and every fragment was returned.

        Raises:
            BudgetExhausted: no instance is left, and none may be launched; everything that was
                played was returned before.
        """
        self._mark = time.monotonic()
        while not self._ready:
            self._assign_idle()
            if not self._act() and (self._policy_error is not None or not self._waiting):
                return self._finish()
            self._receive()
        return self._ready.popleft()

    def next_fragments(self) -> list[Fragment]:
        """Returns the next complete fragment, and others that are complete soon after.

        The cost of receiving a message hardly depends on its size, so short episodes are not sent
        one by one: fragments are gathered until they have as many steps as one full fragment of
        each instance, for at most ``gather_s``.

        Returns:
            an empty list once every episode in the queue has ended and every fragment was returned.

        Raises:
            BudgetExhausted: as ``next_fragment``; not while there are fragments to return.
        """
        first = self.next_fragment()
        if first is None:
            return []
        found, steps = [first], first.env_steps
        enough = self.options.steps * self.pool.width * self.pool.instances
        end = time.monotonic() + self.options.gather_s
        while steps < enough:
            if not self._ready:
                left = end - time.monotonic()
                self._assign_idle()
                self._act()
                if left <= 0 or self._policy_error is not None or not self._waiting:
                    break
                self._receive(left)
            while self._ready:
                found.append(self._ready.popleft())
                steps += found[-1].env_steps
        return found

    def _finish(self) -> Fragment | None:
        """Returns the last fragments; None if all episodes have ended."""
        for number in range(len(self._tracks)):
            self._emit(number)
        if self._ready:
            return self._ready.popleft()
        if self._policy_error is not None:
            raise self._policy_error
        if self.pool.alive == 0:
            games, last = f"{self.pool.instances} instances", self._last_failure
            assert last is not None
            spent = exhausted(games, self.pool.host, last.reason)
            spent.trace = last.trace
            raise spent
        return None

    def _receive(self, timeout_s: float | None = None) -> None:
        began = time.monotonic()
        events = self._events(timeout_s)
        before, self._mark = self._mark, time.monotonic()
        if self._caller.has_begun:  # before that, games are launched
            self._games_s += self._mark - began
            self._own_s += began - before
        for event in events:
            self._handle(event)

    @property
    def _waiting(self) -> bool:
        """True if a result of a game or a decision is pending."""
        return self.pool.busy or bool(self._threaded and self._threaded.pending)

    def _events(self, timeout_s: float | None) -> list[Event]:
        """Returns the next events of games; sends the actions of decisions that are complete."""
        calls = self._threaded
        if calls is None or not calls.pending:
            return self.pool.recv(timeout_s=timeout_s)
        events = calls.receive(timeout_s)
        self.progress += 1
        for number, result in calls.collect(self.pool.host.policy_s):
            if isinstance(result, BudgetExhausted):
                self._lose_waiting([number], range(self.pool.width), result)
            else:
                self._send(number, result, self.policy.version)
        return events

    def _handle(self, event: Event) -> None:
        self.progress += 1
        if event.kind == "step":
            self._on_step(event)
        elif event.kind == "reset":
            self._on_reset(event)
        elif event.kind == "failed":
            self._on_failure(event)
        else:
            self._states.enter(event.instance, InstanceState.IDLE)

    def _assign_idle(self) -> None:
        """Assigns the next start to every free slot of every waiting instance."""
        if not self._vacant:
            return
        for number in sorted(self._vacant):
            if not self.starts:
                return
            waits = self._states[number] in (InstanceState.IDLE, InstanceState.READY)
            if waits and not self._recycle_if_due(number):
                self._assign(number)

    def _recycle_if_due(self, number: int) -> bool:
        """Returns True if an instance is due for replacement; replaces it if no slot plays."""
        if not self.pool.due_for_recycling(number):
            return False
        if not self._tracks[number].referee.active.any():
            self._emit(number)
            self.pool.recycle(number)
            self._tracks[number] = self._new_track(number)
            self._states.enter(number, InstanceState.STARTING)
        return True

    def _assign(self, number: int) -> None:
        track = self._tracks[number]
        count = min(len(track.free), len(self.starts))
        pairs = [(track.free.popleft(), self.starts.popleft()) for _ in range(count)]
        track.resetting = pairs
        if not track.free:
            self._vacant.discard(number)
        self._states.enter(number, InstanceState.RESETTING)
        self.pool.reset(number, [s for s, _ in pairs], [s for _, s in pairs])

    def _on_reset(self, event: Event) -> None:
        track = self._tracks[event.instance]
        assert event.frame is not None
        slots = [slot for slot, _ in track.resetting]
        starts = [start for _, start in track.resetting]
        track.resetting = []
        track.referee.reset(slots, starts, event.frame)
        track.builder.begin(slots, starts, event.frame)
        try:
            memory = self._caller.initial_memory(starts)
        except BudgetExhausted as error:
            self._lose_waiting([event.instance], slots, error)
            return
        for key, rows in memory.items():
            if key not in track.memory:
                track.memory[key] = np.zeros((self.pool.width, *rows.shape[1:]), rows.dtype)
            track.memory[key][slots] = rows
        self._states.enter(event.instance, InstanceState.READY)

    def _on_step(self, event: Event) -> None:
        track, frame = self._tracks[event.instance], event.frame
        assert frame is not None
        referee, builder = track.referee, track.builder
        ruling = referee.judge(track.actions, frame, track.stops)
        builder.write_step(frame, ruling, event.seconds)
        if not referee.all_active:
            builder.blank_idle(referee.active)
        if ruling.ended:
            self.pool.played(event.instance, len(ruling.ended))
        for slot in ruling.ended:
            self._vacate(event.instance, slot)
            end = "terminated" if ruling.terminated[slot] else "truncated"
            outcome = int(ruling.verdict.outcome[slot])
            details = None if frame.details is None else frame.details[slot]
            result = referee.finish(slot, end, outcome, details)  # type: ignore[arg-type] # a literal, by the line above
            builder.end(slot, result)
        for slot in ruling.broken:
            why = f"{self.pool.spec.name}: {NOT_FINITE}"
            self._lose_slot(event.instance, slot, "step", why)
        plays = referee.all_active or bool(referee.active.any())
        self._states.enter(event.instance, InstanceState.READY if plays else InstanceState.IDLE)
        resting = not plays and (self.options.prompt or not self.starts)
        if builder.full or resting or self._overdue(builder):
            self._emit(event.instance)

    def _overdue(self, builder: FragmentBuilder) -> bool:
        return self.options.seconds is not None and builder.age >= self.options.seconds

    def _emit(self, number: int) -> None:
        """Completes the current fragment of an instance."""
        track = self._tracks[number]
        if track.builder.empty:
            return
        previous, track.builder = track.builder, self._new_builder(number)
        track.builder.resume(previous, track.referee.starts, track.referee.steps)
        self._ready.append(previous.build())

    def _on_failure(self, event: Event) -> None:
        number = event.instance
        track = self._tracks[number]
        self._last_failure = event
        if not track.resetting and all(start is None for start in track.referee.starts):
            self.idle_failures.append((self._first + number, event))
        for slot, start in enumerate(track.referee.starts):
            if start is not None:
                self._lose_slot(number, slot, event.phase, event.reason, event.trace)
        for slot, start in track.resetting:
            loss = self._lose(start, number, slot, event.phase, event.reason, 0, event.trace)
            track.builder.lose_unstarted(loss)
        self._emit(number)
        self._tracks[number] = self._new_track(number)
        self._vacant.add(number)
        self._states.enter(number, InstanceState.STARTING)

    def _lose_waiting(
        self, numbers: Iterable[int], slots: Sequence[int], why: BudgetExhausted
    ) -> None:
        """Records the episodes of slots without a decision as lost; their games continue."""
        if not isinstance(why, PolicyUnavailable):
            self._policy_error = why  # raised once everything that was played was returned
            return
        for number in numbers:
            track = self._tracks[number]
            for slot in slots:
                if track.referee.starts[slot] is not None:
                    self._lose_slot(number, slot, "policy", str(why))
            plays = bool(track.referee.active.any())
            self._states.enter(number, InstanceState.READY if plays else InstanceState.IDLE)
            self._emit(number)  # so that no row begins an episode that it does not continue

    def _lose_slot(self, number: int, slot: int, phase: Phase, why: str, trace: str = "") -> None:
        """Records the episode of one slot as lost; its game continues."""
        track = self._tracks[number]
        start = track.referee.starts[slot]
        assert start is not None
        result = track.referee.finish(slot, "lost", 0)
        loss = self._lose(start, number, slot, phase, why, result.length, trace)
        track.builder.end(slot, result, loss)
        self._vacate(number, slot)

    def _vacate(self, number: int, slot: int) -> None:
        self._tracks[number].vacate(slot)
        self._vacant.add(number)

    def _lose(
        self,
        start: Start,
        number: int,
        slot: int,
        phase: Phase,
        reason: str,
        steps: int,
        trace: str,
    ) -> Loss:
        if start.attempt < self.options.retries:
            self.starts.appendleft(replace(start, attempt=start.attempt + 1))
        else:
            self.abandoned.append(start)
        return Loss(start, self._first + number, slot, phase, reason, steps, trace)

    def _act(self) -> bool:
        """Calls the policy for all instances that wait; returns True if an event will follow."""
        numbers = self._states.advance(InstanceState.READY, InstanceState.DECIDING)
        if not numbers or (self._nothing_legal and self._is_stuck(numbers)):
            return False
        if self._threaded:
            for number in numbers:
                self._threaded.submit(number, self._policy_input(number))
            return True
        try:
            decisions = self._caller.decide(list(map(self._policy_input, numbers)))
        except BudgetExhausted as error:
            self._lose_waiting(numbers, range(self.pool.width), error)
            return False
        version = self.policy.version
        for number, decision in zip(numbers, decisions, strict=True):
            self._send(number, decision, version)
        return True

    def _is_stuck(self, numbers: Sequence[int]) -> bool:
        """Returns whether a mask allows nothing in a slot that plays, which ends the run.

        The error is raised once everything that was played was returned.
        """
        for number in numbers:
            track = self._tracks[number]
            found = self._nothing_legal(track.builder.observations(), track.referee.active)
            if found is not None:
                slot, why = found
                step = int(track.referee.steps[slot])
                self._policy_error = NothingLegalError(
                    f"{self.pool.spec.name}: {why}, in step {step} of slot {slot} of instance "
                    f"{self._first + number}; a game must end an episode (terminated) where "
                    f"nothing is legal, or allow an action that does nothing"
                )
                return True
        return False

    def _send(self, number: int, decision: Decision, version: int) -> None:
        track = self._tracks[number]
        self._caller.check(decision, track.referee.active)
        decision = self._caller.clean(decision)
        track.decide(decision, version)
        self._states.enter(number, InstanceState.STEPPING)
        self.pool.send(number, decision.actions)

    def _policy_input(self, number: int) -> PolicyInput:
        track, explore = self._tracks[number], self.options.explore
        builder = track.builder
        if builder.row == 0 and track.memory:
            builder.remember(track.memory)  # before the policy may change it in place
        return PolicyInput(builder.observations(), track.memory, builder.details(), explore)

    def close(self) -> None:
        """Ends every game; decisions that are pending are dropped."""
        self.pool.close()
        if self._threaded:
            self._threaded.close()
