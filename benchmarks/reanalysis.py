"""Computes the headlines of sweeps again, from their published episodes and results.

``python benchmarks/reanalysis.py`` prints the sentences of the documentation that say what was
found, with every figure computed from ``benchmarks/results``; ``headlines.txt`` has the sentences.
``python benchmarks/reanalysis.py benchmarks/results/hunt_sheep_wide`` reads ``results.parquet``, or
another file that is given, and prints gap, ease, gain, loss, adjusted gap and their change for
every arm and N, with 95 % intervals, the verdict of the first arm, and by how much its gaps and
held-out scores are larger than those of other arms, over the training seeds of both. Both import
numpy, scipy and pyarrow, nothing of Gamut, and were written from ``docs/statistics.md`` and
``docs/sweep.md``, so that errors are not shared.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import stats

CONFIDENCE = 0.95


KEYS = ("arm", "n", "training_seed", "set", "position", "state")


def read(path):
    """Returns the mean score of every state that a run of an arm played.

    With sampled actions; by arm, then by N, training seed and set, then by position and state.
    """
    path = Path(path)
    path = path / "results.parquet" if path.is_dir() else path
    table = pq.read_table(path, columns=[*KEYS, "actions", "end", "score"])
    sampled = pc.and_(pc.equal(table["actions"], "sampled"), pc.not_equal(table["end"], "lost"))
    table = table.filter(pc.and_(sampled, pc.not_equal(table["arm"], "")))
    means = table.group_by([*KEYS], use_threads=False).aggregate([("score", "mean")])
    found = {}
    columns = (means[name].to_pylist() for name in (*KEYS, "score_mean"))
    for arm, n, seed, of_set, position, state, mean in zip(*columns, strict=True):
        played = found.setdefault(arm, {}).setdefault((n, seed, of_set), {})
        played[position, state] = mean
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


def interval(statistic, seeds, *shared):
    """Returns point, low and high of a figure: jackknife over seeds, plus the shared states.

    Args:
        statistic: of some of the seeds, by their places.
        seeds: how many there are.
        shared: the scores of each sample of states that all seeds share; None for none.
    """
    everyone = list(range(seeds))
    point = statistic(everyone)
    without = [statistic([s for s in everyone if s != left]) for left in everyone]
    pseudo = seeds * point - (seeds - 1) * np.array(without)
    square = stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1) ** 2 * pseudo.var(ddof=1) / seeds
    parts = [of_shared_states(cells) for cells in shared if cells is not None]
    added, least = (sum(each) for each in zip((0.0, 0.0), *parts, strict=True))
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

    def change(self, i):
        """Returns the adjusted gap less that of the largest N, of some of the seeds."""
        gain = self.top_own[i].mean()
        gain -= others(self.top_cross, i) if self.played else self.top_held[i].mean()
        return self.adjusted(i) - gain


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
        found["change"] = interval(arm.change, count, apart)
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


RESULTS = Path(__file__).parent / "results"
SENTENCES = Path(__file__).with_name("headlines.txt")
SWEEPS = {
    "paper": "appendix_d/results.parquet",
    "lists": "appendix_d/lists.parquet",
    **{name: f"hunt_sheep_{name}" for name in ("demo", "matrix", "pixels", "imitation", "wide")},
    "near": "near_states",
    "own": "own_states",
    "apart": "lists_apart",
    "doors": "minigrid_seeds",
}


class Figure(tuple):
    """Point, low and high of a figure, or the point alone.

    In a format, ``p`` leaves the point only, ``n`` changes the sign, ``z`` keeps the zero before
    the point, and a digit is the number of those behind it, by default 3.
    """

    def __format__(self, spec):
        values = [-x for x in (self[0], *self[:0:-1])] if "n" in spec else self
        digits = next((int(x) for x in spec if x.isdigit()), 3)
        point, *ends = (f"{x:,.{digits}f}" for x in values)
        if "z" not in spec:
            point, *ends = (
                x.replace("0.", ".", 1) if x.lstrip("-")[:2] == "0." else x for x in (point, *ends)
            )
        return f"{point} [{', '.join(ends)}]" if ends and "p" not in spec else point


class Figures(dict):
    """Figures by name, each computed when it is asked for.

    ``paper/random/100/change`` is a figure of ``analyse``, ``matrix/memory-base/16/gap`` one of
    ``compare``; others are in ``DERIVED``. ``top`` is the largest N of an arm.
    """

    def __init__(self):
        super().__init__()
        self._sweeps = {}

    def sweep(self, name):
        """Returns the episodes of a sweep, as ``read`` does."""
        if name not in self._sweeps:
            self._sweeps[name] = with_ppo(self) if name == "both" else read(RESULTS / SWEEPS[name])
        return self._sweeps[name]

    def __missing__(self, key):
        sweep, *place = key.split("/")
        if not place:
            self[key] = Figure(DERIVED[key](self))
            return self[key]
        arm, n, what = place
        if what.endswith(" visits"):
            return Figure([visits(sweep, arm, int(n), what.split()[0])])
        own, _, other = arm.partition("-")
        rows = self.sweep(sweep)[own]
        top = max(m for m, _, _ in rows)
        n = top if n == "top" else int(n)
        found = compare(rows, self.sweep(sweep)[other], n) if other else None
        found = found or analyse(Arm(rows, n, top), largest=n == top)
        if not other:
            found["own"] = interval_of_own(rows, n, top)
        for each, value in found.items():
            self[f"{sweep}/{'/'.join(place[:2])}/{each}"] = Figure(value)
        if key not in self:
            raise KeyError(f"{key}: expected one of {', '.join(found)} at the end")
        return self[key]


def visits(sweep, arm, n, which):
    """Returns how often the runs of an arm visited a state: least, median or most."""
    report = (RESULTS / SWEEPS[sweep].split("/")[0] / "report.md").read_text()
    own = report.partition(f"\n### {arm}\n")[2].partition("\n### ")[0].splitlines()
    row = next(line for line in own if line.startswith(f"| {n:,} |"))
    figures = row.split("|")[5].replace(",", "").split(" / ")
    return float(figures[("least", "median", "most").index(which)])


def interval_of_own(rows, n, top):
    """Returns the score on the training states."""
    arm = Arm(rows, n, top)
    return interval(lambda i: arm.own[i].mean(), len(arm.seeds), if_shared(rows, n, "train"))


def if_shared(rows, n, name):
    """Returns the scores in a set, (seeds, states); None if the seeds have other states."""
    each = [rows[n, seed, name] for seed in seeds_of(rows, n)]
    if len({frozenset(cells) for cells in each}) > 1:
        return None
    return np.array([[cells[place] for place in sorted(cells)] for cells in each])


def with_ppo(figures):
    """Returns the imitators with 16 and 128 states beside PPO on the same states."""
    arms = {
        arm: {key: cells for key, cells in rows.items() if key[0] in (16, 128)}
        for arm, rows in figures.sweep("imitation").items()
    }
    ppo, of = {}, arms["bc"]
    for key, cells in figures.sweep("pixels")["symbols"].items():
        if key in of and key[2] in ("train", "test"):
            ppo[key] = {place: mean for place, mean in cells.items() if place in of[key]}
    return {**{a: plain(rows) for a, rows in arms.items()}, "ppo": ppo}


def plain(rows):
    """Returns the rows without cross-play."""
    return {key: cells for key, cells in rows.items() if key[2] in ("train", "test")}


def narrowing(figures, arm, other=None):
    """Returns by how much the gap of an arm of ``lists`` narrows from 100 to 10^7 states.

    With another arm, by how much more than the other's. Paired by training seed.
    """
    arms = [figures.sweep("lists")[name] for name in (arm, other) if name]
    each = [Arm(rows, 100, 10**7) for rows in arms]
    signs = (1, -1)[: len(each)]
    by_seed = sum(
        k * (a.own - a.held - a.top_own + a.top_held) for k, a in zip(signs, each, strict=True)
    )
    apart = sum(k * (a.top_cells - a.cells) for k, a in zip(signs, each, strict=True))
    return interval(lambda i: by_seed[i].mean(), len(by_seed), apart)


CUT = ("equipment", "sheep", "other")
"""Arms in which one list is cut."""
LISTED = ("lists", "shuffled", *CUT)
"""Arms whose training states have the first entries of lists."""


def inside(rows, n):
    """Returns the scores of the seeds on held-out states with a run's own entries."""
    return np.array([score(rows, n, seed, "inside") for seed in seeds_of(rows, n)])


