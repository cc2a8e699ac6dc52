"""The state of each instance of a player, and what is played in it; see ``docs/player.md``."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum, auto

from rollout.api import CALLS, Columns, Decision, Start
from rollout.errors import InternalError
from rollout.host.builder import FragmentBuilder
from rollout.host.referee import Referee


class InstanceState(IntEnum):
    """Event for which an instance waits.

    A slot of it either plays an episode, waits for its first frame (RESETTING), or is free.
    """

    STARTING = 0  # its game; there is none, or it does not answer yet
    IDLE = auto()  # episodes; the game runs and no slot plays
    RESETTING = auto()  # first frames of episodes; the other slots keep theirs
    READY = auto()  # the policy; every slot that plays shows a frame, others may be free
    DECIDING = auto()  # the answer of the policy, which has been asked
    STEPPING = auto()  # frames of a step


TRANSITIONS: dict[tuple[InstanceState, InstanceState], str] = {
    (InstanceState.STARTING, InstanceState.IDLE): "launched",
    (InstanceState.STARTING, InstanceState.STARTING): "launch failed",
    (InstanceState.IDLE, InstanceState.RESETTING): "episodes assigned",
    (InstanceState.IDLE, InstanceState.STARTING): "planned restart",
    (InstanceState.RESETTING, InstanceState.READY): "first frames",
    (InstanceState.RESETTING, InstanceState.IDLE): "no policy",
    (InstanceState.RESETTING, InstanceState.STARTING): "game failed",
    (InstanceState.READY, InstanceState.RESETTING): "episodes assigned to free slots",
    (InstanceState.READY, InstanceState.DECIDING): "policy asked",
    (InstanceState.DECIDING, InstanceState.STEPPING): "actions sent",
    (InstanceState.DECIDING, InstanceState.IDLE): "no policy",
    (InstanceState.STEPPING, InstanceState.READY): "frames",
    (InstanceState.STEPPING, InstanceState.IDLE): "last episode ended",
    (InstanceState.STEPPING, InstanceState.STARTING): "game failed",
}
"""All valid transitions, with their causes."""

_POSSIBLE = [
    [(a, b) in TRANSITIONS for b in InstanceState] for a in InstanceState
]  # for every step of every game


class InstanceStates:
    """The state of each instance of a player.

    Args:
        instances: number of instances; all begin as STARTING.
    """

    def __init__(self, instances: int) -> None:
        self._of = [InstanceState.STARTING] * instances

    def __getitem__(self, number: int) -> InstanceState:
        return self._of[number]

    def advance(self, before: InstanceState, after: InstanceState) -> list[int]:
        """Moves all instances that are in one state to another; returns their numbers in order."""
        numbers = []
        for number, own in enumerate(self._of):
            if own is before:
                self.enter(number, after)
                numbers.append(number)
        return numbers

    def enter(self, number: int, state: InstanceState) -> None:
        """Moves an instance to another state.

        Raises:
            InternalError: no transition leads there from the state it is in.
        """
        before = self._of[number]
        if not _POSSIBLE[before][state]:
            raise InternalError(
                f"instance {number} cannot go from {before.name} to {state.name}; please report it"
            )
        self._of[number] = state


@dataclass(slots=True)
class Track:
    """Episodes in progress in one instance.

    Attributes:
        referee: judges its episodes.
        builder: the fragment in progress.
        free: slots without an episode.
        memory: the policy's memory of every slot.
        actions: the actions of the step in progress.
        stops: the decision's, for the step in progress.
        resetting: slots and the episodes that begin in them.
    """

    referee: Referee
    builder: FragmentBuilder
    free: deque[int]
    memory: Columns = field(default_factory=dict)
    actions: Columns = field(default_factory=dict)
    stops: Sequence[str] | None = None
    resetting: list[tuple[int, Start]] = field(default_factory=list)

    def decide(self, decision: Decision, version: int) -> None:
        """Stores the policy's decision for the next step."""
        self.builder.write_decision(decision, version)
        self.memory, self.actions = decision.memory, decision.actions
        self.stops = decision.stops
        if CALLS in decision.extras:
            self.referee.charge(decision.extras[CALLS])

    def vacate(self, slot: int) -> None:
        """Frees a slot and clears its memory, as the policy expects of an idle slot."""
        self.free.append(slot)
        for rows in self.memory.values():
            rows[slot, ...] = 0
