"""The joint distribution over the actions of a game: discrete, continuous, or both.

All actions are independent given the observation, so log-probabilities, entropies and KL are sums.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from policies.actor_critic.categorical import Choices, JointCategorical, Tensors
from policies.actor_critic.gaussian import Boxes, JointGaussian
from rollout.api import Columns

Distribution: TypeAlias = "JointCategorical | JointGaussian | JointMixed"


class ActionLayout:
    """The layout of the actions of a flat action space in a row of outputs, ``logits + 2 * dims``.

    Logits come first, then means, then logarithms of standard deviations. Encoded actions are
    ``(..., choices + dims)``: int64 where all are discrete, else float32.

    Attributes:
        logits: number of logits, for discrete actions.
        dims: number of continuous numbers.
        outputs: length of a row.

    Args:
        space: flat ``Dict`` of ``Discrete``, ``MultiDiscrete``, ``MultiBinary`` and ``Box``.
        squashed: whether continuous actions are squashed into their bounds.

    Raises:
        ConfigError: a column is of another type, or its bounds are not valid.
    """

    def __init__(self, space: spaces.Dict, *, squashed: bool = False) -> None:
        boxes = {key: s for key, s in space.spaces.items() if _is_continuous(s)}
        choices = {key: s for key, s in space.spaces.items() if key not in boxes}
        self._choices = Choices(choices) if choices or not boxes else None
        self._boxes = Boxes(boxes, squashed=squashed) if boxes else None  # type: ignore[arg-type] # they are
        self.logits = self._choices.logits if self._choices else 0
        self.dims = self._boxes.dims if self._boxes else 0
        self.outputs = self.logits + 2 * self.dims

    def place(self, key: str) -> slice:
        """Returns where the logits of a discrete action column are in a row."""
        assert self._choices is not None
        return self._choices.place(key)

    def pick(self, outputs: Tensor, noise: Tensor | None) -> Tensor:
        """Returns encoded actions.

        Args:
            outputs: ``(B, outputs)``.
            noise: ``(B, logits + dims)``: standard Gumbel numbers, then standard normal ones; None
                for the most likely choices and the means.
        """
        if self._boxes is None and self._choices:  # most games; every view would cost time
            return self._choices.best(outputs if noise is None else outputs + noise)
        logits, mean, log_std = self.split(outputs)
        parts = []
        if self._choices:
            scores = logits if noise is None else logits + noise[..., : self.logits]
            parts.append(self._choices.best(scores))
        if self._boxes:
            own = mean if noise is None else mean + log_std.exp() * noise[..., self.logits :]
            parts.append(own)
        return _joined(parts)

    def distribution(self, outputs: Tensor) -> Distribution:
        """Returns the distribution that rows of outputs ``(..., outputs)`` represent."""
        if self._boxes is None and self._choices:
            return JointCategorical(self._choices, outputs)
        logits, mean, log_std = self.split(outputs)
        discrete = JointCategorical(self._choices, logits) if self._choices else None
        continuous = JointGaussian(self._boxes, mean, log_std) if self._boxes else None
        if discrete is None or continuous is None:
            only = discrete or continuous
            assert only is not None  # a game has actions
            return only
        assert self._choices is not None  # discrete is not None
        return JointMixed(discrete, continuous, self._choices.choices)

    def split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns logits, means and logarithms of standard deviations of rows of outputs."""
        logits, mean, log_std = torch.split(outputs, [self.logits, self.dims, self.dims], dim=-1)
        return logits, mean, log_std

    def encode(self, actions: Columns | Tensors) -> Tensor:
        """Returns action columns ``(..., *shape)`` in encoded form."""
        return _joined([part.encode(actions) for part in (self._choices, self._boxes) if part])

    def decode(self, encoded: Tensor) -> Columns:
        """Returns encoded actions ``(B, ...)`` as action columns ``{key: (B, ...)}``."""
        count = self._choices.choices if self._choices else 0
        columns: Columns = {}
        if self._choices:
            columns |= self._choices.decode(encoded[:, :count].long() if self._boxes else encoded)
        if self._boxes:
            columns |= self._boxes.decode(encoded[:, count:])
        return columns


class JointMixed:
    """The distribution over discrete and continuous actions together.

    Args:
        discrete: distribution over the choices.
        continuous: distribution over the numbers.
        choices: number of choices, which come first in encoded actions.
    """

    def __init__(self, discrete: JointCategorical, continuous: JointGaussian, choices: int) -> None:
        self._discrete, self._continuous, self._count = discrete, continuous, choices

    def log_prob(self, encoded: Tensor) -> Tensor:
        """Returns the joint log-probability of encoded actions, ``(...)``, in nats."""
        choices = encoded[..., : self._count].long()
        numbers = encoded[..., self._count :]
        return self._discrete.log_prob(choices) + self._continuous.log_prob(numbers)

    def entropy(self) -> Tensor:
        """Returns the joint entropy, ``(...)``, in nats; see ``JointGaussian.entropy``."""
        return self._discrete.entropy() + self._continuous.entropy()

    def kl(self, other: JointMixed) -> Tensor:
        """Returns KL(self || other), ``(...)``, in nats."""
        return self._discrete.kl(other._discrete) + self._continuous.kl(other._continuous)


def _is_continuous(leaf: spaces.Space[object]) -> bool:
    return isinstance(leaf, spaces.Box) and np.issubdtype(leaf.dtype, np.floating)


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat([part.float() for part in parts], dim=-1)
