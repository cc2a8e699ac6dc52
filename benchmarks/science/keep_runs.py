"""Copies what the finished runs of a sweep leave into a folder that is committed.

    python -m benchmarks.science.keep_runs runs/own_states benchmarks/results/own_states/finished

For each run: its result, its evaluated episodes and its validations, with paths below the current
directory made relative. A sweep goes on elsewhere from these (docs/sweep.md): copied to ``runs`` of
its output, no finished run is repeated. Runs that are there already are left as they are.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq


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
    new = [run.name for run in runs if keep(run, given.folder)]
    print(f"{len(new)} of {len(runs)} finished runs are new: {', '.join(new) or 'none'}")


if __name__ == "__main__":
    main()
