"""Measures PPO end to end: env steps per second, playing and learning, beside other libraries.

Every setup is warmed up, then all take turns in rounds, so that ratios compare the same minutes.
One turn is a number of complete training iterations, for some seconds of wall time.

    python -m benchmarks.throughput.training
    python -m benchmarks.throughput.training --only gpu --save   # on a machine with a GPU
"""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import gymnasium
import torch

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.update import Plain
from rollout.config import make_config
from rollout.host.session import ray_session
from rollout.train.config import TrainConfig
from rollout.train.plan import TrainPlan

CARTPOLE = {
    "bridge": {"name": "gymnasium", "id": "CartPole-v1"},
    "policy": {"name": "actor_critic", "hidden": [64, 64], "shared": False},
    "algorithm": {
        "name": "ppo",
        "batch": 4000,
        "minibatch": 500,
        "epochs": 4,
        "lr": 1e-3,
        "entropy": 0.0,
        "schedule": "constant",
    },
}


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


def stock(envs: int, *, vectorized: bool) -> Setup:
    """RLlib's own PPO, everything in one process."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    logging.getLogger("ray.rllib").setLevel(logging.ERROR)
    config = PPOConfig().environment("CartPole-v1")
    config.env_runners(
        num_env_runners=0,
        num_envs_per_env_runner=envs,
        gym_env_vectorize_mode="vector_entry_point" if vectorized else "sync",
    )
    config.training(
        train_batch_size_per_learner=4000,
        minibatch_size=500,
        num_epochs=4,
        lr=1e-3,
        clip_param=0.2,
        grad_clip=0.5,
        use_kl_loss=False,
        entropy_coeff=0.0,
        vf_loss_coeff=0.25,
        vf_clip_param=float("inf"),
    )
    config.rl_module(
        model_config=DefaultModelConfig(
            fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False
        )
    )
    algorithm = config.build_algo()
    key = "num_env_steps_sampled_lifetime"
    seen = [0]

    def step() -> int:
        total = int(algorithm.train()["env_runners"][key])
        fresh, seen[0] = total - seen[0], total
        return fresh

    return Setup(f"stock RLlib, {envs} envs", step, algorithm.stop)


def baselines3(envs: int) -> Setup:
    """Stable-Baselines3's PPO."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env("CartPole-v1", n_envs=envs)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=4000 // envs,
        batch_size=500,
        n_epochs=4,
        learning_rate=1e-3,
        ent_coef=0.0,
        policy_kwargs={"net_arch": {"pi": [64, 64], "vf": [64, 64]}},
        device="cpu",
    )

    def step() -> int:
        before = model.num_timesteps
        model.learn(4000, reset_num_timesteps=False)
        return int(model.num_timesteps - before)

    return Setup(f"Stable-Baselines3, {envs} envs", step, env.close)


def single_file(envs: int, *, compiled: bool) -> Setup:
    """Plain PyTorch in one process, on Gymnasium's vectorized game."""
    learner = Plain((64, 64), compiled=compiled)
    env = gymnasium.make_vec("CartPole-v1", envs, vectorization_mode="vector_entry_point")
    seen, steps = env.reset(seed=0)[0], 4000 // envs

    def step() -> int:
        nonlocal seen
        taken: list[tuple[Any, ...]] = []
        values, rewards, ends = [], [], []
        for _ in range(steps):
            with torch.no_grad():
                rows = torch.as_tensor(seen)
                log_p = torch.log_softmax(learner.actor(rows), -1)
                acted = torch.multinomial(log_p.exp(), 1)[:, 0]
                logp = log_p.gather(1, acted[:, None])[:, 0]
                values.append(learner.critic(rows)[:, 0])
            seen, reward, over, cut, _ = env.step(acted.numpy())
            taken.append((rows, acted, logp))
            rewards.append(torch.as_tensor(reward, dtype=torch.float32))
            ends.append(torch.as_tensor(over | cut))
        with torch.no_grad():
            value = learner.critic(torch.as_tensor(seen))[:, 0]
        gains, gain = [], torch.zeros(envs)
        for t in reversed(range(steps)):
            goes_on = (~ends[t]).float()
            gain = rewards[t] + 0.99 * value * goes_on - values[t] + 0.99 * 0.95 * goes_on * gain
            gains.append(gain)
            value = values[t]
        advantage = torch.cat(gains[::-1])
        target = advantage + torch.cat(values)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        learner.update([*(torch.cat(each) for each in zip(*taken, strict=True)), advantage, target])
        return steps * envs

    kind = "compiled" if compiled else "eager"
    return Setup(f"one file of PyTorch, {kind}, {envs} envs", step, env.close)


def cartpole() -> list[Setup]:
    """CartPole: batch 4000, minibatch 500, 4 epochs, two nets of 2 x 64 tanh, one torch thread."""

    def own(name: str, width: int, runners: int, steps: int) -> Setup:
        sizes = {"width": width, "runners": runners, "fragment": {"steps": steps}}
        sizes["algorithm"] = {**CARTPOLE["algorithm"], "bptt": steps}
        return ours(f"ours, {name}", {**CARTPOLE, **sizes})

    return [
        own("8 envs, one process", 8, 0, 500),
        own("8 envs in each of 2 runners", 8, 2, 250),
        own("64 envs, one process", 64, 0, 63),
        own("64 envs in a runner of its own", 64, 1, 63),
        own("250 envs, one process", 250, 0, 16),
        own("250 envs in a runner of its own", 250, 1, 16),
        stock(8, vectorized=False),
        stock(256, vectorized=True),
        baselines3(8),
        baselines3(64),
        single_file(250, compiled=False),
        single_file(250, compiled=True),
    ]


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


GROUPS = {make.__name__: make for make in (cartpole, semantic, rgb, gpu)}


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
    """A table; for CartPole with ratios to stock RLlib, of the medians of the same rounds."""
    by_name = dict(rates)
    bases = [name for name in by_name if name.startswith("stock")]
    rows = []
    for name, own in rates:
        ratios = [
            f"{statistics.median(a / b for a, b in zip(own, by_name[base], strict=True)):.1f}x"
            for base in bases
        ]
        rows.append([name, spread(own), *ratios])
    head = ["setup", "env steps/s: median (range)", *(f"to {base}" for base in bases)]
    return f"## {group}\n\n{GROUPS[group].__doc__}\n\n{table(head, rows)}"


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
