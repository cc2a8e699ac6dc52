"""How fast a valley is: actions, resets, observations, snapshots, and the memory of 64 of them.

python -m benchmarks.throughput.stardojo_valley   # writes benchmarks/results/stardojo_valley.md
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import psutil

from benchmarks.report import arguments, publish, spread, table
from bridges.stardojo.valley.planes import window
from bridges.stardojo.valley.saves import table as saves
from bridges.stardojo.valley.valley import Valley

REPEATS, STEPS, MANY = 5, 2000, 64


def seconds(work: Callable[[], object]) -> float:
    """Returns the time of the processor that a call takes: other programs do not matter."""
    start = time.process_time()
    work()
    return time.process_time() - start


def action(chance: random.Random) -> tuple[str, tuple[int, ...]]:
    """Returns a random action of the kinds that agents play most."""
    kind = chance.randrange(10)
    if kind < 5:
        return "move_relative", (chance.randint(-2, 2), chance.randint(-2, 2))
    if kind < 7:
        return "turn", (chance.randrange(4),)
    if kind < 8:
        return "choose_item", (chance.randrange(6),)
    if kind < 9:
        return "use", ()
    return "exit_menu", ()


def steps(save: str, seed: int) -> float:
    """Returns random actions a second, each with a window of 7x7 tiles."""
    valley, chance = Valley(save, seed), random.Random(seed)
    chosen = [action(chance) for _ in range(STEPS)]

    def play() -> None:
        for name, args in chosen:
            valley.act(name, args)
            window(valley.world, 3)

    return STEPS / seconds(play)


def row(save: str) -> list[str]:
    """Returns what one save takes."""
    Valley(save, 0)
    rates = [steps(save, seed) for seed in range(REPEATS)]
    resets = [1000 * seconds(lambda n=seed: Valley(save, n)) for seed in range(4 * REPEATS)]  # type: ignore[misc]
    valley = Valley(save, 0)
    kept = valley.snapshot()
    times = [
        [1000 * seconds(work) for _ in range(4 * REPEATS)]
        for work in (valley.snapshot, lambda: valley.restore(kept), valley.observe)
    ]
    return [save, spread(rates), *(spread(each, 2) for each in (resets, *times))]


def memory() -> float:
    """Returns the MiB that 64 valleys need, beside the first one and the libraries."""
    first = Valley("save_farming", 0)
    before = psutil.Process().memory_info().rss
    valleys = [Valley("save_farming", seed) for seed in range(MANY)]
    for valley in valleys:
        valley.act("move_relative", (1, 0))
    used = psutil.Process().memory_info().rss - before
    assert first.world.day == valleys[0].world.day
    return used / 2**20


def main() -> None:
    """Measures and prints the report."""
    asked = arguments(__doc__).parse_args()
    head = ["save", "actions/s", "reset, ms", "snapshot, ms", "restore, ms", "observe_v2, ms"]
    rows = [row(each) for each in saves()]
    used = memory()
    whole = psutil.Process().memory_info().rss / 2**20
    text = "Time of the processor, median and range; one process. "
    text += "An action runs to its end and shows 7x7 tiles.\n\n"
    text += table(head, rows)
    text += f"\n{MANY} valleys more take {used:.0f} MiB; the whole process {whole:.0f} MiB.\n"
    publish("stardojo_valley", "A valley of StarDojo", text, save=asked.save)


if __name__ == "__main__":
    main()
