"""The actor-critic network: encoders of columns, a trunk, an optional memory, and two heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.nn import functional

from policies.actor_critic.columns import ColumnEntry, channels_first, picture_size
from policies.actor_critic.deciding import best_value, describe, most_likely
from policies.actor_critic.dense import DenseNetwork
from policies.actor_critic.distributions import NEVER, ActionLayout, Distribution
from policies.actor_critic.options import NetworkOptions
from rollout.api import MASK
from rollout.api.masks import choices_of
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
        index, shares = self.rows(values)
        if torch.compiler.is_exporting() and not self._shared:
            # Other formats have no sum of looked-up rows, or another one.
            vectors = functional.embedding(index, self.table)
            return (vectors if shares is None else vectors * shares.unsqueeze(-1)).sum(1)
        if shares is not None:
            if self._shared:
                parts = functional.embedding(index, self.table) * shares.unsqueeze(-1)
                # Not len(parts): in an export it would be a constant.
                return parts.view(parts.shape[0], 2, -1).sum(1)
            return functional.embedding_bag(
                index, self.table, mode="sum", per_sample_weights=shares
            )
        if self._shared:
            return functional.embedding(index, self.table).flatten(1)
        if index.device.type != "cpu":
            return functional.embedding_bag(index, self.table, mode="sum")
        out: Tensor = _SumOfRows.apply(index, self.table)  # type: ignore[no-untyped-call] # torch
        return out

    def rows(self, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """Returns rows of the table ``(B, n)``, and their shares in the sum, None for ones."""
        flat = values.flatten(1) if values.ndim > 1 else values.unsqueeze(1)
        if not self._between:
            return self._index(flat, clamp=self._clamp), None
        lower = flat.floor()
        share = (flat - lower).to(self.table.dtype)
        both = [self._index(each, clamp=True) for each in (lower, lower + 1)]
        return torch.cat(both, 1), torch.cat([1.0 - share, share], 1)

    def _index(self, flat: Tensor, *, clamp: bool) -> Tensor:
        """Returns the rows of the table for symbols ``(B, places)``."""
        index = flat.to(torch.int64) + self._shift  # type: ignore[operator] # a buffer
        return index.clamp(self._least, self._most) if clamp else index  # type: ignore[arg-type] # buffers


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
        convolutions += [orthogonal(layer, 2.0**0.5), nn.ReLU(inplace=True)]
    return nn.Sequential(*convolutions)


class _Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(inplace=True),
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
        # Bytes are put in order, before they become numbers of two or four.
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        pixels = pixels.to(dtype, copy=True).mul_(self._scale)
        return functional.relu(self.linear(self.cnn(pixels).flatten(1))).float()


class Encoder(nn.Module):
    """Encodes all columns of an observation, up to the first hidden layer.

    Attributes:
        size: number of features it returns.
        keys: the columns, in the order of ``parts``.
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
        self.keys = [entry.key for entry in columns]
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
        for key, part in zip(self.keys, self.parts, strict=True):
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


