"""Hosting: instances in this process or their own, a pool over what is ready, the playing loop."""

from rollout.host.handle import Handle, InProcessHandle, SubprocessHandle
from rollout.host.player import Player, PlayOptions
from rollout.host.pool import Event, Pool, PoolOptions
from rollout.host.referee import Referee, Ruling

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
]
