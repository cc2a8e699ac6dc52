"""A deterministic policy and evaluator, for tests of the code between them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from rollout.api import (
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
    option,
    sample,
)
from rollout.errors import ConfigError


@dataclass(frozen=True)
class FakePolicy:
    """Chooses actions by a hash of observation, memory and seed: deterministic and arbitrary.

    Works in any spaces of fixed shape. Its memory counts the steps of the episode, so a host that
    loses or mixes up memory gets different actions.
    """

    version: int = option(0, "Version of its initial weights.")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> FakePlayer:
        """Returns the policy; see ``rollout.api.PolicyRecipe``."""
        if any(isinstance(leaf, spaces.Text) for leaf in spec.action_space.spaces.values()):
            raise ConfigError(f"FakePolicy plays no text, got {spec.action_space}")
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
        """A log-probability and a value, which mean nothing but are repeatable."""
        return {"logp": ColumnSpec(unit="nat", doc="made up"), "value": ColumnSpec(doc="made up")}

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
        keys = zip(memory["count"], memory["seed"], _digests(observations), strict=True)
        draws = [
            np.random.default_rng([self._seed, self._version, count, seed if explore else 0, seen])
            for count, seed, seen in keys
        ]
        rows = [sample(self._space, 1, rng) for rng in draws]
        actions = {name: np.concatenate([row[name] for row in rows]) for name in self._space.spaces}
        logp, value = np.array([(-rng.random(), rng.random()) for rng in draws], np.float32).T
        forward = {"count": memory["count"] + 1, "seed": memory["seed"].copy()}
        return Decision(actions, forward, {"logp": logp, "value": value})


def _digests(observations: Columns) -> list[int]:
    """Returns a number for each row, which depends on all its values."""
    digests: list[int] = []
    for column in observations.values():
        rows = [str(row).encode() if column.dtype == object else row.tobytes() for row in column]
        digests = list(map(zlib.crc32, rows, digests or [0] * len(rows)))
    return digests


@dataclass(frozen=True)
class FakeEvaluator:
    """Reward and success from two signals; the defaults are those of ``FakeBridge``."""

    reward: str = option("reward", "Signal that is the reward.")
    success: str = option("reached", "Signal that is not zero when the task is done.")
    distance: str = option(
        "distance", "Signal that decreases to 0; the share done is the progress."
    )

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
