"""Hosting: instances in this process or their own, a pool over what is ready, the playing loop."""

from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle
from rollout.host.player import Player, PlayOptions
from rollout.host.pool import Pool
from rollout.host.referee import Referee, Ruling
from rollout.host.seats import Event
from rollout.host.supervision import PoolOptions, Supervision

__all__ = [
    "Event",
    "Handle",
    "InProcessHandle",
    "PlayOptions",
    "Player",
    "Pool",
    "PoolOptions",
    "Referee",
    "Ruling",
    "SubprocessHandle",
    "Supervision",
]
