"""Plays with a network and gives batches: what a runner does, without Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollout.api import Columns, EpisodeResult, Fragment, Loss, Start
from rollout.api.fragment import Phase
from rollout.errors import BudgetExhausted
from rollout.host.hosting import HostPlan
from rollout.host.processes import owned_workdir, remove_workdir, sweep_orphans
from rollout.host.schedule import Ledger, Schedule
from rollout.observe.hosts import HostFigures
from rollout.train.batch import from_fragment
from rollout.train.episodes import Signals, last_signals


@dataclass
class Sample:
    """What a runner hands over.

    Attributes:
        batch: the steps, see ``rollout.train.batch``.
        env_steps: number of steps in it.
        version: number of the oldest weights that played in it.
        results: every episode that ended.
        signals: what the signals that were asked for said at the end of each.
        losses: every episode that was lost.
        abandoned: episodes that were lost more often than they are tried again.
        figures: how the games of its runner fare; None of a runner that died.
        idle_failures: instance, phase and reason of games that failed with no episode in them.
    """

    batch: Columns
    env_steps: int
    version: int
    results: list[EpisodeResult] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    figures: HostFigures | None = None
    idle_failures: list[tuple[int, Phase, str]] = field(default_factory=list)


class Sampler:
    """One player and its games, which never run out of episodes.

    Args:
        plan: the game and the policy, whose recipe is a ``TrainableRecipe``.
        schedule: the episodes; it has no end.
        reads: the observation columns that the network reads.
        number: of the runner.
        incarnation: how often it has been replaced.
        reward_scale: factor on rewards.
        reward_clip: largest size of a reward after that; None for any.
        signals: names of those whose last values go with the result of an episode.
    """

    def __init__(
        self,
        plan: HostPlan,
        schedule: Schedule,
        reads: tuple[str, ...],
        *,
        number: int = 0,
        incarnation: int = 0,
        reward_scale: float = 1.0,
        reward_clip: float | None = None,
        signals: tuple[str, ...] = (),
    ) -> None:
        self.schedule, self._plan, self._reads = schedule, plan, reads
        self._scale, self._clip, self._signals = reward_scale, reward_clip, signals
        self._ledger = Ledger(plan.play.retries)
        self._untouched = True
        self._want = 2 * plan.slots  # episodes that are kept waiting for a slot
        sweep_orphans()
        self._workdir = owned_workdir(f"gamut-runner-{number}-")
        self._player = plan.build(number, incarnation, self._workdir)
        policy: Any = self._player.policy
        self._policy = policy

    @property
    def untouched(self) -> bool:
        """Whether no episode was handed out yet."""
        return self._untouched

    def load(self, weights: Mapping[str, Any], version: int) -> None:
        """Plays with these weights from now on."""
        self._policy.load(weights, version)

    def sample(self) -> Sample:
        """Plays until a fragment is complete.

        Raises:
            BudgetExhausted: no game is left, and none may be launched any more.
        """
        player = self._player
        self._untouched = False
        while True:
            starts = self.schedule.take(max(0, self._want - len(player.starts)))
            self._ledger.give(starts)
            player.offer(starts)
            fragment = player.next_fragment()
            abandoned, player.abandoned = player.abandoned, []
            if fragment is None:
                raise BudgetExhausted("a runner has nothing left to play")
            self._ledger.settle(fragment.results, fragment.losses, abandoned)
            # Short episodes need a longer queue than there are slots, or slots stand idle.
            self._want = max(self._want, len(fragment.results) + 2 * self._plan.slots)
            sample = self._sample(fragment)
            sample.abandoned += abandoned
            sample.figures = player.pool.figures(len(player.starts))
            if sample.env_steps or sample.losses:
                sample.idle_failures, player.idle_failures = player.idle_failures, []
                return sample

    def _sample(self, fragment: Fragment) -> Sample:
        losses = list(fragment.losses)
        results = [r for r in fragment.results if r.end != "lost"]
        network = self._policy.network
        if not fragment.length:
            return Sample({}, 0, self._policy.version, losses=losses)
        signals = last_signals(fragment, results, self._signals)
        final, following = following_values(network, fragment, self._reads)
        batch = from_fragment(
            fragment,
            reads=self._reads,
            memory_keys=network.memory_keys,
            final_value=final.numpy(),
            next_value=following.numpy(),
            steps=self._plan.play.steps,
        )
        if self._scale != 1.0:
            batch["reward"] *= np.float32(self._scale)
        if self._clip is not None:
            np.clip(batch["reward"], -self._clip, self._clip, out=batch["reward"])
        version = int(fragment.version[0])
        return Sample(batch, fragment.env_steps, version, results, signals, losses)

    def position(self) -> dict[str, Any]:
        """Returns where the schedule stands, as JSON-able data; ``schedule.restore`` takes it."""
        return self.schedule.state(self._ledger.held.values())

    def close(self) -> None:
        """Ends every game and removes their folders."""
        self._player.close()
        remove_workdir(self._workdir)


@torch.inference_mode()
def following_values(
    network: Any, fragment: Fragment, reads: tuple[str, ...]
) -> tuple[Tensor, Tensor]:
    """Returns the values of the final observations ``(K,)`` and of the next ones ``(B,)``.

    A network that remembers is unrolled over the fragment once more, because what it remembers at
    the end of an episode is overwritten when the next one begins.
    """
    ends = [fragment.final_observations, fragment.next_observations]
    seen = {k: torch.cat([torch.from_numpy(e[k]) for e in ends]) for k in reads}
    memory: dict[str, Tensor] = {}
    if network.memory_keys:
        before = {k: torch.from_numpy(fragment.memory[k]) for k in network.memory_keys}
        rows = {k: torch.from_numpy(fragment.observations[k]) for k in reads}
        _, _, after = network.unroll(rows, before, torch.from_numpy(fragment.first))
        t, b = fragment.final_index[:, 0], fragment.final_index[:, 1]
        memory = {k: torch.cat([v[t, b], v[-1]]) for k, v in after.items()}
    _, values, _ = network(seen, memory)
    count = len(fragment.final_index)
    return values[:count].float(), values[count:].float()
