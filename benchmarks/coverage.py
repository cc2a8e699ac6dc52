"""Coverage of the intervals, by simulation: the table of ``docs/statistics.md``.

``python -m benchmarks.coverage`` writes it, which takes some minutes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rollout.evaluate.statistics.estimate import METHODS, Estimate, Intervals, t_quantile
from rollout.evaluate.statistics.hierarchy import gap, hierarchical

EPISODES_AS_RUNS = "episodes as runs"
"""The usual mistake, for comparison: the t interval of all scores as if they were independent."""

_COMMON = math.sqrt(0.5)  # share of a seed's effects that train and test have in common


@dataclass(frozen=True)
class World:
    """A model to draw experiments from, whose true value is known.

    A score is the sum of independent normal effects: of the training seed, of the state (standard
    deviation 1), and of the episode together with seed x state (1).

    Attributes:
        kind: ``score``, the score itself; ``success``, 1 where it is above the 10 % quantile of all
            episodes; ``gap``, train minus test, where train has states of its own for every seed
            and half the variance of the seeds' effects is common to both.
        seeds: training seeds of an experiment.
        ratio: the standard deviation of the seeds' effects over ``1 / sqrt(states)``, the standard
            error of a mean that results from the choice of states alone.
        states: states of an experiment.
    """

    kind: str
    seeds: int
    ratio: float
    states: int = 64

    @property
    def truth(self) -> float:
        """The true value of what the intervals estimate."""
        return 0.9 if self.kind == "success" else 0.0

    def estimate(self, generator: np.random.Generator, method: str, resamples: int) -> Estimate:
        """Returns the estimate of a new experiment."""
        common, of_train, of_test = generator.standard_normal((3, self.seeds, 1, 1)) * (
            self.ratio / math.sqrt(self.states)
        )
        if self.kind == "gap":
            train = self._latent(generator, _COMMON * (common + of_train), own_states=True)
            test = self._latent(generator, _COMMON * (common + of_test), own_states=False)
            return gap(
                train, test, Intervals(method=method, resamples=resamples, seed=_seed(generator))
            )
        scores = self._latent(generator, common, own_states=False)
        if self.kind == "success":
            deviation = math.sqrt(2 + self.ratio**2 / self.states)
            scores = (scores > deviation * NormalDist().inv_cdf(0.1)).astype(np.float64)
        if method == EPISODES_AS_RUNS:
            return _as_runs(scores)
        return hierarchical(
            scores, Intervals(method=method, resamples=resamples, seed=_seed(generator))
        )

    def _latent(
        self, generator: np.random.Generator, of_seeds: NDArray[np.float64], *, own_states: bool
    ) -> NDArray[np.float64]:
        each = self.seeds if own_states else 1
        of_states = generator.standard_normal((each, self.states, 1))
        rest = generator.standard_normal((self.seeds, self.states, 1))
        return np.asarray(of_seeds + of_states + rest, np.float64)


def coverage(
    world: World, method: str, *, experiments: int, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Returns the coverage of 95 % intervals, and their mean width.

    Args:
        world: the model to draw experiments from.
        method: one of :data:`METHODS` or :data:`EPISODES_AS_RUNS` (not for gaps).
        experiments: their number; the coverage has a standard error of ``sqrt(share * (1 - share) /
            experiments)``.
        resamples: draws of the bootstrap.
        seed: of everything.
    """
    generator = np.random.default_rng(seed)
    held, width = 0, 0.0
    for _ in range(experiments):
        estimate = world.estimate(generator, method, resamples)
        assert estimate.low is not None
        assert estimate.high is not None
        held += estimate.low <= world.truth <= estimate.high
        width += estimate.high - estimate.low
    return held / experiments, width / experiments


def table(worlds: Iterable[World], *, experiments: int) -> str:
    """Returns a Markdown table of coverage and mean width, one line per world."""
    methods = (*METHODS, EPISODES_AS_RUNS)
    lines = [
        "| figure | seeds | seeds' sd / states' error | " + " | ".join(methods) + " |",
        "|---|---|---|" + "---|" * len(methods),
    ]
    for world in worlds:
        cells = [
            "{:.3f} ({:.2f})".format(*coverage(world, method, experiments=experiments))
            if world.kind != "gap" or method in METHODS
            else ""
            for method in methods
        ]
        cells = [world.kind, str(world.seeds), f"{world.ratio:g}", *cells]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _as_runs(scores: NDArray[np.float64]) -> Estimate:
    point = float(scores.mean())
    error = float(scores.std(ddof=1)) / math.sqrt(scores.size)
    half = t_quantile(0.95, scores.size - 1) * error
    return Estimate(point, point - half, point + half, 0.95, EPISODES_AS_RUNS)


def _seed(generator: np.random.Generator) -> int:
    return int(generator.integers(2**31))


if __name__ == "__main__":
    every = [
        World(kind, seeds, ratio)
        for kind in ("score", "gap", "success")
        for seeds in (2, 3, 5)
        for ratio in (0.5, 1.0, 5.0)
    ]
    sys.stdout.write(table(every, experiments=int(sys.argv[1]) if sys.argv[1:] else 1000))
