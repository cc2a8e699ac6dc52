"""The facts of one update."""

from __future__ import annotations

from dataclasses import dataclass, field

from rollout.api import EpisodeResult, Loss, Start
from rollout.train.episodes import Signals


@dataclass
class Iteration:
    """The facts of one update.

    Attributes:
        update: number of updates so far, including this one.
        env_steps: steps played so far, in all updates.
        fresh_steps: steps of this update.
        staleness: number of updates by which the weights of its oldest steps were behind.
        dropped_steps: steps that were too old to learn from.
        figures: figures of the update, see ``rollout.api.Learner``.
        sample_s: seconds spent waiting for steps.
        update_s: seconds spent learning from them.
        results: episodes that ended.
        signals: last signals of each result.
        losses: episodes that were lost.
        abandoned: episodes that were lost in all their attempts.
        hosts: state of the games, as metrics.
    """

    update: int = 0
    env_steps: int = 0
    fresh_steps: int = 0
    staleness: int = 0
    dropped_steps: int = 0
    figures: dict[str, float] = field(default_factory=dict)
    sample_s: float = 0.0
    update_s: float = 0.0
    results: list[EpisodeResult] = field(default_factory=list)
    signals: list[Signals] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    abandoned: list[Start] = field(default_factory=list)
    hosts: dict[str, float] = field(default_factory=dict)
