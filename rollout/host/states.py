"""The states of an instance as its player sees it; ``docs/player.md`` draws them."""

from __future__ import annotations

from enum import IntEnum, auto

from rollout.errors import InternalError


class State(IntEnum):
    """What an instance waits for.

    A slot of it either plays an episode, waits for its first frame (RESETTING), or is free.
    """

    STARTING = 0  # its game; there is none, or it does not answer yet
    IDLE = auto()  # episodes; the game runs and no slot plays
    RESETTING = auto()  # first frames of episodes; the other slots keep theirs
    READY = auto()  # the policy; every slot that plays shows a frame, others may be free
    DECIDING = auto()  # the answer of the policy, which has been asked
    STEPPING = auto()  # frames of a step


TRANSITIONS: dict[tuple[State, State], str] = {
    (State.STARTING, State.IDLE): "launched",
    (State.STARTING, State.STARTING): "launch failed",
    (State.IDLE, State.RESETTING): "episodes assigned",
    (State.IDLE, State.STARTING): "planned restart",
    (State.RESETTING, State.READY): "first frames",
    (State.RESETTING, State.IDLE): "no policy",
    (State.RESETTING, State.STARTING): "game failed",
    (State.READY, State.RESETTING): "episodes assigned to free slots",
    (State.READY, State.DECIDING): "policy asked",
    (State.DECIDING, State.STEPPING): "actions sent",
    (State.DECIDING, State.IDLE): "no policy",
    (State.STEPPING, State.READY): "frames",
    (State.STEPPING, State.IDLE): "last episode ended",
    (State.STEPPING, State.STARTING): "game failed",
}
"""Every transition there is, and what causes it."""

_POSSIBLE = [[(a, b) in TRANSITIONS for b in State] for a in State]  # for every step of every game


class States:
    """The state of each instance of a player, and who is in which state.

    Args:
        instances: how many there are; all begin as STARTING.
    """

    def __init__(self, instances: int) -> None:
        self._of = [State.STARTING] * instances

    def __getitem__(self, number: int) -> State:
        return self._of[number]

    def advance(self, before: State, after: State) -> list[int]:
        """Moves all instances that are in one state to another; returns their numbers in order."""
        numbers = []
        for number, own in enumerate(self._of):
            if own is before:
                self.enter(number, after)
                numbers.append(number)
        return numbers

    def enter(self, number: int, state: State) -> None:
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
