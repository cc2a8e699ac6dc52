"""TorchRL's collectors: in step, or each game for itself with an inference server."""

from __future__ import annotations

import functools
from typing import Any

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch.distributions import Categorical
from torchrl.collectors import AsyncBatchedCollector, Collector
from torchrl.envs import GymWrapper
from torchrl.modules import ProbabilisticActor

from benchmarks.throughput.peers.libraries.games import make
from benchmarks.throughput.peers.libraries.nets import ActorCritic
from benchmarks.throughput.peers.libraries.torchrl import Body, vector
from benchmarks.throughput.peers.libraries.turns import Turn, serve


def _policy(width: int) -> Any:
    torch.set_num_threads(1)
    network = ActorCritic((64, 64, 3), 17, [width])
    body = TensorDictModule(Body(network), ["observation"], ["hidden"])
    head = TensorDictModule(network.actor, ["hidden"], ["logits"])
    return ProbabilisticActor(
        TensorDictSequential(body, head), in_keys=["logits"], distribution_class=Categorical
    )


def _game(game: str) -> Any:
    return GymWrapper(make(game), categorical_action_encoding=True)


def train(turn: Turn) -> None:
    """Plays without learning for a turn."""
    count = turn.size
    policy = functools.partial(_policy, turn.ppo.hidden[-1])
    sizes: dict[str, Any] = {"frames_per_batch": 64 * count, "total_frames": -1}
    if turn.variant == "async":
        games: Any = [functools.partial(_game, turn.game)] * count
        where = {"env_backend": "multiprocessing", "transport": "auto"}
        collector = AsyncBatchedCollector(games, policy_factory=policy, **where, **sizes)
    else:
        collector = Collector(vector(turn.game, count), policy(), **sizes)
    for number, data in enumerate(collector):
        if not number:
            turn.begin()
        elif turn.add(data.numel()):
            break
    collector.shutdown()


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(train)
