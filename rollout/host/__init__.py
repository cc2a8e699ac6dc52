"""Hosting: instances in this process or in subprocesses, a pool, and the loop that plays."""

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
