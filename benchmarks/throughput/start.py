"""Measures how long a training needs from its command to the end of its first update.

python -m benchmarks.throughput.start --save
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import arguments, publish, spread, table

ROUNDS = 3
LIMIT_S = 300.0
KEYS = [
    *("bridge.name=gymnasium", "bridge.id=CartPole-v1", "task=cartpole", "wandb.mode=disabled"),
    *("width=64", "fragment.steps=32", "env_steps=200_000"),
    *("algorithm.batch=2048", "algorithm.minibatch=512"),
]
WAYS = {
    "without Ray": ["runners=0"],
    "with Ray, a runner": ["runners=1"],
}


def first_update_s(keys: list[str]) -> float:
    """Returns the seconds until a training has written its first line of metrics.

    Raises:
        RuntimeError: it ended, or wrote none in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        gamut = str(Path(sys.executable).with_name("gamut"))
        program = [gamut, "train", "--set", *KEYS, *keys, f"output={run}"]
        began = time.monotonic()
        process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
        metrics = run / "metrics.jsonl"
        try:
            while not (metrics.exists() and metrics.stat().st_size):
                waited = time.monotonic() - began
                if process.poll() is not None or waited > LIMIT_S:
                    process.kill()
                    raise RuntimeError(f"no update in {waited:.0f} s: {process.communicate()[1]}")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.01)
            return time.monotonic() - began
        finally:
            process.terminate()
            process.communicate()


def main() -> None:
    options = arguments(__doc__).parse_args()
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    for keys in WAYS.values():
        first_update_s(keys)  # files are read from the disk once
    for number in range(ROUNDS):
        for name in list(WAYS)[:: 1 if number % 2 == 0 else -1]:
            found[name].append(first_update_s(WAYS[name]))
    rows = [[name, spread(seconds, 1)] for name, seconds in found.items()]
    body = f"CartPole, an update of 2,048 steps; {ROUNDS} runs of each, in turns.\n\n"
    body += table(["training", "seconds to the end of the first update: median (range)"], rows)
    publish("start", "Start of a training", body, save=options.save)


if __name__ == "__main__":
    main()
