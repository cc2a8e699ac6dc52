"""Advantages of episodes that began in the same state: plain numpy."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Reals: TypeAlias = NDArray[np.float64]
_LEAST = 1e-6  # standard deviations below it are those of equal returns


def group_relative(returns: Reals, scale: bool) -> Reals:
    """Returns how much better each episode of a group was than the mean of all.

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
    """Returns how much better each episode was than the mean of the others; as above."""
    count = len(returns)
    return group_relative(returns, scale=False) * (count / max(1, count - 1))


def equal_votes(answers: Sequence[Sequence[int]]) -> list[list[float]]:
    """Returns weights of answers by which all episodes count the same, however long they are.

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
