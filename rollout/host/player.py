"""The loop: plays a policy on a pool of instances and gives fragments.

One step of data: ``start -> reset -> frame -> policy.act -> step -> frame -> referee -> row``.
Whichever instance is ready is served next; the instances that are ready together share one call
of the policy. An episode ends exactly once: terminated, truncated or lost; a lost one is tried
again, from the same start, on whichever fresh instance is free first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rollout.api import (
    Columns,
    Decision,
    Fragment,
    Loss,
    Policy,
    Start,
    Task,
    check_columns,
)
from rollout.api.fragment import Phase
from rollout.errors import BudgetExhausted, PolicyUnavailable
from rollout.host.builder import FragmentBuilder
from rollout.host.joining import filled, join_columns, join_details, part_of
from rollout.host.pool import Pool
from rollout.host.referee import Referee
from rollout.host.seats import Event


@dataclass(slots=True)
class _Track:
    """What the player knows of one instance."""

    referee: Referee
    builder: FragmentBuilder
    free: deque[int]  # slots that play nothing
    memory: Columns = field(default_factory=dict)
    actions: Columns = field(default_factory=dict)
    resetting: list[tuple[int, Start]] = field(default_factory=list)
    acting: bool = False  # it has frames in every active slot and waits for actions


@dataclass(frozen=True)
class PlayOptions:
    """How a policy is played.

    Attributes:
        steps: most steps in a fragment.
        seconds: a fragment is given after this long even if it holds fewer; None waits.
        explore: whether the policy samples.
        retries: how often a lost episode is tried again.
        prompt: whether a fragment is given as soon as none of its slots plays, so that finished
            episodes are safe at once; else only when it is full, or nothing is left to play.
        gather_s: how long a fragment may wait for others to go with it.
    """

    steps: int = 64
    seconds: float | None = None
    explore: bool = True
    retries: int = 3
    prompt: bool = True
    gather_s: float = 0.5


class Player:
    """Plays one policy on one pool.

    Attributes:
        starts: episodes waiting for a free slot, first come first served.
        abandoned: episodes that were lost more often than they are retried.
        idle_failures: instance, phase and reason of failures by which no episode was lost.
        progress: counts everything that happened; a host that stands still has hung.
        deciding_since: when the policy was last asked, monotonic seconds; None once it answered.
    """

    def __init__(
        self,
        pool: Pool,
        task: Task,
        policy: Policy,
        options: PlayOptions = PlayOptions(),
        *,
        first_instance: int = 0,
    ) -> None:
        self.pool, self.task, self.policy, self.options = pool, task, policy, options
        self.starts: deque[Start] = deque()
        self.abandoned: list[Start] = []
        self.idle_failures: list[tuple[int, Phase, str]] = []
        self.progress = 0
        self.deciding_since: float | None = None
        self._first = first_instance
        self._ready: deque[Fragment] = deque()
        self._idle = set(range(pool.instances))  # instances with a slot that plays nothing
        self._due: set[int] = set()  # instances that may wait for actions
        self._tracks = [self._fresh(i) for i in range(pool.instances)]
        self._checked = False
        self._last_failure = ""
        self._spent: BudgetExhausted | None = None  # nobody decides any more
        pool.launch()

    def _fresh(self, number: int) -> _Track:
        referee = Referee(self.task, self.pool.width, self._first + number)
        return _Track(referee, self._new_builder(number), deque(range(self.pool.width)))

    def _new_builder(self, number: int) -> FragmentBuilder:
        return FragmentBuilder(
            self.pool.spec,
            dict(self.policy.extras),
            width=self.pool.width,
            steps=self.options.steps,
            instance=self._first + number,
            incarnation=self.pool.incarnation(number),
        )

    def offer(self, starts: Iterable[Start]) -> None:
        """Adds episodes to be played."""
        self.starts.extend(starts)

    def next_fragment(self) -> Fragment | None:
        """Returns the next fragment that is complete, from whichever instance.

        Returns:
            None once every episode on offer has ended and everything was given.

        Raises:
            BudgetExhausted: no instance is left, and none may be launched any more; everything
                that was played has been given before.
        """
        while not self._ready:
            self._assign_idle()
            self._act()
            if self._spent is not None or not self.pool.busy:
                return self._rest()
            for event in self.pool.recv():
                self._handle(event)
        return self._ready.popleft()

    def next_fragments(self) -> list[Fragment]:
        """Returns the next fragment that is complete, and those complete soon after.

        What a message costs its receiver hardly depends on its size, so games that finish one
        short episode after another do not send each by itself: fragments are gathered until they
        hold as many steps as one full fragment of each instance, for ``gather_s`` at most.

        Returns:
            nothing once every episode on offer has ended and everything was given.

        Raises:
            BudgetExhausted: as ``next_fragment``; not while there are fragments to give.
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
                if left <= 0 or self._spent is not None or not self.pool.busy:
                    break
                for event in self.pool.recv(timeout_s=left):
                    self._handle(event)
            while self._ready:
                found.append(self._ready.popleft())
                steps += found[-1].env_steps
        return found

    def _rest(self) -> Fragment | None:
        """Nothing is in flight: all is played, or nothing is left to play on or to decide."""
        for number in range(len(self._tracks)):
            self._emit(number)
        if self._ready:
            return self._ready.popleft()
        if self._spent is not None:
            raise self._spent
        if self.pool.alive == 0:
            raise BudgetExhausted(
                f"all {self.pool.instances} instances failed more than "
                f"{self.pool.rules.restarts} times; the last one: {self._last_failure}"
            )
        return None

    def _handle(self, event: Event) -> None:
        self.progress += 1
        if event.kind == "step":
            self._on_step(event)
        elif event.kind == "reset":
            self._on_reset(event)
        elif event.kind == "failed":
            self._on_failure(event)

    def _assign_idle(self) -> None:
        """Gives every free slot of every waiting instance its next start."""
        for number in sorted(self._idle):
            if not self.starts:
                return
            if self.pool.waiting(number) and not self._recycled(number):
                self._assign(number)

    def _recycled(self, number: int) -> bool:
        """Whether an instance gets no more episodes; it is replaced once its last one has ended."""
        if not self.pool.worn(number):
            return False
        if not self._tracks[number].referee.active.any():
            self._emit(number)
            self.pool.recycle(number)
            self._tracks[number] = self._fresh(number)
        return True

    def _assign(self, number: int) -> None:
        track = self._tracks[number]
        count = min(len(track.free), len(self.starts))
        pairs = [(track.free.popleft(), self.starts.popleft()) for _ in range(count)]
        if not track.free:
            self._idle.discard(number)
        if pairs:
            track.resetting, track.acting = pairs, False
            self.pool.reset(number, [s for s, _ in pairs], [s for _, s in pairs])

    def _on_reset(self, event: Event) -> None:
        track = self._tracks[event.instance]
        assert event.frame is not None
        slots = [slot for slot, _ in track.resetting]
        starts = [start for _, start in track.resetting]
        track.resetting = []
        track.referee.reset(slots, starts, event.frame)
        track.builder.begin(slots, starts, event.frame)
        self.deciding_since = time.monotonic()
        try:
            memory = self.policy.initial_memory(starts)
        except BudgetExhausted as error:
            self._give_up([event.instance], slots, error)
            return
        finally:
            self.deciding_since = None
        for key, rows in memory.items():
            if key not in track.memory:
                track.memory[key] = np.zeros((self.pool.width, *rows.shape[1:]), rows.dtype)
            track.memory[key][slots] = rows
        track.acting = True
        self._due.add(event.instance)

    def _on_step(self, event: Event) -> None:
        track, frame = self._tracks[event.instance], event.frame
        assert frame is not None
        referee, builder = track.referee, track.builder
        ruling = referee.judge(track.actions, frame)
        builder.write_step(frame, ruling, event.seconds)
        if not referee.all_active:
            builder.blank_idle(referee.active)
        if ruling.ended:
            self.pool.played(event.instance, len(ruling.ended))
        for slot in ruling.ended:
            self._idle.add(event.instance)
            track.free.append(slot)
            end = "terminated" if ruling.terminated[slot] else "truncated"
            outcome = int(ruling.verdict.outcome[slot])
            said = None if frame.details is None else frame.details[slot]
            result = referee.finish(slot, end, outcome, said)  # type: ignore[arg-type] # a literal, by the line above
            builder.end(slot, result)
        track.acting = not ruling.ended or bool(referee.active.any())
        self._due.add(event.instance)
        resting = not track.acting and (self.options.prompt or not self.starts)
        if builder.full or resting or self._overdue(builder):
            self._emit(event.instance)

    def _overdue(self, builder: FragmentBuilder) -> bool:
        seconds = self.options.seconds
        return seconds is not None and builder.age >= seconds

    def _emit(self, number: int) -> None:
        """Gives what an instance has played so far."""
        track = self._tracks[number]
        if track.builder.empty:
            return
        previous, track.builder = track.builder, self._new_builder(number)
        track.builder.resume(previous, track.referee.starts, track.referee.steps)
        self._ready.append(previous.build())

    def _on_failure(self, event: Event) -> None:
        number = event.instance
        track = self._tracks[number]
        self._last_failure = event.reason
        if not track.resetting and all(start is None for start in track.referee.starts):
            self.idle_failures.append((self._first + number, event.phase, event.reason))
        for slot, start in enumerate(track.referee.starts):
            if start is not None:
                result = track.referee.finish(slot, "lost", 0)
                loss = self._lose(start, number, slot, event.phase, event.reason, result.length)
                track.builder.end(slot, result, loss)
        for slot, start in track.resetting:
            loss = self._lose(start, number, slot, event.phase, event.reason, 0)
            track.builder.lose_unstarted(loss)
        self._emit(number)
        self._tracks[number] = self._fresh(number)
        self._idle.add(number)

    def _give_up(self, numbers: Iterable[int], slots: Sequence[int], why: BudgetExhausted) -> None:
        """Loses the episodes of some slots, for which nobody decides; their games play others."""
        if not isinstance(why, PolicyUnavailable):
            self._spent = why  # raised once all that was played has been given
            return
        for number in numbers:
            track = self._tracks[number]
            for slot in slots:
                start = track.referee.starts[slot]
                if start is not None:
                    result = track.referee.finish(slot, "lost", 0)
                    loss = self._lose(start, number, slot, "policy", str(why), result.length)
                    track.builder.end(slot, result, loss)
                    track.free.append(slot)
            track.acting = bool(track.referee.active.any())
            self._due.add(number)
            self._idle.add(number)
            self._emit(number)  # so that no row begins an episode that it does not go on with

    def _lose(
        self, start: Start, number: int, slot: int, phase: Phase, reason: str, steps: int
    ) -> Loss:
        if start.attempt < self.options.retries:
            self.starts.appendleft(replace(start, attempt=start.attempt + 1))
        else:
            self.abandoned.append(start)
        return Loss(start, self._first + number, slot, phase, reason, steps)

    def _act(self) -> None:
        """Lets the policy decide for every instance that waits for actions, in one call."""
        due = {n for n in self._due if self._tracks[n].acting}
        numbers = sorted(n for n in due if self.pool.waiting(n))
        self._due = due.difference(numbers)
        if not numbers:
            return
        self.deciding_since = time.monotonic()
        try:
            if len(numbers) == 1:
                decisions = [self._decide(self._tracks[numbers[0]])]
            else:
                decisions = self._decide_together([self._tracks[n] for n in numbers])
        except BudgetExhausted as error:
            self._give_up(numbers, range(self.pool.width), error)
            return
        finally:
            self.deciding_since = None
        version = self.policy.version
        for number, decision in zip(numbers, decisions, strict=True):
            track = self._tracks[number]
            if track.builder.row == 0 and track.memory:
                track.builder.remember(track.memory)
            track.builder.write_decision(decision, version)
            track.memory, track.actions = decision.memory, decision.actions
            track.acting = False
            self.pool.send(number, decision.actions)

    def _decide(self, track: _Track) -> Decision:
        decision = self.policy.act(
            track.builder.observations(),
            track.memory,
            details=filled(track.builder.details()),
            explore=self.options.explore,
        )
        if not self._checked:
            self._check(decision)
        return decision

    def _check(self, decision: Decision) -> None:
        """Checks the first decision, so that a wrong policy is told from a crashing game."""
        check_columns(self.pool.spec.action_space, decision.actions, (self.pool.width,))
        missing = sorted(set(self.policy.extras) - set(decision.extras))
        if missing:
            raise KeyError(f"the policy declares the extras {missing} and does not return them")
        self._checked = True

    def _decide_together(self, tracks: Sequence[_Track]) -> list[Decision]:
        width = self.pool.width
        details = [filled(t.builder.details()) for t in tracks]
        joint = self.policy.act(
            join_columns([t.builder.observations() for t in tracks]),
            join_columns([t.memory for t in tracks]),
            details=join_details(details, width),
            explore=self.options.explore,
        )
        parts = [slice(i * width, (i + 1) * width) for i in range(len(tracks))]
        return [
            Decision(part_of(joint.actions, p), part_of(joint.memory, p), part_of(joint.extras, p))
            for p in parts
        ]

    def close(self) -> None:
        """Ends every game."""
        self.pool.close()
