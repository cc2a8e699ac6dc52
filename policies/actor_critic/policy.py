"""The policy plug-in ``actor_critic``: its options, and how it acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    option,
)
from rollout.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

    from policies.actor_critic.network import ActorCritic

_SEED, _STEP = "noise/seed", "noise/step"
_EXTRAS = {
    "logp": ColumnSpec("float32", unit="nats", doc="log-probability of the action"),
    "value": ColumnSpec("float32", doc="value of the observation, in reward"),
}


@dataclass(frozen=True)
class ActorCriticPolicy:
    """A network that chooses actions and judges observations; what PPO trains.

    It reads every column of the observation that is not privileged: pictures through
    convolutions, symbols through tables, everything else as numbers. Actions may be any number of
    choices. Untrained, it plays nearly at random; play a trained one by the policy ``checkpoint``.
    """

    hidden: tuple[int, ...] = option((128, 128), "widths of the hidden layers", unit="units")
    activation: str = option("tanh", "between layers", choices=("tanh", "relu", "silu"))
    columns: tuple[str, ...] = option((), "observations it reads; none listed means all")
    symbols: tuple[str, ...] = option((), "integer columns that are symbols, not amounts")
    embedding: int = option(
        0, "size of a vector for each symbol, shared by all places; 0 is one-hot", unit="units"
    )
    cnn: str = option("nature", "network for pictures", choices=("nature", "impala"))
    cnn_width: float = option(1.0, "factor on the channels of that network")
    cnn_features: int = option(256, "numbers it makes of a picture", unit="units")
    memory: str = option("none", "what it remembers with", choices=("none", "lstm", "gru"))
    memory_size: int = option(128, "size of that memory", unit="units")
    shared: bool = option(True, "whether policy and value share all layers but the last")

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise ConfigError(f"hidden must list widths of at least 1, got {list(self.hidden)}")
        for name in ("cnn_width", "cnn_features", "memory_size"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)}")
        if self.embedding < 0:
            raise ConfigError(f"embedding must be at least 0, got {self.embedding}")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> ActorCriticPlayer:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: it cannot read an observation, or choose such an action.
            UnknownNameError: ``columns`` names one that does not exist.
        """
        network = self.network(spec.observation_space, spec.action_space, seed=seed)
        return ActorCriticPlayer(network, self.reads(spec.observation_space))

    def reads(self, observation_space: spaces.Dict) -> tuple[str, ...]:
        """Returns the observation columns that the network reads, sorted."""
        from policies.actor_critic.columns import entries  # noqa: PLC0415 - imports torch

        return tuple(e.key for e in entries(observation_space, self.columns, self.symbols))

    def network(
        self, observation_space: spaces.Dict, action_space: spaces.Dict, *, seed: int
    ) -> ActorCritic:
        """Returns a new network for these spaces; the seed decides its weights.

        Raises:
            ConfigError: it cannot read an observation, or choose such an action.
            UnknownNameError: ``columns`` names one that does not exist.
        """
        import torch  # noqa: PLC0415 - slow to import, and only networks need it

        from policies.actor_critic.columns import entries  # noqa: PLC0415 - imports torch
        from policies.actor_critic.network import ActorCritic, NetworkOptions  # noqa: PLC0415

        own = {field.name: getattr(self, field.name) for field in fields(NetworkOptions)}
        columns = entries(observation_space, self.columns, self.symbols)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return ActorCritic(columns, action_space, NetworkOptions(**own))


class ActorCriticPlayer:
    """Acts with a network.

    Attributes:
        network: the network; ``load`` replaces its weights.
        version: number of the weights.
    """

    extras: Mapping[str, ColumnSpec] = _EXTRAS

    def __init__(self, network: ActorCritic, reads: Sequence[str]) -> None:
        self.network, self.version = network, 0
        self._reads = tuple(reads)
        network.eval()

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights, as ``network.state_dict()`` gives them, arrays or tensors.

        Raises:
            RuntimeError: they are of another network.
        """
        import torch  # noqa: PLC0415 - see ``network``

        tensors = {key: torch.as_tensor(value) for key, value in weights.items()}
        self.network.load_state_dict(tensors)
        self.version = version

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns blank memory, and the seeds of the noise that actions are drawn with."""
        n = len(starts)
        memory: Columns = {
            key: np.zeros((n, self.network.memory_size), np.float32)
            for key in self.network.memory_keys
        }
        memory[_SEED] = np.array([start.seed for start in starts], np.uint64)
        memory[_STEP] = np.zeros(n, np.int64)
        return memory

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns sampled or best actions, with their log-probabilities and values.

        The noise depends on the episode's seed and the step, so the same episode is played the
        same way however slots share a batch.
        """
        import torch  # noqa: PLC0415 - see ``network``

        from policies.actor_critic.noise import gumbel  # noqa: PLC0415

        network = self.network
        with torch.inference_mode():
            seen = {key: torch.from_numpy(_writable(observations[key])) for key in self._reads}
            kept = {key: torch.from_numpy(_writable(memory[key])) for key in network.memory_keys}
            logits, value, after = network(seen, kept)
            logits = logits.float()
            scores: Tensor = logits
            if explore:
                noise = gumbel(memory[_SEED], memory[_STEP], network.layout.logits)
                scores = logits + torch.from_numpy(noise)
            choices = network.layout.best(scores)
            logp = network.distribution(logits).log_prob(choices)
        remembered: Columns = {key: array.numpy() for key, array in after.items()}
        remembered[_SEED], remembered[_STEP] = memory[_SEED], memory[_STEP] + 1
        extras = {"logp": logp.numpy(), "value": value.float().numpy()}
        return Decision(network.layout.decode(choices), remembered, extras)


def _writable(array: Array) -> Array:
    """The array, or a copy of one that is read-only, which torch would warn of."""
    return array if array.flags.writeable else array.copy()
