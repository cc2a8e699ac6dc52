"""What PPO asks of a policy: a recipe that makes networks, and networks that can be trained.

``policies.actor_critic`` is one; any policy plug-in that offers this can be trained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces
from torch import Tensor, nn

from rollout.api import Columns, PolicyRecipe


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
    """How actions are encoded for a distribution."""

    def encode(self, actions: Mapping[str, Any]) -> Tensor:
        """Returns action columns ``(..., *shape)`` encoded, ``(..., choices)``."""
        ...


class Network(Protocol):
    """A torch module that gives logits and values; see ``policies.actor_critic``."""

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
        """Returns the same for ``T`` steps of ``N`` slots, blank where an episode begins."""
        ...

    def distribution(self, logits: Tensor) -> Any:
        """Returns the distribution over actions that logits stand for."""
        ...


@runtime_checkable
class TrainableRecipe(Protocol):
    """Offered by the recipe of a policy that PPO can train."""

    def network(
        self, observation_space: spaces.Dict, action_space: spaces.Dict, *, seed: int
    ) -> Any:
        """Returns a new network, a ``torch.nn.Module``; the seed decides its weights."""
        ...

    def reads(self, observation_space: spaces.Dict) -> Sequence[str]:
        """Returns the observation columns that the network reads."""
        ...


class NetworkPlayer(Protocol):
    """The policy that such a recipe builds: it records ``logp`` and ``value``."""

    network: Any
    version: int

    def load(self, weights: Mapping[str, object], version: int) -> None:
        """Replaces the weights."""
        ...


__all__ = [
    "Columns",
    "Distribution",
    "Layout",
    "Network",
    "NetworkPlayer",
    "PolicyRecipe",
    "TrainableRecipe",
    "nn",
]
