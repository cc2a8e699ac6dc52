"""Joint distributions over the actions of a game: discrete, continuous, or both.

Actions are independent given the observation, as in the policies of VPT and MineStudio, so
log-probabilities, entropies and KL divergences are sums.

Discrete actions are one categorical distribution per choice. Choices with the same number of
options are stacked, so the twenty keys of a keyboard cost as much as one.

A continuous action is encoded as the sample ``u`` of a normal distribution, in units in which a
bounded ``Box`` extends from -1 to 1 (other bounds are not scaled):

* ``gaussian``: the action is ``u``, clipped to the bounds of the space. The log-probability of a
  clipped action is that of the whole tail beyond the bound (Fujita and Maeda, 2018), so gradients
  are unbiased although the recorded action is the clipped one.
* ``squashed``: the action is ``tanh(u)`` (Haarnoja et al., 2018, appendix C). Its space must have
  bounds.

A log-probability is always that of the recorded action, in the precision of its column.
"""

from __future__ import annotations

import math
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

NEVER = -1e9
"""A logit that is never chosen, and finite, so that no gradient is NaN."""
_FORBIDDEN = -1e8  # options with values below are never chosen


@dataclass(frozen=True)
class ChoiceHead:
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
        groups: of choices with as many options: their number, the places of their logits, and the
            places of the choices.
        heads: the choices of each action column.

    Args:
        leaves: ``Discrete``, ``MultiDiscrete`` and ``MultiBinary`` spaces by column; at least one.

    Raises:
        ConfigError: a space is of another type.
    """

    def __init__(self, leaves: Mapping[str, spaces.Space[Any]]) -> None:
        self.heads = [_choice_head(key, leaf) for key, leaf in leaves.items()]
        sizes = [n for head in self.heads for n in head.sizes]
        self.choices, self.logits = len(sizes), sum(sizes)
        firsts = np.cumsum([0, *sizes[:-1]])  # of each choice's options in a row
        self.groups: list[tuple[int, Tensor, Tensor]] = []
        for size in sorted(set(sizes)):
            where = [i for i, n in enumerate(sizes) if n == size]
            at = np.array([[firsts[i] + k for k in range(size)] for i in where])
            self.groups.append((size, torch.from_numpy(at.ravel()), torch.tensor(where)))
        self._whole = len(self.groups) == 1
        self._firsts = torch.from_numpy(firsts)

    def place(self, key: str) -> slice:
        """Returns where the logits of an action column are."""
        at = 0
        for head in self.heads:
            size = sum(head.sizes)
            if head.key == key:
                return slice(at, at + size)
            at += size
        raise KeyError(key)

    def grouped(self, values: Tensor) -> list[Tensor]:
        """Returns a value of each option by groups of choices, ``(..., choices, options)``."""
        groups = []
        for size, at, _ in self.groups:
            own = values if self._whole else values.index_select(-1, at.to(values.device))
            groups.append(own.reshape(*own.shape[:-1], -1, size))
        return groups

    def stacked(self, logits: Tensor) -> list[Tensor]:
        """Returns the log-probabilities of each group of choices, ``(..., choices, options)``."""
        return [functional.log_softmax(own, dim=-1) for own in self.grouped(logits)]

    def explored(self, values: Tensor, epsilon: Tensor) -> Tensor:
        """Returns logits of an epsilon-greedy choice, ``(..., logits)``.

        Args:
            values: of each option, ``(..., logits)``; below -1e8 if it must not be chosen.
            epsilon: probability of a random option instead of that with the highest value.
        """
        out = torch.empty_like(values)
        for own, (_, at, _) in zip(self.grouped(values), self.groups, strict=True):
            allowed = (own > _FORBIDDEN).to(own.dtype)
            uniform = allowed / allowed.sum(-1, keepdim=True).clamp(min=1.0)
            best = functional.one_hot(own.argmax(-1), own.shape[-1]).to(own.dtype)
            # The best stays the most likely one, so that it is chosen without exploration.
            share = epsilon.clamp(max=1.0 - 1e-3)
            logits = (share * uniform + (1.0 - share) * best).clamp(min=1e-30).log()
            out[..., at.to(out.device)] = logits.flatten(-2)
        return out

    def one_hot(self, choices: Tensor) -> Tensor:
        """Returns choices ``(..., choices)`` as ones and zeros, ``(..., logits)`` float32."""
        out = choices.new_zeros((*choices.shape[:-1], self.logits), dtype=torch.float32)
        return out.scatter_(-1, choices + self._firsts.to(choices.device), 1.0)

    def chosen(self, groups: list[Tensor], choices: Tensor) -> Tensor:
        """Returns the joint log-probability of ``choices``, ``(..., choices)`` int64."""
        total: Tensor | None = None
        for log_p, (_, _, where) in zip(groups, self.groups, strict=True):
            own = choices if self._whole else choices.index_select(-1, where.to(choices.device))
            part = log_p.gather(-1, own.unsqueeze(-1)).squeeze(-1).sum(-1)
            total = part if total is None else total + part
        assert total is not None
        return total

    def best(self, scores: Tensor) -> Tensor:
        """Returns the option of each choice with the highest score, ``(..., choices)`` int64."""
        out = scores.new_zeros((*scores.shape[:-1], self.choices), dtype=torch.int64)
        for size, at, where in self.groups:
            own = scores if self._whole else scores.index_select(-1, at.to(scores.device))
            best = own.reshape(*own.shape[:-1], -1, size).argmax(-1)
            out[..., where.to(scores.device)] = best
        return out

    def encode(self, actions: Columns | Tensors) -> Tensor:
        """Returns action columns ``(..., *shape)`` as choices, ``(..., choices)`` int64."""
        parts = []
        for head in self.heads:
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
        for head in self.heads:
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


def _choice_head(key: str, leaf: spaces.Space[object]) -> ChoiceHead:
    dtype = leaf_dtype(leaf)
    if isinstance(leaf, spaces.Discrete):
        return ChoiceHead(key, (), (int(leaf.n),), (int(leaf.start),), dtype)
    if isinstance(leaf, spaces.MultiDiscrete):
        sizes = tuple(int(n) for n in leaf.nvec.ravel())
        return ChoiceHead(key, leaf.shape, sizes, tuple(int(n) for n in leaf.start.ravel()), dtype)
    if isinstance(leaf, spaces.MultiBinary):
        count = int(np.prod(leaf.shape))
        return ChoiceHead(key, leaf.shape, (2,) * count, (0,) * count, dtype)
    raise ConfigError(
        f"actor_critic supports actions of Discrete, MultiDiscrete, MultiBinary and Box of floats, "
        f"and the action {key!r} is {leaf}; use another action layout of the game, or another "
        f"policy"
    )


_EDGE = 1e-6
"""Least distance of a squashed action from its bounds, as a share of their distance."""
_NODES = 32
LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class BoxHead:
    """One action column: its name, the shape of a value, and the bounds and dtype of its space."""

    key: str
    shape: tuple[int, ...]
    low: np.ndarray[Any, np.dtype[Any]]
    high: np.ndarray[Any, np.dtype[Any]]
    dtype: np.dtype[np.generic]

    @property
    def places(self) -> int:
        """Number of numbers in a row."""
        return int(np.prod(self.shape))


class Boxes:
    """The layout of the numbers of continuous action columns in a row of means.

    Attributes:
        dims: number of numbers.
        squashed: whether actions are squashed into their bounds.
        nodes: of Gauss-Hermite quadrature, ``(n,)``.
        weights: of the nodes; their sum is 1.
        heads: the numbers of each action column.
        scale: what 1 in encoded numbers is in those of the actions, ``(dims,)``.
        offset: the action of which all encoded numbers are 0, ``(dims,)``.

    Args:
        leaves: ``Box`` spaces of floats by column; at least one.
        squashed: as above.

    Raises:
        ConfigError: an upper bound is not above the lower one, or a space to be squashed has no
            bounds.
    """

    def __init__(self, leaves: Mapping[str, spaces.Box], *, squashed: bool) -> None:
        self.heads = [
            BoxHead(key, leaf.shape, leaf.low.ravel(), leaf.high.ravel(), leaf_dtype(leaf))
            for key, leaf in leaves.items()
        ]
        self.dims, self.squashed = sum(head.places for head in self.heads), squashed
        low = torch.cat([torch.from_numpy(h.low.astype(np.float64)) for h in self.heads])
        high = torch.cat([torch.from_numpy(h.high.astype(np.float64)) for h in self.heads])
        bounded = low.isfinite() & high.isfinite()
        self._check(leaves, low, high, bounded)
        half, middle = high / 2 - low / 2, high / 2 + low / 2  # the difference may overflow
        self.scale = torch.where(bounded, half, 1.0)
        self.offset = torch.where(bounded, middle, 0.0)
        self.low = torch.where(bounded, -1.0, low).float()
        self.high = torch.where(bounded, 1.0, high).float()
        self.log_scale = self.scale.log().float()
        nodes, weights = np.polynomial.hermite.hermgauss(_NODES)
        self.nodes = torch.from_numpy(nodes)
        self.weights = torch.from_numpy(weights / math.sqrt(math.pi))

    def _check(
        self, leaves: Mapping[str, spaces.Box], low: Tensor, high: Tensor, bounded: Tensor
    ) -> None:
        if not bool((low < high).all()):
            raise ConfigError(
                f"actor_critic needs bounds with low below high, and the actions are "
                f"{dict(leaves)}; use another action layout of the game"
            )
        if self.squashed and not bool(bounded.all()):
            raise ConfigError(
                f"continuous=squashed needs bounds on every side, and the actions are "
                f"{dict(leaves)}; use continuous=gaussian"
            )

    def encode(self, actions: Columns | Tensors) -> Tensor:
        """Returns action columns ``(..., *shape)`` as samples, ``(..., dims)`` float32."""
        parts = []
        for head in self.heads:
            values = torch.as_tensor(actions[head.key])
            leading = values.shape[: values.ndim - len(head.shape)]
            parts.append(values.reshape(*leading, head.places).double())
        values = torch.cat(parts, dim=-1)
        device = values.device
        scaled = (values - self.offset.to(device)) / self.scale.to(device)
        if self.squashed:
            return scaled.clamp(-1 + _EDGE, 1 - _EDGE).atanh().float()
        return scaled.float().clamp(self.low.to(device), self.high.to(device))

    def decode(self, samples: Tensor) -> Columns:
        """Returns samples ``(B, dims)`` as action columns ``{key: (B, ...)}`` within the bounds."""
        samples = samples.cpu().double()
        values = ((samples.tanh() if self.squashed else samples) * self.scale) + self.offset
        columns: Columns = {}
        at = 0
        for head in self.heads:
            own = values[:, at : at + head.places].numpy()
            own = np.clip(own.astype(head.dtype), head.low, head.high)
            columns[head.key] = own.reshape(len(own), *head.shape)
            at += head.places
        return columns


class JointGaussian:
    """The distribution that a row of means and logarithms of standard deviations represents.

    Args:
        layout: of the action columns.
        mean: ``(..., dims)``, in encoded units.
        log_std: likewise.
    """

    def __init__(self, layout: Boxes, mean: Tensor, log_std: Tensor) -> None:
        self._layout, self._mean, self._log_std = layout, mean, log_std

    def log_prob(self, samples: Tensor) -> Tensor:
        """Returns the joint log-probability of encoded actions ``(..., dims)``, ``(...)``.

        It is a density of the action in its own units, in nats, and for each clipped number the
        probability of the tail beyond its bound.
        """
        layout, std = self._layout, self._log_std.exp()
        z = (samples - self._mean) / std
        log_p = -0.5 * (z.square() + LOG_2PI) - self._log_std
        log_p = log_p - layout.log_scale.to(z.device)
        if layout.squashed:
            return (log_p - _log_slope(samples)).sum(-1)
        low, high = layout.low.to(z.device), layout.high.to(z.device)
        for clipped, beyond in ((samples >= high, -z), (samples <= low, z)):
            tail = torch.special.log_ndtr(torch.where(clipped, beyond, 0.0))
            log_p = torch.where(clipped, tail, log_p)
        return log_p.sum(-1)

    def entropy(self) -> Tensor:
        """Returns the joint entropy, ``(...)``, in nats.

        That of ``gaussian`` is before clipping. That of ``squashed`` has no closed form: the mean
        of the logarithm of the derivative of tanh is estimated by Gauss-Hermite quadrature.
        """
        own = self._log_std + 0.5 * (1.0 + LOG_2PI) + self._layout.log_scale.to(self._mean.device)
        if self._layout.squashed:
            at = math.sqrt(2.0) * self._layout.nodes.to(self._mean)
            points = self._mean.unsqueeze(-1) + self._log_std.exp().unsqueeze(-1) * at
            own = own + (_log_slope(points) * self._layout.weights.to(self._mean)).sum(-1)
        return own.sum(-1)

    def kl(self, other: JointGaussian) -> Tensor:
        """Returns KL(self || other), ``(...)``, in nats; that of ``gaussian`` is before clipping.

        Squashing does not change it: both go through the same one-to-one function.
        """
        ratio = (2.0 * (self._log_std - other._log_std)).exp()
        apart = ((self._mean - other._mean) / other._log_std.exp()).square()
        return (0.5 * (ratio + apart - 1.0) - self._log_std + other._log_std).sum(-1)


def _log_slope(samples: Tensor) -> Tensor:
    """Returns the logarithm of the derivative of tanh, ``log(1 - tanh(u)^2)``, without overflow."""
    return 2.0 * (math.log(2.0) - samples - functional.softplus(-2.0 * samples))


Distribution: TypeAlias = "JointCategorical | JointGaussian | JointMixed"


class ActionLayout:
    """The layout of the actions of a flat action space in a row of outputs, ``logits + 2 * dims``.

    Logits come first, then means, then logarithms of standard deviations. Encoded actions are
    ``(..., choices + dims)``: int64 where all are discrete, else float32.

    Attributes:
        logits: number of logits, for discrete actions.
        dims: number of continuous numbers.
        outputs: length of a row.
        squashed: whether continuous actions are squashed into their bounds.
        discrete: layout of the choices; None without any.
        continuous: layout of the numbers; None without any.
        log_volume: sum of the logarithms of what a distance of 1 in encoded numbers is in actions.

    Args:
        space: flat ``Dict`` of ``Discrete``, ``MultiDiscrete``, ``MultiBinary`` and ``Box``.
        squashed: whether continuous actions are squashed into their bounds.

    Raises:
        ConfigError: a column is of another type, or its bounds are not valid.
    """

    def __init__(self, space: spaces.Dict, *, squashed: bool = False) -> None:
        boxes = {key: s for key, s in space.spaces.items() if _is_continuous(s)}
        choices = {key: s for key, s in space.spaces.items() if key not in boxes}
        self.discrete = Choices(choices) if choices or not boxes else None
        self.continuous = Boxes(boxes, squashed=squashed) if boxes else None  # type: ignore[arg-type] # they are
        self.logits = self.discrete.logits if self.discrete else 0
        self.dims = self.continuous.dims if self.continuous else 0
        self.outputs = self.logits + 2 * self.dims
        self.squashed = squashed
        self.log_volume = float(self.continuous.log_scale.sum()) if self.continuous else 0.0

    def place(self, key: str) -> slice:
        """Returns where the logits of a discrete action column are in a row."""
        assert self.discrete is not None
        return self.discrete.place(key)

    def pick(self, outputs: Tensor, noise: Tensor | None) -> Tensor:
        """Returns encoded actions.

        Args:
            outputs: ``(B, outputs)``.
            noise: ``(B, logits + dims)``: standard Gumbel numbers, then standard normal ones; None
                for the most likely choices and the means.
        """
        if self.continuous is None and self.discrete:  # most games; every view would cost time
            return self.discrete.best(outputs if noise is None else outputs + noise)
        logits, mean, log_std = self.split(outputs)
        parts = []
        if self.discrete:
            scores = logits if noise is None else logits + noise[..., : self.logits]
            parts.append(self.discrete.best(scores))
        if self.continuous:
            own = mean if noise is None else mean + log_std.exp() * noise[..., self.logits :]
            parts.append(own)
        return _joined(parts)

    def total(self, values: Tensor, encoded: Tensor) -> Tensor:
        """Returns the sum of the values ``(..., outputs)`` of encoded choices, ``(...)``."""
        assert self.discrete is not None
        return self.discrete.chosen(self.discrete.grouped(values), encoded)

    def explored(self, values: Tensor, epsilon: Tensor) -> Tensor:
        """Returns logits of the options with the highest values, or any with ``epsilon``."""
        assert self.discrete is not None
        return self.discrete.explored(values, epsilon)

    def inputs(self, encoded: Tensor) -> Tensor:
        """Returns encoded actions as inputs of a network, ``(..., logits + dims)``.

        Choices are one-hot; numbers of bounded actions are from -1 to 1.
        """
        count = self.discrete.choices if self.discrete else 0
        parts = []
        if self.discrete:
            parts.append(self.discrete.one_hot(encoded[..., :count].long()))
        if self.continuous:
            numbers = encoded[..., count:]
            parts.append(numbers.tanh() if self.squashed else numbers)
        return _joined(parts)

    def distribution(self, outputs: Tensor) -> Distribution:
        """Returns the distribution that rows of outputs ``(..., outputs)`` represent."""
        if self.continuous is None and self.discrete:
            return JointCategorical(self.discrete, outputs)
        logits, mean, log_std = self.split(outputs)
        discrete = JointCategorical(self.discrete, logits) if self.discrete else None
        continuous = JointGaussian(self.continuous, mean, log_std) if self.continuous else None
        if discrete is None or continuous is None:
            only = discrete or continuous
            assert only is not None  # a game has actions
            return only
        assert self.discrete is not None  # discrete is not None
        return JointMixed(discrete, continuous, self.discrete.choices)

    def split(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns logits, means and logarithms of standard deviations of rows of outputs."""
        logits, mean, log_std = torch.split(outputs, [self.logits, self.dims, self.dims], dim=-1)
        return logits, mean, log_std

    def encode(self, actions: Columns | Tensors) -> Tensor:
        """Returns action columns ``(..., *shape)`` in encoded form."""
        return _joined([part.encode(actions) for part in (self.discrete, self.continuous) if part])

    def decode(self, encoded: Tensor) -> Columns:
        """Returns encoded actions ``(B, ...)`` as action columns ``{key: (B, ...)}``."""
        count = self.discrete.choices if self.discrete else 0
        columns: Columns = {}
        if self.discrete:
            columns |= self.discrete.decode(
                encoded[:, :count].long() if self.continuous else encoded
            )
        if self.continuous:
            columns |= self.continuous.decode(encoded[:, count:])
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
