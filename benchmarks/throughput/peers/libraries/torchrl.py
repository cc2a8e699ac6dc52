"""PPO of the parts of TorchRL, as its examples have it: collector, advantages, loss."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import torch
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torch.distributions import Categorical
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper, RewardSum, TransformedEnv
from torchrl.modules import ActorValueOperator, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from benchmarks.throughput.peers.libraries.games import make
from benchmarks.throughput.peers.libraries.nets import ActorCritic
from benchmarks.throughput.peers.libraries.turns import Turn, serve


class Body(nn.Module):
    """What both heads read, of rows or of columns of them."""

    def __init__(self, network: ActorCritic) -> None:
        super().__init__()
        self.body, self._encode, self._axes = network.body, network.encode, len(network.shape)

    def forward(self, seen: Tensor) -> Tensor:
        """Returns features."""
        lead = seen.shape[: seen.dim() - self._axes]
        return self._encode(seen.flatten(0, len(lead) - 1)).unflatten(0, lead)


def vector(game: str, count: int) -> Any:
    """Returns games as it takes them, each in a process if steps take long."""
    makers = [functools.partial(make, game)] * count
    slow = game in ("Pong", "Crafter")
    kind: Any = gym.vector.AsyncVectorEnv if slow else gym.vector.SyncVectorEnv
    games = kind(makers, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
    return TransformedEnv(GymWrapper(games, categorical_action_encoding=True), RewardSum())


def train(turn: Turn) -> None:
    """Trains for a turn."""
    ppo, count = turn.ppo, turn.size
    torch.manual_seed(turn.seed)
    games = vector(turn.game, count)
    games.set_seed(turn.seed)
    shape = tuple(games.observation_spec["observation"].shape[1:])
    network = ActorCritic(shape, games.action_spec.space.n, ppo.hidden)
    head = TensorDictModule(network.actor, ["hidden"], ["logits"])
    options = {"distribution_class": Categorical, "return_log_prob": True}
    whole = ActorValueOperator(
        TensorDictModule(Body(network), ["observation"], ["hidden"]),
        ProbabilisticActor(head, in_keys=["logits"], **options),
        ValueOperator(network.critic, in_keys=["hidden"]),
    )
    actor, critic = whole.get_policy_operator(), whole.get_value_operator()
    advantage = GAE(gamma=ppo.gamma, lmbda=ppo.gae_lambda, value_network=critic)
    loss_of = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=ppo.clip,
        entropy_coeff=ppo.entropy,
        entropy_bonus=bool(ppo.entropy),
        critic_coeff=ppo.value_coef / 2,  # its value loss has no factor 0.5
        loss_critic_type="l2",
    )
    optimizer = torch.optim.Adam(loss_of.parameters(), lr=ppo.lr, eps=1e-5, fused=True)
    batch = ppo.batch // count * count
    collector = Collector(games, actor, frames_per_batch=batch, total_frames=-1)
    turn.begin()
    for data in collector:
        with torch.no_grad():
            advantage(data)
        ended = data["next", "done"]
        returns = data["next", "episode_reward"][ended].tolist()
        rows = data.reshape(-1)
        gain = rows["advantage"]
        rows["advantage"] = (gain - gain.mean()) / (gain.std() + 1e-8)
        for _ in range(ppo.epochs):
            for part in torch.randperm(batch).split(ppo.minibatch):
                found = loss_of(rows[part])
                loss = sum(value for key, value in found.items() if key.startswith("loss_"))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), ppo.max_grad_norm)
                optimizer.step()
        if turn.add(batch, returns):
            break
    collector.shutdown()


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(train)
