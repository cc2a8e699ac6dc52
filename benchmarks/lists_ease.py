"""How much of the gap of MCU's lists is that their states are easy, in a finished sweep.

Sets by the rule of MCU's code consist of the same first entries for all seeds, so policies of other
seeds know them and cannot say how easy they are; a sweep does not adjust their gap. Policies that
were trained on the most random states can. Here the one of the same training seed plays the
training states of each run, in the episodes that the run played. Its gap between those and the
held-out states is how easy they are; the difference of the gaps, paired by state, is what remains.

Exploratory: decided on 2026-11-26, when one of the nine runs of the arm had been seen. Held-out
states are not played again.

    python -m benchmarks.lists_ease configs/sweeps/appendix_d.yaml [--save]

Run it in the clone in which the sweep ran: it reads the checkpoints.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.report import RESULTS, header, save
from rollout.api.lists import LISTS
from rollout.config import load_config
from rollout.data.tables import Table, concatenate, write_table
from rollout.evaluate.legs import TEST, TRAIN, Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import SAMPLED, contrasts, curves, select
from rollout.sweep.plan import SweepPlan, SweepRun
from rollout.sweep.report_tables import Figures, contrast_table, short_tables
from rollout.sweep.run import TRAINER, RunResult, folder_of_training, outcome_of

REFERENCE = "trained on random states"


def finished(runs: Sequence[SweepRun]) -> list[RunResult]:
    """The results of those runs that have any."""
    return [found for run in runs if (found := outcome_of(run)) is not None]


def episodes(result: RunResult, *sets: str) -> dict[str, np.ndarray]:
    """The rows of a run on some of its sets."""
    return select(result.table, np.isin(result.table["set"], sets))


def of_reference(plan: SweepPlan, run: SweepRun, reference: RunResult) -> list[Table]:
    """A policy's episodes on the training states of another run, and on held-out states."""
    game, e, states = plan.games[run.arm], run.evaluation, run.sets[TRAIN]
    trained = folder_of_training(reference)
    recipe = TRAINER.player(trained).build()
    played = play_legs(
        *(game.bridge, game.task),
        [Leg(trained.name, recipe, TRAIN, states, SAMPLED, e.repeats(TRAIN, states.size))],
        seed=e.seed,
        metric=e.metric,
        width=game.bridge.spec.choose_width(e.width or run.config.width),
        arm=REFERENCE,
        n=run.n,
        training_seed=run.training_seed,
    )
    held = episodes(reference, TEST)
    arm, n = np.full_like(played["arm"], REFERENCE, shape=held["arm"].shape), held["n"] * 0 + run.n
    return [played, {**held, "arm": arm, "n": n}]


def report(rows: Table, command: str) -> str:
    """The scores of both, and the difference of their gaps."""
    figures = Figures(digits=3)
    return "\n".join(
        [
            header("How easy the states of MCU's lists are", command),
            "Both have the same training seeds. Exploratory, see `benchmarks/lists_ease.py`.\n",
            short_tables(curves(rows), figures),
            "",
            contrast_table(contrasts(rows, base=REFERENCE), {}, figures),
            *(f"\n†{number} {reason}" for number, reason in enumerate(figures.reasons, 1)),
            "",
        ]
    )


def main() -> None:
    """Prints the table, or saves it with the episodes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    plan = SweepPlan.make(load_config(SweepConfig, args.sweep), TRAINER.check)
    base = [run for run in plan.runs if run.arm == plan.base.arm.name and run.larger is None]
    references = {each.run.training_seed: each for each in finished(base)}
    of_lists = [run for run in plan.runs if run.config.state_set.subset == LISTS]
    parts: list[Table] = []
    for result in finished(of_lists):
        reference = references[result.run.training_seed]
        parts.append(episodes(result, TRAIN, TEST))
        parts += of_reference(plan, result.run, reference)
    rows = concatenate(parts)
    text = report(rows, f"python -m benchmarks.lists_ease {args.sweep}")
    if args.save:
        save("appendix_d/lists", text)
        write_table(RESULTS / "appendix_d" / "lists.parquet", rows, docs=COLUMN_DOCS)
    else:
        print(text)


if __name__ == "__main__":
    main()
