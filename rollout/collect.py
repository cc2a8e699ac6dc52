"""Collection: a policy plays a game, and what happens is recorded. The loop to read first.

::

    for fragment in fleet.play(schedule):     # first ready, first served
        recorder.append(fragment)             # finished episodes survive from here on
        tally.add(fragment)

Everything before the loop checks the input and builds the parts; everything after it writes down
what came out.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import Bridge, Fragment, PolicyRecipe, StateSet, Task
from rollout.cli import Session
from rollout.config import CollectConfig
from rollout.errors import BudgetExhausted, ConfigError
from rollout.host import PlayOptions, PoolOptions
from rollout.host.schedule import Schedule
from rollout.run_directory import RunDirectory, versions
from rollout.tasks import bridge_and_task

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """A configuration, built and checked; nothing is launched yet."""

    config: CollectConfig
    bridge: Bridge
    task: Task
    states: StateSet
    policy: PolicyRecipe

    @classmethod
    def make(cls, config: CollectConfig) -> Plan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in it does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        config = config.model_copy(update={"bridge": bridge_config})
        if config.width > bridge.spec.max_width:
            raise ConfigError(
                f"width={config.width}: an instance of {bridge.spec.name} holds 1 to "
                f"{bridge.spec.max_width} slots"
            )
        states = config.state_set.take(task.state_space)
        policy: PolicyRecipe = config.policy.build()
        # Built once here, so that a policy that does not fit is told before anything is launched.
        policy.build(bridge.spec, task, seed=config.seed)
        return cls(config, bridge, task, states, policy)


@dataclass
class Tally:
    """What a run has come to so far."""

    env_steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    returns: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    lost_why: Counter[str] = field(default_factory=Counter)
    game_s: float = 0.0
    began: float = field(default_factory=time.monotonic)

    @property
    def episodes(self) -> int:
        """Episodes that ended with a result."""
        return len(self.returns)

    def add(self, fragment: Fragment) -> None:
        """Counts a fragment in."""
        self.env_steps += fragment.env_steps
        self.game_s += float(fragment.latency.sum())
        for result in fragment.results:
            self.ends[result.end] += 1
            if result.end != "lost":
                self.outcomes[result.outcome.name.lower()] += 1
                self.returns.append(result.total_reward)
                self.lengths.append(result.length)
        for loss in fragment.losses:
            self.lost_why[loss.phase] += 1

    def summary(self) -> dict[str, Any]:
        """Returns the counts as JSON-able data."""
        seconds = time.monotonic() - self.began
        returns, lengths = np.array(self.returns), np.array(self.lengths)
        return {
            "episodes": self.episodes,
            "env_steps": self.env_steps,
            "ends": dict(self.ends),
            "outcomes": dict(self.outcomes),
            "losses_by_phase": dict(self.lost_why),
            "return": _spread(returns),
            "length": _spread(lengths),
            "seconds": round(seconds, 3),
            "env_steps_per_second": round(self.env_steps / max(seconds, 1e-9), 1),
        }


def _spread(values: np.ndarray) -> dict[str, float] | None:
    if not len(values):
        return None
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "median": float(np.median(values)),
        "max": float(values.max()),
    }
