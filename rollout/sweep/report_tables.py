"""The tables of a report, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.statistics import Estimate
from rollout.reports import table
from rollout.sweep.curves import SET_NAMES, Contrast, Point, by_arm
from rollout.sweep.decomposition import Decomposition
from rollout.sweep.summary import RunInfo, SweepReport

_DIGEST = 12  # characters of a digest that tables show
_MOST_LOST = 50

_table = partial(table, align=True)


class Figures:
    """Formats estimates for tables, and collects reasons for missing intervals.

    Attributes:
        reasons: reasons for missing intervals, in order of appearance; an estimate without interval
            carries the number of its reason.

    Args:
        digits: number of decimal places.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.reasons: list[str] = []

    def __call__(self, estimate: Estimate | None) -> str:
        """Returns ``0.53 [0.49, 0.58]``, or ``0.53 †1`` if there is no interval."""
        if estimate is None:
            return "-"
        if not estimate.refused:
            return estimate.text(self.digits)
        if estimate.refused not in self.reasons:
            self.reasons.append(estimate.refused)
        point = "-" if math.isnan(estimate.point) else f"{estimate.point:.{self.digits}f}"
        return f"{point} †{self.reasons.index(estimate.refused) + 1}"


def digits_for(points: Sequence[Point]) -> int:
    """Returns the number of decimal places that the scores of a sweep need."""
    scores = [abs(e.point) for p in points for e in p.scores.values() if math.isfinite(e.point)]
    largest = max(scores, default=0.0)
    return 3 if largest < 10 else 2 if largest < 100 else 1


def score_tables(data: SweepReport, figures: Figures) -> Iterator[tuple[str, str, str]]:
    """Yields heading, description and table of the training runs and their scores.

    Every arm with several N has a table; the arms with one N share one.
    """
    arms = by_arm(data.points)
    single = [own[0] for arm, own in arms.items() if len(own) == 1 and arm != data.base]
    for arm, own in arms.items():
        if len(own) > 1 or arm == data.base:
            header, *rows = _scores(data, own, figures)
            yield arm, data.arms.get(arm, ""), _table(header[1:], [row[1:] for row in rows])
    if single:
        about = [f"- {p.arm}: {data.arms[p.arm]}" for p in single if data.arms.get(p.arm)]
        header, *rows = _scores(data, single, figures)
        yield "Arms with one N", "\n".join(about), _table(header, rows)


def _scores(data: SweepReport, points: Sequence[Point], figures: Figures) -> list[list[str]]:
    """Returns the header of a table of training runs and scores, and a row for every point."""
    names, cells = _score_columns(points, figures)
    for place, point in enumerate(points):
        cells[place] = _same(data.same_runs, point, len(names)) or cells[place]
    header = [
        *("arm", "N", "training set", "env steps", "episodes"),
        *("visits per state: least / median / most", "never visited", *names),
    ]
    rows = zip(points, cells, strict=True)
    return [header, *([p.arm, f"{p.n:,}", *_training(data, p), *scores] for p, scores in rows)]


def short_tables(points: Sequence[Point], figures: Figures, single: Collection[str] = ()) -> str:
    """Returns one table of all arms, with the scores only.

    Args:
        points: the results.
        figures: formats estimates.
        single: arms of which all results are of one policy.
    """
    names, cells = _score_columns(points, figures, single)
    rows = [[p.arm, f"{p.n:,}", *scores] for p, scores in zip(points, cells, strict=True)]
    return _table(["arm", "N", *names], rows)


def _score_columns(
    points: Sequence[Point], figures: Figures, single: Collection[str] = ()
) -> tuple[list[str], list[list[str]]]:
    """Returns the names of the columns of scores, and their cells for every point."""
    found = dict.fromkeys(name for point in points for name in point.scores)
    others = [name for name in found if name not in (TRAIN, TEST)]
    cells = [
        [
            *(figures(point.scores.get(name)) for name in (TRAIN, TEST)),
            figures(point.gap),
            *(figures(point.scores.get(name)) for name in others),
            estimand(len(point.seeds), one_policy=point.arm in single),
        ]
        for point in points
    ]
    names = [*map(_set_name, (TRAIN, TEST)), "gap", *map(_set_name, others), "interval about"]
    return names, cells


def success_table(points: Sequence[Point], figures: Figures) -> str:
    """Returns the success rates; empty if the task does not decide success."""
    decided = list(dict.fromkeys(name for point in points for name in point.success))
    rows = [
        [
            *(p.arm, f"{p.n:,}", *(figures(p.success.get(name)) for name in decided)),
            estimand(len(p.seeds)),
        ]
        for p in points
        if p.success
    ]
    return _table(["arm", "N", *map(_set_name, decided), "interval about"], rows) if rows else ""


def parts_table(
    parts: Sequence[Decomposition], figures: Figures, same: Mapping[tuple[str, int], int]
) -> str:
    """Returns the gap of every arm and N split into its parts; empty if there is no gap.

    Args:
        parts: the parts.
        figures: formats estimates.
        same: see ``SweepReport.same_runs``.
    """
    if not parts:
        return ""
    header = [
        *("arm", "N", "gap", "ease of the training states", "gain on own states"),
        *("loss on held-out states", "adjusted gap", "change to the largest N", "interval about"),
    ]
    rows = [
        [
            *(p.arm, f"{p.n:,}"),
            *(
                _same(same, p, len(header) - 2)
                or [
                    *map(figures, (p.gap, p.ease, p.gain, p.loss, p.adjusted, p.change)),
                    estimand(len(p.seeds)),
                ]
            ),
        ]
        for p in parts
    ]
    return _table(header, rows)


