"""Measures what it costs a collection that its output is in a store: a local S3, in turns.

    S3_PACKAGES=... python -m benchmarks.throughput.stores

``S3_PACKAGES`` is explained in ``benchmarks/faults/store_server.py``. Crafter is recorded by one
process. The time is that of the whole call, with the last copies; the store runs on the same
processors.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from benchmarks.faults.store_server import StoreServer
from benchmarks.report import arguments, publish, spread, table
from rollout import gamut


def seconds(output: str, steps: int) -> float:
    """Returns the time of a collection."""
    began = time.monotonic()
    run = gamut.collect(
        {"bridge": "crafter", "policy": "random"},
        actors=0,
        env_steps=steps,
        output=output,
        recording={"shard_mb": 4},
        wandb={"mode": "disabled"},
    )
    assert run.missing is None, run.missing
    return time.monotonic() - began


def main() -> None:
    """Measures and prints the table."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12_000)
    given = parser.parse_args()
    local, store = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="gs-") as text, StoreServer(Path(text)) as server:
        folder = Path(text)
        os.environ["GAMUT_CACHE"] = str(folder / "cache")
        seconds(str(folder / "warm"), 500)
        for number in range(given.rounds):
            turns = [
                (local, str(folder / f"local{number}")),
                (store, f"s3://bucket/runs/{number}"),
            ]
            for times, output in turns if number % 2 == 0 else reversed(turns):
                times.append(seconds(output, given.steps))
        copied = sum(server.system.du(f"bucket/runs/{n}") for n in range(given.rounds))
    ratios = [100 * (b / a - 1) for a, b in zip(local, store, strict=True)]
    rows = [
        ["a local folder, s", spread(local, 2)],
        ["s3://bucket/..., s", spread(store, 2)],
        ["more by, %", spread(ratios, 1)],
        ["copied by a run, MB", f"{copied / given.rounds / 1e6:.1f}"],
    ]
    text = table(["output", f"{given.rounds} rounds in turns, {given.steps:,} steps"], rows)
    publish("output_store", "The cost of an output in a store", text, save=given.save)


if __name__ == "__main__":
    main()