def of_range(figures):
    """Returns what shuffled lists with 100 states lose where other entries come."""
    rows = figures.sweep("apart")["shuffled"]
    arm = Arm(rows, 100, 100)
    lost = inside(rows, 100) - arm.held
    return interval(lambda i: lost[i].mean(), len(lost), arm.cells)


def beyond(rows, n):
    """Returns what each seed scores more on its training states than on others inside its lists."""
    return Arm(rows, n, 10_000).own - inside(rows, n)


def of_number(figures, arm):
    """Returns by how much an arm's gap inside its lists shrinks from 100 to 10,000 states."""
    rows = figures.sweep("apart")[arm]
    by_seed = beyond(rows, 100) - beyond(rows, 10_000)
    shared = [if_shared(rows, n, name) for n in (100, 10_000) for name in ("train", "inside")]
    return interval(lambda i: by_seed[i].mean(), len(by_seed), *shared)


def holm(ps):
    """Returns the p values after Holm's correction."""
    ordered = sorted(ps)
    least = [max((len(ps) - k) * p for k, p in enumerate(ordered[: i + 1])) for i in range(len(ps))]
    return [min(least[ordered.index(p)], 1.0) for p in ps]


def detectable(figures, power=0.8):
    """Returns the smallest change that ten seeds show with this power, at 5 %."""
    point, low, _ = figures["paper/random/100/change"]
    degrees = len(seeds_of(figures.sweep("paper")["random"], 100)) - 1
    t = stats.t.ppf([(1 + CONFIDENCE) / 2, power], degrees)
    return ((point - low) / t[0] * t.sum(),)


