"""Algorithms for language models: their options, and the advantages of episodes. No torch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rollout.api import LearnsFrom, PlayedEpisode, option

Reals: TypeAlias = NDArray[np.float64]
_LEAST = 1e-6  # standard deviations below it are those of equal returns


def group_relative(returns: Reals, scale: bool) -> Reals:
    """Returns the return of each episode of a group relative to the mean of the group.

    Args:
        returns: returns of the valid episodes of a group, ``(n,)``; lost ones are left out.
        scale: whether to divide by the standard deviation.

    Returns:
        ``(n,)``; zeros where nothing can be compared: one episode, or equal returns.
    """
    if len(returns) < 2:
        return np.zeros(len(returns))
    centered: Reals = returns - returns.mean()
    if not scale:
        return centered
    spread = float(returns.std())
    return centered / spread if spread > _LEAST else np.zeros(len(returns))


def leave_one_out(returns: Reals) -> Reals:
    """Returns the return of each episode relative to the mean of the others."""
    count = len(returns)
    return group_relative(returns, scale=False) * (count / max(1, count - 1))


def episode_weights(answers: Sequence[Sequence[int]]) -> list[list[float]]:
    """Returns weights of answers that give all episodes the same weight, whatever their length.

    So does the mean over an output in Shao et al. 2024, section 4.1: else the failures, which are
    the long episodes, would outweigh the successes and push the entropy up.

    Args:
        answers: number of answers in each episode of each group.

    Returns:
        the weight of each answer of each episode; its mean over all answers is 1.
    """
    counts = [count for group in answers for count in group]
    mean = sum(counts) / max(1, sum(count > 0 for count in counts))
    return [[mean / max(1, count) for count in group] for group in answers]


def step_advantages(
    rewards: Sequence[Reals], states: Sequence[Sequence[Hashable]], gamma: float
) -> list[Reals]:
    """Returns the step advantages of GiGPO: discounted returns compared within equal states.

    Args:
        rewards: rewards of each episode of a group, ``(T,)``.
        states: a key of the state before each of its steps.
        gamma: discount.

    Returns:
        for each episode ``(T,)``: its discounted return from the step on, less the mean of all
        steps of the group in the same state; 0 for a state that was seen once.
    """
    to_go = []
    for own in rewards:
        values, later = np.zeros(len(own)), 0.0
        for t in range(len(own) - 1, -1, -1):
            later = values[t] = own[t] + gamma * later
        to_go.append(values)
    seen: dict[Hashable, list[float]] = defaultdict(list)
    for values, keys in zip(to_go, states, strict=True):
        for value, key in zip(values, keys, strict=True):
            seen[key].append(float(value))
    return [
        np.array([v - np.mean(seen[k]) for v, k in zip(values, keys, strict=True)])
        for values, keys in zip(to_go, states, strict=True)
    ]


@dataclass(frozen=True)
class LanguageOptions:
    """Options of updates; see ``rollout.train.language.learner``."""

    minibatch: int = option(32, "Examples of a minibatch.", unit="examples", gt=0)
    weight_decay: float = option(0.0, "Of AdamW.", ge=0)
    max_grad_norm: float = option(1.0, "Maximum gradient norm.", gt=0)
    memory: int = option(64, "Most examples in a forward pass.", unit="examples", gt=0)


@dataclass(frozen=True)
class Sft(LanguageOptions):
    """Supervised fine-tuning; Touvron et al. 2023, section 3.1."""

    learns_from: ClassVar[LearnsFrom] = "answers"

    epochs: int = option(3, "Passes over the examples.", unit="epochs", gt=0)
    lr: float = option(1e-3, "Highest learning rate; it decays linearly to 0.", gt=0)
    warmup: float = option(
        0.05, "Share of the minibatches in which the learning rate rises from 0.", ge=0, le=1
    )

    def learning_rate(self, epoch: float) -> float:
        """Returns the learning rate after some epochs: it rises from 0, then decays to 0."""
        done = epoch / self.epochs
        return self.lr * min(1.0, done / self.warmup if self.warmup else 1.0) * (1.0 - done)


@dataclass(frozen=True)
class GroupOptions(LanguageOptions):
    """Options of every ``GroupAlgorithm``; one of your own may inherit them."""

    learns_from: ClassVar[LearnsFrom] = "groups"

    groups: int = option(8, "Start states of an update.", unit="states", gt=0)
    size: int = option(8, "Episodes from each start state.", unit="episodes", gt=1)
    clip_low: float = option(0.2, "Clipping of the ratio of probabilities, below 1.", gt=0, le=1)
    clip_high: float = option(0.28, "Clipping above 1.", gt=0)
    epochs: int = option(1, "Passes over the episodes of an update.", unit="epochs", gt=0)
    lr: float = option(1e-4, "Learning rate.", gt=0)
    minibatch: int = option(256, "Examples of a minibatch.", unit="examples", gt=0)


def _returns(group: Sequence[PlayedEpisode]) -> Reals:
    return np.array([episode.rewards.sum() for episode in group], np.float64)


@dataclass(frozen=True)
class Grpo(GroupOptions):
    """Group relative policy optimization; Shao et al. 2024, section 4.1."""

    removed: ClassVar[Mapping[str, object]] = {"gamma": 0.95, "step_weight": 1.0}

    scale: bool = option(
        True, "Whether advantages are divided by the standard deviation of the group."
    )

    def advantages(self, groups: Sequence[Sequence[PlayedEpisode]]) -> list[list[Reals]]:
        """See ``rollout.api.GroupAlgorithm``."""
        votes = episode_weights([[sum(each.answers) for each in group] for group in groups])
        return [
            [
                vote * (advantage + more)
                for vote, advantage, more in zip(
                    own, group_relative(_returns(group), self.scale), self._more(group), strict=True
                )
            ]
            for group, own in zip(groups, votes, strict=True)
        ]

    def _more(self, group: Sequence[PlayedEpisode]) -> list[Reals]:
        """Returns the terms added to the advantages of the steps."""
        return [np.zeros(len(episode.rewards)) for episode in group]


@dataclass(frozen=True)
class Gigpo(Grpo):
    """Group-in-group policy optimization; Feng et al. 2025, section 4."""

    removed: ClassVar[Mapping[str, object]] = {}

    gamma: float = option(0.95, "Discount of the step advantages.", gt=0, le=1)
    step_weight: float = option(1.0, "Weight of the step advantages.", ge=0)

    def _more(self, group: Sequence[PlayedEpisode]) -> list[Reals]:
        rewards, states = [e.rewards for e in group], [e.states for e in group]
        return [self.step_weight * each for each in step_advantages(rewards, states, self.gamma)]


@dataclass(frozen=True)
class Rloo(GroupOptions):
    """REINFORCE with a leave-one-out baseline; Ahmadian et al. 2024, section 2.

    All answers have the same weight: its gradient is that of the expected return, without bias and
    with more variance.
    """

    removed: ClassVar[Mapping[str, object]] = {**Grpo.removed, "scale": True}

    def advantages(self, groups: Sequence[Sequence[PlayedEpisode]]) -> list[list[Reals]]:
        """See ``rollout.api.GroupAlgorithm``."""
        return [
            [
                np.full(len(episode.rewards), advantage)
                for episode, advantage in zip(group, leave_one_out(_returns(group)), strict=True)
            ]
            for group in groups
        ]
