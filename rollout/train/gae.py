"""Generalised advantage estimation over fragments (Schulman et al., 2016)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

RUNNING, TERMINATED, CUT = 0, 1, 2
"""What follows a row: the next row, nothing, or an observation of which only the value is known.

``CUT`` marks time limits, lost episodes and the end of a fragment: the rest of the return is
estimated by the value of the true next observation. So a limit, a crash or the border of a fragment
is never treated as the end of the game.
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
        reward: reward after each step, ``(N, T)``.
        value: value of the observation before each step.
        next_value: value of the observation after it; read only where ``end`` is ``CUT``.
        end: ``RUNNING``, ``TERMINATED`` or ``CUT``; the last row of a sequence is never
            ``RUNNING``. Rows without a step are ``TERMINATED``, with zeros in all other columns.
        gamma: discount factor.
        lambda_: trade-off between bias (0: one-step values) and variance (1: full returns).
    """
    following = np.zeros_like(value)
    following[:, :-1] = value[:, 1:]
    following = np.where(end == RUNNING, following, np.where(end == CUT, next_value, 0.0))
    delta = reward + np.float32(gamma) * following - value
    carry = np.where(end == RUNNING, np.float32(gamma * lambda_), np.float32(0.0))
    # Time comes first, so that each step of the scan reads contiguous memory.
    delta_t, carry_t = np.ascontiguousarray(delta.T), np.ascontiguousarray(carry.T)
    out = np.empty_like(delta_t)
    running = np.zeros_like(delta_t[0])
    for t in range(len(out) - 1, -1, -1):
        np.multiply(running, carry_t[t], out=running)
        running += delta_t[t]
        out[t] = running
    advantage = np.ascontiguousarray(out.T, np.float32)
    return advantage, advantage + value
