"""Measures PPO and APPO on Crafter's pixels where half of the games are ten times slower.

8 games, a process each. A slow game takes ten times as long for every step and reset: it sleeps
for nine times the time that it took. The rate counts the steps that were learned from, from the
end of the first update to that of the last one; PPO does not learn from steps that are more than
``max_staleness`` updates old. Stable-Baselines3's PPO on its SubprocVecEnv, which waits for all
games in every step, is measured on the same games. The return is the mean of the episodes that
ended in the second half of the steps, with its 95 % interval.

    python -m benchmarks.throughput.uneven_training
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from benchmarks.report import arguments, publish, spread, table

GAMES, FRAGMENT, SLOWER = 8, 64, 10
SLOWED = "GAMUT_SLOWED_GAMES"  # names a folder in which games take their numbers, if half are slow
OURS = ("ppo", "appo")
OTHER = "stable-baselines3 ppo"


class Crafter(gym.Env[np.ndarray, int]):
    """Crafter's pixels; every other game of a run is slow if ``SLOWED`` is set."""

    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space: spaces.Discrete[np.int64] = spaces.Discrete(17)

    def __init__(self) -> None:
        from bridges.gymnasium.crafter import _CrafterGame

        self._game = _CrafterGame(64, 10_000, 64, True, False)
        self._slow = False
        if folder := os.environ.get(SLOWED):
            self._slow = _number(Path(folder)) % 2 == 1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(2**31)) if seed is None else seed
        return self._timed(lambda: self._game.reset(seed=chosen)[0]), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, over, cut, _ = self._timed(lambda: self._game.step(int(action)))
        return seen, float(reward), over, cut, {}

    def _timed(self, play: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = play()
        if self._slow:
            threading.Event().wait((SLOWER - 1) * (time.perf_counter() - began))
        return found


def _number(folder: Path) -> int:
    """Returns the number of a new game in its run, from 0."""
    for number in itertools.count():
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        return number
    raise AssertionError


gym.register("Uneven/Crafter-v0", Crafter)


def ours(name: str, seed: int, steps: int) -> dict[str, Any]:
    """Trains PPO or APPO of ours; returns steps per second, returns and the share of old steps."""
    # Here, since every game imports this module.
    from benchmarks.science.trainings import train_gamut
    from rollout.train.episodes import read_episodes

    marks: list[tuple[float, float]] = []  # time and steps learned from, after each update

    def mark(record: Any) -> None:
        dropped = record.metrics["train/dropped_steps"]
        marks.append((time.perf_counter(), record.env_steps - dropped))

    with tempfile.TemporaryDirectory() as folder:
        train_gamut(
            {
                "output": f"{folder}/run",
                "bridge": {
                    "name": "gymnasium",
                    "id": "Uneven/Crafter-v0",
                    "imports": ["benchmarks.throughput.uneven_training"],
                },
                "policy": {"name": "actor_critic", "cnn": "nature", "activation": "relu"},
                "instances": GAMES,
                "width": 1,
                "host": {"isolation": "subprocess"},
                "fragment": {"steps": FRAGMENT},
                "env_steps": steps,
                "seed": seed,
                "algorithm": {
                    "name": name,
                    "batch": GAMES * FRAGMENT,
                    "minibatch": 256,
                    "epochs": 2,
                    "lr": 3e-4,
                    "schedule": "constant",
                    "gamma": 0.95,
                    "gae_lambda": 0.95,
                    "precision": "float32",
                },
                "episodes": {"write": True},
            },
            [mark],
        )
        episodes = read_episodes(Path(folder) / "run" / "episodes.jsonl")
    (began, first), (ended, last) = marks[0], marks[-1]
    late = [e["return"] for e in episodes if e["env_steps"] > steps / 2]
    return {"rate": (last - first) / (ended - began), "returns": late, "learned": last / steps}


def other(seed: int, steps: int) -> dict[str, Any]:
    """Trains Stable-Baselines3's PPO on the same games."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import SubprocVecEnv

    torch.set_num_threads(1)
    makers = [lambda: Monitor(gym.make("Uneven/Crafter-v0")) for _ in range(GAMES)]
    games = SubprocVecEnv(makers, start_method="spawn")
    model = PPO(
        "CnnPolicy",
        games,
        learning_rate=3e-4,
        n_steps=FRAGMENT,
        batch_size=256,
        n_epochs=2,
        gamma=0.95,
        ent_coef=0.01,
        vf_coef=0.25,  # its value loss has no factor 0.5
        stats_window_size=10_000,
        seed=seed,
        device="cpu",
    )
    marks: list[float] = []
    ended: list[tuple[int, float]] = []

    def mark(given: dict[str, Any], _: Any) -> bool:
        done = given["self"].num_timesteps
        if done % (GAMES * FRAGMENT) == 0:
            marks.append(time.perf_counter())
        ended.extend((done, i["episode"]["r"]) for i in given["infos"] if "episode" in i)
        return True

    model.learn(steps, callback=mark)
    games.close()
    rate = (len(marks) - 1) * GAMES * FRAGMENT / (marks[-1] - marks[0])
    return {"rate": rate, "returns": [r for at, r in ended if at > steps / 2], "learned": 1.0}


def measure(name: str, slow: bool, seed: int, steps: int) -> dict[str, Any]:
    """Returns what one training in a process of its own measured."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        if slow:
            env[SLOWED] = folder
        out = Path(folder) / "result.json"
        module = "benchmarks.throughput.uneven_training"
        given = ["--one", name, "--seed", str(seed), "--steps", str(steps), "--out", str(out)]
        subprocess.run([sys.executable, "-m", module, *given], check=True, env=env)
        found: dict[str, Any] = json.loads(out.read_text())
        return found


def main() -> None:
    from benchmarks.science.trainings import interval

    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=20_480)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the first round")
    parser.add_argument("--one", help="the training of one process; for the program itself")
    parser.add_argument("--out", type=Path, help="its result")
    args = parser.parse_args()
    if args.one:
        found = (
            ours(args.one, args.seed, args.steps)
            if args.one in OURS
            else other(args.seed, args.steps)
        )
        args.out.write_text(json.dumps(found))
        return
    setups = list(itertools.product((False, True), (*OURS, OTHER)))
    results: dict[tuple[bool, str], list[dict[str, Any]]] = {each: [] for each in setups}
    for number in range(args.rounds):
        # Every second round in reverse, so that a change of the machine's load falls on all.
        for slow, name in setups if number % 2 == 0 else setups[::-1]:
            results[slow, name].append(measure(name, slow, args.seed + number, args.steps))
            print(number, name, slow, results[slow, name][-1]["rate"], flush=True)
    rows = []
    for slow, name in setups:
        runs, base = results[slow, name], results[False, "ppo"]
        shares = [r["rate"] / b["rate"] for r, b in zip(runs, base, strict=True)]
        mean, half = interval([x for r in runs for x in r["returns"]])
        rows.append(
            [
                name if name == OTHER else f"our {name}",
                "half" if slow else "none",
                spread([r["rate"] for r in runs]),
                spread(shares, 2),
                spread([r["learned"] for r in runs], 2),
                f"{mean:.2f} [{mean - half:.2f}, {mean + half:.2f}]",
            ]
        )
    head = ["algorithm", "slow games", "steps/s: median (range)", "of our ppo, none slow"]
    head += ["share of steps learned from", "return"]
    text = f"{GAMES} games, {args.steps:,} steps, {args.rounds} rounds (seeds from {args.seed}), "
    text += f"every second one in reverse order.\n\n{table(head, rows)}"
    publish("uneven_training", "PPO and APPO with uneven games", text, save=args.save)


if __name__ == "__main__":
    main()
