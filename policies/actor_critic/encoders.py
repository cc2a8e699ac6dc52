"""Encodes observation columns to features: tables for symbols, convolutions for pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from policies.actor_critic.columns import ColumnEntry, channels_first, picture_size
from rollout.errors import ConfigError

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "silu": nn.SiLU}


def orthogonal(layer: nn.Module, gain: float) -> nn.Module:
    """Returns a linear or convolutional layer with orthogonal weights and zero bias.

    Saxe et al. (2014); the initialisation that PPO implementations use (Huang et al., 2022).
    """
    nn.init.orthogonal_(layer.weight, gain)  # type: ignore[arg-type] # a layer's weight is a tensor
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type] # likewise
    return layer


class Numbers(nn.Module):
    """Flattens numbers and scales those that have bounds to -1 to 1."""

    def __init__(self, entry: ColumnEntry) -> None:
        super().__init__()
        low, high = np.array(entry.low or [np.nan]), np.array(entry.high or [np.nan])
        bounded = ~np.isnan(low)
        scale, shift = np.where(bounded, 2.0 / (high - low), 1.0), np.where(bounded, low, 0.0)
        # Rows that are within -1 to 1 already are not changed: no work, and zero stays zero.
        unit = bounded & (low >= -1.0) & (high <= 1.0)
        scale, shift = np.where(unit, 1.0, scale), np.where(unit, 0.0, shift)
        offset = np.where(bounded & ~unit, -1.0, 0.0) - shift * scale
        self._plain = bool((scale == 1.0).all() and (offset == 0.0).all())
        self.register_buffer("_scale", torch.tensor(scale, dtype=torch.float32), persistent=False)
        self.register_buffer("_offset", torch.tensor(offset, dtype=torch.float32), persistent=False)
        self.size = entry.places

    def forward(self, values: Tensor) -> Tensor:
        """Returns ``(B, size)`` float32."""
        flat = values.flatten(1) if values.ndim > 1 else values.unsqueeze(1)
        flat = flat.to(torch.float32)
        return flat if self._plain else torch.addcmul(self._offset, flat, self._scale)  # type: ignore[arg-type] # a buffer


class Symbols(nn.Module):
    """A learned vector for each symbol at each place, summed: equivalent to one-hot and linear.

    With ``embedding`` above 0, places share one table of vectors of that size, and the vectors are
    concatenated instead of summed: fewer weights, and what is learned about a symbol applies at
    every place. A float between two symbols has the mean of their vectors, weighted by its
    distances.
    """

    def __init__(self, entry: ColumnEntry, width: int, embedding: int) -> None:
        super().__init__()
        options = np.array(entry.options)
        self._shared, self._between = embedding > 0, entry.between
        rows = int(options.max()) if self._shared else int(options.sum())
        firsts = np.zeros_like(options) if self._shared else np.cumsum([0, *options[:-1]])
        starts = np.array(entry.starts)
        bounds = {"_shift": firsts - starts, "_least": firsts, "_most": firsts + options - 1}
        for name, bound in bounds.items():
            own = torch.tensor(bound, dtype=torch.int64)
            self.register_buffer(name, own, persistent=False)
        # A slot that never played has zeros, which may not be among the symbols.
        self._clamp = bool(((starts > 0) | (starts + options <= 0)).any())
        self.table = nn.Parameter(torch.empty(rows, embedding if self._shared else width))
        # Initialised like a linear layer on one-hot rows: unit variance after the sum.
        nn.init.normal_(self.table, std=1.0 if self._shared else len(options) ** -0.5)
        self.size = embedding * entry.places if self._shared else 0

    def forward(self, values: Tensor) -> Tensor:
        """Returns ``(B, size)``, or the term added to the first layer, ``(B, width)``."""
        flat = values.flatten(1) if values.ndim > 1 else values.unsqueeze(1)
        if self._between:
            lower = flat.floor()
            share = (flat - lower).to(self.table.dtype)
            first, second = self._index(lower, clamp=True), self._index(lower + 1, clamp=True)
            return self._mean(first, 1.0 - share) + self._mean(second, share)
        index = self._index(flat, clamp=self._clamp)
        if self._shared:
            return functional.embedding(index, self.table).flatten(1)
        if index.device.type != "cpu":
            return functional.embedding_bag(index, self.table, mode="sum")
        out: Tensor = _SumOfRows.apply(index, self.table)  # type: ignore[no-untyped-call] # torch
        return out

    def _index(self, flat: Tensor, *, clamp: bool) -> Tensor:
        """Returns the rows of the table for symbols ``(B, places)``."""
        index = flat.to(torch.int64) + self._shift  # type: ignore[operator] # a buffer
        return index.clamp(self._least, self._most) if clamp else index  # type: ignore[arg-type] # buffers

    def _mean(self, index: Tensor, share: Tensor) -> Tensor:
        """Returns the part of each row of the table in what ``forward`` returns."""
        if self._shared:
            return (functional.embedding(index, self.table) * share.unsqueeze(-1)).flatten(1)
        return functional.embedding_bag(index, self.table, mode="sum", per_sample_weights=share)


class _SumOfRows(torch.autograd.Function):
    """``embedding_bag`` in the mode "sum", with a gradient that is three times as fast on a CPU.

    Torch adds the gradient of each looked-up row one by one; here the rows of one place are added
    in one pass over the batch.
    """

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor) -> Tensor:
        """Returns the sum of the rows ``index`` ``(B, places)`` of ``table``, ``(B, width)``."""
        ctx.save_for_backward(index)
        ctx.rows = len(table)
        return functional.embedding_bag(index, table, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        """Returns the gradient of the table."""
        (index,), (gradient,) = ctx.saved_tensors, gradients
        out = gradient.new_zeros(ctx.rows, gradient.shape[1])
        for place in index.T.contiguous():
            out.index_add_(0, place, gradient)
        return None, out


def nature_cnn(channels: int, width: float) -> nn.Sequential:
    """Returns the three convolutions of Mnih et al. (2015), their channels times ``width``."""
    c = [max(8, int(n * width)) for n in (32, 64, 64)]
    layers = [(channels, c[0], 8, 4), (c[0], c[1], 4, 2), (c[1], c[2], 3, 1)]
    convolutions: list[nn.Module] = []
    for in_, out, size, stride in layers:
        layer = nn.Conv2d(in_, out, size, stride)
        convolutions += [orthogonal(layer, 2.0**0.5), nn.ReLU()]
    return nn.Sequential(*convolutions)


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, values: Tensor) -> Tensor:
        out: Tensor = values + self.layers(values)
        return out


def impala_cnn(channels: int, width: float) -> nn.Sequential:
    """Returns the deep network of Espeholt et al. (2018): three stages of two residual blocks."""
    stages: list[nn.Module] = []
    for n in (16, 32, 32):
        out = max(8, int(n * width))
        stages += [nn.Conv2d(channels, out, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
        stages += [_Residual(out), _Residual(out)]
        channels = out
    return nn.Sequential(*stages, nn.ReLU())


CNNS: dict[str, Callable[[int, float], nn.Sequential]] = {
    "nature": nature_cnn,
    "impala": impala_cnn,
}


class Picture(nn.Module):
    """Encodes pictures by convolutions to ``features`` numbers."""

    def __init__(self, entry: ColumnEntry, cnn: str, width: float, features: int) -> None:
        super().__init__()
        self._shape, self._scale = entry.shape, 1.0 / entry.high[0]
        channels, *size = picture_size(entry.shape)
        if cnn == "nature" and min(size) < 36:
            raise ConfigError(
                f"cnn=nature needs pictures of 36 x 36 pixels and more, and {entry.key!r} is "
                f"{size[1]} x {size[0]}; use cnn=impala, or if its values are codes, "
                f"symbols=[{entry.key}]"
            )
        self.cnn = CNNS[cnn](channels, width)
        for parameter in self.cnn.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.to(memory_format=torch.channels_last)
        with torch.no_grad():
            out = self.cnn(torch.zeros(1, channels, *size)).numel()
        self.linear = orthogonal(nn.Linear(out, features), 2.0**0.5)
        self.size = features

    def forward(self, values: Tensor) -> Tensor:
        """Returns ``(B, features)``."""
        pixels = channels_first(values, self._shape)
        device = pixels.device.type
        half = torch.is_autocast_enabled(device)
        dtype = torch.get_autocast_dtype(device) if half else torch.float32
        pixels = pixels.to(dtype, copy=True)  # scaled in place
        pixels = pixels.contiguous(memory_format=torch.channels_last).mul_(self._scale)
        return functional.relu(self.linear(self.cnn(pixels).flatten(1))).float()


class Encoder(nn.Module):
    """Encodes all columns of an observation, up to the first hidden layer.

    Attributes:
        size: number of features it returns.
    """

    def __init__(
        self,
        columns: Sequence[ColumnEntry],
        *,
        width: int,
        activation: str,
        embedding: int,
        cnn: str,
        cnn_width: float,
        cnn_features: int,
    ) -> None:
        super().__init__()
        self._keys = [entry.key for entry in columns]
        parts: list[nn.Module] = []
        for entry in columns:
            if entry.kind == "picture":
                parts.append(Picture(entry, cnn, cnn_width, cnn_features))
            elif entry.kind == "symbols":
                parts.append(Symbols(entry, width, embedding))
            else:
                parts.append(Numbers(entry))
        self.parts = nn.ModuleList(parts)
        joined = sum(part.size for part in self.parts)  # type: ignore[misc] # each part has one
        self.linear = orthogonal(nn.Linear(joined, width), 2.0**0.5) if joined else None
        self.activation = ACTIVATIONS[activation]()
        self.size = width

    def forward(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Returns features ``(B, size)``."""
        joined: list[Tensor] = []
        total: Tensor | None = None
        for key, part in zip(self._keys, self.parts, strict=True):
            out = part(observations[key])
            if part.size:
                joined.append(out)
            else:
                total = out if total is None else total + out
        if self.linear is not None:
            own = self.linear(joined[0] if len(joined) == 1 else torch.cat(joined, 1))
            total = own if total is None else total + own
        assert total is not None  # there is at least one column
        features: Tensor = self.activation(total)
        return features
