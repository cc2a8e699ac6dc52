"""The distribution over discrete actions: one categorical per choice.

Choices are independent given the observation, as in the policies of VPT and MineStudio, so the
joint log-probability and entropy are sums. Choices with the same number of options are stacked, so
the twenty keys of a keyboard cost as much as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from rollout.api import Columns, leaf_dtype
from rollout.errors import ConfigError

Tensors: TypeAlias = Mapping[str, Tensor]


@dataclass(frozen=True)
class _Head:
    """The choices of one action column.

    Attributes:
        key: the column.
        shape: of one row's value.
        sizes: number of options of each choice, flattened.
        starts: value of the first option of each.
        dtype: of the column.
    """

    key: str
    shape: tuple[int, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    dtype: np.dtype[np.generic]


class Choices:
    """The layout of the choices of discrete action columns in a row of logits.

    Attributes:
        choices: number of choices.
        logits: number of logits.

    Args:
        leaves: ``Discrete``, ``MultiDiscrete`` and ``MultiBinary`` spaces by column; at least one.

    Raises:
        ConfigError: a space is of another type.
    """

    def __init__(self, leaves: Mapping[str, spaces.Space[Any]]) -> None:
        self._heads = [_head(key, leaf) for key, leaf in leaves.items()]
        sizes = [n for head in self._heads for n in head.sizes]
        self.choices, self.logits = len(sizes), sum(sizes)
        firsts = np.cumsum([0, *sizes[:-1]])
        self._groups: list[tuple[int, Tensor, Tensor]] = []
        for size in sorted(set(sizes)):
            where = [i for i, n in enumerate(sizes) if n == size]
            at = np.array([[firsts[i] + k for k in range(size)] for i in where])
            self._groups.append((size, torch.from_numpy(at.ravel()), torch.tensor(where)))
        self._whole = len(self._groups) == 1

    def place(self, key: str) -> slice:
        """Returns where the logits of an action column are."""
        at = 0
        for head in self._heads:
            size = sum(head.sizes)
            if head.key == key:
                return slice(at, at + size)
            at += size
        raise KeyError(key)

    def stacked(self, logits: Tensor) -> list[Tensor]:
        """Returns the log-probabilities of each group of choices, ``(..., choices, options)``."""
        groups = []
        for size, at, _ in self._groups:
            own = logits if self._whole else logits.index_select(-1, at.to(logits.device))
            groups.append(functional.log_softmax(own.reshape(*own.shape[:-1], -1, size), dim=-1))
        return groups

    def chosen(self, groups: list[Tensor], choices: Tensor) -> Tensor:
        """Returns the joint log-probability of ``choices``, ``(..., choices)`` int64."""
        total: Tensor | None = None
        for log_p, (_, _, where) in zip(groups, self._groups, strict=True):
            own = choices if self._whole else choices.index_select(-1, where.to(choices.device))
            part = log_p.gather(-1, own.unsqueeze(-1)).squeeze(-1).sum(-1)
            total = part if total is None else total + part
        assert total is not None
        return total

    def best(self, scores: Tensor) -> Tensor:
        """Returns the option of each choice with the highest score, ``(..., choices)`` int64."""
        out = scores.new_zeros((*scores.shape[:-1], self.choices), dtype=torch.int64)
        for size, at, where in self._groups:
            own = scores if self._whole else scores.index_select(-1, at.to(scores.device))
            best = own.reshape(*own.shape[:-1], -1, size).argmax(-1)
            out[..., where.to(scores.device)] = best
        return out

    def encode(self, actions: Columns | Tensors) -> Tensor:
        """Returns action columns ``(..., *shape)`` as choices, ``(..., choices)`` int64."""
        parts = []
        for head in self._heads:
            values = torch.as_tensor(actions[head.key])
            leading = values.shape[: values.ndim - len(head.shape)]
            flat = values.reshape(*leading, len(head.sizes)).to(torch.int64)
            parts.append(flat - torch.tensor(head.starts, device=flat.device))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def decode(self, choices: Tensor) -> Columns:
        """Returns choices ``(B, choices)`` as action columns ``{key: (B, ...)}``."""
        values = choices.cpu().numpy()
        columns: Columns = {}
        at = 0
        for head in self._heads:
            own = values[:, at : at + len(head.sizes)] + np.array(head.starts)
            columns[head.key] = own.reshape(len(values), *head.shape).astype(head.dtype)
            at += len(head.sizes)
        return columns


class JointCategorical:
    """The distribution that a row of logits represents.

    Args:
        layout: of the action columns.
        logits: ``(..., layout.logits)``.
    """

    def __init__(self, layout: Choices, logits: Tensor) -> None:
        self._layout, self._groups = layout, layout.stacked(logits)

    def log_prob(self, choices: Tensor) -> Tensor:
        """Returns the joint log-probability of ``(..., choices)``, ``(...)``, in nats."""
        return self._layout.chosen(self._groups, choices)

    def entropy(self) -> Tensor:
        """Returns the joint entropy, ``(...)``, in nats."""
        return torch.stack([-(g.exp() * g).sum((-1, -2)) for g in self._groups]).sum(0)

    def kl(self, other: JointCategorical) -> Tensor:
        """Returns KL(self || other), ``(...)``, in nats."""
        pairs = zip(self._groups, other._groups, strict=True)
        return torch.stack([(a.exp() * (a - b)).sum((-1, -2)) for a, b in pairs]).sum(0)


def _head(key: str, leaf: spaces.Space[object]) -> _Head:
    dtype = leaf_dtype(leaf)
    if isinstance(leaf, spaces.Discrete):
        return _Head(key, (), (int(leaf.n),), (int(leaf.start),), dtype)
    if isinstance(leaf, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in leaf.nvec.ravel())
        return _Head(key, leaf.shape, sizes, tuple(int(n) for n in leaf.start.ravel()), dtype)
    if isinstance(leaf, spaces.MultiBinary):
        count = int(np.prod(leaf.shape))
        return _Head(key, leaf.shape, (2,) * count, (0,) * count, dtype)
    raise ConfigError(
        f"actor_critic supports actions of Discrete, MultiDiscrete, MultiBinary and Box of floats, "
        f"and the action {key!r} is {leaf}; use another action layout of the game, or another "
        f"policy"
    )
