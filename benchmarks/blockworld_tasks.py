"""Success of the oracle and the random policy on the tasks of blockworld.

Every task is played in the first states of its test part, once each, by the privileged expert and
by a policy that chooses uniformly; both with the actions ``human``, judged by the task's own
evaluator and limits. Run from the root of the repository:

    .venv/bin/python -m benchmarks.blockworld_tasks --save
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.report import header, save, table
from policies.oracle import OraclePolicy
from policies.random import RandomPolicy
from rollout.api import EpisodeResult, Outcome, Splits, Start
from rollout.config import build_plugin
from rollout.host.referee import Referee
from rollout.tasks import load_task

HARD = (
    "hunt_sheep",
    "mine_log",
    "mine_stone",
    "mine_iron_ore",
    "combat_zombie",
    "combat_skeleton",
    "climb_mountain",
    "find_hut",
    "build_pillar",
    "craft_crafting_table",
    "smelt_beef",
    "sleep_in_bed",
)
COMPOSED = (
    "mine_log_then_craft_crafting_table",
    "hunt_sheep_and_find_hut",
    "hunt_sheep_or_mine_log",
)
POLICIES = {"oracle": OraclePolicy(), "random": RandomPolicy()}
WIDTH = 50
SEED = 20_261_122
LEAST, MOST = 0.95, 0.10
"""The rate that the oracle must reach on every task, and the random policy must not exceed."""


def skill_of(task: str) -> str:
    """The expert's skill for a task."""
    return re.sub(r"_(and|or|then)_", r" \1 ", task.removesuffix("_simple"))


def wilson(successes: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Returns Wilson's interval of a rate, 95 % by default."""
    rate = successes / count
    middle = rate + z * z / (2 * count)
    half = z * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    scale = 1 + z * z / count
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def starts_of(states, count: int) -> list[Start]:
    """The starts to play: each state once, with a seed of its own."""
    return [Start(states[k], seed=SEED + k, episode=k) for k in range(count)]


def play(name: str, policy_name: str, count: int, actions: str) -> list[EpisodeResult]:
    """Plays a task in its first test states and returns how the episodes ended."""
    options = {"observe": [], "oracle": skill_of(name), "actions": actions}
    bridge = build_plugin("bridges", "blockworld", options)
    task = load_task(bridge.spec, "blockworld", name)
    splits = Splits(task.state_space, SEED)
    part = "test" if splits.part_size("test") >= count else "all"
    starts = starts_of(splits.take(part, min(count, splits.part_size(part))), count)
    policy = POLICIES[policy_name].build(bridge.spec, task, seed=0)
    results: list[EpisodeResult] = []
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, count, WIDTH):
            some = starts[first : first + WIDTH]
            instance = bridge.launch(Path(folder), (), width=len(some), timeout_s=600.0)
            results += play_all(instance, task, policy, some)
            instance.close()
    return results


def play_all(instance, task, policy, starts: list[Start]) -> list[EpisodeResult]:
    """Plays every start in a slot of its own until all have ended."""
    slots = range(len(starts))
    referee = Referee(task, len(starts))
    frame = instance.reset(slots, starts, timeout_s=60.0)
    referee.reset(slots, starts, frame)
    results = []
    while referee.active.any():
        decision = policy.act(frame.observations, {}, details=None, explore=True)
        frame = instance.step(decision.actions, timeout_s=60.0)
        ruling = referee.judge(decision.actions, frame)
        for slot in ruling.ended:
            end = "terminated" if ruling.terminated[slot] else "truncated"
            results.append(referee.finish(slot, end, int(ruling.verdict.outcome[slot])))
    return results


def summary(results: list[EpisodeResult]) -> tuple[float, list[str]]:
    """The rate of success, and its cells of the table."""
    won = [result for result in results if result.outcome == Outcome.SUCCESS]
    low, high = wilson(len(won), len(results))
    steps = f"{statistics.median(r.length for r in won):.0f}" if won else "-"
    progress = float(np.median([r.progress for r in results]))
    rate = len(won) / len(results)
    interval = f"{100 * rate:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    return rate, [f"{len(won)}/{len(results)}", interval, steps, f"{progress:.2f}"]


def row(name: str, count: int, actions: str) -> tuple[bool, list[str]]:
    """Whether a task meets its requirements, and its row of the table."""
    expert, cells = summary(play(name, "oracle", count, actions))
    chance, other = summary(play(name, "random", count, actions))
    print(name, *cells, *other, sep="  ", flush=True)
    return expert >= LEAST and chance <= MOST, [name, *cells, *other]


HEAD = [
    "task",
    "oracle",
    "rate (95 %)",
    "steps",
    "progress",
    "random",
    "rate (95 %)",
    "steps",
    "progress",
]

NOTES = f"""
How to read it: a state is drawn by the house's own sets, the first of the test part (simple forms,
which have fewer states, from all parts), and played once; rates carry Wilson's interval. Steps are
the median of the episodes that succeeded, progress is the median of all. The oracle reads the whole
world, plays through the same keys and mouse as any policy, and remembers nothing between two steps;
the random policy presses every key half of the time, the inventory's among them, so that it stands
before a screen half of the time; chance is better off in `--actions compact`. Asked for on every
hard form: oracle at least {100 * LEAST:.0f} %, random at most {100 * MOST:.0f} %.

What the oracle fails at: bare-handed hunts of several sheep run out of time, and two skeletons
shoot it when it wears nothing. Its constants were set on states of other sets, not on these.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=200)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--actions", default="human", help="the action layout")
    parser.add_argument("--simple", action="store_true", help="the simple forms as well")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results")
    options = parser.parse_args()
    command = "python -m benchmarks.blockworld_tasks"
    command += f" --states {options.states}" if options.states != 200 else ""
    command += f" --actions {options.actions}" if options.actions != "human" else ""
    command += " --simple" if options.simple else ""
    command += f" --tasks {' '.join(options.tasks)}" if options.tasks else ""
    command += " --save" if options.save else ""
    groups = {"Hard forms": HARD, "Composed tasks": COMPOSED}
    if options.simple:
        groups["Simple forms"] = tuple(f"{name}_simple" for name in HARD)
    if options.tasks:
        groups = {"Tasks": tuple(options.tasks)}
    text, kept = header("Blockworld: what the oracle and chance achieve", command), True
    for title, names in groups.items():
        rows = []
        for name in names:
            good, cells = row(name, options.states, options.actions)
            kept &= good or title == "Composed tasks"
            rows.append(cells)
        text += f"\n## {title}: {options.states} states each\n\n" + table(HEAD, rows)
    text += NOTES
    if options.save:
        suffix = "" if options.actions == "human" else f"_{options.actions}"
        save(f"blockworld_tasks{suffix}", text)
    else:
        print(text)
    if not kept:
        raise SystemExit("some task does not keep to what is asked of it")


if __name__ == "__main__":
    main()
