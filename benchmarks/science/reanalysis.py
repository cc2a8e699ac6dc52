"""Computes the headline of a sweep again, from its episodes alone.

``python benchmarks/science/reanalysis.py benchmarks/results/hunt_sheep_wide`` reads
``results.parquet``, or another file that is given, and prints gap, ease, gain, loss, adjusted gap
and their change for every arm and N, with 95 % intervals, the verdict of the first arm, and by how
much its gaps and held-out scores are larger than those of other arms, over the training seeds of
both. It imports numpy, scipy and pyarrow, nothing of Gamut, and was written from
``docs/statistics.md`` and ``docs/sweep.md``, so that errors are not shared.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy import stats

CONFIDENCE = 0.95


def read(path):
    """Returns the mean score of every state that a run of an arm played.

    With sampled actions; by arm, then by N, training seed and set, then by position and state.
    """
    path = Path(path)
    table = pq.read_table(path / "results.parquet" if path.is_dir() else path)
    rows = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return {arm: of_arm(rows, arm) for arm in dict.fromkeys(rows["arm"].tolist()) if arm}


def of_arm(rows, arm):
    """Returns what ``read`` returns for one arm."""
    keep = (rows["arm"] == arm) & (rows["actions"] == "sampled") & (rows["end"] != "lost")
    names, sets = np.unique(rows["set"][keep].astype(str), return_inverse=True)
    states = np.unique(rows["state"].astype(str), return_inverse=True)[1][keep]
    integers = (*(rows[name][keep] for name in ("n", "training_seed", "position")), states)
    keys, cell = np.unique(np.stack([*integers, sets], 1), axis=0, return_inverse=True)
    means = np.bincount(cell.ravel(), rows["score"][keep]) / np.bincount(cell.ravel())
    found = {}
    for (n, seed, *place, of_set), mean in zip(keys.tolist(), means.tolist(), strict=True):
        found.setdefault((n, seed, str(names[of_set])), {})[tuple(place)] = mean
    return found


def score(played, n, seed, name):
    """Returns the mean over the states that a run played in a set; NaN without any."""
    return np.mean([*played.get((n, seed, name), {0: np.nan}).values()])


def of_shared_states(cells, confidence=CONFIDENCE):
    """Returns what a sample of states that all seeds share adds to the squared half width.

    Args:
        cells: (seeds, states), without gaps.
        confidence: of the interval.

    Returns:
        the part that is added, and the least squared half width.
    """
    seeds, states = cells.shape
    by_state = cells.mean(0)
    v_states = by_state.var(ddof=1) / states
    residual = cells - by_state - cells.mean(1, keepdims=True) + cells.mean()
    v_rest = (residual**2).sum() / ((seeds - 1) * (states - 1)) / (seeds * states)
    quantile = stats.t.ppf((1 + confidence) / 2, states - 1) ** 2
    return quantile * max(v_states - v_rest, 0), quantile * v_states


def interval(statistic, seeds, shared):
    """Returns point, low and high of a figure: jackknife over seeds, plus the shared states."""
    everyone = list(range(seeds))
    point = statistic(everyone)
    without = [statistic([s for s in everyone if s != left]) for left in everyone]
    pseudo = seeds * point - (seeds - 1) * np.array(without)
    square = stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1) ** 2 * pseudo.var(ddof=1) / seeds
    added, least = of_shared_states(shared) if shared is not None else (0.0, 0.0)
    half = np.sqrt(max(square + added, least))
    return point, point - half, point + half


def seeds_of(rows, n):
    """Returns the training seeds of the runs of an arm with N training states."""
    return sorted({seed for m, seed, _ in rows if m == n})


class Arm:
    """The scores of an arm's runs with N training states, beside those with most.

    Args:
        rows: of the arm, as ``read`` returns them.
        n: number of training states.
        top: the largest number.
        seeds: training seeds; by default all.
    """

    def __init__(self, rows, n, top, seeds=None):
        self.seeds = seeds = seeds or seeds_of(rows, n)
        self.own, self.top_own = (
            np.array([score(rows, m, s, "train") for s in seeds]) for m in (n, top)
        )
        self.held, self.top_held = (
            np.array([score(rows, m, s, "test") for s in seeds]) for m in (n, top)
        )
        self.states = sorted(rows[n, seeds[0], "test"])
        self.cells, self.top_cells = (
            np.array([[rows[m, s, "test"][x] for x in self.states] for s in seeds])
            for m in (n, top)
        )
        self.cross, self.top_cross = (
            np.array([[score(rows, top, k, f"train/n{m}-s{s}") for s in seeds] for k in seeds])
            for m in (n, top)
        )
        expected = len(seeds) * (len(seeds) - 1)
        self.played = np.isfinite(self.cross).sum() == expected and len(seeds) > 2
        # What the shared states add to the interval of the adjusted gap.
        self.shared = self.top_cells - self.cells if self.played else self.cells

    def adjusted(self, i):
        """Returns the adjusted gap of some of the seeds, by their places."""
        if not self.played:
            return self.own[i].mean() - self.held[i].mean()
        loss = self.top_held[i].mean() - self.held[i].mean()
        return self.own[i].mean() - others(self.cross, i) + loss


def others(cross, i):
    """Returns the mean score of some of the seeds on each other's training states."""
    return np.mean([cross[k, s] for s in i for k in i if k != s])