class ActorCritic(nn.Module):
    """The network: observations to a distribution over actions, as a row of outputs, and a value.

    The standard deviations of continuous actions are parameters: they do not depend on the
    observation, and start at 1, in units in which a bounded space extends from -1 to 1.

    Attributes:
        layout: of the actions in the outputs.
        recurrent: whether it has a memory.
        memory_keys: names of its memory columns, each ``(B, memory_size)`` float32.
        masks: columns of what is legal, each with the place of its logits and the number of values
            of each of its choices.
    """

    def __init__(
        self, columns: Sequence[ColumnEntry], actions: spaces.Dict, options: NetworkOptions
    ) -> None:
        super().__init__()
        self._columns, self._options = tuple(columns), options
        self.layout = ActionLayout(actions, squashed=options.continuous == "squashed")
        self.masks = []
        for key in (entry.key for entry in columns if entry.key.startswith(MASK)):
            action = key.removeprefix(MASK)
            self.masks.append((key, self.layout.place(action), choices_of(actions[action])))
        self.actor = Body(columns, options)
        self.critic = None if options.shared else Body(columns, options)
        size = self.actor.size
        self.core: nn.LSTMCell | nn.GRUCell | None = None
        if options.memory == "lstm":
            self.core = nn.LSTMCell(size, options.memory_size)
        elif options.memory == "gru":
            self.core = nn.GRUCell(size, options.memory_size)
        self.memory_keys = {"none": (), "lstm": ("core/h", "core/c"), "gru": ("core/h",)}[
            options.memory
        ]
        self.memory_size = options.memory_size
        if self.core is not None:
            for name, parameter in self.core.named_parameters():
                (nn.init.orthogonal_ if name.startswith("weight") else nn.init.zeros_)(parameter)
            size = options.memory_size
        self.policy_head = orthogonal(nn.Linear(size, self.layout.logits + self.layout.dims), 0.01)
        if self.layout.dims:
            self.log_std = nn.Parameter(torch.zeros(self.layout.dims))
        # A separate critic has no memory: it reads the observation and the actor's memory.
        value_size = size if self.critic is None else self.critic.size + size * self.recurrent
        self.value_head = orthogonal(nn.Linear(value_size, 1), 1.0)

    def in_numpy(self) -> DenseNetwork | None:
        """Returns the same network in NumPy, sharing its weights; None where there is none.

        See ``rollout.train.network.HandNetwork``.
        """
        dense = (
            type(self) is ActorCritic
            and self.core is None
            and not self.layout.squashed
            and self._options.activation in ("tanh", "relu")
            and all(
                isinstance(part, Numbers) or (isinstance(part, Symbols) and not part.size)
                for part in self.actor.encoder.parts
            )
            and all(p.device.type == "cpu" and p.requires_grad for p in self.parameters())
        )
        return DenseNetwork(self) if dense else None

    def critics(self, count: int) -> ActionCritics:
        """Returns new networks of the same kind that give the value of an action.

        Args:
            count: number of networks.
        """
        return ActionCritics(self._columns, self._options, self.layout, count)

    def decide(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Tensor]]:
        """Returns the most likely actions, and what ``forward`` does; see ``Deciding``."""
        outputs, value, after = self(observations, memory)
        return most_likely(self.layout, outputs), outputs, value, after

    def describe_outputs(self) -> list[dict[str, Any]]:
        """Returns what the outputs mean; see ``Deciding``."""
        return describe(self.layout)

    @property
    def recurrent(self) -> bool:
        """True if it has a memory."""
        return self.core is not None

    def distribution(self, outputs: Tensor) -> Distribution:
        """Returns the distribution over actions that outputs ``(..., n)`` represent."""
        return self.layout.distribution(outputs)

    def forward(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Processes one step of ``B`` slots.

        Returns:
            outputs ``(B, n)``, values ``(B,)``, and the memory after the step.
        """
        features = self.actor(observations)
        after: dict[str, Tensor] = {}
        if self.core is not None:
            features, after = self._remember(features, memory)
        return (*self._heads(observations, features), after)

    def unroll(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor], first: Tensor
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Processes ``T`` steps of ``N`` slots; memory is zero where an episode begins.

        Args:
            observations: ``{key: (T, N, ...)}``.
            memory: before the first step, ``{key: (N, memory_size)}``.
            first: ``(T, N)`` bool: the step is the first of its episode.

        Returns:
            outputs ``(T, N, n)``, values ``(T, N)``, and the memory after each step,
            ``{key: (T, N, memory_size)}``.
        """
        steps, slots = first.shape
        flat = {key: array.flatten(0, 1) for key, array in observations.items()}
        features = self.actor(flat)
        kept: list[dict[str, Tensor]] = []
        if self.core is not None:
            rows, outs = features.view(steps, slots, -1), []
            keep = (~first).unsqueeze(-1).to(features.dtype)
            for t in range(steps):
                memory = {key: array * keep[t] for key, array in memory.items()}
                out, memory = self._remember(rows[t], memory)
                outs.append(out)
                kept.append(dict(memory))
            features = torch.stack(outs).flatten(0, 1)
        outputs, values = self._heads(flat, features)
        after = {key: torch.stack([m[key] for m in kept]) for key in self.memory_keys}
        return outputs.view(steps, slots, -1), values.view(steps, slots), after

    def _remember(
        self, features: Tensor, memory: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if isinstance(self.core, nn.LSTMCell):
            h, c = self.core(features, (memory["core/h"], memory["core/c"]))
            return h, {"core/h": h, "core/c": c}
        assert self.core is not None
        h = self.core(features, memory["core/h"])
        return h, {"core/h": h}

    def _heads(self, observations: Mapping[str, Tensor], features: Tensor) -> tuple[Tensor, Tensor]:
        judged = features
        if self.critic is not None:
            judged = self.critic(observations)
            if self.recurrent:
                judged = torch.cat([judged, features], -1)
        outputs = self.policy_head(features)
        for key, place, sizes in self.masks:
            outputs = _masked(outputs, observations[key], place, sizes)
        if self.layout.dims:
            log_std = self.log_std.expand(*outputs.shape[:-1], -1)
            outputs = torch.cat([outputs, log_std], -1)
        return outputs, self.value_head(judged).squeeze(-1)


def _masked(outputs: Tensor, mask: Tensor, place: slice, sizes: Sequence[int]) -> Tensor:
    """Returns outputs with negligible logits for what is not legal; see ``rollout.api.masks``."""
    parts = torch.split(mask.flatten(1).bool(), list(sizes), -1)
    hidden = torch.cat([~own & own.any(-1, keepdim=True) for own in parts], -1)
    before, after = place.start, outputs.shape[-1] - place.stop
    return outputs.masked_fill(functional.pad(hidden, (before, after)), NEVER)


class Body(nn.Module):
    """Encoder and hidden layers."""

    def __init__(self, columns: Sequence[ColumnEntry], options: NetworkOptions) -> None:
        super().__init__()
        first, *rest = options.hidden
        self.encoder = Encoder(
            columns,
            width=first,
            activation=options.activation,
            embedding=options.embedding,
            cnn=options.cnn,
            cnn_width=options.cnn_width,
            cnn_features=options.cnn_features,
        )
        layers: list[nn.Module] = []
        for width in rest:
            layer = orthogonal(nn.Linear(first, width), 2.0**0.5)
            layers += [layer, ACTIVATIONS[options.activation]()]
            first = width
        self.layers = nn.Sequential(*layers)
        self.size = first

    def forward(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Returns features ``(B, size)``."""
        features: Tensor = self.layers(self.encoder(observations))
        return features


class QNetwork(ActorCritic):
    """Returns the values of discrete actions as an epsilon-greedy distribution.

    Attributes:
        epsilon: probability of a random action, ``()``; 1 before training.
    """

    epsilon: Tensor

    def __init__(
        self, columns: Sequence[ColumnEntry], actions: spaces.Dict, options: NetworkOptions
    ) -> None:
        super().__init__(columns, actions, options)
        if self.layout.dims:
            raise ConfigError(
                f"q_network has a value for each choice, and {actions} has continuous actions; "
                f"use actor_critic with algorithm sac or ppo"
            )
        self.register_buffer("epsilon", torch.ones(()))

    def action_values(self, observations: Mapping[str, Tensor]) -> Tensor:
        """Returns the value of every option, ``(B, logits)``; -1e9 for one that is not legal."""
        return super()._heads(observations, self.actor(observations))[0]

    def decide(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Tensor]]:
        """Returns the best actions, the value of every option, and that of the best ones."""
        values = self.action_values(observations)
        return most_likely(self.layout, values), values, best_value(self.layout, values), {}

    def _heads(self, observations: Mapping[str, Tensor], features: Tensor) -> tuple[Tensor, Tensor]:
        values, _ = super()._heads(observations, features)
        best = self.layout.total(values, self.layout.pick(values, None))
        return self.layout.explored(values, self.epsilon), best


class ActionCritics(nn.Module):
    """Networks that return the value of an action, given the observation.

    Args:
        columns: the columns that they read.
        options: their architecture; it has no memory.
        layout: of the actions.
        count: number of networks.
    """

    def __init__(
        self,
        columns: Sequence[ColumnEntry],
        options: NetworkOptions,
        layout: ActionLayout,
        count: int,
    ) -> None:
        super().__init__()
        self._layout = layout
        self.bodies = nn.ModuleList(Body(columns, options) for _ in range(count))
        self.heads = nn.ModuleList(
            _action_head(body.size, layout.logits + layout.dims, options)  # type: ignore[arg-type] # an int
            for body in self.bodies
        )

    def forward(self, observations: Mapping[str, Tensor], encoded: Tensor) -> Tensor:
        """Returns values ``(count, B)`` of encoded actions ``(B, ...)``."""
        inputs = self._layout.inputs(encoded)
        return torch.stack(
            [
                head(torch.cat([body(observations), inputs], -1)).squeeze(-1)
                for body, head in zip(self.bodies, self.heads, strict=True)
            ]
        )


def _action_head(features: int, inputs: int, options: NetworkOptions) -> nn.Sequential:
    width = options.hidden[-1]
    hidden = orthogonal(nn.Linear(features + inputs, width), 2.0**0.5)
    return nn.Sequential(
        hidden, ACTIVATIONS[options.activation](), orthogonal(nn.Linear(width, 1), 1.0)
    )
