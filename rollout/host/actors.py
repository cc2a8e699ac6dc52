"""A player in a Ray actor, beside its games."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import ray

from rollout.api import Bridge, Fragment, PolicyRecipe, Start, Task, Trainable
from rollout.host.player import Player, PlayOptions
from rollout.host.pool import Pool, PoolOptions

WATCH = "watch"  # concurrency group that answers while a game is being played


@dataclass(frozen=True)
class HostPlan:
    """Everything a player is built from; travels to wherever it plays.

    Attributes:
        bridge: recipe of the game.
        task: what is played.
        policy: recipe of who plays.
        seed: of the run; every player's policy gets a seed of its own from it.
        instances: copies of the game beside each player.
        width: slots of each.
        pool: how they are hosted.
        play: how they are played.
    """

    bridge: Bridge
    task: Task
    policy: PolicyRecipe
    seed: int = 0
    instances: int = 1
    width: int = 1
    pool: PoolOptions = field(default_factory=PoolOptions)
    play: PlayOptions = field(default_factory=PlayOptions)

    @property
    def slots(self) -> int:
        """Number of episodes that one player plays at a time."""
        return self.instances * self.width

    def build(self, number: int, incarnation: int, workdir: Path) -> Player:
        """Returns the player with this number, its games being launched."""
        # Spawn keys of players are longer than those of episodes, so the two never meet.
        sequence = np.random.SeedSequence(self.seed, spawn_key=(number, incarnation, 0))
        policy_seed = int(sequence.generate_state(1, np.uint64)[0] >> 1)
        policy = self.policy.build(self.bridge.spec, self.task, seed=policy_seed)
        pool = Pool(self.bridge, workdir, self.instances, self.width, self.pool)
        return Player(pool, self.task, policy, self.play, first_instance=number * self.instances)


@dataclass(frozen=True, slots=True)
class Report:
    """What comes back beside a fragment.

    Attributes:
        waiting: episodes on offer that no slot has taken yet.
        abandoned: episodes given up since the last report.
    """

    waiting: int
    abandoned: tuple[Start, ...]


class GameHost:
    """One player and its games. Wrapped as a Ray actor by ``remote_host``; plain without Ray."""

    def __init__(self, plan: HostPlan, number: int, incarnation: int = 0) -> None:
        self._workdir = Path(tempfile.mkdtemp(prefix=f"gamut-host-{number}-"))
        self._player = plan.build(number, incarnation, self._workdir)

    def play(
        self,
        starts: Sequence[Start],
        weights: Mapping[str, Any] | None = None,
        version: int = 0,
    ) -> tuple[Report, Fragment | None]:
        """Plays until a fragment is complete.

        Args:
            starts: more episodes to play.
            weights: for a trainable policy, what it acts with from now on.
            version: number of those weights.

        Returns:
            the fragment, or None when every episode on offer has ended.
        """
        player = self._player
        if weights is not None and isinstance(player.policy, Trainable):
            player.policy.load(weights, version)
        player.offer(starts)
        fragment = player.next_fragment()
        abandoned, player.abandoned = tuple(player.abandoned), []
        return Report(len(player.starts), abandoned), fragment

    @ray.method(concurrency_group=WATCH)  # type: ignore[untyped-decorator] # Ray ships no types
    def progress(self) -> int:
        """Returns a number that changes as long as anything happens here."""
        return self._player.progress

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self._player.close()
        shutil.rmtree(self._workdir, ignore_errors=True)


def remote_host(
    plan: HostPlan, number: int, incarnation: int, *, num_cpus: float, num_gpus: float = 0.0
) -> Any:
    """Returns the handle of a new actor that hosts player ``number``."""
    actor = ray.remote(
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        max_restarts=0,  # the fleet replaces it, with what it held and within a budget
        max_task_retries=0,  # steps are not idempotent
        concurrency_groups={WATCH: 1},
        runtime_env={"env_vars": _one_thread()},
    )(GameHost)
    return actor.remote(plan, number, incarnation)


def _one_thread() -> dict[str, str]:
    """Thread caps: many actors with as many threads each stall one another."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return {name: os.environ.get(name, "1") for name in names}
