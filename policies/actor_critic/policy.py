"""The policy plug-in ``actor_critic``: its options, and how it chooses actions."""

from __future__ import annotations

import functools
import logging
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from policies.actor_critic.options import NetworkOptions
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
from rollout.threads import spare_threads

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from policies.actor_critic.columns import ColumnEntry, Kind
    from policies.actor_critic.network import ActorCritic

_KINDS: dict[str, Kind] = {"symbols": "symbols", "pictures": "picture", "numbers": "numbers"}
"""The options that name columns of a kind."""
_DOUBTS = {
    "symbols": ("codes", "symbols"),
    "picture": ("pixels", "pictures"),
    "numbers": ("quantities", "numbers"),
}
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_TO_UNIT = np.float32(2.0**-23)
"""For 23 bits: half a unit more still fits a float32, so that no number is rounded up to 1."""
_SEED, _STEP = "noise/seed", "noise/step"
_EXTRAS = {
    "logp": ColumnSpec("float32", unit="nats", doc="log-probability of the action"),
    "value": ColumnSpec("float32", doc="value of the observation, in reward"),
}


@dataclass(frozen=True)
class ActorCriticPolicy(NetworkOptions):
    """An actor-critic network, which algorithms train.

    It reads every column of the observation that is not privileged: pictures through convolutions,
    symbols through embedding tables, everything else as numbers. Bounds and shape decide what a
    column is, see ``columns.kind_of``, unless it is named here. An action may consist of any
    number of choices and of continuous numbers. Without training it plays nearly at random; the
    policy ``checkpoint`` plays a trained network.
    """

    columns: tuple[str, ...] = option((), "observations that the network reads; empty for all")
    symbols: tuple[str, ...] = option((), "columns that are categorical, whatever the bounds")
    pictures: tuple[str, ...] = option((), "columns that are pictures, whatever the bounds")
    numbers: tuple[str, ...] = option((), "columns that are quantities, whatever the bounds")

    def __post_init__(self) -> None:
        super().__post_init__()
        named = Counter([n for key in _KINDS for n in set(getattr(self, key))])
        if twice := [name for name, count in named.items() if count > 1]:
            raise ConfigError(
                f"symbols, pictures and numbers name {', '.join(twice)} more than once; a column "
                f"is read in one way, so name each once"
            )

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> ActorCriticPlayer:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: it cannot encode an observation, or has no such actions.
            UnknownNameError: ``columns`` has a name that does not exist.
        """
        network = self.network(spec.observation_space, spec.action_space, seed=seed)
        return ActorCriticPlayer(network, self.reads(spec.observation_space))

    def reads(self, observation_space: spaces.Dict) -> tuple[str, ...]:
        """Returns the observation columns that the network reads, sorted."""
        from policies.actor_critic.columns import read_columns  # noqa: PLC0415 - imports torch

        return tuple(read_columns(observation_space, self.columns))

    def reading(
        self, observation_space: spaces.Dict, kept: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """Returns the columns of each kind, by option; see ``rollout.train.reading``."""
        read = self.reads(observation_space)
        others = {name: kind for name, kind in _given(kept).items() if name in read}
        found = self._entries(observation_space, others)
        return {key: [e.key for e in found if e.kind == kind] for key, kind in _KINDS.items()}

    def kept(
        self, observation_space: spaces.Dict, options: Mapping[str, Any]
    ) -> dict[str, list[str]]:
        """Returns the columns of each kind in a checkpoint; see ``rollout.train.reading``."""
        from policies.actor_critic.columns import legacy_kind  # noqa: PLC0415 - imports torch

        if "pictures" in options:
            return {key: options.get(key, []) for key in _KINDS}
        symbols = options.get("symbols", [])
        kinds = {
            name: legacy_kind(leaf, symbols=name in symbols)
            for name, leaf in observation_space.spaces.items()
        }
        return {key: [n for n, k in kinds.items() if k == kind] for key, kind in _KINDS.items()}

    def explain(self, observation_space: spaces.Dict) -> None:
        """Logs how each column is read, with a warning where bounds and shape are ambiguous."""
        found = self._entries(observation_space)
        columns = "; ".join(f"{e.key}: {e.describe()}" for e in found)
        log.info(
            "the policy reads %s (policy.symbols, policy.pictures and policy.numbers change it)",
            columns,
        )
        for entry in found:
            if entry.doubtful:
                what, key = _DOUBTS[entry.doubtful]
                log.warning(
                    "the observation %r is read as %s; if its values are %s, set policy.%s=[%s], "
                    "or little is learned from them",
                    *(entry.key, entry.describe(), what, key),
                    ", ".join([*getattr(self, key), entry.key]),
                )

    def _entries(
        self, observation_space: spaces.Dict, others: Mapping[str, Kind] = MappingProxyType({})
    ) -> list[ColumnEntry]:
        from policies.actor_critic.columns import entries  # noqa: PLC0415 - imports torch

        given = {**others, **_given({key: getattr(self, key) for key in _KINDS})}
        return entries(observation_space, self.columns, given)

    def network(
        self, observation_space: spaces.Dict, action_space: spaces.Dict, *, seed: int
    ) -> ActorCritic:
        """Returns a new network for these spaces; the seed decides its weights.

        Raises:
            ConfigError: it cannot encode an observation, or has no such actions.
            UnknownNameError: ``columns`` has a name that does not exist.
        """
        import torch  # noqa: PLC0415 - slow to import, and only networks need it

        columns = self._entries(observation_space)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self.network_class()(columns, action_space, self)

    def network_class(self) -> type[ActorCritic]:
        """Returns the class of the network; a policy of your own may return a subclass."""
        from policies.actor_critic.network import ActorCritic  # noqa: PLC0415 - imports torch

        return ActorCritic


@dataclass(frozen=True)
class QNetworkPolicy(ActorCriticPolicy):
    """A network of the values of discrete actions, which algorithm ``dqn`` trains.

    It chooses the action with the highest value, and while it explores with a probability that the
    training lowers any action. It reads observations as ``actor_critic`` does.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory != "none":
            raise ConfigError(f"q_network has no memory, got memory={self.memory}; use none")

    def network_class(self) -> type[ActorCritic]:
        """Returns the class of the network."""
        from policies.actor_critic.network import QNetwork  # noqa: PLC0415 - imports torch

        return QNetwork


