"""MineLand's Python interface over the Mineflayer bridge; see docs/mineland.md.

Scripts for MineLand run with ``from bridges.mineflayer import mineland`` as their import.
"""

from bridges.mineflayer.mineland.data import (
    Action,
    CodeInfo,
    Event,
    LowLevelAction,
    Observation,
    TaskInfo,
)
from bridges.mineflayer.mineland.making import make
from bridges.mineflayer.mineland.world import MineLand

__all__ = [
    "Action",
    "CodeInfo",
    "Event",
    "LowLevelAction",
    "MineLand",
    "Observation",
    "TaskInfo",
    "make",
]
