"""Coverage of the intervals and errors of the verdict, by simulation: ``docs/statistics.md``.

``python -m benchmarks.science.coverage`` prints both tables, which takes some minutes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import arguments, publish
from rollout import reports
from rollout.data.tables import Table, concatenate
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.statistics.estimate import METHODS, Estimate, Intervals, t_quantile
from rollout.evaluate.statistics.hierarchy import gap, hierarchical
from rollout.sweep.curves import curves, set_of_run
from rollout.sweep.decomposition import decompositions

EPISODES_AS_RUNS = "episodes as runs"
"""The usual mistake, for comparison: the t interval of all scores as if they were independent."""

_FEW, _MANY = 16, 1_000_000  # the two N of a simulated sweep

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
    rows = []
    for world in worlds:
        cells = [
            "{:.3f} ({:.2f})".format(*coverage(world, method, experiments=experiments))
            if world.kind != "gap" or method in METHODS
            else ""
            for method in methods
        ]
        rows.append([world.kind, world.seeds, f"{world.ratio:g}", *cells])
    return reports.table(["figure", "seeds", "seeds' sd / states' error", *methods], rows) + "\n"


@dataclass(frozen=True)
class Sweep:
    """A model of a sweep with two N, whose true values are known.

    A score is the sum of normal effects of the state, of policy x state and of the episode, and of
    the level of the policy. Every training seed has training states of its own: ``states`` for the
    large N, ``few`` for the small one.

    Attributes:
        stuck: whether the level is 0.3 lower in one run of three, which got stuck, and has a
            standard deviation of 0.02 among the others.
        seeds: training seeds.
        effect: the true gap at the small N of runs that are not stuck; the others have none.
        states: states of each set.
        few: the small N.
        run: standard deviation of the level of a policy, if none gets stuck.
        state: of a state.
        policy: of policy x state.
        episode: of an episode.
    """

    stuck: bool
    seeds: int
    effect: float
    states: int = 64
    few: int = _FEW
    run: float = 0.05
    state: float = 0.3
    policy: float = 0.15
    episode: float = 0.25

    @property
    def truth(self) -> float:
        """The true gap at the small N; at the large N it is 0."""
        return self.effect * (2 / 3 if self.stuck else 1)

    def table(self, generator: np.random.Generator) -> Table:
        """Returns the results of a new sweep, with cross-play."""
        rows = _Rows(generator, self.policy, self.episode)
        held = generator.normal(0, self.state, self.states)
        sets: dict[tuple[int, int], NDArray[np.float64]] = {}
        levels: dict[tuple[int, int], float] = {}
        for n, seed in product((self.few, _MANY), range(self.seeds)):
            sets[n, seed] = generator.normal(0, self.state, min(n, self.states))
            stuck = self.stuck and generator.random() < 1 / 3
            levels[n, seed] = generator.normal(0, 0.02 if self.stuck else self.run) - 0.3 * stuck
            gap_of_run = self.effect * (n == self.few and not stuck)
            own = sets[n, seed] + levels[n, seed] + gap_of_run
            rows.play(n, seed, TRAIN, seed, own, self.states)
            rows.play(n, seed, TEST, -1, held + levels[n, seed], self.states)
        for player, (n, seed) in product(range(self.seeds), sets):
            if player != seed:
                scores = sets[n, seed] + levels[_MANY, player]
                rows.play(_MANY, player, set_of_run(n, seed), seed, scores, self.states)
        return rows.table()


class _Rows:
    """The rows of a table of results."""

    def __init__(self, generator: np.random.Generator, policy: float, episode: float) -> None:
        self._generator, self._policy, self._episode = generator, policy, episode
        self._parts: list[Table] = []

    def play(
        self, n: int, seed: int, name: str, owner: int, means: NDArray[np.float64], episodes: int
    ) -> None:
        """Adds the episodes of a run on a set of states, as many of each as of the others."""
        repeats = episodes // len(means)
        total = len(means) * repeats
        means = np.repeat(means + self._generator.normal(0, self._policy, len(means)), repeats)
        position = np.repeat(np.arange(total // repeats), repeats)
        constant = {"arm": "random", "n": n, "training_seed": seed, "player": "", "set": name}
        self._parts.append(
            {
                **{key: np.full(total, value) for key, value in constant.items()},
                "actions": np.full(total, "sampled"),
                "position": position,
                # All N and seeds have other states; held-out states are shared.
                "state": (position + 1000 * (owner + 1) + 100_000 * n * (owner >= 0)).astype(str),
                "repeat": np.tile(np.arange(repeats), total // repeats),
                "score": means + self._generator.normal(0, self._episode, total),
                **{key: np.zeros(total) for key in ("total_reward", "progress", "success")},
                **{key: np.zeros(total, np.int64) for key in ("episode_seed", "length")},
                "end": np.full(total, "terminated"),
                "attempts": np.ones(total, np.int64),
            }
        )

    def table(self) -> Table:
        """Returns all rows."""
        return concatenate(self._parts)


_FIGURES = ("gap", "adjusted gap", "change", "held-out score")


def errors(world: Sweep, *, experiments: int, seed: int = 0) -> tuple[dict[str, float], float]:
    """Returns the coverage of the intervals of the small N, and the share of verdicts "shrinks"."""
    generator = np.random.default_rng(seed)
    held, shrinks = dict.fromkeys(_FIGURES, 0), 0
    level = -0.1 if world.stuck else 0.0
    truths = dict(zip(_FIGURES, (*[world.truth] * 3, level), strict=True))
    for _ in range(experiments):
        results = world.table(generator)
        part = decompositions(results)[0]
        assert part.change is not None
        assert part.change.low is not None
        score = curves(results)[0].scores[TEST]
        found = zip(_FIGURES, (part.gap, part.adjusted, part.change, score), strict=True)
        for name, estimate in found:
            assert estimate.low is not None
            assert estimate.high is not None
            held[name] += estimate.low <= truths[name] <= estimate.high
        shrinks += part.change.low > 0
    return {name: many / experiments for name, many in held.items()}, shrinks / experiments


def table_of_errors(worlds: Iterable[Sweep], *, experiments: int) -> str:
    """Returns a Markdown table of coverage and verdicts, one line per world."""
    rows = []
    for world in worlds:
        held, shrinks = errors(world, experiments=experiments)
        about = "one in three stuck" if world.stuck else "normal"
        figures = (f"{each:.3f}" for each in (*(held[name] for name in _FIGURES), shrinks))
        rows.append([about, world.seeds, f"{world.truth:.2f}", *figures])
    names = ("runs", "seeds", "true gap", *_FIGURES, 'verdict "shrinks"')
    return reports.table(names, rows) + "\n"


def _as_runs(scores: NDArray[np.float64]) -> Estimate:
    point = float(scores.mean())
    error = float(scores.std(ddof=1)) / math.sqrt(scores.size)
    half = t_quantile(0.95, scores.size - 1) * error
    return Estimate(point, point - half, point + half, 0.95, EPISODES_AS_RUNS)


def _seed(generator: np.random.Generator) -> int:
    return int(generator.integers(2**31))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("experiments", type=int, nargs="?", default=1000)
    args = parser.parse_args()
    kinds, ratios = ("score", "gap", "success"), (0.5, 1.0, 5.0)
    worlds = [World(*each) for each in product(kinds, (2, 3, 5), ratios)]
    text = table(worlds, experiments=args.experiments) + "\n"
    each = product((0.0, 0.2), (False, True), (3, 5, 10))
    sweeps = [Sweep(stuck, seeds, effect) for effect, stuck, seeds in each]
    text += table_of_errors(sweeps, experiments=args.experiments)
    publish("coverage", "Coverage of intervals, errors of the verdict", text, save=args.save)


if __name__ == "__main__":
    main()
