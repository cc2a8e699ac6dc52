"""Measures PPO's update alone, on one thread: ours, and that of plain PyTorch.

All learn from the same batch in turns; figures are processor time of this process.

    python -m benchmarks.throughput.update --save
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.peers.libraries.torch_file import Plain
from policies.actor_critic.policy import ActorCriticPolicy
from rollout.threads import set_threads
from rollout.train.gradients import Optimizer
from rollout.train.ppo.learner import PpoLearner
from rollout.train.ppo.options import PpoOptions, Rates

SLOTS, STEPS, INPUTS, ACTIONS = 250, 16, 4, 2
SETTINGS = PpoOptions(batch=SLOTS * STEPS, minibatch=500, epochs=4, lr=1e-3, entropy=0.0)


def batch() -> dict[str, np.ndarray[Any, Any]]:
    """Returns what a training on CartPole learns from, with random numbers."""
    rng, shape = np.random.default_rng(0), (SLOTS, STEPS)
    numbers = {
        key: rng.normal(size=shape).astype(np.float32) for key in ("value", "next_value", "reward")
    }
    return numbers | {
        "observation/o": rng.normal(size=(*shape, INPUTS)).astype(np.float32),
        "action/a": rng.integers(0, ACTIONS, shape),
        "logp": np.full(shape, -np.log(ACTIONS), np.float32),
        "end": (rng.random(shape) < 0.02).astype(np.int8),
        "first": np.zeros(shape, bool),
        "valid": np.ones(shape, bool),
    }


def ours(hidden: tuple[int, ...], *, by_hand: bool) -> Callable[[], None]:
    """Returns our update."""
    seen = spaces.Dict({"o": spaces.Box(-np.inf, np.inf, (INPUTS,), np.float32)})
    acted = spaces.Dict({"a": spaces.Discrete(ACTIONS)})
    network = ActorCriticPolicy(hidden=hidden, shared=False).network(seen, acted, seed=0)
    learner, rows = PpoLearner(network, SETTINGS), batch()
    if not by_hand:
        learner._by_hand = None
        rate, most, eps = SETTINGS.lr, SETTINGS.max_grad_norm, SETTINGS.adam_eps
        learner.optimizer = Optimizer(
            list(network.parameters()), lr=rate, max_grad_norm=most, eps=eps
        )
    rng, rates = np.random.default_rng(0), Rates(SETTINGS.lr, SETTINGS.entropy)
    return lambda: void(learner.learn(rows, rates, rng))


def pictures(*, compiled: bool) -> Callable[[], None]:
    """Returns our update of half the Nature CNN on 1,024 pictures of 64 x 64 pixels, one epoch."""
    settings = PpoOptions(
        batch=1024, minibatch=512, epochs=1, precision="float32", compile=compiled
    )
    seen = spaces.Dict({"rgb": spaces.Box(0, 255, (64, 64, 3), np.uint8)})
    acted = spaces.Dict({"a": spaces.Discrete(ACTIONS)})
    policy = ActorCriticPolicy(hidden=(128,), cnn_width=0.5, cnn_features=128)
    learner, rng = (
        PpoLearner(policy.network(seen, acted, seed=0), settings),
        np.random.default_rng(0),
    )
    rows = {key: array[:64] for key, array in batch().items() if key != "observation/o"}
    rows["observation/rgb"] = rng.integers(0, 256, (64, STEPS, 64, 64, 3), dtype=np.uint8)
    return lambda: void(learner.learn(rows, Rates(settings.lr, settings.entropy), rng))


def void(_: object) -> None:
    """Drops a result."""


def plain(hidden: tuple[int, ...], *, compiled: bool) -> Callable[[], None]:
    """Returns the update of ``Plain``."""
    found = {k: torch.from_numpy(v).flatten(0, 1) for k, v in batch().items()}
    rows = [found[k] for k in ("observation/o", "action/a", "logp", "reward", "value")]
    settings = SimpleNamespace(**vars(SETTINGS), hidden=list(hidden))
    learner = Plain((INPUTS,), ACTIONS, settings, compiled=compiled)
    return lambda: learner.update(rows)


def measure(updates: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Returns milliseconds of processor time of each update, in turns."""
    taken: dict[str, list[float]] = {name: [] for name in updates}
    for number in range(rounds + 1):
        for name, update in updates.items():
            began = time.process_time()
            for _ in range(5):
                update()
            if number:  # the first compiles
                taken[name].append(200 * (time.process_time() - began))
    return taken


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    set_threads(1)
    torch.manual_seed(0)
    text = (
        f"{SETTINGS.batch:,} rows of {INPUTS} numbers, minibatch {SETTINGS.minibatch}, "
        f"{SETTINGS.epochs} epochs, {ACTIONS} actions, policy and value apart, tanh. "
        "Milliseconds of processor time: median (range)\n"
    )
    rows = []
    for hidden in ((64, 64), (128, 128), (256, 256)):
        updates = {
            "ours, by hand": ours(hidden, by_hand=True),
            "ours, by autograd": ours(hidden, by_hand=False),
            "plain PyTorch": plain(hidden, compiled=False),
            "plain PyTorch, compiled": plain(hidden, compiled=True),
        }
        taken = measure(updates, options.rounds)
        least = taken["plain PyTorch, compiled"]
        for name, values in taken.items():
            ratios = [a / b for a, b in zip(values, least, strict=True)]
            layers = " x ".join(map(str, hidden))
            rows.append([layers, name, spread(values, 1), f"{statistics.median(ratios):.2f}"])
    text += "\n" + table(["layers", "update", "ms", "to compiled"], rows)
    taken = measure({k: pictures(compiled=k != "eager") for k in ("eager", "compiled")}, 3)
    text += "\nHalf the Nature CNN, 1,024 pictures of 64 x 64 pixels, one epoch.\n\n" + table(
        ["update", "ms"], [[name, spread(values, 1)] for name, values in taken.items()]
    )
    publish("update", "PPO's update alone", text, save=options.save)


if __name__ == "__main__":
    main()
