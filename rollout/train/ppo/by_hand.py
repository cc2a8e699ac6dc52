"""PPO's loss and its gradient by hand, for networks that have one in NumPy.

The same arithmetic as ``PpoLearner._loss``, whose gradient autograd finds.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rollout.api import Array
from rollout.train.network import HandNetwork
from rollout.train.ppo.options import PpoOptions, Rates


def backward(
    network: HandNetwork, rows: Mapping[str, Array], s: PpoOptions, rates: Rates
) -> dict[str, float]:
    """Sets the gradients of the network's parameters by the loss of a minibatch.

    Args:
        network: the network.
        rows: at least one row: what ``network.prepare`` returned, ``choices``, ``logp``,
            ``value``, ``advantage``, ``target``, and with a reference its outputs, ``reference``.
        s: the options.
        rates: the weights of the loss.

    Returns:
        the figures of the loss; see ``PpoLearner.learn``.
    """
    share = 1.0 / len(rows["logp"])
    outputs, value = network.forward(rows)
    distribution = network.distribution(outputs)
    advantage, choices = rows["advantage"], rows["choices"]
    logp = distribution.log_prob(choices)
    moves = np.ones(len(logp), bool)  # where the loss depends on the log-probability
    if s.logp_floor is not None:
        low = (advantage < 0) & (logp < s.logp_floor)
        moves &= ~low
        logp = np.where(low, logp.dtype.type(s.logp_floor), logp)
    log_ratio = logp - rows["logp"]
    moves &= log_ratio <= s.log_ratio_cap
    log_ratio = np.minimum(log_ratio, s.log_ratio_cap)
    ratio = np.exp(log_ratio)
    clipped = np.clip(ratio, 1.0 - s.clip, 1.0 + s.clip)
    gain, bounded = ratio * advantage, clipped * advantage
    moves &= (ratio == clipped) | (gain < bounded)
    error, by_value = _value_error(value, rows, s.value_clip)
    entropy = distribution.entropy()
    sums = {
        "policy_loss": -np.minimum(gain, bounded).sum(),
        "value_loss": 0.5 * error.sum(),
        "entropy": entropy.sum(),
        "approx_kl": (ratio - 1.0 - log_ratio).sum(),
        "old_approx_kl": -log_ratio.sum(),
        "clip_fraction": np.count_nonzero(ratio != clipped),
    }
    reference = None
    if "reference" in rows:
        reference = network.distribution(rows["reference"])
        sums["reference_kl"] = distribution.kl(reference).sum()
    by_outputs = distribution.gradient(
        choices,
        np.where(moves, -gain * share, 0).astype(logp.dtype),
        -rates.entropy * share,
        rates.reference_coef * share,
        reference,
    )
    network.backward(by_outputs, (s.value_coef * share) * by_value)
    return {key: float(total) * share for key, total in sums.items()}


def _value_error(
    value: Array, rows: Mapping[str, Array], clip: float | None
) -> tuple[Array, Array]:
    """Returns the squared errors of values, and half their gradients, ``(B,)`` each."""
    off = value - rows["target"]
    error = off * off
    if clip is None:
        return error, off
    moved = value - rows["value"]
    bounded = np.clip(moved, -clip, clip)
    bound = (rows["value"] + bounded - rows["target"]) ** 2
    return np.maximum(error, bound), np.where((bound > error) & (bounded != moved), 0, off)
