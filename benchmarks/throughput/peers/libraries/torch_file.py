"""PPO as a single file of PyTorch has it, on Gymnasium's vector environments or EnvPool."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.throughput.peers.libraries.games import vector
from benchmarks.throughput.peers.libraries.nets import ActorCritic
from benchmarks.throughput.peers.libraries.turns import Turn, serve


class Plain:
    """A network and its update.

    Args:
        ppo: settings; see ``settings.yaml``.
        compiled: whether the loss goes through ``torch.compile``.
    """

    def __init__(self, shape: tuple[int, ...], actions: int, ppo: Any, *, compiled: bool) -> None:
        self.ppo, self.network = ppo, ActorCritic(shape, actions, ppo.hidden)
        self._loss_of = torch.compile(self._loss) if compiled else self._loss
        self.restart()

    def restart(self) -> None:
        """Begins with new weights; what was compiled stays."""
        for module in self.network.modules():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()
        self._optimizer = torch.optim.Adam(
            self.network.parameters(), lr=self.ppo.lr, eps=1e-5, fused=True
        )

    def _loss(
        self, seen: Tensor, acted: Tensor, logp: Tensor, gain: Tensor, target: Tensor
    ) -> Tensor:
        logits, value = self.network(seen)
        log_p = torch.log_softmax(logits, -1)
        ratio = (log_p.gather(1, acted[:, None])[:, 0] - logp).exp()
        bounded = ratio.clamp(1 - self.ppo.clip, 1 + self.ppo.clip)
        policy = -torch.minimum(ratio * gain, bounded * gain).mean()
        entropy = -(log_p.exp() * log_p).sum(-1).mean()
        error = 0.5 * (value - target).square().mean()
        return policy + self.ppo.value_coef * error - self.ppo.entropy * entropy

    def update(self, rows: Sequence[Tensor]) -> None:
        """Learns from observations, actions, their log-probabilities, advantages and targets."""
        for _ in range(self.ppo.epochs):
            order = torch.randperm(len(rows[0]))
            for part in order.split(self.ppo.minibatch):
                self._optimizer.zero_grad()
                loss = self._loss_of(*(column[part] for column in rows))
                loss.backward()  # type: ignore[no-untyped-call] # torch
                nn.utils.clip_grad_norm_(self.network.parameters(), self.ppo.max_grad_norm)
                self._optimizer.step()


@functools.cache
def _plain(shape: tuple[int, ...], actions: int, compiled: bool) -> Plain:
    return Plain(shape, actions, _turn.ppo, compiled=compiled)


def train(turn: Turn) -> None:
    """Trains for a turn; its variant says with which games, and whether the loss is compiled."""
    global _turn
    _turn, ppo, count = turn, turn.ppo, turn.size
    torch.manual_seed(turn.seed)
    games = vector(turn.game, count, turn.seed, pool="envpool" in turn.variant)
    shape, actions = games.single_observation_space.shape, int(games.single_action_space.n)
    plain = _plain(shape, actions, "compiled" in turn.variant)
    plain.restart()
    seen, steps, totals = games.reset(seed=turn.seed)[0], ppo.batch // count, np.zeros(count)
    turn.begin()
    over = False
    while not over:
        taken: list[tuple[Tensor, ...]] = []
        rewards, ends, returns = [], [], []
        for _ in range(steps):
            with torch.no_grad():
                rows = torch.as_tensor(seen)
                logits, value = plain.network(rows)
                log_p = torch.log_softmax(logits, -1)
                acted = torch.multinomial(log_p.exp(), 1)
            taken.append((rows, acted[:, 0], log_p.gather(1, acted)[:, 0], value))
            seen, reward, terminated, truncated, _ = games.step(acted[:, 0].numpy())
            end, totals = terminated | truncated, totals + reward
            returns += totals[end].tolist()
            totals[end] = 0.0
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            ends.append(torch.as_tensor(end))
        with torch.no_grad():
            value = plain.network(torch.as_tensor(seen))[1]
        gains, gain = [], torch.zeros(count)
        for (_, _, _, now), reward, end in zip(taken[::-1], rewards[::-1], ends[::-1], strict=True):
            on = ppo.gamma * (~end).float()
            gain = reward + on * value - now + ppo.gae_lambda * on * gain
            gains.append(gain)
            value = now
        seens, acts, logps, values = (torch.cat(each) for each in zip(*taken, strict=True))
        advantage = torch.cat(gains[::-1])
        scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        plain.update([seens, acts, logps, scaled, advantage + values])
        over = turn.add(steps * count, returns)
    games.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    serve(train)