def elsewhere(figures):
    """Returns the mean scores of states that policies with most states did not train on.

    By state, mean over the policies that played it: training states of other seeds, held-out
    states, and the sample of all states.
    """
    rows = figures.sweep("paper")["random"]
    by_state = {"others": {}, "test": {}, "full": {}}
    for (n, _, name), cells in rows.items():
        if n == 10**7 and (name in by_state or name.startswith(f"train/n{n}-")):
            place = by_state.get(name, by_state["others"])
            for key, mean in cells.items():
                place.setdefault((name, key), []).append(mean)
    return {k: np.array([np.mean(v) for v in each.values()]) for k, each in by_state.items()}


def of_ease(figures):
    """Returns the score of other seeds' training states less that of all other states, and its z.

    The others are states that no policy trained on.
    """
    found = elsewhere(figures)
    rest = np.concatenate([found["test"], found["full"]])
    error = np.sqrt(sum(x.var(ddof=1) / len(x) for x in (found["others"], rest)))
    apart = found["others"].mean() - rest.mean()
    return apart, apart / error


def of_states(one, other):
    """Returns the mean score of sets of states less that of others, in ``fresh_states``.

    Of a state, the mean over the policies; the interval is Welch's, over states.

    Args:
        one: how the names of the sets begin.
        other: how those of the others begin.
    """
    path = RESULTS / "fresh_states" / "results.parquet"
    table = pq.read_table(path, columns=["set", "state", "score"])
    means = table.group_by(["set", "state"]).aggregate([("score", "mean")]).to_pydict()
    rows = [*zip(means["set"], means["score_mean"], strict=True)]
    a, b = (np.array([x for name, x in rows if name.startswith(k)]) for k in (one, other))
    low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(CONFIDENCE)
    return a.mean() - b.mean(), low, high


