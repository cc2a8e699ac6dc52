"""What PPO learns of StarDojo's tasks, beside random actions and the oracle, on held-out states.

Train each task with configs/stardojo/train_task.yaml and a training seed that chose nothing, then

    python -m benchmarks.stardojo_training RUN [RUN ...] [--states 100] [--save]

Test states differ from those of training and validation in season, day, weather, layout of the
farm and the other factors of docs/stardojo.md. All players play the same ones with the same seeds,
and are judged strictly. Random actions are drawn from the same list and its mask as PPO's.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from benchmarks.report import header, save, table
from bridges.stardojo.task_table import lite
from rollout.api import Splits
from rollout.config import build_plugin
from rollout.evaluate.legs import Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.statistics import wilson
from rollout.tasks import load_task
from rollout.yaml12 import load_yaml


def share(won: int, states: int) -> str:
    """A share of states with Wilson's 95 % interval."""
    found = wilson(won, states)
    return f"{found.point:.2f} [{found.low:.2f}, {found.high:.2f}]"


def row_of(run: Path, states: int) -> list[str]:
    """Returns the row of a task: category, difficulty, success of random, PPO and oracle, steps."""
    config = load_yaml(run / "config.yaml")
    bridge = build_plugin("bridges", "stardojo", {})
    task = load_task(bridge.spec, "stardojo", config["task"])
    parts = {key: config["state_set"][key] for key in ("validation", "test")}
    test = Splits(task.state_space, **parts).take("test", states)
    players = {
        "random": (bridge, build_plugin("policies", "random", {})),
        "ppo": (bridge, build_plugin("policies", "checkpoint", {"path": str(run)})),
        "oracle": (
            replace(bridge, layout="calls", oracle=True),
            build_plugin("policies", "oracle", {}),
        ),
    }
    cells = []
    for name, (game, policy) in players.items():
        leg = Leg(name, policy, "test", test)
        found = play_legs(game, task, [leg], seed=7, metric="success", width=16)
        won = found["success"] == 1
        length = f"{found['length'][won].mean():.0f}" if won.any() else "-"
        cells += [share(int(won.sum()), states), length]
    name = config["task"].removesuffix("_wide")
    about = lite()[name]
    steps = json.loads((run / "summary.json").read_text())["results"]["env_steps"]
    return [name, about.category, about.difficulty, f"{steps:,}", *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--states", type=int, default=100)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    text = header(
        "What PPO learns in StarDojo's valley",
        f"python -m benchmarks.stardojo_training RUN ... --states {options.states}",
    )
    text += f"{options.states} test states of each task; success with Wilson's 95 % interval, and"
    text += " the steps of the episodes that succeeded.\n\n"
    head = [
        "task",
        "category",
        "difficulty",
        "steps of training",
        "random",
        "steps",
        "PPO",
        "steps",
    ]
    rows = [row_of(run, options.states) for run in options.runs]
    text += table([*head, "oracle", "steps"], rows)
    if options.save:
        save("stardojo_training", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
