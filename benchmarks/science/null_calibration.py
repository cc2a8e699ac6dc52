"""How often the report of a sweep shows a gap that shrinks, where it does and where it does not.

    python -m benchmarks.science.null_calibration

Every simulated sweep is a table of episodes, from which the code of ``report.md`` makes its verdict
(:func:`rollout.sweep.report.verdict`). The spread of runs, states and episodes is that of a
published sweep, computed from its episodes: runs and states are those of held-out states, averaged
over the smallest and the largest N. Without a gap a verdict is wrong if it says that the gap
shrinks or that it grows; the intervals promise at most 5 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import RESULTS, arguments, publish, table
from benchmarks.science.coverage import Sweep
from rollout.data.tables import Table, read_table
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.statistics import wilson
from rollout.evaluate.statistics.components import mean
from rollout.sweep.curves import SAMPLED, cells, scores_of, select
from rollout.sweep.report import verdict
from rollout.sweep.summary import SweepReport

GAPS = (0.0, 0.05, 0.1, 0.2)
SHRINKS, GROWS = "**The gap shrinks with N", "**The gap grows with N"


@dataclass(frozen=True)
class Spread:
    """Standard deviations of the scores of a sweep: runs, states, policy x state, episodes."""

    run: float
    state: float
    policy: float
    episode: float

    @classmethod
    def of(cls, folder: Path, arm: str) -> Spread:
        """Returns the spread of an arm's published episodes.

        The smallest N has several episodes from each training state, which show the spread of
        episodes alone; the rest of its spread on held-out states is that of policy x state.
        """
        table = read_table(folder / "results.parquet")
        own = [cell for name, _, cell in cells(table, SAMPLED) if name == arm]
        again = scores_of(select(own[0], own[0]["set"] == TRAIN)).values
        episode = float(again.var(2, ddof=1).mean())
        squares = [_squares(cell) for cell in (own[0], own[-1])]
        runs, states, _ = np.maximum(np.mean(squares, 0), 0).tolist()
        policy = max(squares[0][2] - episode, 0)
        return cls(*map(math.sqrt, (runs, states, policy, episode)))


def _squares(cell: Table) -> tuple[float, float, float]:
    """Returns the variances of runs, of held-out states, and of what is left."""
    values = mean(scores_of(select(cell, cell["set"] == TEST)).values)
    seeds, states = values.shape
    apart = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    rest = float((apart**2).sum()) / ((seeds - 1) * (states - 1))
    of_runs = float(values.mean(1).var(ddof=1)) - rest / states
    return of_runs, float(values.mean(0).var(ddof=1)) - rest / seeds, rest


def shares(world: Sweep, *, sweeps: int, seed: int = 0) -> tuple[int, int]:
    """Returns how many simulated sweeps have the verdict "shrinks", and how many "grows"."""
    generator = np.random.default_rng(seed)
    shrinks = grows = 0
    for _ in range(sweeps):
        data = SweepReport("", "score", world.table(generator), [], {}, {}, "", "random")
        text = verdict(data)
        shrinks += text.startswith(SHRINKS)
        grows += text.startswith(GROWS)
    return shrinks, grows


def rows(name: str, few: int, spread: Spread, seeds: int, *, stuck: bool, sweeps: int) -> list[str]:
    """Returns the row of a design: the share of each verdict without a gap, and the power."""
    found = []
    for effect in GAPS:
        world = Sweep(stuck, seeds, effect, 512, few, **vars(spread))
        found.append(shares(world, sweeps=sweeps))
    (shrinks, grows), *power = found
    wrong = wilson(shrinks + grows, sweeps)
    assert wrong.low is not None
    assert wrong.high is not None
    return [
        *(name, str(few), str(seeds)),
        f"{wrong.point:.1%} [{wrong.low:.1%}, {wrong.high:.1%}]",
        *(f"{shown / sweeps:.1%}" for shown, _ in power),
    ]


def report(sweeps: int) -> str:
    """Returns the spreads and the table of verdicts."""
    near = Spread.of(RESULTS / "hunt_sheep_matrix", "base")
    paper = Spread.of(RESULTS / "appendix_d", "random")
    columns = ["as in", "run", "state", "policy x state", "episode"]
    sources = {"hunt_sheep_matrix": near, "appendix_d": paper}
    spreads = [[name, *(f"{x:.3f}" for x in vars(each).values())] for name, each in sources.items()]
    designs = [("hunt_sheep_matrix", 16, near, n, False) for n in (3, 5, 10)]
    designs += [("the same, one run in three stuck", 16, near, 5, True)]
    designs += [("appendix_d", 100, paper, 10, False)]
    shown = [
        rows(name, few, spread, seeds, stuck=stuck, sweeps=sweeps)
        for name, few, spread, seeds, stuck in designs
    ]
    head = ["as in", "small N", "seeds", "wrong without a gap", *(f"gap {g:g}" for g in GAPS[1:])]
    about = (
        f"{sweeps} simulated sweeps of each design and gap, 512 held-out states. *Wrong*: the "
        f"verdict says that the gap shrinks or grows though there is none, with Wilson's 95 % "
        f"interval. The columns after it are the power: the share of sweeps whose verdict says "
        f"that the gap shrinks, if the small N has this gap and the large N none. Stuck runs have "
        f"no gap, and a score that is 0.3 lower."
    )
    deviations = f"## Standard deviations of the scores\n\n{table(columns, spreads)}"
    return f"{about}\n\n{table(head, shown)}\n{deviations}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("sweeps", type=int, nargs="?", default=200)
    args = parser.parse_args()
    publish("null_calibration", "Verdicts of simulated sweeps", report(args.sweeps), save=args.save)


if __name__ == "__main__":
    main()
