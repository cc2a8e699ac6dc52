"""Networks in plain PyTorch, as all libraries have them."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn


def layers(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Returns linear layers, each followed by an activation."""
    parts = [(nn.Linear(a, b), activation()) for a, b in itertools.pairwise(sizes)]
    return nn.Sequential(*itertools.chain(*parts))


class ActorCritic(nn.Module):
    """Two MLPs of tanh for vectors; one Nature CNN of ReLU with two heads for pictures."""

    def __init__(self, shape: tuple[int, ...], actions: int, hidden: list[int]) -> None:
        super().__init__()
        self.shape = shape
        self.last = len(shape) == 3 and shape[-1] == 3  # channels come last
        width = hidden[-1]
        if len(shape) == 3:
            self.body = nature(shape[-1] if self.last else shape[0], shape[1], width)
            self.actor, self.critic = nn.Linear(width, actions), nn.Linear(width, 1)
        else:
            sizes = [shape[0], *hidden]
            self.body = nn.Identity()
            self.actor = nn.Sequential(layers(sizes, nn.Tanh), nn.Linear(width, actions))
            self.critic = nn.Sequential(layers(sizes, nn.Tanh), nn.Linear(width, 1))

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Returns logits and values."""
        body = self.encode(seen)
        return self.actor(body), self.critic(body)[:, 0]

    def encode(self, seen: Tensor) -> Tensor:
        """Returns what both heads read."""
        if len(self.shape) == 3:
            seen = seen.reshape(-1, *self.shape)
            seen = (seen.permute(0, 3, 1, 2) if self.last else seen).float() / 255
        encoded: Tensor = self.body(seen)
        return encoded


def nature(channels: int, size: int, width: int) -> nn.Sequential:
    """Returns the CNN of Mnih et al. 2015."""
    parts: list[Any] = [nn.Conv2d(channels, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2)]
    parts += [nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten()]
    with torch.no_grad():
        flat = nn.Sequential(*parts)(torch.zeros(1, channels, size, size)).shape[1]
    return nn.Sequential(*parts, nn.Linear(flat, width), nn.ReLU())
