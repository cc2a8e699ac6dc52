"""Measures datasets: writing, size, random windows, random frames and whole epochs.

Crafter is played at random once; the same steps are then written in each format. Rates are per
second of processor time of this process, so that other work on the machine counts little. A
dataset is read twice: with room for all decoded rows, and with room for a quarter of them, where
windows are drawn from a part of the dataset at a time.

With ``--peers`` the same steps are exported, without loss, and read by the libraries of other
formats (``dataset_peers``), LeRobot's by the Python of an environment that has it.

    python -m benchmarks.throughput.datasets --peers --lerobot ENVIRONMENT/bin/python
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import arguments, publish, table
from benchmarks.throughput.playing import fragments, playing, resident, starts
from rollout.api import Fragment, Task
from rollout.config import HostConfig, build_plugin
from rollout.data import Dataset, DatasetWriter, EpisodeRef, describe_dataset
from rollout.evaluators import GameReward
from rollout.host import PlayOptions
from rollout.train.recorded import PartReader, StepColumns

LENGTH = 64  # steps of a window
MINIBATCH = 256  # steps
INSTANCES = 4
FRAME = "observation"
FORMATS: dict[str, dict[str, Any]] = {
    "raw, zstd (default)": {},
    "raw, lz4": {"compression": "lz4"},
    "png": {"codec": "png"},
    "h264, lossless": {"codec": "h264:0"},
    "h264, CRF 20": {"codec": "h264:20"},
}

# Name, reader of ``dataset_peers``, exporter and its options; None for the library's own files.
PEERS: tuple[tuple[str, str, str | None, dict[str, Any]], ...] = (
    ("Hugging Face, Image (PNG)", "hf image", "hf", {}),
    ("Hugging Face, Array3D", "hf array", None, {}),
    ("Minari, HDF5", "minari", "minari", {"storage": "hdf5"}),
    ("Minari, HDF5 sliced by h5py", "minari sliced", "minari", {"storage": "hdf5"}),
    ("Minari, Arrow", "minari", "minari", {"storage": "arrow"}),
    ("LeRobot v3, images (PNG)", "lerobot", "lerobot", {}),
)


def played(
    steps: int, game: str = "crafter", instances: int = INSTANCES, **options: Any
) -> tuple[Any, Task, list[Fragment]]:
    """Returns a bridge, its task, and at least so many steps of it."""
    bridge: Any = build_plugin("bridges", game, options)
    task = Task("default", "", bridge.spec.state_space, GameReward())
    policy: Any = build_plugin("policies", "random", {})
    shape, host = (instances, 1), HostConfig(isolation="in_process")
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


def record_stacks(folder: Path, steps: int) -> list[list[str]]:
    """Returns rows about recording Pong's stacks of four frames, whole and each frame once."""
    began = time.process_time()
    bridge, task, found = played(steps, "atari", 1, id="Pong")
    count = sum(fragment.env_steps for fragment in found)
    play, rows = (time.process_time() - began) / count, []
    for name, spec in (
        ("to begin", bridge.spec),  # what is imported and allocated once
        ("whole stacks", dataclasses.replace(bridge.spec, stacks={})),
        ("each frame once", bridge.spec),
    ):
        path = folder / name.replace(" ", "-")
        with DatasetWriter(path, describe_dataset(spec, task, policy="random")) as writer:
            began = time.process_time()
            for fragment in found:
                writer.append(fragment)
            writer.close()
        each = (time.process_time() - began) / count
        size = sum(p.stat().st_size for p in path.rglob("*.parquet")) / count
        share = f"{100 * each / (each + play):.1f} %"
        rows.append([name, f"{1e6 * each:.0f}", share, f"{size:,.0f}"])
    return rows[1:]


