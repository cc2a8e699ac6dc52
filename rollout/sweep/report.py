"""The report of a sweep over numbers of training states, ``report.md``; the verdict comes first.

A report of an unfinished sweep lists what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rollout.data.tables import rows_of, write_table
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.files import write_atomically
from rollout.reports import render
from rollout.sweep import report_tables as tables
from rollout.sweep.curves import (
    DETERMINISTIC,
    SAMPLED,
    Point,
    by_arm,
    contrasts,
    curves,
    worst_cases,
)
from rollout.sweep.decomposition import Decomposition, adjusted_differences
from rollout.sweep.report_tables import Figures, digits_for
from rollout.sweep.summary import SweepReport

_FEW_SEEDS = 5
_ESTIMAND = (
    "training again with other seeds on other training states, new held-out states; for all "
    "tables, unless a row says otherwise"
)


def publish(folder: Path | str, data: SweepReport) -> list[Path]:
    """Writes ``results.parquet``, ``generalization.png``, ``.svg`` and ``report.md``.

    Without any result, no figure is drawn.

    Args:
        folder: an existing folder.
        data: contents of the report.

    Returns:
        the paths of the files.

    Raises:
        DatasetError: the table is not a table of sweep results.
        OSError: a file cannot be written.
    """
    folder = Path(folder)
    results = folder / "results.parquet"
    about = {"title": data.title, "metric": data.metric, "command": data.command}
    write_table(results, data.table, about, docs=COLUMN_DOCS)
    pictures: list[Path] = []
    if data.points:
        from rollout.sweep.figure import draw  # noqa: PLC0415 - matplotlib is slow to load

        pictures += draw(
            data.points,
            folder / "generalization",
            title=data.title,
            subtitle=subtitle(data),
            metric_label=data.metric,
            base_arm=data.base,
            budgets=data.budgets(),
            parts=data.parts,
            same=data.same_runs,
        )
    report = folder / "report.md"
    write_report(report, data)
    return [results, *pictures, report]


def write_report(path: Path | str, data: SweepReport) -> None:
    """Writes the report and replaces an existing one.

    Raises:
        DatasetError: the table is not a table of sweep results.
        OSError: it cannot be written.
    """
    write_atomically(Path(path), _report(data, Figures(digits_for(data.points))))


def _report(data: SweepReport, figures: Figures) -> str:
    """Returns the text; tables are made in its order, which numbers the reasons of figures."""
    other = DETERMINISTIC if data.actions == SAMPLED else SAMPLED
    again = curves(data.table, actions=other, intervals=data.intervals)
    base, actions, intervals = data.base, data.actions, data.intervals
    compared = contrasts(data.table, base=base, actions=actions, intervals=intervals)
    adjusted = adjusted_differences(data.table, base=base, actions=actions, intervals=intervals)
    return render(
        "sweep",
        data=data,
        verdict=verdict(data),
        other=other,
        scores=list(tables.score_tables(data, figures)),
        parts=tables.parts_table(data.parts, figures, data.same_runs),
        compared=tables.contrast_table(compared, adjusted, figures),
        again=tables.short_tables(_distinct(data, again), figures) if again else "",
        success=tables.success_table(_distinct(data, data.points), figures),
        reasons=figures.reasons,
        limits=_limits(data),
        protocol=tables.mapping_table(("what", "how"), _protocol(data)),
        sets=tables.sets_table(data) if data.sets else "",
        runs=tables.runs_table(data.runs) if data.runs else "",
        missing=[f"{arm}, N = {n:,}, training seed {seed}" for arm, n, seed in data.missing()],
        videos=[f"[{title}]({path})" for title, path in data.videos],
        versions=tables.mapping_table(("what", "version"), data.versions),
        few_seeds=_FEW_SEEDS,
        **_lost(data),
        **_caveats(data),
    )


def verdict(data: SweepReport) -> str:
    """Returns a paragraph on whether the base arm's gap shrinks with N, and what it consists of."""
    parts = [part for part in data.parts if part.arm == data.base]
    missing, unfinished = len(data.missing()), ""
    if missing:
        unfinished = f" **Unfinished:** {missing} of {len(data.planned)} runs are missing."
    if not parts:
        reason = "there is no run yet that was evaluated on training and on held-out states"
        return f"**No verdict:** {reason}.{unfinished}"
    digits = digits_for(data.points)
    sentences = [
        _judged(data, parts, digits),
        *(
            f"With N = {part.n:,} training states, {data.metric} on the training states minus "
            f"that on held-out states is {_consists(part, digits)}."
            for part in (parts if len(parts) < 2 else (parts[0], parts[-1]))
        ),
    ]
    points = [p for p in data.points if p.arm == data.base and TEST in p.scores]
    scores = [point.scores[TEST].text(digits) for point in points]
    if len(scores) > 1:
        sentences.append(f"On held-out states the score goes from {scores[0]} to {scores[-1]}.")
    return " ".join(sentences) + unfinished


def _distinct(data: SweepReport, points: Sequence[Point]) -> list[Point]:
    """Returns the points of which no larger N has the same runs."""
    return [point for point in points if (point.arm, point.n) not in data.same_runs]


