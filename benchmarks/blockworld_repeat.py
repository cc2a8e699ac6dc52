"""Shows that blockworld is reproducible: the same state, seed and actions give the same bytes.

A few worlds play the same actions at width 1, 7 and 256, on one thread and on two, each in another
slot, beside worlds with other actions. Every byte of every world is compared, and every
observation, throughout the run.

    python -m benchmarks.blockworld_repeat [--steps 10000]
"""

import argparse
import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import header, save, table
from bridges.blockworld import BlockworldBridge
from rollout.api import Columns, Frame, Splits, Start, sample
from rollout.tasks import load_task

OBSERVE = ("rgb", "semantic_rays", "semantic_grid", "entities", "vitals", "inventory", "compass")
TASKS = ("hunt_sheep", "combat_zombie", "combat_skeleton", "mine_log", "smelt_beef", "sleep_in_bed")
AGAIN = 600  # steps after which every world is reset, over or not


def starts_of(task: str, count: int, offset: int = 0) -> list[Start]:
    bridge = BlockworldBridge()
    space = load_task(bridge.spec, "blockworld", task).state_space
    states = Splits(space).take("train", offset + count)
    return [Start(states[offset + i], 1000 + offset + i) for i in range(count)]


def trace(
    starts: list[Start], width: int, threads: int, steps: int, *, seed: int = 0, layout: str
) -> list[str]:
    """Plays in the last slots of an instance; returns a digest of all observations per world."""
    bridge = BlockworldBridge(
        observe=OBSERVE, actions=layout, threads=threads, rgb_width=12, rgb_height=8
    )
    instance = bridge.launch(Path(), (), width=width, timeout_s=600)
    others = starts_of("hunt_sheep", width, 5000)
    digests = [hashlib.sha256() for _ in starts]
    # Worlds play in the last slots, a few at a time if the instance is narrow.
    for first in range(0, len(starts), width):
        group = starts[first : first + width]
        rows = list(range(width - len(group), width))
        everyone = [*others[: width - len(group)], *group]
        rng = [np.random.default_rng([seed, first + n]) for n in range(len(group))]
        noise = np.random.default_rng([seed, width, threads])
        for step in range(steps):
            if step % AGAIN == 0:
                frame = instance.reset(range(width), everyone, timeout_s=60)
                note(instance, frame, rows, digests[first:])
            actions = sample(bridge.spec.action_space, width, noise)
            for row, generator in zip(rows, rng, strict=True):
                one = sample(bridge.spec.action_space, 1, generator)
                for key, column in one.items():
                    actions[key][row] = column[0]
            frame = instance.step(actions, timeout_s=60)
            note(instance, frame, rows, digests[first:], whole=step % 20 == 19)
    instance.close()
    return [digest.hexdigest() for digest in digests]


def note(instance: Any, frame: Frame, rows: list[int], digests: list, whole: bool = True) -> None:
    columns: Columns = {**frame.observations, **frame.signals, "over": frame.game_over}
    for row, digest in zip(rows, digests, strict=False):
        for column in columns.values():
            digest.update(np.ascontiguousarray(column[row]).tobytes())
        if whole:
            digest.update(instance.snapshot(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    args = parser.parse_args()
    rows, failed = [], False
    for layout, tasks in (("human", TASKS[:3]), ("compact", TASKS[3:])):
        starts = [start for task in tasks for start in starts_of(task, 1)]
        expected = None
        for width, threads in ((1, 1), (7, 1), (7, 2), (256, 1), (256, 2)):
            begun = time.monotonic()
            found = trace(starts, width, threads, args.steps, layout=layout)
            expected = expected or found
            same = found == expected
            failed |= not same
            took = f"{time.monotonic() - begun:.0f} s"
            verdict = "same" if same else "DIFFERENT"
            rows.append([layout, ", ".join(tasks), str(width), str(threads), verdict, took])
    command = f"python -m benchmarks.blockworld_repeat --steps {args.steps}"
    text = header("Blockworld repeats", command) + (
        f"\n{args.steps:,} steps of random actions, a reset every {AGAIN}; every byte of "
        "every observation,\nand every 20 steps of every world, compared with width 1 on one "
        "thread.\n\n"
    )
    head = ["actions", "worlds", "width", "threads", "bytes", "took"]
    save("blockworld_repeat", text + table(head, rows))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
