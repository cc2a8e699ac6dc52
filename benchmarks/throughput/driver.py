"""Measures the driver's cost of its actors: 64, 256 and 1,000 games that cost nothing.

The games run in Ray actors spread over simulated machines (raylets of one computer): an actor on
each machine, and, for comparison, an actor for every sixteen games, which for 1,000 games are 63
processes that more than occupy two cores. The processor time of the driver's process per step
should not depend on the number of games; nor should its memory.

    python -m benchmarks.throughput.driver
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("RAY_AUTH_MODE", "disabled")

import ray
from ray.cluster_utils import Cluster

from benchmarks.report import arguments, publish, spread, table
from benchmarks.throughput.playing import count, cpu_seconds, resident
from bridges.chaos import ChaosBridge
from rollout.api import Splits, Task
from rollout.config import build_plugin
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan
from rollout.host.ray_fleet import RayFleet
from rollout.host.schedule import Schedule
from rollout.tally import Tally

BRIDGE = ChaosBridge(zero_cost=True)
NODES = 4


def driver(instances: int, beside: int, seconds: float) -> dict[str, float]:
    """Returns the driver's processor time per step and its memory; ``beside`` games per actor."""
    actors = -(-instances // beside)
    spec = BRIDGE.spec
    policy: Any = build_plugin("policies", "random", {})
    task = Task("walk", "", spec.state_space, GameReward())
    plan = HostPlan(BRIDGE, task, policy, 0, beside, 1, play=PlayOptions(steps=64))
    schedule = Schedule(Splits(spec.state_space).take("train", 4000), seed=0, episodes=None)
    fleet, tally = RayFleet(plan, actors), Tally()
    try:
        found = count(fleet.play(schedule), actors * beside, seconds, tally.add)
        used, now = cpu_seconds() - found.began[1], resident()
    finally:
        fleet.close()
    return {
        "games": actors * beside,
        "actors": actors,
        "rate": found.rate,
        "us": 1e6 * used / found.steps,
        "share": used / found.seconds,
        "mb": now,
        "growth": now - found.began[2],
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--instances", type=int, nargs="+", default=[64, 256, 1000])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    setups = [(n, n // NODES) for n in args.instances] + [(n, 16) for n in args.instances]
    found = {setup: list[dict[str, float]]() for setup in setups}
    for number in range(args.rounds):
        for setup, runs in found.items():
            if number and setup[0] != setup[1] * NODES:
                continue  # once: 63 actors take minutes to start on two cores
            # Simulated machines with room for every actor; the computer's own cores are two.
            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 64})
            for _ in range(NODES - 1):
                cluster.add_node(num_cpus=64)
            try:
                ray.init(address=cluster.address, logging_level="ERROR")
                runs.append(driver(*setup, args.seconds))
            finally:
                ray.shutdown()
                cluster.shutdown()
            print(number, runs[-1], flush=True)
    rows = []
    for each in found.values():
        one = each[0]
        columns = {k: [run[k] for run in each] for k in one}
        shown = (spread(columns["us"], 1), spread([100 * s for s in columns["share"]]))
        shown += (spread(columns["rate"]), spread(columns["mb"]), spread(columns["growth"], 1))
        rows.append([f"{one['games']:,.0f} in {one['actors']:.0f} actors", *shown])
    text = (
        f"{NODES} simulated machines, {args.seconds:g} s each after every game had begun; an actor "
        f"a machine in {args.rounds} rounds, and 16 games an actor once, for comparison.\n\n"
    )
    head = ["games", "driver: us of processor a step", "% of a core", "steps/s", "MB", "MB grown"]
    text += table(head, rows)
    publish("driver", "The driver", text, save=args.save)


if __name__ == "__main__":
    main()
