"""The player's record of one instance."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from rollout.api import CALLS, Columns, Decision, Start
from rollout.host.builder import FragmentBuilder
from rollout.host.referee import Referee


@dataclass(slots=True)
class Track:
    """What is being played in one instance.

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
        """Takes the policy's decision for the next step."""
        self.builder.write_decision(decision, version)
        self.memory, self.actions = decision.memory, decision.actions
        self.stops = decision.stops
        if CALLS in decision.extras:
            self.referee.charge(decision.extras[CALLS])

    def vacate(self, slot: int) -> None:
        """Frees a slot, and clears its memory, so that the policy can tell."""
        self.free.append(slot)
        for rows in self.memory.values():
            rows[slot, ...] = 0
