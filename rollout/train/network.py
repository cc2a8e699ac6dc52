"""Interfaces of policies that can be trained: networks, and recipes that build them.

``policies.actor_critic`` is an example; any policy plug-in that implements this can be trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces
from torch import Tensor

from rollout.api import Array, Columns


class Distribution(Protocol):
    """A distribution over actions, for each row."""

    def log_prob(self, choices: Tensor) -> Tensor:
        """Returns log-probabilities ``(...)`` of encoded actions, in nats."""
        ...

    def entropy(self) -> Tensor:
        """Returns entropies ``(...)``, in nats."""
        ...

    def kl(self, other: Any) -> Tensor:
        """Returns KL(self || other), ``(...)``, in nats."""
        ...


class Layout(Protocol):
    """Encoding of actions for a distribution."""

    def encode(self, actions: Mapping[str, Any]) -> Tensor:
        """Returns the encoding ``(..., choices)`` of action columns ``(..., *shape)``."""
        ...


class Network(Protocol):
    """A torch module that returns logits and values; see ``policies.actor_critic``."""

    layout: Layout
    memory_keys: Sequence[str]
    memory_size: int

    def __call__(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor]
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Returns logits ``(B, n)``, values ``(B,)`` and the memory after one step."""
        ...

    def unroll(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor], first: Tensor
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Returns the same for ``T`` steps of ``N`` slots; memory is zero at each ``first``."""
        ...

    def distribution(self, logits: Tensor) -> Any:
        """Returns the distribution over actions for some logits."""
        ...


class HandDistribution(Protocol):
    """A ``Distribution`` in NumPy, with its gradient."""

    def log_prob(self, encoded: Array) -> Array:
        """Returns log-probabilities ``(B,)`` of encoded actions, in nats."""
        ...

    def entropy(self) -> Array:
        """Returns entropies ``(B,)``, in nats."""
        ...

    def kl(self, other: Any) -> Array:
        """Returns KL(self || other), ``(B,)``, in nats."""
        ...

    def gradient(
        self, encoded: Array, by_log_prob: Array, by_entropy: float, by_kl: float, other: Any
    ) -> Array:
        """Returns the gradient by the outputs ``(B, n)``, given those by what depends on them."""
        ...


class HandNetwork(Protocol):
    """A network in NumPy that has its gradient by hand: what ``Network.in_numpy`` returns.

    A network may have no such method, and the method may return None.

    Attributes:
        weights: of all parameters, in their order, ``(n,)``; the parameters are views of it.
        gradient: likewise, that of ``backward``; ``grad`` of the parameters are views of it.
    """

    weights: Array
    gradient: Array

    def prepare(self, observations: Mapping[str, Array]) -> Columns:
        """Returns what ``forward`` reads, row by row: once for all its calls."""
        ...

    def forward(self, prepared: Mapping[str, Array]) -> tuple[Array, Array]:
        """Returns outputs ``(B, n)`` and values ``(B,)``, and keeps what ``backward`` needs."""
        ...

    def backward(self, by_outputs: Array, by_value: Array) -> None:
        """Sets ``grad`` of the parameters, given the gradients by the last results."""
        ...

    def distribution(self, outputs: Array) -> HandDistribution:
        """Returns the distribution over actions that outputs represent."""
        ...


@runtime_checkable
class Deciding(Protocol):
    """A network that can be exported: it also decides, in operations of torch alone."""

    memory_keys: Sequence[str]
    memory_size: int

    def decide(
        self, observations: Mapping[str, Tensor], memory: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Tensor]]:
        """Returns the most likely actions, the outputs, values, and the memory after a step.

        Actions are columns ``{key: (B, ...)}`` as the game takes them.
        """
        ...

    def describe_outputs(self) -> list[dict[str, Any]]:
        """Returns what the outputs mean, for people and programs without Gamut, as JSON."""
        ...


@runtime_checkable
class TrainableRecipe(Protocol):
    """Offered by the recipe of a policy that can be trained.

    The policy that it builds acts with such a network, ``policy.network``, and takes new weights,
    see ``rollout.api.Trainable``.
    """

    def network(
        self, observation_space: spaces.Dict, action_space: spaces.Dict, *, seed: int
    ) -> Any:
        """Returns a new network, a ``torch.nn.Module``; the seed decides its weights."""
        ...

    def reads(self, observation_space: spaces.Dict) -> Sequence[str]:
        """Returns the observation columns that the network reads."""
        ...
