"""Measures blockworld on one core: pictures, steps, resets, snapshots, and compilation.

Nine creatures stand in front of every player, within its field of view. Rates are per second of CPU
time of the one thread (``time.thread_time``): the median and range of rounds in which all figures
take turns; the best round shows what the code can do when other guests of the machine are idle.
Compilation is measured in its own process with an empty cache.

    python -m benchmarks.throughput.blockworld
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np

from benchmarks.report import arguments, publish, spread, table
from bridges.blockworld import BlockworldBridge
from bridges.blockworld.factors import orders
from bridges.blockworld.generate import generate
from bridges.blockworld.species import HEALTH
from rollout.api import Splits, Start, sample
from rollout.tasks import load_task

CREATURES = 9
SIZES = ((64, 64), (128, 72), (640, 360))
BEFORE_A_RESET = 100  # steps after which the creatures are put back into the view


def crowd(instance: Any) -> None:
    """Places nine creatures of mixed kinds in front of every player, 3 to 10 blocks away."""
    worlds = instance._worlds
    for w in worlds:
        heights = w["heights"].reshape(64, 64)
        for n in range(CREATURES):
            angle = np.radians(w["yaw"] - 24 + 6 * n)
            far = 3.0 + 0.8 * n
            x, z = w["x"] - np.sin(angle) * far, w["z"] + np.cos(angle) * far
            w["c_kind"][n] = 1 + n % 7
            w["c_x"][n], w["c_z"][n], w["c_y"][n] = x, z, heights[int(x), int(z)]
            w["c_health"][n] = HEALTH[1 + n % 7]
            w["c_yaw"][n], w["c_mode"][n], w["c_timer"][n] = 40 * n, 0, 20


def states(count: int) -> list[Start]:
    """Starts of different states of hunt_sheep."""
    bridge = BlockworldBridge()
    task = load_task(bridge.spec, "blockworld", "hunt_sheep")
    chosen = Splits(task.state_space).take("train", count)
    return [Start(chosen[i], i) for i in range(count)]


def playing(width: int, starts: list[Start], **options: Any) -> Any:
    instance = BlockworldBridge(**options).launch(Path(), (), width=width, timeout_s=600)
    instance.reset(range(width), starts[:width], timeout_s=60)
    crowd(instance)
    return instance


def per_second(work: Callable[[], int], seconds: float) -> float:
    """Returns the rate per second of CPU time."""
    done, begun = 0, time.thread_time()
    while time.thread_time() - begun < seconds:
        done += work()
    return done / (time.thread_time() - begun)


def drawing(width: int, starts: list[Start], size: tuple[int, int]) -> Callable[[], int]:
    instance = playing(width, starts, rgb_width=size[0], rgb_height=size[1])

    def work() -> int:
        for observation, buffers in instance._senses:
            observation.fill(instance._worlds, buffers, instance._options, 0, width)
        return width

    return work


def stepping(width: int, starts: list[Start], observe: tuple[str, ...]) -> Callable[[], int]:
    bridge = BlockworldBridge(observe=observe, actions="compact")
    instance = playing(width, starts, observe=observe, actions="compact")
    rng = np.random.default_rng(0)
    actions = [sample(bridge.spec.action_space, width, rng) for _ in range(BEFORE_A_RESET)]

    def work() -> int:
        instance.reset(range(width), starts[:width], timeout_s=60)
        crowd(instance)
        begun = time.thread_time()
        for chosen in actions:
            instance.step(chosen, timeout_s=60)
        work.spent += time.thread_time() - begun  # type: ignore[attr-defined]
        return width * len(actions)

    work.spent = 0.0  # type: ignore[attr-defined]
    return work


def steps_per_second(work: Any, seconds: float) -> float:
    """Steps per second of CPU time, without the time to set up the scene again."""
    work.spent, done = 0.0, 0
    while work.spent < seconds:
        done += work()
    return done / work.spent


def resetting(starts: list[Start]) -> Callable[[], int]:
    instance = playing(1, starts)
    made = orders([0] * len(starts), starts)

    def work() -> int:
        generate(instance._worlds, made, 0, len(made))
        return len(made)

    return work


def snapping(starts: list[Start]) -> tuple[Callable[[], int], Callable[[], int]]:
    instance = playing(1, starts, observe=("compass",))
    snapshot = instance.snapshot(0)

    def save_() -> int:
        for _ in range(100):
            instance.snapshot(0)
        return 100

    def restore() -> int:
        for _ in range(100):
            instance.restore(0, snapshot)
        return 100

    return save_, restore


COMPILE = """
from pathlib import Path
from bridges.blockworld import BlockworldBridge
from bridges.blockworld.options import OBSERVATIONS
BlockworldBridge(observe=OBSERVATIONS).launch(Path(), (), width=1, timeout_s=600)
"""


def compiling() -> list[tuple[float, float]]:
    """Seconds, wall and CPU, of a launch with every observation: with an empty and a full cache."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GAMUT_CACHE": folder}
        for _ in range(2):
            begun, before = time.monotonic(), os.times()
            subprocess.run([sys.executable, "-c", COMPILE], env=environment, check=True)
            after = os.times()
            cpu = after.children_user + after.children_system
            cpu -= before.children_user + before.children_system
            found.append((time.monotonic() - begun, cpu))
    return found


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each figure in a round")
    args = parser.parse_args()
    starts = states(max(args.width, 256))
    pictures = {size: drawing(min(args.width, 16), starts, size) for size in SIZES}
    steps = {
        "`semantic_rays` 4x8": stepping(args.width, starts, ("semantic_rays",)),
        "`semantic_grid` 9x9": stepping(args.width, starts, ("semantic_grid",)),
        "`privileged_grid` 9x9": stepping(args.width, starts, ("privileged_grid",)),
        "`vitals`": stepping(args.width, starts, ("vitals",)),
        "`rgb` 64x64": stepping(16, starts, ("rgb",)),
    }
    reset = resetting(starts)
    snapshot, restore = snapping(starts)
    found: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for _ in range(args.rounds):
        for (w, h), work in pictures.items():
            note(f"`rgb` {w}x{h}", per_second(work, args.seconds))
        for name, stepped in steps.items():
            note(f"steps with {name}", steps_per_second(stepped, args.seconds))
        note("reset", 1e3 / per_second(reset, args.seconds))
        note("snapshot", 1e3 / per_second(snapshot, args.seconds / 4))
        note("restore", 1e3 / per_second(restore, args.seconds / 4))
    cold, warm = compiling()
    asked = {
        "`rgb` 64x64": ("frames/s", ">= 5,000"),
        "`rgb` 128x72": ("frames/s", ""),
        "`rgb` 640x360": ("frames/s", ">= 150"),
        "steps with `semantic_rays` 4x8": ("steps/s", ">= 100,000"),
        "steps with `semantic_grid` 9x9": ("steps/s", ">= 200,000"),
        "steps with `privileged_grid` 9x9": ("steps/s", ""),
        "steps with `vitals`": ("steps/s", ""),
        "steps with `rgb` 64x64": ("steps/s", ""),
        "reset": ("ms", "<= 0.2"),
        "snapshot": ("ms", "<= 0.02"),
        "restore": ("ms", ""),
    }
    rows = []
    for name, (unit, limit) in asked.items():
        digits, best = (4, min) if unit == "ms" else (0, max)
        values = found[name]
        rows.append([name, unit, limit, f"{best(values):,.{digits}f}", spread(values, digits)])
    for what, limit, (wall, cpu) in (("empty", "<= 60", cold), ("full", "", warm)):
        row = [f"launch with all observations, {what} cache", "s", limit, f"{wall:.1f}"]
        rows.append([*row, f"{cpu:.1f} of CPU time"])
    text = (
        f"Nine creatures in view; width {args.width} for steps, {min(args.width, 16)} for "
        f"pictures; states of hunt_sheep;\nrandom `compact` actions. {args.rounds} rounds. "
        f"`restore` includes the frame it returns.\n\n"
    )
    text += table(["what", "unit", "asked", "best", "median (range)"], rows)
    publish("blockworld", "Blockworld on one core", text, save=args.save)


if __name__ == "__main__":
    main()
