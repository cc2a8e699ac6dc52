"""The distribution over continuous actions: a normal distribution for each number.

A value is encoded as the sample ``u`` of the normal distribution that it comes from, in units in
which a bounded ``Box`` extends from -1 to 1 (other bounds are not scaled):

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
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor
from torch.nn import functional

from policies.actor_critic.categorical import Tensors
from rollout.api import Columns, leaf_dtype
from rollout.errors import ConfigError

_EDGE = 1e-6
"""Least distance of a squashed action from its bounds, as a share of their distance."""
_NODES = 32
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class _Head:
    """One action column: its name, the shape of a value, and the bounds and dtype of its space."""

    key: str
    shape: tuple[int, ...]
    low: np.ndarray[Any, np.dtype[Any]]
    high: np.ndarray[Any, np.dtype[Any]]
    dtype: np.dtype[np.generic]

    @property
    def places(self) -> int:
        return int(np.prod(self.shape))


class Boxes:
    """The layout of the numbers of continuous action columns in a row of means.

    Attributes:
        dims: number of numbers.
        squashed: whether actions are squashed into their bounds.

    Args:
        leaves: ``Box`` spaces of floats by column; at least one.
        squashed: as above.

    Raises:
        ConfigError: an upper bound is not above the lower one, or a space to be squashed has no
            bounds.
    """

    def __init__(self, leaves: Mapping[str, spaces.Box], *, squashed: bool) -> None:
        self._heads = [
            _Head(key, leaf.shape, leaf.low.ravel(), leaf.high.ravel(), leaf_dtype(leaf))
            for key, leaf in leaves.items()
        ]
        self.dims, self.squashed = sum(head.places for head in self._heads), squashed
        low = torch.cat([torch.from_numpy(h.low.astype(np.float64)) for h in self._heads])
        high = torch.cat([torch.from_numpy(h.high.astype(np.float64)) for h in self._heads])
        bounded = low.isfinite() & high.isfinite()
        self._check(leaves, low, high, bounded)
        half, middle = high / 2 - low / 2, high / 2 + low / 2  # the difference may overflow
        self._scale = torch.where(bounded, half, 1.0)
        self._offset = torch.where(bounded, middle, 0.0)
        self.low = torch.where(bounded, -1.0, low).float()
        self.high = torch.where(bounded, 1.0, high).float()
        self.log_scale = self._scale.log().float()

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
        for head in self._heads:
            values = torch.as_tensor(actions[head.key])
            leading = values.shape[: values.ndim - len(head.shape)]
            parts.append(values.reshape(*leading, head.places).double())
        values = torch.cat(parts, dim=-1)
        device = values.device
        scaled = (values - self._offset.to(device)) / self._scale.to(device)
        if self.squashed:
            return scaled.clamp(-1 + _EDGE, 1 - _EDGE).atanh().float()
        return scaled.float().clamp(self.low.to(device), self.high.to(device))

    def decode(self, samples: Tensor) -> Columns:
        """Returns samples ``(B, dims)`` as action columns ``{key: (B, ...)}`` within the bounds."""
        samples = samples.cpu().double()
        values = ((samples.tanh() if self.squashed else samples) * self._scale) + self._offset
        columns: Columns = {}
        at = 0
        for head in self._heads:
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
        log_p = -0.5 * (z.square() + _LOG_2PI) - self._log_std
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
        own = self._log_std + 0.5 * (1.0 + _LOG_2PI) + self._layout.log_scale.to(self._mean.device)
        if self._layout.squashed:
            nodes, weights = np.polynomial.hermite.hermgauss(_NODES)
            at = math.sqrt(2.0) * self._mean.new_tensor(nodes)
            points = self._mean.unsqueeze(-1) + self._log_std.exp().unsqueeze(-1) * at
            weight = self._mean.new_tensor(weights / math.sqrt(math.pi))
            own = own + (_log_slope(points) * weight).sum(-1)
        return own.sum(-1)

    def kl(self, other: JointGaussian) -> Tensor:
        """Returns KL(self || other), ``(...)``, in nats; that of ``gaussian`` is before clipping.

        Squashing does not change it: both go through the same one-to-one function.
        """
        ratio = (2.0 * (self._log_std - other._log_std)).exp()
        apart = ((self._mean - other._mean) / other._log_std.exp()).square()
        return (0.5 * (ratio + apart - 1.0) - self._log_std + other._log_std).sum(-1)


def _log_slope(samples: Tensor) -> Tensor:
    """Logarithm of the derivative of tanh, ``log(1 - tanh(u)^2)``, without overflow."""
    return 2.0 * (math.log(2.0) - samples - functional.softplus(-2.0 * samples))
