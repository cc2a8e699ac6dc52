"""Copies what the finished runs of a sweep leave into a folder that is committed.

    python -m benchmarks.science.keep_runs runs/own_states benchmarks/results/own_states

For each run, into ``finished``: its result, its evaluated episodes and its validations, with paths
below the current directory made relative. Runs that are there already are left as they are. Into
``sweep``: what the sweep itself needs to continue. Elsewhere it goes on, with no finished run
repeated, by

    mkdir -p runs && cp -r benchmarks/results/own_states/sweep runs/own_states
    cp -r benchmarks/results/own_states/finished runs/own_states/runs
    gamut sweep --config configs/sweeps/own_states.yaml --resume
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq

SWEEP = ("config.yaml", "run.json", "test_openings.jsonl")


def keep(run: Path, folder: Path) -> bool:
    """Copies a finished run; returns whether it was new."""
    result, kept = run / "result.json", folder / run.name
    if not result.exists() or (kept / "result.json").exists():
        return False
    here = f"{Path.cwd()}/"
    (kept / "checkpoints").mkdir(parents=True, exist_ok=True)
    table = pq.read_table(run / "evaluation.parquet")
    metadata = {
        key: value.replace(here.encode(), b"") for key, value in table.schema.metadata.items()
    }
    pq.write_table(table.replace_schema_metadata(metadata), kept / "evaluation.parquet")
    if (validations := run / "checkpoints" / "validation.json").exists():
        shutil.copy(validations, kept / "checkpoints")
    text = json.dumps(json.loads(result.read_text()), indent=2).replace(here, "")
    (kept / "result.json").write_text(text + "\n")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sweep", type=Path, help="run directory of the sweep")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    runs = sorted(path.parent for path in (given.sweep / "runs").glob("*/result.json"))
    new = [run.name for run in runs if keep(run, given.folder / "finished")]
    (given.folder / "sweep").mkdir(exist_ok=True)
    for name in SWEEP:
        text = (given.sweep / name).read_text().replace(f"{Path.cwd()}/", "")
        (given.folder / "sweep" / name).write_text(text)
    print(f"{len(new)} of {len(runs)} finished runs are new: {', '.join(new) or 'none'}")


if __name__ == "__main__":
    main()
