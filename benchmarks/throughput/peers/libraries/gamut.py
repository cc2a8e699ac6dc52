"""Gamut's PPO; the one module that imports it."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import ray

from benchmarks.throughput.peers.libraries.games import make
from benchmarks.throughput.peers.libraries.turns import Turn, serve
from rollout.config import make_config
from rollout.host.session import ray_session
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan
from rollout.train.speed import choose
from rollout.train.trainers import trainer

HERE = "benchmarks.throughput.peers.libraries.gamut"
PICTURES = {"cnn": "nature", "cnn_features": 512, "hidden": [512], "activation": "relu"}
GAMES: dict[str, dict[str, Any]] = {
    "CartPole": {"bridge": {"name": "gymnasium", "id": "CartPole-v1"}},
    "DoorKey": {"bridge": {"name": "gymnasium", "id": "Peers/DoorKey-v0", "imports": [HERE]}},
    "Pong": {"bridge": {"name": "atari", "id": "Pong", "sticky": 0.0}, "policy": PICTURES},
    "Crafter": {"bridge": {"name": "crafter"}, "policy": PICTURES},
    "blockworld": {
        "bridge": {"name": "blockworld", "observe": ["semantic_rays"], "actions": "compact"},
        "task": "hunt_sheep",
    },
}
gym.register("Peers/DoorKey-v0", entry_point=lambda **_: make("DoorKey"))


def train(turn: Turn) -> None:
    """Trains for a turn; a size is a mapping of sizes in the configuration.

    Without sizes they are measured before the turn begins, as ``gamut train`` does.
    """
    config, options = copy.deepcopy(GAMES[turn.game]), dict(vars(turn.ppo))
    hidden = options.pop("hidden")
    policy = config.setdefault("policy", {"hidden": hidden, "shared": False})
    policy["name"] = "actor_critic"
    algorithm = {"name": "ppo", "schedule": "constant", **options}
    fixed = {"output": "unused", "env_steps": 10**12, "log": {"level": "error"}, "seed": turn.seed}
    made = {**fixed, **config, **turn.size, "algorithm": algorithm}
    settings = make_config(TrainConfig, made)
    settings = settings if settings.measured_s is None else choose(settings)
    own = trainer(TrainPlan.make(settings))
    if settings.runners:  # launched, as other libraries' games are
        actors = own._runners.supervisor.actors
        ray.get([each.handle.pulse.remote() for each in actors], timeout=120)
    over = False
    turn.begin()
    while not over:
        own.train()
        returns = [result.total_reward for result in own.last.results]
        over = turn.add(int(own.last.fresh_steps), returns)
    own.stop()


if __name__ == "__main__":
    with ray_session(num_cpus=8):
        serve(train)
