"""Plays episodes through the mod's protocol with faults on, and counts what was lost or doubled.

Every instance is a game process of its own behind a socket. Answers are cut, lost and late, moves
are never answered, loads are slow, games crash. An episode that a crash ends is played again. At
the end every episode must have one result.

    python -m benchmarks.stardojo_wire [--episodes 1000] [--instances 8] [--save]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import yaml

from benchmarks.report import header, save, table

FAULTS = {
    "speed": 60,
    "viewport": [64, 36],
    "load_s": 4,
    "progression": True,
    "delayed": 0.02,
    "delay_s": 1,
    "held": 0.02,
    "hold_s": 8,
    "silent": 0.02,
    "dropped": 0.02,
    "lost": 0.03,
    "stale": 0.05,
    "crashes": 0.001,
}
STEPS, STATES = 4, 2


def play(folder: Path, episodes: int, instances: int) -> float:
    """Plays the episodes; returns the seconds it took."""
    (folder / "faults.yaml").write_text(yaml.safe_dump(FAULTS))
    task = {
        "name": "wire",
        "evaluator": {"name": "signal_goal", "signal": "task/share"},
        "state_space": {"task": ["go_to_bus_stop", "sow_5_dirt_with_cauliflower_seeds"]},
        "limits": {"steps": STEPS},
    }
    (folder / "wire.yaml").write_text(yaml.safe_dump(task))
    run = {
        "output": str(folder / "run"),
        "bridge": {"name": "stardojo", "mode": "mod", "faults": str(folder / "faults.yaml")},
        "task": str(folder / "wire.yaml"),
        "players": {"random": "random"},
        "sets": {"all": {"split": "all", "size": STATES}},
        "episodes_per_state": episodes // STATES,
        "metric": "progress",
        "actors": 0,
        "instances": instances,
        "host": {"failure_rate": 0.5},
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    begun = time.monotonic()
    command = [sys.executable, "scripts/evaluate.py", "--config", str(folder / "run.yaml")]
    subprocess.run(command, check=True)
    return time.monotonic() - begun


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--instances", type=int, default=8)
    parser.add_argument("--save", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        seconds = play(Path(place), asked.episodes, asked.instances)
        lines = (Path(place) / "run" / "episodes.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    results = Counter((row["state"], row["repeat"]) for row in rows if row["end"] != "lost")
    lost = sum(row["attempts"] - 1 for row in rows)
    told = [
        ["episodes asked for", str(asked.episodes)],
        ["with a result", str(len(results))],
        ["with more than one result", str(sum(count > 1 for count in results.values()))],
        ["lost attempts, played again", str(lost)],
        ["lost for good", str(asked.episodes - len(results))],
        ["steps of an episode, at most", str(STEPS)],
        ["seconds", f"{seconds:.0f}"],
        ["faults", ", ".join(f"{key} {value}" for key, value in FAULTS.items())],
    ]
    command = f"python -m benchmarks.stardojo_wire --episodes {asked.episodes}"
    text = header("StarDojo's protocol with faults", command)
    text += f"\n{asked.instances} games at a time, each a process of its own behind a socket.\n\n"
    text += table(["", "value"], told)
    if asked.save:
        save("stardojo_wire", text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
