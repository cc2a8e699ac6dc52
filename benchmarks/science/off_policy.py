"""Compares DQN and SAC with Stable-Baselines3's, with the same settings.

    python -m benchmarks.science.off_policy run FOLDER      # goes on where it was
    python -m benchmarks.science.off_policy report FOLDER

Both see the same environments, play as many steps for each gradient step and have networks of the
same widths. A run has two scores, those of ``benchmarks.science.equivalence``: the mean return in
the last fifth of the steps, and over the whole run. What differs: Stable-Baselines3 updates the
target of DQN by copies, ours in every step; its DQN takes the maximum of the target network, ours
is double DQN; the actor of its SAC has a standard deviation that depends on the observation, and
its critics read the action in their first layer, ours in their last hidden one.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from benchmarks.report import arguments, publish, table
from benchmarks.science.equivalence import EPISODES, Counted, scores

STEPS = {"dqn": 50_000, "sac": 10_000}
GAMES = {"dqn": "CartPole-v1", "sac": "Pendulum-v1"}
LIBRARIES = ("gamut", "stable-baselines3")
SEEDS = range(4)
WIDTH, GAMMA, BUFFER, WARMUP, HIDDEN = 8, 0.99, 100_000, 1000, [256, 256]
STEPS_PER_GRADIENT = 2
MINIBATCH = {"dqn": 64, "sac": 256}
LR = {"dqn": 5e-4, "sac": 1e-3}

for _name, _id in GAMES.items():
    gym.register(f"OffPolicy/{_name}-v0", entry_point=lambda _id=_id, **_: Counted(gym.make(_id)))


def train_gamut(name: str, seed: int) -> None:
    from rollout.cli import Session
    from rollout.config import make_config
    from rollout.signals import Stop
    from rollout.train.config import TrainConfig
    from rollout.train.train import train

    policies: dict[str, dict[str, Any]] = {
        "dqn": {"name": "q_network"},
        "sac": {"name": "actor_critic", "continuous": "squashed", "shared": False},
    }
    own = {
        "dqn": {"target_rate": 0.02, "epsilon": 0.04, "epsilon_share": 0.16},
        "sac": {"target_rate": 0.005},
    }
    batch = 32 * WIDTH
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "output": f"{folder}/run",
            "bridge": {
                "name": "gymnasium",
                "id": f"OffPolicy/{name}-v0",
                "imports": ["benchmarks.science.off_policy"],
            },
            "policy": {**policies[name], "hidden": HIDDEN, "activation": "relu"},
            "width": WIDTH,
            "fragment": {"steps": 32},
            "env_steps": STEPS[name],
            "seed": seed,
            "algorithm": {
                "name": name,
                "batch": batch,
                "minibatch": MINIBATCH[name],
                "passes": MINIBATCH[name] / STEPS_PER_GRADIENT,
                "lr": LR[name],
                "gamma": GAMMA,
                "memory": BUFFER,
                "warmup": WARMUP,
                **own[name],
            },
            "episodes": {"write": False},
            "wandb": {"mode": "disabled"},
            "log": {"level": "error"},
        }
        train(make_config(TrainConfig, config), Session(False, Stop()))


def train_stable_baselines3(name: str, seed: int) -> None:
    import torch
    from stable_baselines3 import DQN, SAC
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(1)
    games = DummyVecEnv([lambda: gym.make(f"OffPolicy/{name}-v0") for _ in range(WIDTH)])
    given: dict[str, Any] = {
        "learning_rate": LR[name],
        "buffer_size": BUFFER,
        "learning_starts": WARMUP,
        "batch_size": MINIBATCH[name],
        "gamma": GAMMA,
        "train_freq": 32,  # of steps of all games together
        "gradient_steps": 32 * WIDTH // STEPS_PER_GRADIENT,
        "policy_kwargs": {"net_arch": HIDDEN, "activation_fn": torch.nn.ReLU},
        "seed": seed,
        "device": "cpu",
    }
    if name == "dqn":
        own = {"exploration_fraction": 0.16, "exploration_final_eps": 0.04}
        model: Any = DQN("MlpPolicy", games, target_update_interval=50, **own, **given)
    else:
        model = SAC("MlpPolicy", games, tau=0.005, **given)
    model.learn(STEPS[name])


TRAIN = {"gamut": train_gamut, "stable-baselines3": train_stable_baselines3}


def run(folder: Path) -> None:
    """Makes all runs that the folder does not have, one on each processor."""
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "scores.jsonl"
    lines = results.read_text().splitlines() if results.exists() else []
    done = {tuple(json.loads(line)[k] for k in ("algorithm", "library", "seed")) for line in lines}

    def make_one(name: str, library: str, seed: int) -> None:
        episodes = folder / f"{name}-{library}-{seed}.txt"
        episodes.unlink(missing_ok=True)
        command = [sys.executable, "-m", "benchmarks.science.off_policy", "one", name, library]
        env = {**os.environ, EPISODES: str(episodes), "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, str(seed)], check=True, env=env)
        line = {"algorithm": name, "library": library, "seed": seed}
        with results.open("a") as file:
            file.write(json.dumps({**line, **scores(episodes, STEPS[name])}) + "\n")

    jobs = [x for x in itertools.product(STEPS, LIBRARIES, SEEDS) if x not in done]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda x: make_one(*x), sorted(jobs, key=lambda x: x[2])))


def report(folder: Path) -> str:
    """Returns the table of the runs in a folder."""
    from scipy import stats

    runs = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
    rows = []
    for name, library in itertools.product(STEPS, LIBRARIES):
        own = [r for r in runs if (r["algorithm"], r["library"]) == (name, library)]
        cells = [name, GAMES[name], f"{STEPS[name]:,}", library, str(len(own))]
        for score in ("last fifth", "whole run"):
            values = np.array([r[score] for r in own])
            half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
            low, high = values.mean() - half, values.mean() + half
            cells.append(f"{values.mean():.4g} [{low:.4g}, {high:.4g}]")
        rows.append(cells)
    columns = ["algorithm", "game", "steps", "library", "seeds", "last fifth, 95 %", "whole run"]
    about = (__doc__ or "").partition("Both see")
    return f"{about[1]}{about[2]}\n{table(columns, rows)}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("what", choices=("run", "report", "one"))
    parser.add_argument("arguments", nargs="+")
    asked = parser.parse_args()
    if asked.what == "one":
        name, library, seed = asked.arguments
        TRAIN[library](name, int(seed))
    elif asked.what == "run":
        run(Path(asked.arguments[0]).absolute())
    else:
        text = report(Path(asked.arguments[0]))
        publish("off_policy", "DQN and SAC beside another library", text, save=asked.save)


if __name__ == "__main__":
    main()
