"""Rows in which the disk is full, or its files are damaged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.faults.check import Row, checked, doctor
from benchmarks.faults.runs import ROOT, Run
from rollout.data import Dataset

_SMALL, _LARGE = "3m", "200m"


def disk_full(folder: Path) -> Row:
    """The disk of the run directory fills up while it records; later space is freed."""
    disk = folder / "d"
    disk.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", str(disk))
    try:
        settings = {
            "bridge": {"step_latency": 0.0},
            "width": 32,
            "episodes": 4000,
            "recording": {"shard_mb": 1},
        }
        run = Run(folder, settings, output=disk / "run")
        run.begin()
        run.end()
        first, kept = run.sessions[-1], run.finished()
        _mount("-o", f"remount,size={_LARGE}", str(disk))
        run.begin()
        run.end()
        row = checked(
            run,
            "disk full while recording",
            f"a disk of {_SMALL}B, made {_LARGE}B after the end",
            cause="No space left on device|are free on the disk of",
            note=f"{kept} episodes were kept when it was full",
        )
        if first != 3:
            row.wrong.append(f"on the full disk it ended with {first} instead of 3")
        return row
    finally:
        subprocess.run(["umount", str(disk)], check=False, capture_output=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def damage(folder: Path) -> Row:
    """A truncated shard and one with a flipped bit; ``repair`` and ``--resume`` restore them."""
    run = Run(folder, {"episodes": 40, "actors": 0, "bridge": {"step_latency": 0.0}})
    for number in range(1, 6):  # each session closes a shard
        run.settings["episodes"] = 40 * number
        run.begin()
        run.end()
    data = run.output / "dataset"
    shards = sorted((data / "data").glob("*.parquet"))
    with Dataset(data) as dataset:
        before = {ref.episode for ref in dataset.episodes()}
    cut, flipped = shards[1], shards[3]
    whole = cut.read_bytes()
    cut.write_bytes(whole[: len(whole) // 2])
    content = bytearray(flipped.read_bytes())
    content[len(content) // 3] ^= 0x10
    flipped.write_bytes(content)
    found = doctor(data)
    repaired = subprocess.run(
        [sys.executable, "scripts/dataset.py", "repair", str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    clean = doctor(data)
    with Dataset(data) as dataset:
        after = {ref.episode for ref in dataset.episodes()}
    run.begin()
    run.end()
    kept = re.sub(r"\S*/dataset: ", "", repaired.stdout.strip().splitlines()[-1])
    row = checked(
        run,
        "truncated and bit-flipped shards",
        f"one of {len(shards)} shards cut in half, one bit of another flipped",
        cause="",
        note=f"doctor ended with {found}, then repair {kept}; {len(after)} of {len(before)} kept, "
        f"the others played again by --resume",
    )
    if found != 3 or repaired.returncode != 0 or clean != 0:
        row.wrong.append(f"doctor {found}, repair {repaired.returncode}, doctor {clean}")
    if len(after) < len(before) * (len(shards) - 2) / len(shards) - 16:
        row.wrong.append(f"only {len(after)} of {len(before)} episodes were kept")
    return row
