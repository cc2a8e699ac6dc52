"""Compares fragments with a plain Python loop, recording with none, and vector envs.

Every round measures all variants one after another, so that a ratio compares measurements taken
within a minute on the same machine in the same state. Run from the root of the repository:

    .venv/bin/python -m benchmarks.throughput.rollout
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.playing import count, cpu_seconds
from rollout.api import Splits, Task
from rollout.config import HostConfig, build_plugin
from rollout.data import DatasetWriter, describe_dataset
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.host.session import ray_session
from rollout.vector_env import RemoteVectorEnv

CORES = 2


def plain_env(game: str):
    """The game in a plain loop, as its own users would write it, without any of our code."""
    if game == "crafter":
        import crafter

        return crafter.Env(seed=0), True
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    if game == "cartpole":
        return gymnasium.make("CartPole-v1"), False
    env = gymnasium.make("ALE/Pong-v5", frameskip=1, repeat_action_probability=0.0)
    env = gymnasium.wrappers.AtariPreprocessing(env)
    return gymnasium.wrappers.FrameStackObservation(env, 4), False


def plain_loop(game: str, seconds: float, seed: int) -> float:
    """Steps per second of one process that only plays at random."""
    env, old = plain_env(game)
    if old:
        env.reset()
    else:
        env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    actions = int(env.action_space.n)

    def play(until: float) -> int:
        steps = 0
        while time.perf_counter() < until:
            out = env.step(int(rng.integers(actions)))
            steps += 1
            if out[2] or (not old and out[3]):
                env.reset()
        return steps

    play(time.perf_counter() + 1.0)
    began = time.perf_counter()
    steps = play(began + seconds)
    return steps / (time.perf_counter() - began)


def bridge_of(game: str):
    """The same game through its bridge."""
    if game == "crafter":
        return build_plugin("bridges", "crafter", {})
    if game == "cartpole":
        return build_plugin("bridges", "gymnasium", {"id": "CartPole-v1"})
    return build_plugin("bridges", "atari", {"id": "Pong"})


def plan_of(game: str) -> HostPlan:
    bridge = bridge_of(game)
    task = Task("default", "", bridge.spec.state_space, GameReward())
    policy = build_plugin("policies", "random", {})
    host = HostConfig(isolation="in_process")
    return HostPlan(bridge, task, policy, host=host, play=PlayOptions(steps=64))


def fleet_run(plan: HostPlan, seconds: float, record: bool) -> tuple[float, float, float]:
    """Steps per second of two actors, CPU us per step of this process, and bytes per step.

    The CPU time is that of the whole recording: it is read after the last shard has been written,
    and shards are small, so that most of them are written while the games play.
    """
    from rollout.host.ray_fleet import RayFleet

    states = Splits(plan.task.state_space).take("train", 1000)
    schedule = Schedule(states, seed=0, episodes=None)
    fleet = RayFleet(plan, CORES)
    folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
    writer = None
    if record:
        manifest = describe_dataset(plan.bridge.spec, plan.task, policy="random")
        writer = DatasetWriter(folder / "dataset", manifest, shard_bytes=2 << 20)
    found = count(fleet.play(schedule), CORES, seconds, writer.append if writer else lambda _: None)
    if writer is not None:
        writer.close()
    own = (cpu_seconds() - found.began[1]) / found.steps * 1e6
    fleet.close()
    size = sum(p.stat().st_size for p in folder.rglob("*.parquet")) / max(1, found.steps)
    shutil.rmtree(folder)
    return found.rate, own, size


def compare_loops(game: str, rounds: int, seconds: float) -> list[str]:
    plan = plan_of(game)
    context = multiprocessing.get_context("spawn")
    plain, ours, recorded, share, sizes = [], [], [], [], []
    for number in range(rounds):
        with context.Pool(CORES) as pool:
            jobs = [(game, seconds, number * CORES + k) for k in range(CORES)]
            plain.append(sum(pool.starmap(plain_loop, jobs)))
        rate, own, _ = fleet_run(plan, seconds, record=False)
        ours.append(rate)
        rate_recorded, own_recorded, size = fleet_run(plan, seconds, record=True)
        recorded.append(rate_recorded)
        sizes.append(size)
        # CPU time of recording, as a share of the CPU time of a step of the game.
        share.append(100 * (own_recorded - own) * rate / (CORES * 1e6))
        print(game, number, f"{plain[-1]:.0f} {ours[-1]:.0f} {recorded[-1]:.0f}", flush=True)
    return [
        game,
        spread(plain),
        spread(ours),
        spread([o / p for o, p in zip(ours, plain, strict=True)], 2),
        spread(recorded),
        spread([100 * (1 - r / o) for r, o in zip(recorded, ours, strict=True)], 1) + " %",
        spread(share, 1) + " %",
        spread(sizes),
    ]


def make_plain(game: str):
    return lambda: plain_env(game)[0]


def vector_run(env, seconds: float) -> float:
    env.action_space.seed(0)
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(64)]
    for a in actions[:20]:
        env.step(a)
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        env.step(actions[steps % 64])
        steps += 1
    rate = steps * env.num_envs / (time.perf_counter() - began)
    env.close()
    return rate


def compare_vectors(game: str, num_envs: int, rounds: int, seconds: float) -> list[str]:
    from gymnasium.vector import AsyncVectorEnv

    theirs, ours = [], []
    bridge = bridge_of(game)
    task = Task("default", "", bridge.spec.state_space, GameReward())
    for number in range(rounds):
        theirs.append(vector_run(AsyncVectorEnv([make_plain(game)] * num_envs), seconds))
        host = HostConfig(isolation="subprocess")
        env = RemoteVectorEnv(bridge, task, num_envs=num_envs, host=host)
        ours.append(vector_run(env, seconds))
        print(game, num_envs, number, f"{theirs[-1]:.0f} {ours[-1]:.0f}", flush=True)
    ratio = spread([o / t for o, t in zip(ours, theirs, strict=True)], 2)
    return [game, str(num_envs), spread(theirs), spread(ours), ratio]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    with ray_session(num_cpus=CORES):
        rows = [compare_loops(g, args.rounds, args.seconds) for g in ("crafter", "pong")]
    text = "\n## Steps per second, two cores, random policy: median (range) over rounds\n\n"
    head = ["game", "plain loop, 2 processes", "fragments, 2 actors", "ratio"]
    head += ["fragments recorded", "lost to recording, wall", "CPU of recording", "bytes/step"]
    text += table(head, rows)
    vectors = [
        compare_vectors(game, n, args.rounds, args.seconds / 2)
        for game, n in (("cartpole", 2), ("cartpole", 8), ("pong", 2), ("pong", 8))
    ]
    text += "\n## Vector envs, one subprocess per slot: steps per second\n\n"
    text += table(["game", "slots", "AsyncVectorEnv", "RemoteVectorEnv", "ratio"], vectors)
    text += """
How to read it: the plain loop is the game's own package, played at random by two processes that
do nothing else, with Gymnasium's AtariPreprocessing and FrameStackObservation for Pong.
"Lost to recording" compares rounds with and without a recorder; "CPU of recording" is what the
recording process burns beyond receiving fragments, shards included, as a share of both cores.
Subprocesses, the driver and the actors share the two cores.
"""
    publish("rollout", "Rollout: fragments, recording, vector envs", text, save=args.save)


if __name__ == "__main__":
    main()
