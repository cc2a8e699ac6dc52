"""The bridge to StarBench's battles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridges.starbench.instance import NAME, StarbenchInstance
from bridges.starbench.options import (
    SIGNALS,
    Options,
    action_names,
    action_space,
    observation_space,
)
from bridges.starbench.states import SPACE
from rollout.api import BridgeSpec, Instance, Resources

MAX_WIDTH = 1024


@dataclass(frozen=True)
class StarbenchBridge(Options):
    """Turn-based battles after StarBench: an emulator of its eight tasks, with rules of its own.

    The state is the battle, the level and weaknesses of enemies, the team's order, energy and HP,
    and a number that orders the moves of bosses. The seed decides everything that is random.
    """

    @property
    def spec(self) -> BridgeSpec:
        """What is known before launch."""
        return BridgeSpec(
            name=NAME,
            version="1",
            observation_space=observation_space(self),
            action_space=action_space(self),
            state_space=SPACE,
            signals=SIGNALS,
            max_width=MAX_WIDTH,
            default_width=4 if self.pixels else 32,
            process="in_process",
            resources=Resources(memory_mb=300),
            tasks=Path(__file__).parent / "tasks",
            action_labels=action_names(self),
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Makes ``width`` battles in this process; see ``rollout.api.Bridge``."""
        self.spec.require_width(width)
        return StarbenchInstance(self, width)
