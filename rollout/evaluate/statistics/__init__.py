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
from rollout.evaluate.statistics.pairs import Comparison, comparison, holm
from rollout.evaluate.statistics.quartiles import interquartile_band, interquartile_mean

__all__ = [
    "METHODS",
    "STATES",
    "UNBOUNDED",
    "Comparison",
    "Estimate",
    "Intervals",
    "arrange",
    "comparison",
    "difference",
    "gap",
    "geometric_mean_score",
    "hierarchical",
    "holm",
    "interquartile_band",
    "interquartile_mean",
    "jackknife",
    "one_player",
    "wilson",
]
