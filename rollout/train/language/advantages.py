"""Advantages of episodes that began in the same state: plain numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
_LEAST = 1e-6  # standard deviations below it are those of equal returns


def episode_advantages(returns: Reals, name: str, *, scale: bool) -> Reals:
    """Returns the advantage of each episode of a group.

    Args:
        returns: returns of the valid episodes of a group, ``(n,)``; lost ones are left out.
        name: ``rloo`` compares an episode with the mean of the others (Ahmadian et al. 2024),
            anything else with the mean of all (Shao et al. 2024). One vote per episode, however
            long it is.
        scale: whether to divide by the standard deviation; not in rloo.

    Returns:
        ``(n,)``; zeros where nothing can be compared: one episode, or equal returns.
    """
    count = len(returns)
    if count < 2:
        return np.zeros(count)
    centered: Reals = returns - returns.mean()
    if name == "rloo":
        return centered * count / (count - 1)
    if not scale:
        return centered
    spread = float(returns.std())
    return centered / spread if spread > _LEAST else np.zeros(count)


def answer_weights(answers: Sequence[int], name: str) -> Reals:
    """Returns the weight of each answer of some episodes; the mean over all answers is 1.

    ``grpo`` and ``gigpo`` give all episodes the same weight, however long they are, as the mean
    over an output does in Shao et al. 2024, section 4.1: else the failures, which are the long
    episodes, would outweigh the successes and push the entropy up. ``rloo`` gives all answers the
    same weight: its gradient is that of the expected return, without bias and with more variance.

    Args:
        answers: number of answers in each episode.
        name: of the algorithm.
    """
    counts = np.asarray(answers, np.float64)
    if name == "rloo" or not counts.any():
        return np.ones(len(counts))
    weights: Reals = counts.sum() / np.count_nonzero(counts) / np.maximum(counts, 1.0)
    return weights


def step_advantages(
    rewards: Sequence[Reals], states: Sequence[Sequence[Hashable]], gamma: float
) -> list[Reals]:
    """Returns the step advantages of GiGPO: discounted returns compared within equal states.

    Args:
        rewards: rewards of each episode of a group, ``(T,)``.
        states: what identifies the state before each of its steps.
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
