"""Advantages over fragments: GAE (Schulman et al., 2016), V-trace (Espeholt et al., 2018)."""

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
    following = _following(value, next_value, end)
    delta = reward + np.float32(gamma) * following - value
    advantage = _scan(delta, np.where(end == RUNNING, np.float32(gamma * lambda_), np.float32(0.0)))
    return advantage, advantage + value


def vtrace(
    reward: Floats,
    value: Floats,
    next_value: Floats,
    end: NDArray[np.int8],
    ratio: Floats,
    *,
    gamma: float,
    lambda_: float,
) -> tuple[Floats, Floats]:
    """Returns the advantages and value targets of V-trace, ``(N, T)`` each.

    With a ratio of 1 the targets are those of ``advantages``.

    Args:
        reward: see ``advantages``, as for ``next_value`` and ``end``.
        value: value of the observation before each step, by the network that learns.
        next_value: see ``advantages``.
        end: see ``advantages``.
        ratio: probability of each action under the policy that learns, divided by that under the
            policy that acted. It is cut at 1.
        gamma: discount factor.
        lambda_: factor of the traces.
    """
    rho = np.minimum(ratio, np.float32(1.0))
    following = _following(value, next_value, end)
    delta = rho * (reward + np.float32(gamma) * following - value)
    carry = np.where(end == RUNNING, np.float32(gamma * lambda_) * rho, np.float32(0.0))
    correction = _scan(delta, carry)
    target = value + correction
    after = following.copy()
    after[:, :-1] += np.where(end[:, :-1] == RUNNING, correction[:, 1:], np.float32(0.0))
    return rho * (reward + np.float32(gamma) * after - value), target


def _following(value: Floats, next_value: Floats, end: NDArray[np.int8]) -> Floats:
    """Returns the value of the observation after each step."""
    following = np.zeros_like(value)
    following[:, :-1] = value[:, 1:]
    return np.where(end == RUNNING, following, np.where(end == CUT, next_value, np.float32(0.0)))


def _scan(delta: Floats, carry: Floats) -> Floats:
    """Returns ``x[:, t] = delta[:, t] + carry[:, t] * x[:, t + 1]``."""
    # Time comes first, so that each step of the scan reads contiguous memory.
    delta_t, carry_t = np.ascontiguousarray(delta.T), np.ascontiguousarray(carry.T)
    out = np.empty_like(delta_t)
    running = np.zeros_like(delta_t[0])
    for t in range(len(out) - 1, -1, -1):
        np.multiply(running, carry_t[t], out=running)
        running += delta_t[t]
        out[t] = running
    return np.ascontiguousarray(out.T, np.float32)