def hard_states(figures):
    """Returns the held-out states in which the clone kills less than half of the sheep."""
    cells = figures.sweep("lists")["clone"][100, 10, "test"]
    return {state for (_, state), mean in cells.items() if mean < 0.5}


def on_hard_states(figures):
    """Returns the loss at 100 on the hard held-out states."""
    hard, arm = hard_states(figures), Arm(figures.sweep("paper")["random"], 100, 10**7)
    columns = [k for k, (_, state) in enumerate(arm.states) if state in hard]
    apart = (arm.top_cells - arm.cells)[:, columns]
    return interval(lambda i: apart[i].mean(), len(apart), apart)


def in_logits(figures):
    """Returns the change from 100 to 10^7 with the logits of mean scores, over seeds alone."""
    arm = Arm(figures.sweep("paper")["random"], 100, 10**7)

    def logit(x):
        return np.log(x / (1 - x))

    for name in ("own", "held", "top_own", "top_held", "cross", "top_cross"):
        setattr(arm, name, logit(getattr(arm, name)))

    return interval(arm.change, len(arm.seeds), None)


def p_of(figure, seeds):
    """Returns p of a figure that is 0 without an effect, from its interval over the seeds."""
    point, low, _ = figure
    error = (point - low) / stats.t.ppf((1 + CONFIDENCE) / 2, seeds - 1)
    return 2 * stats.t.sf(abs(point) / error, seeds - 1)


def p_of_placement(figures, tests):
    """Returns p of the arm with positions held fixed, adjusted gap at 16, times this many tests."""
    arms = [figures.sweep("matrix")[name] for name in ("placement_fixed", "base")]
    a, b = (Arm(rows, 16, 1024) for rows in arms)
    count = len(a.seeds)
    return (p_of(interval(lambda i: a.adjusted(i) - b.adjusted(i), count, None), count) * tests,)


def remaining(figures, sweep, arm):
    """Returns every N whose change remains at 5 % after Holm's correction for all of them."""
    rows = figures.sweep(sweep)[arm]
    *ns, _ = sorted({n for n, _, _ in rows})
    ps = holm([p_of(figures[f"{sweep}/{arm}/{n}/change"], len(seeds_of(rows, n))) for n in ns])
    return [n for n, p in zip(ns, ps, strict=True) if p <= 1 - CONFIDENCE]


def change_apart(figures, sweep, one, other):
    """Returns by how much more the adjusted gap of an arm shrinks than that of another.

    From the least N to the largest, over the seeds of both.
    """
    arms = [figures.sweep(sweep)[name] for name in (one, other)]
    least, top = (f(n for n, _, _ in arms[0]) for f in (min, max))
    a, b = (Arm(rows, least, top) for rows in arms)

    apart = (a.top_cells - a.cells) - (b.top_cells - b.cells)
    return interval(lambda i: a.change(i) - b.change(i), len(a.seeds), apart)


def episodes_played(arm, sweep="appendix_d", n=10**7):
    """Returns the training episodes of the runs of an arm with N states."""
    files = RESULTS.glob(f"{sweep}/finished/{arm}-n{n}-*/result.json")
    return tuple(json.loads(path.read_text())["training"]["episodes"] for path in files)


def of_grpo():
    """Returns the mean of the returns of three seeds of GRPO less that of their start."""
    lines = (RESULTS / "vlm_learning.md").read_text().splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| grpo_")]
    gained = np.array([float(row[4].split()[0]) for row in rows])
    return interval(lambda i: gained[i].mean(), len(gained), None)