class ActorCriticPlayer:
    """Chooses actions with a network.

    Attributes:
        network: the network; ``load`` replaces its weights.
        version: of the weights.
    """

    extras: Mapping[str, ColumnSpec] = _EXTRAS

    def __init__(self, network: ActorCritic, reads: Sequence[str]) -> None:
        self.network, self.version = network, 0
        self._reads, self._in_numpy = tuple(reads), network.in_numpy()
        network.eval()
        _accept_read_only()
        if self._in_numpy is not None:
            spare_threads()

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Replaces the weights, as ``network.state_dict()`` gives them, arrays or tensors.

        Raises:
            RuntimeError: they belong to another network.
        """
        import torch  # noqa: PLC0415 - see ``network``

        tensors = {key: torch.as_tensor(value) for key, value in weights.items()}
        self.network.load_state_dict(tensors)
        self.version = version

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns memory of zeros, and the seeds of the noise for sampling actions."""
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
        """Returns sampled or most likely actions, with their log-probabilities and values.

        The noise depends on the episode's seed and the step, so an episode is played in the same
        way whatever slots share its batch.
        """
        layout, noise = self.network.layout, None
        if explore:
            noise = gumbel_and_normal(memory[_SEED], memory[_STEP], layout.logits, layout.dims)
        decided = self._by_torch if self._in_numpy is None else self._by_numpy
        actions, extras, remembered = decided(observations, memory, noise)
        remembered[_SEED], remembered[_STEP] = memory[_SEED], memory[_STEP] + 1
        return Decision(actions, remembered, extras)

    def _by_torch(
        self, observations: Columns, memory: Columns, noise: Array | None
    ) -> tuple[Columns, Columns, Columns]:
        """Returns actions, their log-probabilities and values, and the network's memory."""
        import torch  # noqa: PLC0415 - see ``network``

        network, layout = self.network, self.network.layout
        with torch.inference_mode():
            seen = {key: torch.from_numpy(observations[key]) for key in self._reads}
            kept = {key: torch.from_numpy(memory[key]) for key in network.memory_keys}
            outputs, value, after = network(seen, kept)
            outputs = outputs.float()
            encoded = layout.pick(outputs, None if noise is None else torch.from_numpy(noise))
            actions = layout.decode(encoded)
            if layout.dims:  # the log-probability is that of the recorded action
                encoded = layout.encode(actions)
            logp = network.distribution(outputs).log_prob(encoded)
        extras = {"logp": logp.numpy(), "value": value.float().numpy()}
        return actions, extras, {key: array.numpy() for key, array in after.items()}

    def _by_numpy(
        self, observations: Columns, memory: Columns, noise: Array | None
    ) -> tuple[Columns, Columns, Columns]:
        """The same as ``_by_torch``, for a network that is also in NumPy: it has no memory."""
        import torch  # noqa: PLC0415 - see ``network``

        network, layout = self._in_numpy, self.network.layout
        assert network is not None
        outputs, value = network.forward(network.prepare(observations))
        distribution = network.distribution(outputs)
        encoded = distribution.pick(noise)
        actions = layout.decode(torch.from_numpy(encoded))
        if layout.dims:
            encoded = layout.encode(actions).numpy()
        return actions, {"logp": distribution.log_prob(encoded), "value": value}, {}


