"""Measures the memory of a collection of very short episodes, in one process, minute by minute.

64 worlds of the fake game, whose episodes end after one step, are played at random and recorded;
the shard stays open. What the process keeps of each episode would show first here. The growth is
that after the first third, in which buffers are filled.

    python -m benchmarks.throughput.soak
"""

import contextlib
import gc
import signal
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.report import arguments, publish, table
from benchmarks.throughput.playing import resident
from rollout.api import Fragment
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig
from rollout.signals import Stop

_SAMPLES = 30


def soak(folder: Path, seconds: float) -> list[tuple[float, int, float]]:
    """Collects for some seconds; returns seconds, episodes and resident MiB of each sample."""
    config = CollectConfig.model_validate(
        {
            "output": folder / "run",
            "bridge": {"name": "fake", "max_steps": 1},
            "policy": "random",
            "actors": 0,
            "width": 64,
            "host": {"isolation": "in_process"},
            "episodes": 10**9,
            "fragment": {"steps": 32},
            "wandb": {"mode": "disabled"},
        }
    )
    samples: list[tuple[float, int, float]] = []
    episodes, began = 0, 0.0

    def watch(fragment: Fragment) -> None:
        nonlocal episodes, began
        began = began or time.monotonic()
        episodes += len(fragment.results)
        now = time.monotonic() - began
        if now >= seconds * (len(samples) + 1) / _SAMPLES:
            gc.collect()
            samples.append((now, episodes, resident()))
            if now >= seconds:
                signal.raise_signal(signal.SIGTERM)

    with contextlib.suppress(KeyboardInterrupt):
        collect(config, Session(False, Stop()), watch=watch)
    return samples


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples = soak(Path(folder), 60 * args.minutes)
    later = samples[len(samples) // 3 :]
    growth = np.polyfit([n for _, n, _ in later], [2**20 * memory for *_, memory in later], 1)[0]
    shown = [
        [f"{seconds / 60:.1f}", f"{episodes:,}", f"{memory:.1f}"]
        for seconds, episodes, memory in samples[:: len(samples) // 10 or 1]
    ]
    text = f"{table(['minutes', 'episodes', 'resident MiB'], shown)}\n"
    text += f"Growth after the first third: {growth:.1f} bytes an episode.\n"
    publish("soak", "Memory of a collection of very short episodes", text, save=args.save)


if __name__ == "__main__":
    main()
