"""PPO in one file: plain torch on our own vector environment, without Ray and without RLlib.

    python examples/ppo_single_file.py                      # CartPole, about ten seconds
    python examples/ppo_single_file.py --game blockworld    # hunts sheep, about a minute

The games run in this process, as the slots of one ``RemoteVectorEnv``. ``rollout.train`` computes
the same advantages and updates, as tests/unit/train/test_single_file.py shows.

Proximal policy optimization: Schulman et al. (2017). Generalised advantage estimation: Schulman et
al. (2016). Initial weights and other details: Huang et al. (2022).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional

from rollout.config import HostConfig, build_plugin
from rollout.tasks import load_task
from rollout.vector_env import RemoteVectorEnv
from rollout.yaml12 import load_yaml

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Settings:
    """All settings; each is an option of the command line."""

    game: str = "cartpole"  # a key of GAMES
    env_steps: int = 100_000  # steps to play, of all slots together
    slots: int = 32  # games that are played at the same time
    steps: int = 32  # steps of each slot between two updates
    epochs: int = 6  # passes over the batch of an update
    minibatches: int = 4  # parts of the batch, in each pass
    lr: float = 2e-3  # at the beginning; it falls linearly to 0
    gamma: float = 0.99  # discount factor per step
    gae_lambda: float = 0.95  # 0: one-step values, 1: full returns
    clip: float = 0.2  # clipping range of the probability ratio
    value_coef: float = 0.5  # weight of the value loss
    entropy: float = 0.02  # weight of the entropy bonus
    max_grad_norm: float = 0.5  # longer gradients are made shorter
    hidden: int = 64  # units of each of the two hidden layers
    reward_scale: float = 1.0  # factor for rewards while learning
    seed: int = 0


ROOT = Path(__file__).parents[1]
HUNT = load_yaml(ROOT / "configs/train_hunt_sheep.yaml")

# The bridge with its options, the task, and the settings that differ from those above.
GAMES: dict[str, tuple[tuple[str, dict[str, Any]], str, dict[str, Any]]] = {
    "cartpole": (
        ("gymnasium", {"id": "CartPole-v1"}),
        "cartpole",
        {"gamma": 0.98, "entropy": 0.01},
    ),
    "blockworld": (
        (HUNT["bridge"].pop("name"), HUNT["bridge"]),
        HUNT["task"],
        {"env_steps": 300_000, "slots": 128, "lr": 1e-3, "hidden": 128, "reward_scale": 0.2},
    ),
}


def make_env(settings: Settings) -> RemoteVectorEnv:
    """Returns the games; an episode that ends is followed by the next one within the same step."""
    (name, options), task, _ = GAMES[settings.game]
    bridge = build_plugin("bridges", name, options)
    return RemoteVectorEnv(
        bridge,
        load_task(bridge.spec, name, task),
        num_envs=settings.slots,
        width=settings.slots,  # all of them in one instance
        autoreset="same_step",
        seed=settings.seed,
        host=HostConfig(isolation="in_process"),
    )


def encode(space: spaces.Space[Any], observations: Any) -> Tensor:
    """Returns observations as numbers ``(N, features)``: integers one-hot, floats as they are."""
    if isinstance(space, spaces.Dict):
        columns = [encode(leaf, observations[key]) for key, leaf in space.spaces.items()]
        return torch.cat(columns, 1)
    if not isinstance(space, spaces.Box):
        raise TypeError(f"expected observations of Box, or a Dict of them, got {space}")
    values = torch.as_tensor(np.asarray(observations)).flatten(1)
    if np.issubdtype(space.dtype, np.floating):
        return values.float()
    low, high = int(space.low.min()), int(space.high.max())
    return functional.one_hot(values.long() - low, high - low + 1).flatten(1).float()


def layer(inputs: int, outputs: int, gain: float) -> nn.Linear:
    """Returns a linear layer with orthogonal weights and zero bias."""
    linear = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(linear.weight, gain)
    nn.init.zeros_(linear.bias)
    return linear


def mlp(inputs: int, hidden: int, outputs: int, gain: float) -> nn.Sequential:
    """Returns a network with two hidden layers; ``gain`` is that of its last layer."""
    first, second = layer(inputs, hidden, 2**0.5), layer(hidden, hidden, 2**0.5)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), layer(hidden, outputs, gain))


def stack(observations: Sequence[Any]) -> Any:
    """Returns single observations as a batch."""
    if isinstance(observations[0], dict):
        return {key: np.stack([each[key] for each in observations]) for key in observations[0]}
    return np.stack(observations)


class Agent(nn.Module):
    """A policy and a value function, which share nothing."""

    def __init__(self, features: int, actions: int, hidden: int) -> None:
        super().__init__()
        self.actor = mlp(features, hidden, actions, 0.01)
        self.critic = mlp(features, hidden, 1, 1.0)

    def policy(self, features: Tensor) -> Categorical:
        """Returns the distribution over actions for features ``(N, features)``."""
        return Categorical(logits=self.actor(features), validate_args=False)

    def value(self, features: Tensor) -> Tensor:
        """Returns the expected discounted return ``(N,)``."""
        return self.critic(features).squeeze(-1)


@dataclass
class Steps:
    """The steps between two updates, ``(N, T)`` each: slots first, then time."""

    features: Tensor  # encoded observations before each action, (N, T, features)
    action: Tensor
    logp: Tensor  # log-probability of the action when it was chosen, in nats
    value: Tensor  # of the observation before the action
    next_value: Tensor  # of the one after it; the true final one where the episode ended
    reward: Tensor
    terminated: Tensor  # the game or the task ended the episode: nothing follows
    truncated: Tensor  # a limit ended it, or it was lost: the return goes on with next_value
    lost: Tensor  # the game failed, and there was no step: the action had no effect


def advantages(steps: Steps, gamma: float, gae_lambda: float) -> Tensor:
    """Returns the advantage of each action, ``(N, T)``; 0 where there was no step."""
    out = torch.zeros_like(steps.reward)
    following = torch.zeros(len(out))  # the advantages of the step after this one
    for t in reversed(range(out.shape[1])):
        terminated = steps.terminated[:, t]
        after = steps.next_value[:, t].masked_fill(terminated, 0)
        error = steps.reward[:, t] + gamma * after - steps.value[:, t]
        following = following.masked_fill(terminated | steps.truncated[:, t], 0)
        following = error + gamma * gae_lambda * following
        # The step before a lost one goes on with the value of the observation that it led to.
        out[:, t] = following = following.masked_fill(steps.lost[:, t], 0)
    return out


def batch_of(steps: Steps, settings: Settings) -> dict[str, Tensor]:
    """Returns the steps as rows in any order, with their advantages and value targets."""
    advantage = advantages(steps, settings.gamma, settings.gae_lambda)
    columns = {
        "features": steps.features.flatten(0, 1),
        "action": steps.action.flatten(),
        "logp": steps.logp.flatten(),
        "advantage": advantage.flatten(),
        "target": (advantage + steps.value).flatten(),
    }
    played = ~steps.lost.flatten()
    return {key: column[played] for key, column in columns.items()}


def update(
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    batch: Mapping[str, Tensor],
    settings: Settings,
    order: np.random.Generator,
) -> None:
    """Improves the agent on a batch; ``order`` shuffles the rows in each epoch."""
    mean, std = batch["advantage"].mean(), batch["advantage"].std(correction=0)
    batch = {**batch, "advantage": (batch["advantage"] - mean) / (std + 1e-8)}
    for _ in range(settings.epochs):
        shuffled = torch.from_numpy(order.permutation(len(batch["action"])))
        for rows in shuffled.tensor_split(settings.minibatches):
            part = {key: column[rows] for key, column in batch.items()}
            policy = agent.policy(part["features"])
            ratio = (policy.log_prob(part["action"]) - part["logp"]).exp()
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            gain = torch.minimum(ratio * part["advantage"], clipped * part["advantage"]).mean()
            error = agent.value(part["features"]) - part["target"]
            value_loss = 0.5 * error.square().mean()
            bonus = settings.entropy * policy.entropy().mean()
            optimizer.zero_grad()
            (settings.value_coef * value_loss - gain - bonus).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), settings.max_grad_norm)
            optimizer.step()


class Play:
    """Plays an agent in the games; ``returns`` has that of each episode that has ended."""

    def __init__(self, env: RemoteVectorEnv, settings: Settings) -> None:
        self._env, self._settings = env, settings
        self._running = np.zeros(settings.slots)  # returns of the episodes being played
        self.features = self._encode(env.reset(seed=settings.seed)[0])
        self.returns: list[float] = []

    def _encode(self, observations: Any) -> Tensor:
        return encode(self._env.single_observation_space, observations)

    @torch.no_grad()
    def steps(self, agent: Agent) -> Steps:
        """Returns the next ``settings.steps`` steps of each slot."""
        rows = []
        for _ in range(self._settings.steps):
            features, policy = self.features, agent.policy(self.features)
            action = policy.sample()
            observations, reward, terminated, truncated, infos = self._env.step(action.numpy())
            self.features = self._encode(observations)
            # Where an episode has ended, these are features of the next one already.
            following = self.features.clone()
            ended = np.flatnonzero(infos.get("_final_obs", False))
            if len(ended):
                following[ended] = self._encode(stack(infos["final_obs"][ended]))
            lost = np.broadcast_to(infos.get("lost", False), truncated.shape)
            self._count(reward, terminated | truncated, lost)
            value, next_value = agent.value(features), agent.value(following)
            scaled = torch.from_numpy(reward).float() * self._settings.reward_scale
            flags = (torch.from_numpy(each.copy()) for each in (terminated, truncated, lost))
            logp = policy.log_prob(action)
            rows.append((features, action, logp, value, next_value, scaled, *flags))
        return Steps(*(torch.stack(column, dim=1) for column in zip(*rows, strict=True)))

    def _count(self, reward: NDArray[np.float64], ended: Bools, lost: Bools) -> None:
        """Adds the returns of the episodes that have ended; a lost one is no result."""
        self._running += reward
        self.returns += self._running[ended & ~lost].tolist()
        self._running[ended] = 0


def train(settings: Settings) -> tuple[Agent, list[float]]:
    """Trains an agent; returns it, and the return of each episode in the order of their ends."""
    torch.manual_seed(settings.seed)
    order = np.random.default_rng(settings.seed)
    env = make_env(settings)
    try:
        play = Play(env, settings)
        actions: Any = env.single_action_space  # Discrete
        agent = Agent(play.features.shape[1], int(actions.n), settings.hidden)
        optimizer = torch.optim.Adam(agent.parameters(), lr=settings.lr, eps=1e-5)
        updates = settings.env_steps // (settings.slots * settings.steps)
        began = time.monotonic()
        for number in range(updates):
            optimizer.param_groups[0]["lr"] = settings.lr * (1 - number / updates)
            update(agent, optimizer, batch_of(play.steps(agent), settings), settings, order)
            done = (number + 1) * settings.slots * settings.steps
            if number % 10 == 9 or number == updates - 1:
                recent = play.returns[-100:]
                shown = f"{np.mean(recent):8.2f}" if recent else "     ..."
                speed = done / (time.monotonic() - began)
                print(f"{done:9,} steps  return {shown}  {speed:8,.0f} steps/s", flush=True)
    finally:
        env.close()
    return agent, play.returns


def main() -> None:
    """Reads the command line, and trains."""
    parser = argparse.ArgumentParser(description="PPO in one file.")
    for each in fields(Settings):
        kind = type(each.default)
        choices = tuple(GAMES) if each.name == "game" else None
        parser.add_argument("--" + each.name.replace("_", "-"), type=kind, choices=choices)
    given = {key: value for key, value in vars(parser.parse_args()).items() if value is not None}
    own = GAMES[given.get("game", Settings.game)][2]
    settings = Settings(**{**own, **given})
    print(asdict(settings))
    train(settings)


if __name__ == "__main__":
    main()
