"""What the bridge shows of MineStudio, and what its instance needs to know of the bridge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollout.api import ColumnSpec

NAME = "minestudio"
WORLDS = 2**31
"""Number of worlds; the engine makes each from its number."""

SIGNALS: Mapping[str, ColumnSpec] = {
    "reward": ColumnSpec(doc="sum of the entries of rewards; 0 without"),
    "health": ColumnSpec(unit="half hearts", doc="health"),
    "food": ColumnSpec(doc="how well fed the agent is, 0 to 20"),
    "x": ColumnSpec("float64", unit="blocks", doc="position to the east"),
    "y": ColumnSpec("float64", unit="blocks", doc="height"),
    "z": ColumnSpec("float64", unit="blocks", doc="position to the south"),
    "pitch": ColumnSpec(unit="degrees", doc="down is positive"),
    "yaw": ColumnSpec(unit="degrees", doc="0 is south, grows to the right"),
    "deaths": ColumnSpec("int64", doc="deaths since the start"),
    "mined": ColumnSpec("int64", doc="blocks broken since the start"),
    "crafted": ColumnSpec("int64", doc="items crafted since the start"),
    "picked_up": ColumnSpec("int64", doc="items picked up since the start"),
    "killed": ColumnSpec("int64", doc="creatures killed since the start"),
}


@dataclass(frozen=True)
class Shape:
    """Properties of the bridge that an instance needs.

    Attributes:
        ours: whether the engine is ours.
        actions: the action layout.
        rgb: width and height of the image, in pixels.
        render: width and height of the picture that it is scaled from.
        biome: where the agent begins; empty for anywhere.
        callbacks: arguments of MineStudio's callbacks beside Commands, by name.
        commands: of every start.
        hunt_sheep: whether those of the state follow.
        respawn: whether an agent that dies goes on.
    """

    ours: bool
    actions: str
    rgb: tuple[int, int]
    render: tuple[int, int]
    biome: str
    callbacks: Mapping[str, Sequence[Any]]
    commands: Sequence[str]
    hunt_sheep: bool
    respawn: bool
