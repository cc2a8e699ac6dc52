"""Measures datasets: writing, size, random windows, random frames and whole epochs.

Crafter is played at random once; the same steps are then written in each format. Rates are per
second of processor time of this process, so that other work on the machine counts little. A
dataset is read twice: with room for all decoded rows, and with room for a quarter of them, where
windows are drawn from a part of the dataset at a time.

    python -m benchmarks.throughput.datasets
"""

from __future__ import annotations

import gc
import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import arguments, publish, table
from benchmarks.throughput.playing import fragments, playing, resident, starts
from rollout.api import Fragment, Task
from rollout.config import HostConfig, build_plugin
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.evaluators import GameReward
from rollout.host import PlayOptions

LENGTH = 64  # steps of a window
INSTANCES = 4
FRAME = "observation"
FORMATS: dict[str, dict[str, Any]] = {
    "raw, zstd (default)": {},
    "raw, lz4": {"compression": "lz4"},
    "png": {"codec": "png"},
}


def played(steps: int) -> tuple[Any, Task, list[Fragment]]:
    """Returns a bridge, its task, and at least so many steps of it."""
    bridge: Any = build_plugin("bridges", "crafter", {})
    task = Task("default", "", bridge.spec.state_space, GameReward())
    policy: Any = build_plugin("policies", "random", {})
    shape, host = (INSTANCES, 1), HostConfig(isolation="in_process")
    with playing(
        bridge,
        task,
        policy.build(bridge.spec, task, seed=0),
        shape,
        host=host,
        play=PlayOptions(steps=LENGTH),
        begins=starts(bridge.spec.state_space, steps // 50),
    ) as player:
        found: list[Fragment] = []
        for fragment in fragments(player):
            found.append(fragment)
            steps -= fragment.env_steps
            if steps <= 0:
                break
    return bridge, task, found


def rate(items: Iterator[object], seconds: float) -> float:
    """Returns how many items come per second of processor time, after one for the start."""
    next(items)
    count, began = 0, time.process_time()
    for _ in items:
        count += 1
        if time.process_time() - began > seconds:
            break
    return count / (time.process_time() - began)


def epoch(dataset: Dataset) -> float:
    """Returns the steps per second of processor time of reading every episode once."""
    began, steps = time.process_time(), 0
    for ref in dataset.episodes():
        steps += len(dataset.read(ref, [FRAME, "action", "reward"]).columns["reward"])
    return steps / (time.process_time() - began)


def measure(name: str, path: Path, seconds: float, room: int) -> list[str]:
    """Returns the cells about reading with room for so many bytes of decoded rows."""
    gc.collect()
    columns, before = [FRAME, "action", "reward"], resident()
    with Dataset(path, cache_bytes=room) as dataset:
        drawn = dataset.windows(LENGTH, columns=columns, seed=0)
        # One pass first, so that everything that fits in memory is there.
        for _ in itertools.islice(drawn, 2 * dataset.counts.steps // LENGTH):
            pass
        windows = rate(drawn, seconds)
        single = dataset.windows(1, columns=columns, seed=0)
        for _ in itertools.islice(single, 1000):
            pass
        frames, peak = rate(single, seconds), resident()
        passed = epoch(dataset)
    print(name, f"{windows:.0f} windows/s {frames:.0f} frames/s {passed:.0f} steps/s", flush=True)
    cells = [f"{windows:,.0f}", f"{frames:,.0f}", f"{passed:,.0f}"]
    return [*cells, f"{peak - before:,.0f}"]


def compare(
    made: tuple[Any, Task, Sequence[Fragment]], folder: Path, seconds: float
) -> list[list[str]]:
    """Returns the rows of the table."""
    bridge, task, steps = made
    count, rows = sum(fragment.env_steps for fragment in steps), []
    for name, options in FORMATS.items():
        path = folder / name.replace(" ", "-")
        manifest = describe_dataset(bridge.spec, task, policy="random", **options)
        began = time.process_time()
        with DatasetWriter(path, manifest, shard_bytes=8 << 20) as writer:
            for fragment in steps:
                writer.append(fragment)
        written = count / (time.process_time() - began)
        size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file()) / count
        whole = count * manifest.row_bytes
        for room, what in ((2 * whole, "all"), (whole // 4, "a quarter")):
            cells = measure(name, path, seconds, room)
            rows.append([name, what, f"{written:,.0f}", f"{size:,.0f}", *cells])
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
    try:
        rows = compare(played(args.steps), folder, args.seconds)
    finally:
        shutil.rmtree(folder)
    head = ["format", "room in memory for", "write steps/s", "bytes/step"]
    head += [f"windows of {LENGTH}/s", "frames/s", "epoch steps/s", "memory, MiB"]
    text = f"\n## {args.steps:,} steps of 64x64 rgb, per second of processor time\n\n"
    text += table(head, rows)
    text += """
How to read it: windows and single frames are drawn at random, with action and reward; an epoch
reads each episode once. Memory is what the process grew by while it read.
"""
    publish("datasets", "Datasets: writing, size and reading", text, save=args.save)


if __name__ == "__main__":
    main()
