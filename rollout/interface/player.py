"""A trained policy that chooses actions for observations from anywhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollout.api import Array, Columns, Start, State
from rollout.errors import ConfigError
from rollout.train.checkpoint import Checkpoint, find_checkpoint
from rollout.train.history import best_checkpoint
from rollout.train.playing import network_of, policy_of
from rollout.vector_env import bare

if TYPE_CHECKING:
    from torch import nn


def load(run: Any, *, best: bool = False) -> Player:
    """Returns the policy of a training run, with the weights of its newest checkpoint.

    The game is not needed.

    Args:
        run: a ``Run``, the path of a run directory, or of one of its checkpoints.
        best: take the checkpoint with the best validation instead.

    Raises:
        CheckpointError: there is no checkpoint, or it is damaged.
    """
    find = best_checkpoint if best else find_checkpoint
    return Player(find(Path(getattr(run, "path", run))))


class Player:
    """Chooses actions; made by ``load``.

    Attributes:
        checkpoint: the checkpoint whose weights it plays.
        observation_space: its observations, a ``Dict`` of columns.
        action_space: its actions, a ``Dict`` of columns.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.observation_space = checkpoint.observation_space
        self.action_space = checkpoint.action_space
        self._start, self._seeds = Start(State(0, {}), 0), count()
        self._policy = policy_of(checkpoint)

    @property
    def network(self) -> nn.Module:
        """The network that it plays with, a plain torch module.

        ``network(observations, memory)`` takes a tensor ``(B, ...)`` for each column of
        ``observation_space``, as the game gives it, and for each of ``network.memory_keys`` one of
        zeros ``(B, network.memory_size)`` when an episode begins. It returns the outputs (logits
        with the masks applied, means and logarithms of standard deviations), the values ``(B,)``
        and the memory for the next step. ``network.decide`` returns the most likely actions, too.

        Raises:
            ConfigError: the policy has no network: a language model plays.
        """
        return network_of(self._policy, self.checkpoint)

    def predict(
        self,
        observation: Any,
        memory: Columns | None = None,
        *,
        deterministic: bool | None = None,
        explore: bool | None = None,
        seed: int | None = None,
    ) -> tuple[Any, Columns]:
        """Returns an action, and the memory to pass with the next observation of the episode.

        Actions are sampled from the policy's distribution by default, as in training, collections
        and evaluations (``actions=["sampled"]``).

        Args:
            observation: as the environment gives it: a mapping of columns, or an array if the
                policy reads a single column; of one slot, or of a batch ``(B, ...)``.
            memory: memory that the last call returned; None when an episode begins.
            deterministic: True for the most likely action, as ``actions=["deterministic"]`` of an
                evaluation.
            explore: the opposite of ``deterministic``, as the key of a collection; give one.
            seed: seed of the samples of an episode that begins; None for another in each episode:
                0, 1, ... in the order in which they begin.

        Returns:
            the action, batched as the observation was, an array if there is a single column; and
            the memory.

        Raises:
            ConfigError: an observation is missing or has another shape, or ``deterministic`` and
                ``explore`` contradict each other.
        """
        if deterministic is not None and deterministic == explore:
            raise ConfigError(
                f"deterministic={deterministic} and explore={explore}: one is the opposite of the "
                f"other; give one of them"
            )
        samples = not deterministic if explore is None else explore
        columns = self._columns(observation)
        first, space = next((key, space) for key, space in self.observation_space.items())
        batched = columns[first].ndim > len(space.shape or ())
        if not batched:
            columns = {key: column[None] for key, column in columns.items()}
        self._check(columns)
        if memory is None:
            rows = len(columns[first])
            seeds = islice(self._seeds, rows) if seed is None else range(seed, seed + rows)
            starts = [replace(self._start, seed=each) for each in seeds]
            memory = self._policy.initial_memory(starts)
        decision = self._policy.act(columns, memory, details=None, explore=samples)
        actions = decision.actions
        if not batched:
            actions = {key: column[0] for key, column in actions.items()}
        return bare(actions), decision.memory

    def _columns(self, observation: Any) -> dict[str, Array]:
        names = list(self.observation_space)
        if not hasattr(observation, "keys"):
            if len(names) > 1:
                raise ConfigError(
                    f"the policy reads {', '.join(names)}; expected a mapping of these, got "
                    f"{type(observation).__name__}"
                )
            observation = {names[0]: observation}
        if missing := [name for name in names if name not in observation]:
            raise ConfigError(
                f"the policy reads {', '.join(names)}, and the observation has no "
                f"{', '.join(missing)}; it has {', '.join(map(str, observation))}"
            )
        return {
            name: np.asarray(observation[name], self.observation_space[name].dtype)
            for name in names
        }

    def _check(self, columns: dict[str, Array]) -> None:
        for name, column in columns.items():
            wanted = self.observation_space[name].shape or ()
            if column.shape[1:] != wanted or len(column) != len(next(iter(columns.values()))):
                raise ConfigError(
                    f"observation {name!r}: expected shape {wanted} for a slot or {('B', *wanted)} "
                    f"for a batch, got {column.shape[1:] if len(column) == 1 else column.shape}"
                )