def _given(options: Mapping[str, Any]) -> dict[str, Kind]:
    """Returns the kinds of the columns that options name."""
    return {name: kind for key, kind in _KINDS.items() for name in options.get(key, ())}


@functools.cache
def _accept_read_only() -> None:
    """Suppresses torch's warning, given once, about read-only arrays such as observations."""
    import torch  # noqa: PLC0415 - see ``network``

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(np.frombuffer(b"0", np.uint8))


def uniform(seeds: NDArray[np.uint64], steps: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Returns ``(B, count)`` numbers, uniform in the open interval (0, 1).

    SplitMix64 (Steele et al., 2014) as a hash of (seed, step, column): an episode that is played
    again, at another width or on another machine, draws the same actions; all policies that are
    compared on an episode draw the same numbers; and there is no generator state to save.

    Args:
        seeds: of the episodes, ``(B,)``.
        steps: actions taken so far, ``(B,)``.
        count: numbers for each row.
    """
    with np.errstate(over="ignore"):  # the overflow is intended
        base = _mix(seeds + steps.astype(np.uint64) * _GOLDEN)
        words = base[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
        bits = (_mix(words) >> np.uint64(41)).astype(np.float32)
    return np.asarray((bits + np.float32(0.5)) * _TO_UNIT)


def gumbel_and_normal(
    seeds: NDArray[np.uint64], steps: NDArray[np.int64], gumbels: int, normals: int
) -> NDArray[np.float32]:
    """Returns ``(B, gumbels + normals)`` standard Gumbel and then standard normal numbers.

    The option with the largest sum of logit and Gumbel number is a sample of the categorical
    distribution.
    """
    from scipy import special  # noqa: PLC0415 - slow to import

    numbers = uniform(seeds, steps, gumbels + normals)
    first = -np.log(-np.log(numbers[:, :gumbels]))
    if not normals:
        return np.asarray(first)
    return np.concatenate([first, special.ndtri(numbers[:, gumbels:])], axis=1)


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))
