"""Tables of sweeps whose gaps are known, for the tests of curves, picture and report."""

from dataclasses import asdict

import numpy as np

from rollout.api import Usage
from rollout.data.tables import concatenate
from rollout.evaluate.scoreboard import COLUMNS
from rollout.sweep.curves import select, set_of_run
from rollout.sweep.summary import RunInfo, SweepReport

ENDS = np.array(["terminated", "truncated"])


def sweep_table(
    means,
    *,
    seeds=(0, 1, 2),
    actions=("sampled",),
    states=24,
    repeats=1,
    noise=0.05,
    spread=0.01,
    own_orders=True,
):
    """Rows of a sweep.

    Args:
        means: (arm, n) to the expected score on each set, e.g. ``{("random", 16): {"train": .8}}``.
        seeds: training seeds.
        actions: ways of acting.
        states: states evaluated per set, at most N of a training set.
        repeats: episodes per state.
        noise: standard deviation of an episode's score; it averages out exactly.
        spread: standard deviation between training seeds; it averages out exactly.
        own_orders: whether every training seed has training states of its own.
    """
    rows = []
    rng = np.random.default_rng(7)
    for (arm, n), sets in means.items():
        for name, mean in sets.items():
            many = min(n, states) if name == "train" else states
            for acting in actions:
                shifts = _balanced(rng, len(seeds), spread)
                for seed, shift in zip(seeds, shifts, strict=True):
                    first = 1000 * (seed + 1) if name == "train" and own_orders else 10
                    scores = mean + shift + _balanced(rng, many * repeats, noise)
                    rows += [
                        {
                            "arm": arm,
                            "n": n,
                            "training_seed": seed,
                            "player": f"{arm}/{n}/{seed}",
                            "set": name,
                            "actions": acting,
                            "position": i // repeats,
                            "state": str(first + i // repeats),
                            "repeat": i % repeats,
                            "episode_seed": 5 * i,
                            "score": score,
                            "total_reward": score * 3,
                            "progress": score,
                            "success": float(i % 4 == 0),
                            "length": 120,
                            "end": ENDS[i % 2],
                            "attempts": 1,
                            "invalid": 0,
                            **asdict(Usage()),
                        }
                        for i, score in enumerate(scores)
                    ]
    return {name: np.array([row[name] for row in rows]) for name in COLUMNS}


def cross_played(table, *, ease, noise=0.02):
    """The table, with cross-play: runs of the largest N play the training states of other seeds.

    On these they reach what they reach on held-out states plus ``ease``.
    """
    rng = np.random.default_rng(8)
    seeds = np.unique(table["training_seed"]).tolist()
    largest = table["n"].max()
    parts = [table]
    for n in np.unique(table["n"]).tolist():
        for player in seeds:
            at_top = (table["n"] == largest) & (table["training_seed"] == player)
            level = table["score"][at_top & (table["set"] == "test")].mean()
            for seed in set(seeds) - {player}:
                rows = (table["n"] == n) & (table["training_seed"] == seed)
                own = select(table, rows & (table["set"] == "train"))
                many = len(own["score"])
                own["score"] = level + ease + _balanced(rng, many, noise)
                own["training_seed"] = np.full(many, player)
                own["n"] = np.full(many, largest)
                own["set"] = np.full(many, set_of_run(n, seed))
                parts.append(own)
    return concatenate(parts)


def _balanced(rng, many, scale):
    """Numbers of mean zero."""
    drawn = rng.normal(0, scale, many)
    return drawn - drawn.mean() if many > 1 else np.zeros(many)


def lose(table, rows):
    """The table, with these rows lost."""
    table = {name: column.copy() for name, column in table.items()}
    table["end"] = table["end"].astype("U10")
    table["end"][rows] = "lost"
    table["score"][rows] = np.nan
    table["success"][rows] = np.nan
    table["attempts"][rows] = 4
    return table


BASE = {
    ("random", 16): {"train": 0.80, "test": 0.53},
    ("random", 64): {"train": 0.72, "test": 0.62},
    ("random", 256): {"train": 0.715, "test": 0.725},
    ("random", 1024): {"train": 0.71, "test": 0.72},
}
"""The prototype's sweep: blockworld-facts.md, section 3, design B."""


def report_of(table, **changes):
    """A report's data around a table: a run for each arm, N and training seed of it."""
    columns = [table[name].tolist() for name in ("arm", "n", "training_seed") if table]
    keys = zip(*columns, strict=True)
    episodes = changes.pop("episodes", 4000)
    given = {
        "title": "Hunt sheep",
        "metric": "share of the sheep killed",
        "table": table,
        "runs": [run_info(*key, episodes) for key in dict.fromkeys(keys)],
        "protocol": {"bridge": "blockworld 1.0", "budget": 500_000, "sizes": [16, 1024]},
        "versions": {"python": "3.11", "cpus": 2},
        "command": "gamut sweep --config configs/sweeps/x.yaml",
        "arms": {"random": "nested random subsets", "prefix": "the first values of each factor"},
        "sets": [("test", 512, "testdigest", ())],
    }
    return SweepReport(**{**given, **changes})


def run_info(arm, n, seed, episodes):
    """A training run that plays its states in turn."""
    visits = {
        "min": episodes // n,
        "median": episodes / n,
        "max": -(-episodes // n),
        "never": max(0.0, 1 - episodes / n),
    }
    states = {"name": f"train/{n}", "digest": f"{arm}{n}digest{seed}"}
    training = {"env_steps": 500_000, "episodes": episodes, "visits": visits, "seconds": 12.4}
    return RunInfo(arm, n, seed, states, training, f"runs/{seed}")
