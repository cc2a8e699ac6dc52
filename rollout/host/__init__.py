"""Hosting: instances in this process or in subprocesses, a pool, and the loop that plays.

A name is imported when it is first used: ``rollout.host.child`` runs in interpreters that have
nothing but NumPy and Gymnasium.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle
    from rollout.host.instances import Event
    from rollout.host.player import Player, PlayOptions
    from rollout.host.pool import Pool
    from rollout.host.referee import Referee, Ruling

__all__ = [
    "Event",
    "Handle",
    "InProcessHandle",
    "PlayOptions",
    "Player",
    "Pool",
    "Referee",
    "Ruling",
    "SubprocessHandle",
]

_PLACES = {
    "handle": ("Handle", "InProcessHandle", "SubprocessHandle"),
    "instances": ("Event",),
    "player": ("Player", "PlayOptions"),
    "pool": ("Pool",),
    "referee": ("Referee", "Ruling"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