def _judged(data: SweepReport, parts: Sequence[Decomposition], digits: int) -> str:
    """Returns a sentence on the adjusted gap: that of the smallest N against the largest N."""
    first, last = parts[0], parts[-1]
    if (first.arm, first.n) in data.same_runs:
        return "**No verdict:** the runs of all N are the same, none has used up its states."
    if first.change is None:
        return "**No verdict:** there is one number of training states only."
    change = first.change
    if change.low is None or change.high is None:
        return f"**No verdict:** the gap has no interval ({change.refused})."
    grows, by = change.high < 0, change
    if grows:
        by = replace(change, point=-change.point, low=-change.high, high=-change.low)
    adjusted = ", adjusted for the ease of the training states," if first.ease else ""
    visited = data.budgets().get(last.arm, math.inf)
    seen = f" (a run sees about {visited:,.0f} of them)" if visited < last.n else ""
    seeds = change.counts["seeds"]
    estimate = (
        f"between N = {first.n:,} and N = {last.n:,}{seen} the gap{adjusted} "
        f"{'grows' if grows else 'shrinks'} by {by.text(digits)} ({by.confidence:.0%} "
        f"interval, paired by training seed, {seeds} seeds)."
    )
    if grows:
        return f"**The gap grows with N:** {estimate}"
    if change.low > 0:
        low, high = last.adjusted.low, last.adjusted.high
        closed = low is not None and high is not None and low <= 0 <= high
        at_last = ", and at the largest it cannot be told from zero" if closed else ""
        return f"**The gap shrinks with N{at_last}:** {estimate}"
    return f"**It is not shown that the gap shrinks:** {estimate}"


def _consists(part: Decomposition, digits: int) -> str:
    if part.gain is None or part.ease is None:
        return part.gap.text(digits)
    loss = f" and a loss on held-out states of {part.loss.text(digits)}" if part.loss else ""
    joined = "," if part.loss else " and"
    return (
        f"{part.gap.text(digits)}: ease of these states {part.ease.text(digits)}{joined} a gain on "
        f"its own states of {part.gain.text(digits)}{loss}"
    )


def subtitle(data: SweepReport) -> str:
    """Returns the line below the title of the figure: seeds, states and meaning of the bands."""
    seeds = sorted({len(point.seeds) for point in data.points})
    own = by_arm(data.points).get(data.base) or data.points
    table = data.table
    held_out = np.unique(table["state"][(table["set"] == TEST) & (table["arm"] == own[0].arm)])
    many = " to ".join(str(n) for n in dict.fromkeys([seeds[0], seeds[-1]]))
    return (
        f"{many} training seed{'' if many == '1' else 's'}, {len(held_out):,} held-out states, "
        f"{data.actions} actions; bands: {data.intervals.confidence:.0%} intervals"
    )


def _limits(data: SweepReport) -> list[str]:
    """Returns for every arm the N from which on not every state was visited."""
    lines, within = [], []
    for arm, episodes in data.budgets().items():
        runs = [run for run in data.runs if run.arm == arm]
        beyond = sorted({run.n for run in runs if run.n > episodes})
        if not beyond:
            within.append(arm)
            continue
        never = max(run.training["visits"]["never"] for run in runs if run.n == beyond[-1])
        shared = sorted({run.n for run in runs if "shared" in run.training})
        same = (
            f"The runs with N = {' and '.join(f'{n:,}' for n in shared)} are those with N = "
            f"{beyond[-1]:,} and the same seeds, since their sets begin with the same states."
        )
        differ = (
            "Such N differ in which states are seen, not in how often one comes back: their scores "
            "should agree but for chance."
            if not any("subset" in run.states for run in runs)
            else "Larger sets have other values of the factors, not only more states."
        )
        lines.append(
            f"{arm}: a run plays about {episodes:,.0f} training episodes, fewer than its states "
            f"from N = {beyond[0]:,} on; with N = {beyond[-1]:,}, {never:.1%} of the states are "
            f"never visited. {differ}{f' {same}' if shared else ''}"
        )
    if within:
        lines.append(f"{', '.join(within)}: no run has more states than it plays episodes.")
    return lines


def _protocol(data: SweepReport) -> dict[str, object]:
    methods = sorted({p.gap.method for p in data.points if p.gap is not None})
    bootstrap = data.intervals.method == "percentile"
    resamples = f", {data.intervals.resamples:,} resamples" if bootstrap else ""
    return {
        **data.protocol,
        "metric": data.metric,
        "statistics": f"{'; '.join(methods) or data.intervals.method}{resamples}; "
        f"{data.intervals.confidence:.0%} intervals; the training seed is the replicate",
        "what an interval is about": _ESTIMAND,
        "gap": "score on training states minus score on held-out states, paired by training seed",
        "verdict": "on the change of the adjusted gap from the smallest to the largest N",
    }


def _lost(data: SweepReport) -> dict[str, Any]:
    episodes = rows_of(data.table)
    lost = data.table["end"] == "lost" if episodes else np.zeros(0, bool)
    played = (data.table["attempts"] > 1) & ~lost if episodes else lost
    found = []
    if lost.any():
        worst = worst_cases(data.table, actions=data.actions, bounds=data.intervals.bounds)
        found = [tables.worst_table(worst, digits_for(data.points)), tables.lost_table(data)]
    return {
        "episodes": episodes,
        "lost": int(lost.sum()),
        "again_played": int(played.sum()),
        "lost_tables": found,
    }


def _caveats(data: SweepReport) -> dict[str, Any]:
    points = data.points
    most = max((len(point.seeds) for point in points), default=0)
    return {
        "seeds": most,
        "unfinished": sorted({f"{arm}, N = {n:,}" for arm, n, _ in data.missing()}),
        "fewer": [f"{p.arm}, N = {p.n:,}: {len(p.seeds)}" for p in points if len(p.seeds) < most],
        "designed": sorted({run.arm for run in data.runs if "subset" in run.states}),
        "untrained": any(math.isnan(each) for p in points for each in p.by_seed.get(TRAIN, ())),
    }