def _same(
    same: Mapping[tuple[str, int], int], row: Point | Decomposition, columns: int
) -> list[str]:
    """Returns the cells of an N whose runs are those of a larger N; empty for other N."""
    larger = same.get((row.arm, row.n))
    return [*["same runs"] * (columns - 1), f"see N = {larger:,}"] if larger else []


def estimand(seeds: int, *, one_policy: bool = False) -> str:
    """Returns what the intervals of a row are about, and how many runs they rest on."""
    if one_policy:
        return f"the same policy on other states; {seeds} sets of training states seen"
    return f"other runs on other states; {seeds} run{'s' if seeds > 1 else ''} seen"


def contrast_table(
    contrasts: Sequence[Contrast],
    adjusted: Mapping[tuple[str, int], Estimate],
    figures: Figures,
) -> str:
    """Returns the comparisons with the base arm; empty if there is no other arm.

    Args:
        contrasts: the comparisons.
        adjusted: differences of the adjusted gaps, by arm and N.
        figures: formats estimates.
    """
    if not contrasts:
        return ""
    base = contrasts[0].base
    header = [
        *("N", "arm", "gap", f"gap of {base}", "difference of the gaps"),
        *("difference of the adjusted gaps", f"held-out score minus that of {base}"),
    ]
    rows = [
        [
            f"{c.n:,}",
            c.arm,
            figures(c.gap),
            figures(c.base_gap),
            figures(c.gap_difference),
            figures(adjusted.get((c.arm, c.n))),
            figures(c.test_difference) + ("" if c.same_test_states else " (other states)"),
        ]
        for c in sorted(contrasts, key=lambda c: c.n)
    ]
    return (
        f"{_table(header, rows)}\n\nDifferences are paired by training seed and position in "
        f"the set, over the episodes that have a result in both arms, so over the seeds of both. "
        f"Those of the adjusted gaps are paired by training seed and need cross-play."
    )


def runs_table(runs: Sequence[RunInfo]) -> str:
    """Returns a table of all finished training runs."""
    header = [
        *("arm", "N", "training seed", "training set", "digest of the set", "env steps"),
        *("episodes", "seconds", "checkpoint"),
    ]
    rows = [
        [
            run.arm,
            f"{run.n:,}",
            run.training_seed,
            run.states["name"],
            f"`{run.states['digest']}`",
            f"{run.training['env_steps']:,}",
            f"{run.training['episodes']:,}",
            f"{run.training['seconds']:,.0f}",
            f"`{run.checkpoint}`",
        ]
        for run in runs
    ]
    return _table(header, rows)


def sets_table(data: SweepReport) -> str:
    """Returns a table of the state sets on which runs were evaluated."""
    rows = [
        [_set_name(name), f"{size:,}", f"`{digest}`", ", ".join(arms) or "all"]
        for name, size, digest, arms in data.sets
    ]
    return _table(["evaluated on", "states", "digest", "arms"], rows)


def mapping_table(header: tuple[str, str], values: Mapping[str, object]) -> str:
    """Returns a table of names and values."""
    return _table(header, [(name, _plain(value)) for name, value in values.items()])


def lost_table(data: SweepReport) -> str:
    """Returns the first abandoned episodes."""
    rows = np.flatnonzero(data.table["end"] == "lost")
    names = [
        *("arm", "n", "training_seed", "set", "actions", "state", "repeat", "episode_seed"),
        "attempts",
    ]
    shown = [[data.table[name][row] for name in names] for row in rows[:_MOST_LOST]]
    text = _table([name.replace("_", " ") for name in names], shown)
    more = len(rows) - len(shown)
    return f"{text}\n\nand {more:,} more, which `results.parquet` names" if more else text


def worst_table(
    worst: Sequence[tuple[str, int, Mapping[str, tuple[float, float]]]], digits: int
) -> str:
    """Returns the scores if all lost episodes had the least score, and if all had the greatest."""
    names = list(dict.fromkeys(name for _, _, ends in worst for name in ends))
    rows = [
        [arm, f"{n:,}", *(_ends(ends[name], digits) if name in ends else "-" for name in names)]
        for arm, n, ends in worst
    ]
    header = ["arm", "N", *(f"{_set_name(name)}, least to greatest" for name in names)]
    return _table(header, rows) if rows else ""


def _ends(ends: tuple[float, float], digits: int) -> str:
    return f"{ends[0]:.{digits}f} to {ends[1]:.{digits}f}"


def _plain(value: object) -> object:
    """Formats a value for readers."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(_plain(each)) for each in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def _set_name(name: str) -> str:
    return SET_NAMES.get(name, name)


def _training(data: SweepReport, point: Point) -> list[str]:
    """Returns digests, steps, episodes, visits and share never visited of the runs of a point."""
    runs = [run for run in data.runs if (run.arm, run.n) == (point.arm, point.n)]
    if not runs:
        return ["not told"] * 5
    digests = sorted({run.states["digest"] for run in runs})
    more = f" and {len(digests) - 1} more" if len(digests) > 1 else ""
    visits = [run.training["visits"] for run in runs]
    never = float(np.mean([v["never"] for v in visits]))
    middle = np.median([v["median"] for v in visits])
    return [
        f"`{digests[0][:_DIGEST]}`{more}",
        _range([run.training["env_steps"] for run in runs]),
        _range([run.training["episodes"] for run in runs]),
        f"{_count(min(v['min'] for v in visits))} / {_count(middle)} / "
        f"{_count(max(v['max'] for v in visits))}",
        f"{never:.0%}" if never in (0, 1) else f"{100 * never:.2g} %".replace(" ", ""),
    ]


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _count(value: Any) -> str:
    return f"{value:,.1f}".removesuffix(".0")
