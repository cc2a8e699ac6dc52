"""Statistics of evaluations: what may be concluded, and with what interval.

The training seed is the replicate: two episodes of one run say nothing about another run. So every
interval here says how far a figure would move if the training were done again, and there is none
for a single training run. ``docs/statistics.md`` has the formulas and how often they cover.
"""

from rollout.evaluate.statistics.components import STATES, arrange
from rollout.evaluate.statistics.estimate import (
    METHODS,
    UNBOUNDED,
    Estimate,
    Intervals,
    geometric_mean_score,
    wilson,
)
from rollout.evaluate.statistics.hierarchy import (
    difference,
    gap,
    hierarchical,
    jackknife,
    one_player,
)

__all__ = [
    "METHODS",
    "STATES",
    "UNBOUNDED",
    "Estimate",
    "Intervals",
    "arrange",
    "difference",
    "gap",
    "geometric_mean_score",
    "hierarchical",
    "jackknife",
    "one_player",
    "wilson",
]
