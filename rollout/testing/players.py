"""A deterministic policy and evaluator, for tests of the code between them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Frame,
    Outcome,
    Start,
    Task,
    Verdict,
    leaf_dtype,
    leaf_shape,
    option,
)
from rollout.errors import ConfigError
from rollout.testing.fakes import mix

_Words = NDArray[np.uint64]


@dataclass(frozen=True)
class FakePolicy:
    """Chooses actions by a hash of observation, memory and seed: deterministic and arbitrary.

    Works in any spaces of fixed shape. Its memory counts the steps of the episode, so a host that
    loses or mixes up memory gets different actions.
    """

    version: int = option(0, "Number of the weights it starts with.")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> FakePlayer:
        """Returns the policy; see ``rollout.api.PolicyRecipe``."""
        for key, leaf in spec.action_space.spaces.items():
            if isinstance(leaf, spaces.Text):
                raise ConfigError(f"FakePolicy plays no text, and action {key!r} is {leaf}")
        return FakePlayer(spec.action_space, seed, self.version)


class FakePlayer:
    """The policy of ``FakePolicy``."""

    def __init__(self, action_space: spaces.Dict, seed: int, version: int) -> None:
        self._space, self._seed, self._version = action_space, seed, version

    @property
    def version(self) -> int:
        """Version of the current weights."""
        return self._version

    @property
    def extras(self) -> Mapping[str, ColumnSpec]:
        """Log-probability of the action, and a value."""
        return {
            "logp": ColumnSpec(unit="nat", doc="log-probability of the action"),
            "value": ColumnSpec(doc="made up, but repeatable"),
        }

    def load(self, weights: Mapping[str, object], version: int) -> None:
        """Stores the version of the weights; another version gives other actions."""
        self._version = version

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns ``{"count": (n,) int64, "seed": (n,) uint64}``."""
        seeds = np.array([start.seed for start in starts], np.uint64)
        return {"count": np.zeros(len(starts), np.int64), "seed": seeds}

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Chooses an action for every row; with ``explore`` also by the episode's seed."""
        key = mix(memory["count"].astype(np.uint64))
        for name, column in observations.items():
            key = mix(key ^ _row_hash(name, column))
        if explore:
            key = mix(key ^ memory["seed"])
        key = mix(key + np.uint64(self._seed % 2**32) + np.uint64(self._version) * np.uint64(2**32))
        actions = {k: _choose(leaf, k, key) for k, leaf in self._space.spaces.items()}
        logp = np.full(len(key), sum(_logp(s) for s in self._space.spaces.values()), np.float32)
        value = (_uniform(mix(key), 1)[:, 0] * 2 - 1).astype(np.float32)
        forward = {"count": memory["count"] + 1, "seed": memory["seed"].copy()}
        return Decision(actions, forward, {"logp": logp, "value": value})


def _row_hash(name: str, column: Array) -> _Words:
    """One word per row: a sum of its bytes, weighted by odd numbers that depend on the name."""
    if column.dtype == object:
        column = column.astype(str)
    rows = np.ascontiguousarray(column).reshape(len(column), -1).view(np.uint8)
    weights = mix(np.arange(rows.shape[1], dtype=np.uint64) + np.uint64(zlib.crc32(name.encode())))
    words: _Words = rows.astype(np.uint64) @ (weights | np.uint64(1))
    return words


def _uniform(key: _Words, n: int) -> NDArray[np.float64]:
    """``(B, n)`` numbers in [0, 1), a function of the key only."""
    words = mix(key[:, None] + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x632BE59BD9B4E019))
    return (words >> np.uint64(11)).astype(np.float64) / 2**53


def _choose(leaf: spaces.Space[object], name: str, key: _Words) -> Array:
    shape, dtype = leaf_shape(leaf), leaf_dtype(leaf)
    n = int(np.prod(shape, dtype=np.int64))
    share = _uniform(key ^ np.uint64(zlib.crc32(name.encode())), n).reshape(len(key), *shape)
    if isinstance(leaf, spaces.Discrete):
        return (leaf.start + np.floor(share * int(leaf.n))).astype(dtype)
    if isinstance(leaf, spaces.MultiDiscrete):
        digits: Array = (leaf.start + np.floor(share * leaf.nvec)).astype(dtype)
        return digits
    if isinstance(leaf, spaces.Box):
        low = np.where(np.isfinite(leaf.low), leaf.low, np.fmin(leaf.high - 1, -1.0))
        high = np.where(np.isfinite(leaf.high), leaf.high, low + 2.0)
        drawn: Array = np.clip((low + share * (high - low)).astype(dtype), leaf.low, leaf.high)
        return drawn
    return np.floor(share * 2).astype(dtype)


def _logp(leaf: spaces.Space[object]) -> float:
    if isinstance(leaf, spaces.Discrete):
        return -float(np.log(int(leaf.n)))
    if isinstance(leaf, spaces.MultiDiscrete):
        return -float(np.log(leaf.nvec).sum())
    if isinstance(leaf, spaces.MultiBinary):
        return -float(np.log(2) * np.prod(leaf.shape))
    return 0.0


@dataclass(frozen=True)
class FakeEvaluator:
    """Reward and success from two signals; the defaults are those of ``FakeBridge``."""

    reward: str = option("reward", "Signal that is the reward.")
    success: str = option("reached", "Signal that is not zero once the task is done.")
    distance: str = option("distance", "Signal that falls to 0; its share done is the progress.")

    @property
    def requires(self) -> frozenset[str]:
        """Signals it reads."""
        return frozenset((self.reward, self.success, self.distance))

    def build(self, width: int) -> FakeJudge:
        """Returns an evaluator for ``width`` slots."""
        return FakeJudge(self, width)


class FakeJudge:
    """The evaluator of ``FakeEvaluator``."""

    def __init__(self, recipe: FakeEvaluator, width: int) -> None:
        self._recipe = recipe
        self._from = np.ones(width, np.float32)
        self._progress = np.zeros(width, np.float32)
        self._outcome = np.zeros(width, np.int8)
        self._over = np.zeros(width, bool)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], frame: Frame) -> None:
        """Resets some slots and stores the distances of their targets."""
        rows = np.asarray(slots, np.int64)
        self._from[rows] = np.maximum(frame.signals[self._recipe.distance], 1)
        self._progress[rows], self._outcome[rows], self._over[rows] = 0, Outcome.RUNNING, False

    def judge(self, actions: Columns, frame: Frame) -> Verdict:
        """Judges a step; a slot that was over before it keeps its verdict, with reward 0."""
        live, signals = ~self._over, frame.signals
        reward = np.where(live, signals[self._recipe.reward], 0).astype(np.float32)
        share = np.clip(1 - signals[self._recipe.distance] / self._from, 0, 1)
        self._progress[live] = share[live]
        done = signals[self._recipe.success].astype(bool)
        self._outcome[live] = np.where(done, Outcome.SUCCESS, Outcome.RUNNING)[live]
        self._over |= frame.game_over | frame.game_truncated | (self._outcome != Outcome.RUNNING)
        return Verdict(reward, self._progress.copy(), self._outcome.copy())
