"""Measures PPO on blockworld end to end: steps per second, playing and learning.

Every setup is warmed up, then all take turns in rounds, so that ratios compare the same minutes.
One turn is a number of complete training iterations, for some seconds of wall time.

    python -m benchmarks.throughput.training
    python -m benchmarks.throughput.training --only gpu --save   # on a machine with a GPU
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from benchmarks.report import arguments, publish, spread, table
from rollout.config import make_config
from rollout.host.session import ray_session
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan


class Setup(NamedTuple):
    """A training setup: its row, and what makes an iteration, returns its steps, and ends it."""

    name: str
    step: Callable[[], int]
    close: Callable[[], None]


def ours(name: str, settings: dict[str, Any]) -> Setup:
    """A run of ``scripts/train.py``, without its files."""
    from rollout.train.rllib.algorithm import build

    config = make_config(
        TrainConfig,
        {"output": "unused", "env_steps": 10**12, "log": {"level": "error"}, **settings},
    )
    algorithm = build(TrainPlan.make(config))

    def step() -> int:
        algorithm.train()
        return int(algorithm.last.fresh_steps)

    return Setup(name, step, algorithm.stop)


def hunting(
    view: str, actions: str, policy: dict[str, Any], shape: tuple[int, int], **algorithm: Any
) -> dict[str, Any]:
    """The settings of hunts of sheep, with so many slots and steps of a fragment."""
    width, steps = shape
    return {
        "bridge": {"name": "blockworld", "observe": [view], "actions": actions},
        "policy": {"name": "actor_critic", **policy},
        "task": "hunt_sheep",
        "width": width,
        "fragment": {"steps": steps},
        "algorithm": {"name": "ppo", **algorithm},
    }


def semantic() -> list[Setup]:
    """Blockworld's rays, 4 x 8, one tick per step, 2 x 128 tanh."""
    sizes = {"batch": 8192, "minibatch": 1024, "epochs": 3}
    base = hunting("semantic_rays", "compact", {"hidden": [128, 128]}, (128, 64), **sizes)
    names = ("one process", "1 runner", "2 runners")
    return [ours(f"blockworld semantic_rays, {name}", {**base, "runners": n})
            for n, name in enumerate(names)]  # fmt: skip


def rgb() -> list[Setup]:
    """Blockworld's picture, 64 x 64, a Nature CNN with half the channels."""
    policy = {"hidden": [128], "cnn_width": 0.5, "cnn_features": 128}
    sizes = {"batch": 4096, "minibatch": 512, "epochs": 3}
    base = hunting("rgb", "compact", policy, (64, 64), **sizes, precision="float32")
    half = hunting("rgb", "compact", policy, (64, 64), **sizes, precision="bfloat16")
    return [
        ours("blockworld rgb 64x64, float32, 1 runner", {**base, "runners": 1}),
        ours("blockworld rgb 64x64, bfloat16, 1 runner", {**half, "runners": 1}),
        ours("blockworld rgb 64x64, bfloat16, one process", half),
    ]


def gpu() -> list[Setup]:
    """The same picture, learned from on a GPU in bfloat16; a runner is one process on the CPU."""
    policy = {"hidden": [256], "cnn_width": 0.5, "activation": "relu"}
    sizes = {"batch": 4096, "minibatch": 1024, "epochs": 2, "precision": "bfloat16"}
    base = hunting("rgb", "human", policy, (128, 32), **sizes) | {"learners": {"gpus": 1}}
    most = max(2, (os.cpu_count() or 2) - 2)
    return [
        ours("blockworld rgb 64x64, one process", base),
        *(ours(f"blockworld rgb 64x64, {n} runners", {**base, "runners": n}) for n in (2, most)),
    ]


GROUPS = {make.__name__: make for make in (semantic, rgb, gpu)}


def turn(setup: Setup, seconds: float) -> float:
    """Steps per second of complete iterations, for at least that long."""
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        steps += setup.step()
    return steps / (time.perf_counter() - began)


def measure(group: str, rounds: int, seconds: float) -> list[tuple[str, list[float]]]:
    """Rates of every setup of a group, a value for each round."""
    setups = GROUPS[group]()
    try:
        for setup in setups:
            for _ in range(3):
                setup.step()
        rates: list[tuple[str, list[float]]] = [(s.name, []) for s in setups]
        for _ in range(rounds):
            for setup, (_, own) in zip(setups, rates, strict=True):
                own.append(turn(setup, seconds))
        return rates
    finally:
        for setup in setups:
            setup.close()


def report(group: str, rates: list[tuple[str, list[float]]]) -> str:
    """Returns a table."""
    rows = [[name, spread(own)] for name, own in rates]
    text = table(["setup", "env steps/s: median (range)"], rows)
    return f"## {group}\n\n{GROUPS[group].__doc__}\n\n{text}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument(
        "--only", nargs="*", default=[g for g in GROUPS if g != "gpu"], choices=list(GROUPS)
    )
    options = parser.parse_args()
    text = ""
    # Setups of a group exist at the same time and take turns: more actors than processors.
    with ray_session(num_cpus=64):
        for group in options.only:
            rates = measure(group, options.rounds, options.seconds)
            text += "\n" + report(group, rates)
    name = "training_gpu" if options.only == ["gpu"] else "training"
    publish(name, "PPO end to end", text, save=options.save)


if __name__ == "__main__":
    main()