def analyse(arm, *, largest):
    """Returns the figures of an N by name, each with point, low and high.

    Args:
        arm: an ``Arm``.
        largest: whether its N is the largest.
    """
    count, own, held, top_held = len(arm.seeds), arm.own, arm.held, arm.top_held
    apart = arm.top_cells - arm.cells

    def change(i):
        gain = arm.top_own[i].mean()
        gain -= others(arm.top_cross, i) if arm.played else top_held[i].mean()
        return arm.adjusted(i) - gain

    found = {
        "gap": interval(lambda i: own[i].mean() - held[i].mean(), count, arm.cells),
        "held-out": interval(lambda i: held[i].mean(), count, arm.cells),
        "adjusted": interval(arm.adjusted, count, arm.shared),
    }
    if arm.played:
        ease = lambda i: others(arm.cross, i) - top_held[i].mean()  # noqa: E731
        found["ease"] = interval(ease, count, arm.top_cells)
        gain = lambda i: own[i].mean() - others(arm.cross, i)  # noqa: E731
        found["gain"] = interval(gain, count, None)
    if not largest:
        found["loss"] = interval(lambda i: top_held[i].mean() - held[i].mean(), count, apart)
        found["change"] = interval(change, count, apart)
    return found


def compare(rows, others, n):
    """Returns by how much an arm's figures are larger than another's, over the seeds of both.

    Gap and held-out score only if both have the same held-out states, the adjusted gap only if both
    have the same seeds and cross-play.
    """
    seeds = sorted({*seeds_of(rows, n)} & {*seeds_of(others, n)})
    # Arms of which not all sizes were run have no loss at the largest.
    top = max(n for n, _, _ in rows)
    if len(seeds) < 2 or not {*seeds} <= {*seeds_of(rows, top)} & {*seeds_of(others, top)}:
        return {}
    a, b = (Arm(each, n, top, seeds) for each in (rows, others))
    count, held, found = len(seeds), a.held - b.held, {}
    if a.states == b.states:
        apart = a.cells - b.cells
        found["gap"] = interval(lambda i: (a.own - b.own - held)[i].mean(), count, apart)
        found["held-out"] = interval(lambda i: held[i].mean(), count, apart)
    if a.played and b.played and seeds_of(rows, n) == seeds_of(others, n):
        adjusted = lambda i: a.adjusted(i) - b.adjusted(i)  # noqa: E731
        found["adjusted"] = interval(adjusted, count, a.shared - b.shared)
    return found


def results_of(rows):
    """Returns the figures of every N of an arm; see ``analyse``."""
    ns = sorted({n for n, _, _ in rows})
    return {n: analyse(Arm(rows, n, ns[-1]), largest=n == ns[-1]) for n in ns}


def shown(figures):
    """Returns figures as text."""
    return "; ".join(
        f"{k} {p:.3f} [{low:.3f}, {high:.3f}]" for k, (p, low, high) in figures.items()
    )


def main(path):
    """Prints the figures and the verdict."""
    arms = read(path)
    (first, rows), *rest = arms.items()
    results = {arm: results_of(its) for arm, its in arms.items()}
    for arm, found in results.items():
        for n, figures in found.items():
            print(f"{'' if arm == first else f'{arm}, '}N = {n:,}: {shown(figures)}")
    for other, its in rest:
        for n in results[first]:
            if found := compare(rows, its, n):
                print(f"N = {n:,}, {first} - {other}: {shown(found)}")
    _, low, high = next(iter(results[first].values())).get("change", (np.nan,) * 3)
    shrinks = "the gap shrinks" if low > 0 else "the gap grows" if high < 0 else "not shown"
    print(f"verdict: {shrinks}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", help="a folder with results.parquet, or a file")
    main(parser.parse_args().path)
