"""Measures the cost of uneven, hanging and crashing games: 64 games, a process each.

Steps take 20 ms in the median and up to 2 s; 2 % of episodes hang and 1 % crash. The throughput of
our player is compared with the same games stepping independently, without failures; and, in the
same run and on the same game, with Gymnasium's AsyncVectorEnv and RLlib's stock EnvRunners without
failures. The last two are also run with failures, to see what happens.

    python -m benchmarks.throughput.uneven
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import gymnasium
import numpy as np

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.playing import count, fragments, playing, starts
from bridges.chaos import ChaosBridge
from rollout.api import Task
from rollout.config import HostConfig, build_plugin
from rollout.errors import GamutError
from rollout.evaluators import GameReward
from rollout.host import PlayOptions

_OURS = 3  # measurements before those of the other libraries
PATIENCE_S = 60.0  # for RLlib's runners to return a sample
CALM = ChaosBridge(step_latency="lognormal(0.02, 1.0, 2)", step_deadline_s=3.0)
ROUGH = replace(CALM, episode_hang=0.02, episode_crash=0.01, crash_kind="any")


def alone(instances: int, seconds: float) -> float:
    """Steps per second of games that step independently, in threads that only wait for them."""
    done, go, stop = [0] * instances, threading.Barrier(instances + 1), threading.Event()
    begins = starts(CALM.spec.state_space, 4000)

    def play(number: int, folder: Path) -> None:
        game = CALM.launch(folder, [], width=1, timeout_s=300)
        rng, episode = np.random.default_rng(number), number
        game.reset([0], [begins[episode]], timeout_s=60)
        go.wait()
        while not stop.is_set():
            frame = game.step({"action": rng.integers(3, size=1)}, timeout_s=60)
            done[number] += 1
            if frame.game_over[0] or frame.game_truncated[0]:
                episode += instances
                game.reset([0], [begins[episode % len(begins)]], timeout_s=60)
        game.close()

    folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
    owns = [folder / str(number) for number in range(instances)]
    threads = [threading.Thread(target=play, args=each) for each in enumerate(owns)]
    for own, thread in zip(owns, threads, strict=True):
        own.mkdir()
        thread.start()
    go.wait()
    before, began = sum(done), time.perf_counter()
    stop.wait(seconds)
    rate = (sum(done) - before) / (time.perf_counter() - began)
    stop.set()
    for thread in threads:
        thread.join()
    shutil.rmtree(folder, ignore_errors=True)
    return rate


def ours(bridge: ChaosBridge, instances: int, seconds: float) -> tuple[float, dict[str, float]]:
    """Steps per second that were not lost, and the failures in that time."""
    host = HostConfig(restarts=10**6, spares=4, concurrent_launches=4)
    task = Task("walk", "", bridge.spec.state_space, GameReward())
    policy = build_plugin("policies", "random", {}).build(bridge.spec, task, seed=0)
    setup = {"host": host, "play": PlayOptions(steps=16, retries=20)}
    begins = starts(task.state_space, 100_000)
    with playing(bridge, task, policy, (instances, 1), begins=begins, **setup) as player:
        found = count(fragments(player), instances, seconds)
        return found.rate, {"episodes": found.episodes, **player.pool.counts}


class ChaosEnv(gymnasium.Env[Any, Any]):
    """The same game as a plain Gymnasium environment, without our code."""

    def __init__(self, bridge: ChaosBridge, number: int = 0) -> None:
        spec = bridge.spec
        self.observation_space = spec.observation_space["walker"]
        self.action_space = spec.action_space["action"]
        self._folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
        self._game = bridge.launch(self._folder, [], width=1, timeout_s=300)
        self._starts, self._next = starts(spec.state_space, 4000), 37 * number

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self._next += 1
        start = self._starts[self._next % len(self._starts)]
        frame = self._game.reset([0], [start], timeout_s=60)
        return frame.observations["walker"][0].copy(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        frame = self._game.step({"action": np.array([action])}, timeout_s=3)
        reward = float(frame.signals["reward"][0])
        over, cut = bool(frame.game_over[0]), bool(frame.game_truncated[0])
        return frame.observations["walker"][0].copy(), reward, over, cut, {}

    def close(self) -> None:
        self._game.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def vector(bridge: ChaosBridge, instances: int, seconds: float) -> float | str:
    """Steps per second of AsyncVectorEnv, or the error that ended it."""
    makers = [lambda n=n: ChaosEnv(bridge, n) for n in range(instances)]
    env = gymnasium.vector.AsyncVectorEnv(makers, context="spawn")
    try:
        env.reset()
        steps, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            env.step(env.action_space.sample())
            steps += instances
        return steps / (time.perf_counter() - began)
    except (GamutError, EOFError, OSError) as error:
        return f"ended after {time.perf_counter() - began:.0f} s: {type(error).__name__}"
    finally:
        env.close(terminate=True)


def runners(bridge: ChaosBridge, instances: int, seconds: float) -> tuple[float, Any] | str:
    """Steps per second of four of RLlib's own EnvRunners, or the error that ended them."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.tune.registry import register_env

    logging.getLogger("ray").setLevel(logging.CRITICAL)
    # Each game is in its own process, whose number gives it episodes of its own.
    register_env("chaos", lambda _: ChaosEnv(bridge, os.getpid()))
    config = PPOConfig().environment("chaos", disable_env_checking=True)
    config.env_runners(
        num_env_runners=4,
        num_envs_per_env_runner=instances // 4,
        gym_env_vectorize_mode="async",
        rollout_fragment_length=16,
        num_cpus_per_env_runner=0.1,
        sample_timeout_s=PATIENCE_S,
    )
    config.training(train_batch_size_per_learner=16 * instances, minibatch_size=16 * instances)
    algorithm = config.build_algo()
    try:
        group = algorithm.env_runner_group
        share = 16 * instances // 4

        def sample(runner: Any) -> int:
            return sum(len(episode) for episode in runner.sample(num_timesteps=share))

        group.foreach_env_runner(sample, local_env_runner=False)
        steps, failed, began = 0, 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            asked = group.num_healthy_remote_env_runners()
            limits = {"local_env_runner": False, "timeout_seconds": PATIENCE_S}
            got = group.foreach_env_runner(sample, **limits)
            if not got:
                return f"no sample for {PATIENCE_S:g} s, after {steps:,} steps"
            steps += sum(got)
            failed += asked - len(got)
        counts = {"samples failed": failed, "runners left": group.num_healthy_remote_env_runners()}
        return steps / (time.perf_counter() - began), counts
    except Exception as error:  # noqa: BLE001 - whatever ends it is what the table shows
        return f"ended after {time.perf_counter() - began:.0f} s: {type(error).__name__}"
    finally:
        algorithm.stop()


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--instances", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1, help="those with the peers in them")
    args = parser.parse_args()
    n, seconds = args.instances, args.seconds
    setups: dict[str, Callable[[], Any]] = {
        "each for itself, without failures": lambda: alone(n, seconds),
        "our player, without failures": lambda: ours(CALM, n, seconds),
        "our player, 2 % of episodes hang, 1 % crash": lambda: ours(ROUGH, n, seconds),
        "AsyncVectorEnv, without failures": lambda: vector(CALM, n, seconds),
        "AsyncVectorEnv, with failures": lambda: vector(ROUGH, n, seconds),
        "RLlib's EnvRunners, 4, without failures": lambda: runners(CALM, n, seconds),
        "RLlib's EnvRunners, 4, with failures": lambda: runners(ROUGH, n, seconds),
    }
    found: dict[str, list[Any]] = {name: [] for name in setups}
    for number in range(args.rounds):
        for place, (name, run) in enumerate(setups.items()):
            if place >= _OURS and number >= args.peer_rounds:
                continue
            found[name].append(run())
            print(number, name, found[name][-1], flush=True)
    base = found["each for itself, without failures"]
    rows = []
    for name, values in found.items():
        counts = [v[1] for v in values if isinstance(v, tuple)]
        rates = [v[0] if isinstance(v, tuple) else v for v in values]
        numbers = [r for r in rates if not isinstance(r, str)]
        shares = [r / b for r, b in zip(rates, base, strict=False) if not isinstance(r, str)]
        told = "; ".join(", ".join(f"{k} {v}" for k, v in c.items()) for c in counts)
        rate = spread(numbers) if numbers else "; ".join(rates)
        rows.append([name, rate, spread(shares, 2) if shares else "", told])
    text = f"{n} games, {CALM.step_latency} s a step, {seconds:g} s each, "
    text += f"{args.rounds} rounds, the peers in {args.peer_rounds} of them.\n\n"
    head = ["setup", "steps/s: median (range)", "of each for itself", "what happened"]
    text += table(head, rows)
    publish("uneven", "Uneven, hanging and crashing games", text, save=args.save)


if __name__ == "__main__":
    main()
