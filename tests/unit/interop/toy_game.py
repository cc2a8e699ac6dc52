"""A game as ``gamut new bridge`` writes it: stay near a cell that wanders by the seed."""

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from rollout.api import BridgeSpec, ColumnSpec, Factor, Frame, StateSpace


@dataclass(frozen=True)
class ToyBridge:
    image = spaces.Box(0, 255, (16, 16, 3), np.uint8)
    spec = BridgeSpec(
        "toy", "1", spaces.Dict({"image": image}), spaces.Dict({"move": spaces.Discrete(3)}),
        StateSpace((Factor("start", range(16)),)), {"reward": ColumnSpec()},
        action_labels={"move": ("stay", "left", "right")},
    )  # fmt: skip

    def launch(self, workdir, ports, *, width, timeout_s):
        return Toy()


class Toy:
    def reset(self, slots, starts, *, timeout_s):
        self.rng, self.own = np.random.default_rng(starts[0].seed), starts[0].state.values["start"]
        self.goal, self.tick = 8, 0
        return self.step({"move": [0]}, timeout_s=timeout_s)

    def step(self, actions, *, timeout_s):
        self.own = (self.own + (0, -1, 1)[actions["move"][0]]) % 16
        self.goal, self.tick = (self.goal + self.rng.integers(-1, 2)) % 16, self.tick + 1
        image = np.zeros((1, 16, 16, 3), np.uint8)
        image[0, self.own], image[0, :, self.goal] = (0, 0, 255), (255, 0, 0)
        over, no = np.array([self.tick > 6]), np.zeros(1, bool)
        reward = {"reward": np.float32([1 / (1 + abs(self.own - self.goal))])}
        return Frame({"image": image}, reward, over, no, np.array([self.tick]))

    def close(self):
        pass
