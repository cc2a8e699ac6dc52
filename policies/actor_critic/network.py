"""The network: an encoder, a trunk, an optional memory, and two heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from gymnasium import spaces
from torch import Tensor, nn

from policies.actor_critic.columns import ColumnEntry
from policies.actor_critic.distributions import ActionLayout, Distribution
from policies.actor_critic.encoders import ACTIVATIONS, Encoder, orthogonal
from policies.actor_critic.options import NetworkOptions
from rollout.api import MASK

_NEVER = -1e9  # a logit that is never chosen, and finite, so that no gradient is NaN


class ActorCritic(nn.Module):
    """Returns a distribution over actions, as a row of outputs, and the value of observations.

    The standard deviations of continuous actions are parameters: they do not depend on the
    observation, and start at 1, in units in which a bounded space extends from -1 to 1.

    Attributes:
        layout: of the actions in the outputs.
        recurrent: whether it has a memory.
        memory_keys: names of its memory columns, each ``(B, memory_size)`` float32.
    """

    def __init__(
        self, columns: Sequence[ColumnEntry], actions: spaces.Dict, options: NetworkOptions
    ) -> None:
        super().__init__()
        self.layout = ActionLayout(actions, squashed=options.continuous == "squashed")
        masks = [entry.key for entry in columns if entry.key.startswith(MASK)]
        self._masks = [(key, self.layout.place(key.removeprefix(MASK))) for key in masks]
        self.actor = _Body(columns, options)
        self.critic = None if options.shared else _Body(columns, options)
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

    @property
    def recurrent(self) -> bool:
        """Whether it has a memory."""
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
        for key, place in self._masks:
            outputs = _masked(outputs, observations[key], place)
        if self.layout.dims:
            log_std = self.log_std.expand(*outputs.shape[:-1], -1)
            outputs = torch.cat([outputs, log_std], -1)
        return outputs, self.value_head(judged).squeeze(-1)


def _masked(outputs: Tensor, legal: Tensor, place: slice) -> Tensor:
    """Returns outputs with negligible logits for what is not legal, where anything is."""
    legal = legal.flatten(1).bool()
    hidden = ~legal & legal.any(-1, keepdim=True)
    columns = torch.zeros(outputs.shape, dtype=torch.bool, device=outputs.device)
    columns[:, place] = hidden
    return outputs.masked_fill(columns, _NEVER)


class _Body(nn.Module):
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
