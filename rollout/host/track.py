"""The player's record of one instance."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rollout.api import Columns, Start
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
        resetting: slots and the episodes that begin in them.
    """

    referee: Referee
    builder: FragmentBuilder
    free: deque[int]
    memory: Columns = field(default_factory=dict)
    actions: Columns = field(default_factory=dict)
    resetting: list[tuple[int, Start]] = field(default_factory=list)
