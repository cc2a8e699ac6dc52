"""Generalised advantage estimation over fragments (Schulman et al., 2016)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RUNNING, TERMINATED, CUT = 0, 1, 2
"""What follows a row: the next row, nothing, or something that is known by its value only.

``CUT`` stands at time limits, at lost episodes and at the end of a fragment: what would have come
is estimated by the value of the true next observation, so that a limit, a crash and a border of our
making are never taken for an end of the game.
"""


def advantages(
    reward: Floats,
    value: Floats,
    next_value: Floats,
    end: NDArray[np.int8],
    *,
    gamma: float,
    lambda_: float,
) -> tuple[Floats, Floats]:
    """Returns advantages and value targets, ``(N, T)`` each.

    Args:
        reward: after each step, ``(N, T)``.
        value: of the observation before each step.
        next_value: of the observation after it; read where ``end`` is ``CUT`` only.
        end: ``RUNNING``, ``TERMINATED`` or ``CUT``; the last row of a sequence is never
            ``RUNNING``. Rows that hold no step are ``TERMINATED``, with zeros in all else.
        gamma: discount.
        lambda_: 0 trusts the values, 1 trusts the rewards.
    """
    following = np.zeros_like(value)
    following[:, :-1] = value[:, 1:]
    following = np.where(end == RUNNING, following, np.where(end == CUT, next_value, 0.0))
    delta = reward + np.float32(gamma) * following - value
    carry = np.where(end == RUNNING, np.float32(gamma * lambda_), np.float32(0.0))
    # Time goes first here, so that each step of the scan reads memory in a row.
    delta_t, carry_t = np.ascontiguousarray(delta.T), np.ascontiguousarray(carry.T)
    out = np.empty_like(delta_t)
    running = np.zeros_like(delta_t[0])
    for t in range(len(out) - 1, -1, -1):
        np.multiply(running, carry_t[t], out=running)
        running += delta_t[t]
        out[t] = running
    advantage = np.ascontiguousarray(out.T, np.float32)
    return advantage, advantage + value
