"""How much of the gap of MCU's lists is that their states are easy, in a finished sweep.

Sets by the rule of MCU's code consist of the same first entries for all seeds, so policies of other
seeds know them and cannot say how easy they are; a sweep does not adjust their gap. Policies that
were trained on the most random states can. Here the one of the same training seed plays the
training states of each run, in the episodes that the run played. Its gap between those and the
held-out states is how easy they are for it; the difference of the gaps is paired by state.

Policies that do worse lose more on difficult states. So the clone with which all runs begin plays
the same states, too, and the scores on held-out states are shown by what all states of the smallest
set have: no clutter, and sheep at the first distance.

Exploratory: decided on 2026-11-26, when one of the nine runs of the arm had been seen, the clone
and the split after all twelve. Held-out states are not played again.

    python -m benchmarks.science.lists_ease configs/sweeps/appendix_d.yaml

It reads the published episodes, ``lists.parquet``. With ``--play`` it makes them, in the clone in
which the sweep ran: that needs the checkpoints, which are not published.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.report import RESULTS, arguments, publish, table
from rollout.api.state import StateSpace
from rollout.api.subsets import LISTS
from rollout.config import PolicyConfig, load_config
from rollout.data.tables import Table, concatenate, read_table, write_table
from rollout.evaluate.legs import TEST, TRAIN, Leg
from rollout.evaluate.playing import play_legs
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.evaluate.statistics import Intervals
from rollout.sweep.config import SweepConfig
from rollout.sweep.curves import SAMPLED, contrasts, curves, select
from rollout.sweep.plan import SweepPlan, SweepRun
from rollout.sweep.report_tables import Figures, contrast_table, short_tables
from rollout.sweep.run import TRAINER, RunResult, folder_of_training, outcome_of
from rollout.tasks import bridge_and_task

REFERENCE, CLONE = "trained on random states", "clone"
SHARES = Intervals(bounds=(0.0, 1.0))


def finished(runs: Sequence[SweepRun]) -> list[RunResult]:
    """The results of those runs that have any."""
    return [found for run in runs if (found := outcome_of(run)) is not None]


def episodes(result: RunResult, *sets: str) -> dict[str, np.ndarray]:
    """The rows of a run on some of its sets."""
    return select(result.table, np.isin(result.table["set"], sets))


def of_reference(
    plan: SweepPlan, run: SweepRun, arm: str, held: Table, policy: PolicyConfig
) -> list[Table]:
    """A policy's episodes on the training states of another run, and on held-out states."""
    game, e, states = plan.games[run.arm], run.evaluation, run.sets[TRAIN]
    played = play_legs(
        *(game.bridge, game.task),
        [Leg(arm, policy.build(), TRAIN, states, SAMPLED, e.repeats(TRAIN, states.size))],
        seed=e.seed,
        metric=e.metric,
        width=game.bridge.spec.choose_width(e.width or run.config.width),
        arm=arm,
        n=run.n,
        training_seed=run.training_seed,
    )
    same = {
        name: played[name][:1].repeat(len(held["arm"])) for name in ("arm", "n", "training_seed")
    }
    return [played, {**held, **same}]


def some_states(held: Table, space: StateSpace, figures: Figures) -> str:
    """The scores on held-out states that have in common what the smallest set has."""
    states = [space.state(int(index)) for index in held["state"]]
    clear = np.array([state["clutter"] == "none" for state in states])
    first = space.factor("distance").values[0]
    near = np.array([state["distance"] == first for state in states])
    sets = {
        "all": np.full_like(clear, True),
        "clutter": ~clear,
        "no clutter": clear,
        "no clutter, near": clear & near,
    }
    names = {k: f"{k}: {len({*held['state'][rows]})}" for k, rows in sets.items()}
    shown = [
        {**select(held, rows), "set": np.full(rows.sum(), names[k], object)}
        for k, rows in sets.items()
    ]
    rows = [
        [p.arm, f"{p.n:,}", *(figures(p.scores[name]) for name in names.values())]
        for p in curves(concatenate(shown), intervals=SHARES)
    ]
    return table(["arm", "N", *names.values()], rows)


def report(rows: Table, space: StateSpace) -> str:
    """The scores of all, the difference of the gaps, and scores on some of the held-out states."""
    figures = Figures(digits=3)
    largest = rows["n"] == rows["n"].max()
    chosen = (rows["arm"] == LISTS) | (largest & (rows["arm"] == REFERENCE))
    return "\n".join(
        [
            f"All play the same states. The policies of *{REFERENCE}* have the seeds of those of "
            f"*{LISTS}*; the clone is one policy, which never trained with PPO, and its intervals "
            f"are about states only. Exploratory, see `benchmarks/science/lists_ease.py`.\n",
            short_tables(curves(rows, intervals=SHARES), figures, single=[CLONE]),
            "",
            contrast_table(contrasts(rows, base=REFERENCE, intervals=SHARES), {}, figures),
            "\n## Held-out states by what the smallest set has, and how many there are\n",
            some_states(select(rows, chosen & (rows["set"] == TEST)), space, figures),
            *(f"\n†{number} {reason}" for number, reason in enumerate(figures.reasons, 1)),
        ]
    )


def play(config: SweepConfig) -> Table:
    """Returns the episodes of the arm, of the reference and of the clone, on the same states."""
    plan = SweepPlan.make(config, TRAINER.check)
    base = [run for run in plan.runs if run.arm == plan.base.arm.name and run.larger is None]
    random = {each.run.training_seed: each for each in finished(base)}
    clone = next(
        each for each in finished(plan.baselines) if each.run.baseline.name == "checkpoint"
    )
    parts: list[Table] = []
    for result in finished([run for run in plan.runs if run.config.state_set.subset == LISTS]):
        run, most = result.run, random[result.run.training_seed]
        parts.append(episodes(result, TRAIN, TEST))
        trained = TRAINER.player(folder_of_training(most))
        parts += of_reference(plan, run, REFERENCE, episodes(most, TEST), trained)
        parts += of_reference(plan, run, CLONE, episodes(clone, TEST), clone.run.baseline)
    return concatenate(parts)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--play", action="store_true", help="play again, from checkpoints")
    args = parser.parse_args()
    config, path = load_config(SweepConfig, args.sweep), RESULTS / "appendix_d" / "lists.parquet"
    rows = play(config) if args.play else read_table(path)
    space = bridge_and_task(config.train.bridge, config.train.task)[2].state_space
    text = report(rows, space)
    title = "How easy the states of MCU's lists are"
    publish("appendix_d/lists", title, text, save=args.save)
    if args.save and args.play:
        write_table(path, rows, docs=COLUMN_DOCS)


if __name__ == "__main__":
    main()
