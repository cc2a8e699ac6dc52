"""Runs the fault table, or some of its rows, and prints it.

    python -m benchmarks.faults

``--seconds`` is how long crashing games play. Earlier rows are kept in
``benchmarks/results/faults.json`` with their dates; ``--save`` writes the table of all.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.faults import clock, games, kills, nodes, processes, storage, stores
from benchmarks.faults.check import Row
from benchmarks.report import arguments, publish, table

HEAD = ["fault", "injected", "what was counted", "how it ended", "what must hold", "s", "when"]


def rows(seconds: float) -> dict[str, Callable[[Path], Row]]:
    """Returns every row by its name, in the order of the table."""
    return {
        "game": processes.one_game,
        "random": kills.at_random,
        "grandchild": processes.one_grandchild,
        "host": processes.host_actor,
        "evaluation": processes.evaluation_actor,
        "inference": processes.inference_actor,
        "recorder": processes.recorder,
        "driver": processes.driver,
        "raylet": nodes.raylet,
        "everything": processes.everything,
        "cluster": nodes.whole_cluster,
        **{f"hang-{each}": processes.hang(each) for each in ("start", "reset", "step", "close")},
        "crashing": partial(processes.crashing, seconds=seconds),
        "leak": processes.leak,
        "disk-full": storage.disk_full,
        "damage": storage.damage,
        "store-kills": stores.kills,
        "store-cut": stores.cut,
        "network": nodes.network_cut,
        "network-dead": nodes.network_cut_and_declared_dead,
        "job": nodes.job,
        "clock": clock.jump,
        "minecraft": games.minecraft,
        "window": games.window,
        "wire": games.wire,
        "models": games.models,
    }


def run(name: str, row: Callable[[Path], Row], *, keep: bool) -> dict[str, Any]:
    """Returns the result of a row; the table reports anything that goes wrong."""
    folder = Path(tempfile.mkdtemp(prefix="gf-", dir="/tmp"))
    began = time.monotonic()
    try:
        found = row(folder)
    except Exception as error:  # noqa: BLE001 - the other rows are still to be run
        traceback.print_exc()
        words = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        found = Row(name, "", "", "", [words])
    took = time.monotonic() - began
    if keep or found.wrong:
        print(f"kept: {folder}", flush=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    return {**asdict(found), "seconds": took, "when": when}


def cells_of(stored: dict[str, Any]) -> list[str]:
    """Returns the cells of a stored row."""
    row = Row(**{key: value for key, value in stored.items() if key not in ("seconds", "when")})
    return [" ".join(cell.split()).replace("|", "\\|") for cell in row.cells()]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/faults.json"))
    parser.add_argument("--keep", action="store_true", help="keep the folders of all runs")
    args = parser.parse_args()
    every = rows(args.seconds)
    if unknown := set(args.only) - set(every):
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(every)}")
    known = json.loads(args.store.read_text()) if args.store.exists() else {}
    for name in args.only or every:
        row = run(name, every[name], keep=args.keep)
        # Another process may have stored a row meanwhile.
        known = json.loads(args.store.read_text()) if args.store.exists() else known
        known[name] = row
        print(f"{name} ({row['seconds']:.0f} s): {' | '.join(cells_of(row))}", flush=True)
        if args.save:
            args.store.write_text(json.dumps(known, indent=1) + "\n")
    text = (
        "Each row is a run of its own, on the chaos game unless it says otherwise; see "
        "`benchmarks/faults/check.py` for what must hold after every one.\n\n"
    )
    done = [known[name] for name in every if name in known]
    took = [f"{each['seconds']:.0f}" if each["seconds"] else "-" for each in done]
    cells = [[*cells_of(row), s, row["when"]] for row, s in zip(done, took, strict=True)]
    text += table(HEAD, cells)
    publish("faults", "Faults", text, save=args.save)


if __name__ == "__main__":
    main()
