"""Writes the report of Appendix D again from what is published of its runs; nothing is trained.

    python -m benchmarks.science.paper_report --save

``finished/`` has the episodes and the result of every run that was made, ``sweep/`` what is known
of the sessions, and the configuration. Only the baseline ``chance`` and the test for inert factors
play, with random actions; the episodes of the clone are those of ``lists.parquet``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml
from pydantic import TypeAdapter

from benchmarks.report import RESULTS
from rollout.cli import Stop
from rollout.config import load_config
from rollout.data.tables import read_table
from rollout.evaluate.legs import TEST
from rollout.evaluate.statistics import Intervals, one_player
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import scores_of, select
from rollout.sweep.plan import SweepPlan, SweepRun
from rollout.sweep.report import publish
from rollout.sweep.run import TRAINER, Result, RunResult, outcome_of, work
from rollout.sweep.summary import SweepReport, find_inert, report_of

FOLDER = RESULTS / "appendix_d"
CONFIG = "configs/sweeps/appendix_d.yaml"
CLONE = "baseline clone, held-out states, sampled"
KEPT = ("report.md", "generalization.png", "generalization.svg")


def published(run: SweepRun) -> RunResult | None:
    """Returns the results of a run; None if it was not made.

    Their digests are those of the configuration at that time, which had fewer keys.
    """
    folder = FOLDER / "finished" / run.name
    if not folder.exists():
        return None
    result = TypeAdapter(Result).validate_json((folder / "result.json").read_text())
    return RunResult(run, read_table(folder / "evaluation.parquet"), result)


def clone() -> str:
    """Returns the score of the clone on held-out states."""
    rows = read_table(FOLDER / "lists.parquet")
    first = rows["training_seed"] == rows["training_seed"].min()
    own = (rows["arm"] == "clone") & (rows["set"] == TEST) & (rows["n"] == rows["n"].min())
    scores = scores_of(select(rows, own & first)).values[0]
    return f"{one_player(scores, Intervals(bounds=(0.0, 1.0))).text()} (interval over states)"


def report(output: Path) -> SweepReport:
    """Returns the report; what has to be played is played in a folder."""
    config = load_config(SweepConfig, Path(CONFIG))
    chance = {name: each for name, each in config.baselines.items() if name == "chance"}
    changes = {"output": output, "baselines": chance}
    plan = SweepPlan.make(config.model_copy(update=changes), lambda _: None)
    shutil.copy(FOLDER / "sweep" / "test_openings.jsonl", output)
    find_inert(output, plan.base)
    for run in plan.baselines:
        work(run, Stop(), trainer=TRAINER)
    found = {run.name: each for run in plan.runs if (each := published(run))}
    found |= {run.name: each for run in plan.baselines if (each := outcome_of(run))}
    data = report_of(plan, found, {}, [])
    protocol = {}
    for name, how in data.protocol.items():
        protocol[name] = how
        if name.startswith("baseline chance"):
            protocol[CLONE] = clone()
    # Of options that are newer, these runs knew nothing.
    kept = yaml.safe_load((FOLDER / "sweep" / "config.yaml").read_text())
    options = kept["train"]["algorithm"]
    protocol["algorithm options"] = {k: v for k, v in options.items() if k != "name"}
    return replace(data, protocol=protocol, command=f"gamut sweep --config {CONFIG} --resume")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help=f"write {', '.join(KEPT)}")
    save = parser.parse_args().save
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder).resolve()
        publish(output, report(output))
        ours, theirs = (read_table(x / "results.parquet")["score"] for x in (output, FOLDER))
        if not np.array_equal(ours, theirs):
            raise SystemExit("the runs in finished/ are not those of results.parquet")
        print((output / "report.md").read_text())
        for name in KEPT if save else ():
            shutil.copy(output / name, FOLDER)


if __name__ == "__main__":
    main()
