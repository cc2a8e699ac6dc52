"""Any bridge with its games in their own processes, behind the plain ``Instance`` interface."""

from dataclasses import dataclass

from rollout.api import Bridge
from rollout.config import HostConfig
from rollout.errors import GameCrashed, OutOfTurnError
from rollout.host import Pool


@dataclass(frozen=True)
class IsolatedBridge:
    bridge: Bridge

    @property
    def spec(self):
        return self.bridge.spec

    def launch(self, workdir, ports, *, width, timeout_s):
        host = HostConfig(isolation="subprocess", restarts=0)
        return Isolated(Pool(self.bridge, workdir, width=width, host=host))


class Isolated:
    def __init__(self, pool):
        self.pool, self.begun = pool, False
        pool.launch()
        self.answer()

    def reset(self, slots, starts, *, timeout_s):
        self.pool.reset(0, slots, starts)
        self.begun = True
        return self.answer()

    def step(self, actions, *, timeout_s):
        if not self.begun:
            raise OutOfTurnError("no slot was ever reset")
        self.pool.send(0, actions)
        return self.answer()

    def answer(self):
        [event] = self.pool.recv()
        if event.kind == "failed":
            raise GameCrashed(event.reason)
        return event.frame

    def close(self):
        self.pool.close()
