"""Computes the headline of a sweep again, from its episodes alone.

``python benchmarks/reanalysis.py benchmarks/results/hunt_sheep_wide`` reads ``results.parquet`` and
prints gap, ease, gain, loss, adjusted gap and their change for every N of the first arm, with 95 %
intervals, and the verdict. It imports numpy, scipy and pyarrow, nothing of Gamut, and was written
from ``docs/statistics.md`` and ``docs/sweep.md``, so that errors are not shared.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy import stats

CONFIDENCE = 0.95


def read(folder):
    """Returns the mean score of every state that a run of the first arm played.

    With sampled actions; by N, training seed and set, then by position of the state in its set.
    """
    table = pq.read_table(Path(folder) / "results.parquet")
    rows = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    keep = (rows["arm"] == rows["arm"][0]) & (rows["actions"] == "sampled")
    keep &= rows["end"] != "lost"
    names, sets = np.unique(rows["set"][keep].astype(str), return_inverse=True)
    integers = (rows[name][keep] for name in ("n", "training_seed", "position"))
    keys, cell = np.unique(np.stack([*integers, sets], 1), axis=0, return_inverse=True)
    means = np.bincount(cell.ravel(), rows["score"][keep]) / np.bincount(cell.ravel())
    found = {}
    for (n, seed, position, of_set), mean in zip(keys.tolist(), means.tolist(), strict=True):
        found.setdefault((n, seed, str(names[of_set])), {})[position] = mean
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


def analyse(rows, n, top):
    """Returns the figures of an N by name, each with point, low and high.

    Args:
        rows: as ``read`` returns them.
        n: number of training states.
        top: the largest number.
    """
    seeds = sorted({seed for m, seed, _ in rows if m == n})
    own = np.array([score(rows, n, s, "train") for s in seeds])
    held = np.array([score(rows, n, s, "test") for s in seeds])
    top_own = np.array([score(rows, top, s, "train") for s in seeds])
    top_held = np.array([score(rows, top, s, "test") for s in seeds])
    positions = sorted(rows[n, seeds[0], "test"])
    cells, top_cells = (
        np.array([[rows[m, s, "test"][p] for p in positions] for s in seeds]) for m in (n, top)
    )
    cross, top_cross = (
        np.array([[score(rows, top, k, f"train/n{m}-s{s}") for s in seeds] for k in seeds])
        for m in (n, top)
    )
    played = np.isfinite(cross).sum() == len(seeds) * (len(seeds) - 1) and len(seeds) > 2

    def others(matrix, i):
        return np.mean([matrix[k, s] for s in i for k in i if k != s])

    def adjusted(i):  # i: some of the seeds
        if not played:
            return own[i].mean() - held[i].mean()
        return own[i].mean() - others(cross, i) + top_held[i].mean() - held[i].mean()

    def change(i):
        gain = top_own[i].mean()
        gain -= others(top_cross, i) if played else top_held[i].mean()
        return adjusted(i) - gain

    count, apart = len(seeds), top_cells - cells
    found = {
        "gap": interval(lambda i: own[i].mean() - held[i].mean(), count, cells),
        "held-out": interval(lambda i: held[i].mean(), count, cells),
        "adjusted": interval(adjusted, count, apart if played else cells),
    }
    if played:
        found["ease"] = interval(lambda i: others(cross, i) - top_held[i].mean(), count, top_cells)
        found["gain"] = interval(lambda i: own[i].mean() - others(cross, i), count, None)
    if n != top:
        found["loss"] = interval(lambda i: top_held[i].mean() - held[i].mean(), count, apart)
        found["change"] = interval(change, count, apart)
    return found


def main(folder):
    """Prints the figures and the verdict."""
    rows = read(folder)
    ns = sorted({n for n, _, _ in rows})
    results = {n: analyse(rows, n, ns[-1]) for n in ns}
    for n, found in results.items():
        shown = (f"{k} {p:.3f} [{low:.3f}, {high:.3f}]" for k, (p, low, high) in found.items())
        print(f"N = {n:,}: {'; '.join(shown)}")
    _, low, high = next(iter(results.values())).get("change", (np.nan,) * 3)
    shrinks = "the gap shrinks" if low > 0 else "the gap grows" if high < 0 else "not shown"
    print(f"verdict: {shrinks}")


if __name__ == "__main__":
    main(sys.argv[1])