def wrong_verdicts():
    """Returns the shares of wrong verdicts in percent, a share for every simulated design."""
    lines = (RESULTS / "null_calibration.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [float(row[4].split("%")[0]) for row in rows if len(row) == 9 and row[2].isdigit()]


def failures(library, first):
    """Returns how many runs of a library on Acrobot ended below -200, from this seed on."""
    lines = (RESULTS / "equivalence" / "scores.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    of = [r for r in runs if (r["game"], r["library"]) == ("Acrobot", library)]
    return (sum(r["last fifth"] < -200 for r in of if first <= r["seed"] < first + 1000),)


DERIVED = {
    "narrows": lambda f: narrowing(f, "lists"),
    "clone narrows": lambda f: narrowing(f, "clone"),
    "narrows more": lambda f: narrowing(f, "lists", "clone"),
    "detectable": detectable,
    **{
        f"{sweep} most {n}": lambda f, key=f"{sweep}/{arm}/{n}/change": (f[key][2],)
        for sweep, arm, ns in (("near", "ppo", (256,)), ("own", "own", (64, 256)))
        for n in (*ns, 1000, 10_000)
    },
    "near apart": lambda f: change_apart(f, "near", "appo", "ppo"),
    "range": of_range,
    **{
        f"inside {arm}": lambda f, arm=arm: (inside(f.sweep("apart")[arm], 100).mean(),)
        for arm in LISTED
    },
    **{
        f"beyond {arm} {n}": lambda f, arm=arm, n=n: (beyond(f.sweep("apart")[arm], n).mean(),)
        for arm in LISTED
        for n in (100, 10_000)
    },
    **{f"number {arm}": lambda f, arm=arm: of_number(f, arm) for arm in LISTED},
    **{
        f"p of {arm}": lambda f, place=place: (
            holm([p_of(f[f"apart/{each}-random/100/gap"], 5) for each in CUT])[place],
        )
        for place, arm in enumerate(CUT)
    },
    "own apart": lambda f: change_apart(f, "own", "appo", "own"),
    "p of replay": lambda f: holm([p_of(f[f"own/replay-own/{n}/gap"], 5) for n in (64, 1000)])[:1],
    "near remaining": lambda f: (max(remaining(f, "near", "ppo")),),
    "own remaining": lambda f: (max(remaining(f, "own", "own")),),
    "others' training states": lambda f: (elsewhere(f)["others"].mean(),),
    "all states": lambda f: (elsewhere(f)["full"].mean(),),
    "training less others": lambda f: of_ease(f)[:1],
    "z of ease": lambda f: of_ease(f)[1:],
    "training less fresh": lambda _: of_states("train_", "fresh"),
    "tested less fresh": lambda _: of_states(("held_out", "sample"), "fresh"),
    "most of a fault": lambda f: (f["training less fresh"][2],),
    "hard states": on_hard_states,
    "logits": in_logits,
    "hard states there are": lambda f: (len(hard_states(f)),),
    "p of nine": lambda f: p_of_placement(f, 9),
    "p of eighteen": lambda f: p_of_placement(f, 18),
    "episodes": lambda _: (max(episodes_played("random")),),
    "about": lambda _: (round(max(episodes_played("random")), -3),),
    "fewest episodes": lambda _: (min(episodes_played("random")),),
    **{
        f"own {f.__name__} episodes": lambda _, f=f: (
            f(episodes_played("own", "own_states", 100_000)),
        )
        for f in (min, max)
    },
    "about of lists": lambda _: (round(np.median(episodes_played("lists")), -3),),
    "least wrong": lambda _: (min(wrong_verdicts()),),
    "most wrong": lambda _: (max(wrong_verdicts()),),
    "grpo": lambda _: of_grpo(),
    "ours below -200": lambda _: failures("gamut", 1000),
    "rllib below -200": lambda _: failures("rllib", 1000),
}


def headlines():
    """Yields file and sentence of every headline, with its figures."""
    figures, file = Figures(), ""
    for line in SENTENCES.read_text().splitlines():
        if line.startswith("# "):
            file = line[2:]
        elif line:
            yield file, line.format_map(figures)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", help="a folder with results.parquet, or a file")
    if path := parser.parse_args().path:
        main(path)
    else:
        for file, sentence in headlines():
            print(f"{file}: {sentence}")
