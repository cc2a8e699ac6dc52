"""StarBench through its real window while window processes are killed at random.

    python -m benchmarks.starbench_kills [--episodes 1000] [--every 4] [--steps 5] [--save]

``scripts/collect.py`` records battles with random clicks and keys on screenshots, in two windows,
each a process with its own X server. At random times one of the window processes gets a SIGKILL.
The conditions afterwards are those of the fault table (``benchmarks.faults.check``): every battle
is stored and reported once, the dataset has no defect, the log states the cause, and no process
is left, X servers included.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

from benchmarks.faults.check import checked
from benchmarks.faults.runs import BASE, Run, pause, wait_until
from benchmarks.report import header, save, table

LONGEST_S = 7200.0
PROGRAM = "-m bridges.starbench.window"


def settings(task: Path, episodes: int) -> dict[str, Any]:
    """Returns the settings that differ from the runs of the fault table."""
    bridge = dict.fromkeys(BASE["bridge"]) | {"name": "starbench", "client": "window", "view": "dc"}
    return {
        "bridge": {**bridge, "width_px": 160, "ocr": False},
        "task": str(task),
        "state_set": {"size": episodes},
        "episodes": episodes,
        "actors": 0,
        "instances": 2,
        "fragment": {"steps": 16},
        "host": {"restarts": 10**6, "retries": 1000},
    }


def windows(run: Run) -> list[int]:
    """Returns the window processes of a run."""
    return [each.pid for each in run.marked() if PROGRAM in each.command]


def servers() -> set[int]:
    """Returns every X server without a screen on this machine."""
    found = psutil.process_iter(["name", "status"])
    return {each.pid for each in found if each.info["name"] == "Xvfb"}


def kill_at_random(run: Run, every_s: float) -> int:
    """Kills until the run has ended; returns how many."""
    rng, killed = random.Random(0), 0
    wait_until(lambda: windows(run) or not run.alive, "a window to kill")
    end = time.monotonic() + LONGEST_S
    while run.alive and time.monotonic() < end:
        pause(rng.expovariate(1.0 / every_s))
        try:
            os.kill(rng.choice(windows(run)), signal.SIGKILL)
            killed += 1
        except (IndexError, ProcessLookupError):  # none is open at this moment
            continue
    return killed


def main() -> None:
    """Plays, kills, counts, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between kills")
    parser.add_argument("--steps", type=int, default=5, help="longest battle")
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gs"))
    task = folder / "battle.yaml"
    text = {"goal": "Win.", "evaluator": {"name": "starbench"}, "limits": {"steps": args.steps}}
    task.write_text(yaml.safe_dump(text | {"bridge": "starbench"}))
    before = servers()
    run, began = Run(folder, settings(task, args.episodes)), time.monotonic()
    run.begin()
    killed = kill_at_random(run, args.every)
    run.end()
    took = time.monotonic() - began
    injected = f"kill -9 of a window process, {killed} times in {took:.0f} s"
    row = checked(run, "windows", injected, cause="SIGKILL|is gone|has ended|ended, killed")
    left = servers() - before
    row.wrong += [f"{len(left)} X servers left"] if left else []
    row.held += "; no X server left" if not left else ""
    if not killed:
        row.wrong.append("it was over before anything was killed")
    command = (
        f"python -m benchmarks.starbench_kills --episodes {args.episodes} --steps {args.steps} "
        f"--every {args.every:g}"
    )
    head = ["killed", "how often", "what was counted", "how it ended", "what must hold"]
    told = (
        f"{args.episodes:,} battles of at most {args.steps} decisions, random clicks and keys, in "
        f"two windows of 1920 x 1080 under Xvfb."
    )
    report = f"{header('StarBench in a window under kill -9', command)}\n{told}\n\n"
    report += table(head, [row.cells()])
    if args.save:
        save("starbench_kills", report)
    else:
        print(report)
    if row.wrong:
        raise SystemExit(f"kept for a look: {folder}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
