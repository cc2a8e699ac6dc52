"""A policy that chooses uniformly, for tests, baselines and first datasets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from rollout.api import (
    MASK,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    leaf_dtype,
    leaf_shape,
    option,
    sample,
)
from rollout.api.masks import draw_legal
from rollout.errors import ConfigError, SpaceError

BLOCK_BYTES = 2**18  # rows per draw: enough to make the cost of a draw negligible
BLOCK_ROWS = 8192
TEXT_ROWS = 64  # strings are drawn one by one, so drawing ahead gains little


@dataclass(frozen=True)
class RandomPolicy:
    """Chooses uniformly among all actions of any flat action space.

    If the game gives a mask (``rollout.api.MASK``), it chooses among the legal values.

    Unbounded parts of a ``Box`` follow ``rollout.api.sample``. The actions are one stream per
    policy: each call takes its next rows, so the same seed and the same order of calls give the
    same actions, however the rows are batched.
    """

    seed: int = option(0, "combined with the seed of the run; another one gives other actions")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Random:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: a part of the action space cannot be sampled.
        """
        masks = [key for key in spec.observation_space.spaces if key.startswith(MASK)]
        return Random(spec.action_space, np.random.default_rng([seed, self.seed]), masks)


class Random:
    """Returns rows of blocks that were drawn ahead."""

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(
        self,
        space: spaces.Dict,
        rng: np.random.Generator,
        masks: Sequence[str] = (),
    ) -> None:
        self._space, self._rng, self._masks = space, rng, masks
        self._rows = _block_rows(space)
        self._block: Columns = {}
        self._at, self._size = 0, 0
        self._draw(1)
        # One column is the most common case; it needs no loop.
        self._key = next(iter(space.spaces)) if len(space.spaces) == 1 else None

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns nothing: a random policy has no memory."""
        return {}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the next rows of the stream. Also random when ``explore`` is False."""
        for column in observations.values():
            batch = len(column)
            break
        else:  # a text-only game: every observation is in the details
            batch = len(details or ())
        begin = self._at
        end = begin + batch
        if end > self._size:
            self._draw(batch)
            begin, end = 0, batch
        self._at = end
        key = self._key
        if key is not None and not self._masks:
            return Decision({key: self._block[key][begin:end]})
        actions = {name: column[begin:end] for name, column in self._block.items()}
        for mask in self._masks:
            name = mask.removeprefix(MASK)
            leaf = self._space.spaces[name]
            actions[name] = draw_legal(leaf, observations[mask], self._rng)
        return Decision(actions)

    def _draw(self, batch: int) -> None:
        """Draws a new block of at least ``batch`` rows, beginning with the rest of the old one.

        Old blocks are never written again: actions that were returned are views of them.
        """
        parts = [{key: column[self._at :] for key, column in self._block.items()}]
        left = self._size - self._at
        while left < batch:  # blocks of one size, so that the stream is the same for any batching
            parts.append(sample(self._space, self._rows, self._rng))
            left += self._rows
        parts = [part for part in parts if part]
        self._block = {key: np.concatenate([p[key] for p in parts]) for key in self._space.spaces}
        self._at, self._size = 0, left


def _block_rows(space: spaces.Dict) -> int:
    if not space.spaces:
        raise ConfigError("the random policy needs an action space with at least one column")
    try:
        row = sum(leaf_dtype(s).itemsize * math.prod(leaf_shape(s)) for s in space.spaces.values())
    except SpaceError as error:
        raise ConfigError(f"the random policy cannot draw from this space: {error}") from error
    if any(isinstance(s, spaces.Text) for s in space.spaces.values()):
        return TEXT_ROWS
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // max(1, row)))
