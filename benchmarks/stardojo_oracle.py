"""What the oracle, an agent that acts at random and one that does nothing achieve on StarDojo-Lite.

Every task is played in valleys of three seeds with the step limits of the paper (30, 50, 150 steps
of at most two skills) and judged strictly, and by the rules of the released code. Run from the root
of the repository:

    .venv/bin/python -m benchmarks.stardojo_oracle --save
"""

from __future__ import annotations

import argparse
import statistics
import time
from random import Random

from benchmarks.report import header, save, table
from bridges.stardojo.oracle.episode import play
from bridges.stardojo.oracle.hands import DIRECTIONS, NOTHING
from bridges.stardojo.task_table import lite

COMMAND = "python -m benchmarks.stardojo_oracle"


def at_random(seed):
    """An agent that draws one of the ten actions, and its arguments, each time."""
    draw = Random(seed)

    def skill():
        return draw.choice(
            [
                ("move", (draw.randint(-8, 8), draw.randint(-8, 8))),
                ("use", (draw.choice(DIRECTIONS),)),
                ("interact", (draw.choice(DIRECTIONS),)),
                ("choose_item", (draw.randrange(12),)),
                ("choose_option", (draw.randint(1, 8), 1, 0)),
                NOTHING,
            ]
        )

    return lambda valley, row: skill


PLAYERS = {
    "oracle": lambda seed: None,
    "random": at_random,
    "nothing": lambda seed: lambda valley, row: lambda: NOTHING,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--players", nargs="+", default=list(PLAYERS), choices=list(PLAYERS))
    parser.add_argument("--judging", nargs="+", default=["strict", "faithful"])
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    tasks, begun = lite(), time.perf_counter()
    rows, failures = [], []
    for player in options.players:
        for judging in options.judging:
            won = {}
            for seed in options.seeds:
                for name, task in tasks.items():
                    standing, steps = play(task, seed, judging, PLAYERS[player](seed))
                    won[name, seed] = standing.completed
                    if player == "oracle" and not standing.completed:
                        reached = f"{standing.current:g} of {task.quantity}"
                        failures.append([judging, name, str(seed), reached, str(steps)])
                    if player != "oracle" and standing.completed:
                        failures.append(
                            [f"{player}, {judging}", name, str(seed), "solved", str(steps)]
                        )
            for group in ("all", *dict.fromkeys(task.category for task in tasks.values())):
                of = [name for name, task in tasks.items() if group in ("all", task.category)]
                each = [sum(won[name, seed] for name in of) for seed in options.seeds]
                mean, spread = statistics.mean(each), statistics.stdev(each) if len(each) > 1 else 0
                per_seed = ", ".join(map(str, each))
                rows.append(
                    [player, judging, group, str(len(of)), per_seed, f"{mean:.1f} +- {spread:.1f}"]
                )
    seconds = time.perf_counter() - begun
    text = header("StarDojo-Lite: the oracle, at random, and doing nothing", COMMAND)
    text += f"Seeds {options.seeds}; {seconds:,.0f} s in all.\n\n"
    text += table(["player", "judged", "tasks", "of", "solved by seed", "mean +- sd"], rows)
    text += "\nWhat the oracle did not solve, and what others did:\n\n"
    text += table(["player", "judged", "task", "seed", "reached", "steps"], failures)
    if options.save:
        save("stardojo_oracle", text)
    else:
        print(text)


if __name__ == "__main__":
    main()
