"""A thousand short episodes of Minecraft while its Node processes are killed at random.

    python -m benchmarks.mineflayer_kills [--episodes 1000] [--every 1.0] [--save]

``scripts/collect.py`` records 20 steps of random walking in each of 1,000 states, with 8 games of 4
worlds in two actors. At random times, once a second on average, one of the Node processes gets a
SIGKILL, whether it plays, resets or starts. The conditions afterwards are those of the fault table
(``benchmarks.faults.check``): every episode is stored and reported once, the dataset has no defect,
the log states the cause, and nothing is left of the games.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.faults.check import Row, checked
from benchmarks.faults.runs import BASE, Run, pause, wait_until
from benchmarks.report import header, save, table
from rollout.data import Dataset

ACTORS, INSTANCES, WIDTH, STEPS = 2, 4, 4, 20
PROGRAM = "mineflayer/game/main.js"
LONGEST_S = 3600.0
YOUNG_S = 3.0  # an age at which a game may still be starting
TASK = {
    "goal": "Walk about.",
    "options": {"spawning": False},
    "state_space": {"site": "flat", "biome": "plains", "mob": "none", "mobs": 0, "blueprint": 0},
    "evaluator": {"name": "mineland_creative"},
    "limits": {"steps": STEPS},
}


def settings(task: Path, episodes: int) -> dict[str, Any]:
    """Returns the settings that differ from the runs of the fault table."""
    bridge = dict.fromkeys(BASE["bridge"]) | {
        "name": "mineflayer",
        "observe": ["position", "look", "life"],
        "view_distance": 2,
    }
    return {
        "bridge": bridge,
        "task": str(task),
        "state_set": {"size": episodes},
        "episodes": episodes,
        "actors": ACTORS,
        "instances": INSTANCES,
        "width": WIDTH,
        "fragment": {"steps": STEPS},
        "host": {"restarts": 10**6, "retries": 100},
        "recording": {"fsync": "episode"},
    }


def games(run: Run) -> list[psutil.Process]:
    """Returns the Node processes of a run."""
    return [psutil.Process(each.pid) for each in run.marked() if PROGRAM in each.command]


def kill_one(run: Run, rng: random.Random) -> str:
    """Kills a random game; returns whether it was young, ``""`` if there was none."""
    try:
        victim = rng.choice(games(run))
        age = time.time() - victim.create_time()
        os.kill(victim.pid, signal.SIGKILL)
    except (IndexError, psutil.NoSuchProcess, ProcessLookupError):
        return ""
    return "young" if age < YOUNG_S else "old"


def kill_at_random(run: Run, every_s: float) -> Counter[str]:
    """Kills until the run has ended; returns how many were young and old."""
    rng, killed = random.Random(0), Counter[str]()
    wait_until(lambda: games(run) or not run.alive, "a game to kill")
    end = time.monotonic() + LONGEST_S
    while run.alive and time.monotonic() < end:
        pause(rng.expovariate(1.0 / every_s))
        killed[kill_one(run, rng)] += 1
    del killed[""]
    return killed


def play(folder: Path, episodes: int, every_s: float) -> tuple[Row, str]:
    """Returns the row of the run, and further text of the report."""
    task = folder / "walk_about.yaml"
    task.write_text(yaml.safe_dump(TASK))
    run, began = Run(folder, settings(task, episodes)), time.monotonic()
    run.begin()
    killed = kill_at_random(run, every_s)
    run.end()
    took = time.monotonic() - began
    total = sum(killed.values())
    injected = f"kill -9 of a Node process, {total} times in {took:.0f} s"
    row = checked(run, "Node processes", injected, cause="killed by SIGKILL")
    if not total:
        row.wrong.append("it was over before anything was killed")
    row.wrong += [f"{n} episodes of another length than {STEPS}" for n in [odd(run)] if n]
    told = (
        f"{ACTORS * INSTANCES} games of {WIDTH} worlds in {ACTORS} actors; {episodes:,} episodes "
        f"of {STEPS} steps of 5 ticks. Of the games killed {killed['young']} were less than "
        f"{YOUNG_S:g} s old: they were coming up, or had just."
    )
    return row, told


def odd(run: Run) -> int:
    """Returns how many stored episodes do not have the length of the task."""
    with Dataset(run.output / "dataset") as dataset:
        return sum(ref.length != STEPS for ref in dataset.episodes())


def main() -> None:
    """Plays, kills, counts, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between kills")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gk"))
    row, told = play(folder, args.episodes, args.every)
    command = f"python -m benchmarks.mineflayer_kills --episodes {args.episodes}"
    head = ["killed", "how often", "what was counted", "how it ended", "what must hold"]
    text = f"{header('Minecraft under kill -9', command)}\n{told}\n\n{table(head, [row.cells()])}"
    if args.save:
        save("mineflayer_kills", text)
    else:
        print(text)
    if row.wrong:
        raise SystemExit(f"kept for a look: {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