def minibatches(path: Path, epochs: int = 3) -> list[list[str]]:
    """Returns rows about minibatches of shuffled steps: of our trainings, and of Ray Data."""
    columns = StepColumns([FRAME], ["action"], frozenset({"reward"}))
    with Dataset(path) as dataset:
        refs, names = dataset.episodes(), [FRAME, "action", "reward"]
        steps, shape = sum(ref.length for ref in refs), dataset.manifest.schema
        frame = json.loads(shape.field(FRAME).metadata[b"shape"])
        room = steps * dataset.manifest.row_bytes / (1 << 20)

        def ours(share: float) -> Iterator[int]:
            rng = np.random.default_rng(0)
            reader = PartReader(dataset, refs, columns, memory_mb=room * share, seed=0)
            for part in range(epochs * reader.parts):
                made = reader.part(part)
                for index, _, _ in made.chunks(rng, minibatch=MINIBATCH, bptt=1, recurrent=False):
                    taken = {k: values[index[0]] for k, values in made.columns.items()}
                    yield len(taken["reward"])
            reader.close()

        import ray

        ray.init(num_cpus=os.cpu_count(), include_dashboard=False, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False

        def decoded(batch: dict[str, Any]) -> dict[str, Any]:
            pixels = np.frombuffer(b"".join(batch[FRAME]), np.uint8)
            return {**batch, FRAME: pixels.reshape(-1, *frame)}

        def other(share: float) -> Iterator[int]:
            rows = ray.data.read_parquet(str(path / "data"), columns=names).map_batches(decoded)
            for _ in range(epochs):
                buffer = {"local_shuffle_buffer_size": max(MINIBATCH, int(steps * share))}
                batches = rows.iter_batches(batch_size=MINIBATCH, local_shuffle_seed=0, **buffer)
                for batch in batches:
                    yield len(batch["reward"])

        rows = []
        for name, read in (("trainings of Gamut", ours), ("Ray Data", other)):
            for share, what in ((4.0, "all"), (0.25, "a quarter")):
                next(items := read(min(share, 1.0) if read is other else share))
                began, count = time.perf_counter(), sum(items)
                rows.append([name, what, f"{count / (time.perf_counter() - began):,.0f}"])
                print(rows[-1], flush=True)
        ray.shutdown()
    return rows


def peers(path: Path, folder: Path, seconds: float, lerobot: str | None) -> list[list[str]]:
    """Returns the rows of other formats, exported from the dataset in ``path``."""
    rows = []
    with Dataset(path) as dataset:
        refs = dataset.episodes()
        for name, reader, exporter, options in PEERS:
            if reader == "lerobot" and lerobot is None:
                continue
            out = folder / f"{reader.replace(' ', '-')}-{options.get('storage', '')}-v0"
            if exporter is not None:
                made: Any = build_plugin("exporters", exporter, options)
                made.write(dataset, refs, out)
            else:
                write_steps(dataset, refs, out)
            python = lerobot if reader == "lerobot" else sys.executable
            script = Path(__file__).with_name("dataset_peers.py")
            # -P: this folder has a module "datasets", too.
            command = [str(python), "-P", str(script), reader, str(out), str(seconds), str(LENGTH)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            kept = out / "made" if exporter is None else out
            files = [p for p in kept.rglob("*") if p.is_file() and ".cache" not in p.parts]
            steps = sum(ref.length for ref in refs)
            size = sum(p.stat().st_size for p in files) / steps
            about = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
            cells = [f"{found[k]:,.0f}" for k in ("windows", "frames", "epoch")]
            rows.append([f"{name}; {about}", "", "", f"{size:,.0f}", *cells, ""])
            print(rows[-1], flush=True)
            shutil.rmtree(out)
    return rows


def write_steps(dataset: Dataset, refs: Sequence[EpisodeRef], out: Path) -> None:
    """Writes the steps as arrays, for a library that makes its own files of them."""
    out.mkdir()
    episodes = [dataset.read(ref, [FRAME, "action", "reward", "episode"]).columns for ref in refs]
    columns = {k: np.concatenate([e[k] for e in episodes]) for k in episodes[0]}
    np.savez(out / "steps.npz", **columns)  # type: ignore[arg-type]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--peers", action="store_true", help="measure other formats, too")
    parser.add_argument("--lerobot", metavar="PYTHON", help="Python that has LeRobot")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gamut-benchmark-"))
    try:
        stacks = record_stacks(folder, args.steps)
        rows = compare(played(args.steps), folder, args.seconds)
        if args.peers:
            first = folder / next(iter(FORMATS)).replace(" ", "-")
            rows += peers(first, folder, args.seconds, args.lerobot)
            shuffled = minibatches(first)
    finally:
        shutil.rmtree(folder)
    head = ["format", "room in memory for", "write steps/s", "bytes/step"]
    head += [f"windows of {LENGTH}/s", "frames/s", "epoch steps/s", "memory, MiB"]
    text = f"\n## {args.steps:,} steps of 64x64 rgb, per second of processor time\n\n"
    text += table(head, rows)
    text += """
How to read it: windows and single frames are drawn at random, with action and reward; an epoch
reads each episode once. Memory is what the process grew by while it read. Other formats have the
same episodes without loss, and read the same columns; Minari reads whole episodes for a window.
"""
    if args.peers:
        head = ["reader", "room in memory for", "steps/s"]
        text += f"\n## Minibatches of {MINIBATCH} shuffled steps\n\n{table(head, shuffled)}"
        text += """
How to read it: steps per second of wall time over three epochs, each step once, with frame, action
and reward; the first minibatch is not counted. With room for a quarter, Gamut shuffles episodes
and the steps of the part in memory, Ray Data the steps in its local shuffle buffer.
"""
    head = ["Pong, 84x84, four frames", "us/step to record", "of collection", "bytes/step"]
    text += f"\n## Recording {args.steps:,} steps of frame stacks\n\n{table(head, stacks)}"
    text += """
How to read it: processor time of recording, shards included, as a share of it and that of playing
at random in one process, in fragments of 64 steps.
"""
    publish("datasets", "Datasets: writing, size and reading", text, save=args.save)


if __name__ == "__main__":
    main()
