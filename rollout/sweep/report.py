"""The report of a sweep over numbers of training states, ``report.md``; the verdict comes first.

A report of an unfinished sweep lists what is missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rollout.data.tables import rows_of, write_table
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.scoreboard import COLUMN_DOCS
from rollout.files import write_atomically
from rollout.sweep.curves import (
    DETERMINISTIC,
    SAMPLED,
    Point,
    by_arm,
    contrasts,
    curves,
    shrinks,
)
from rollout.sweep.report_tables import (
    Figures,
    contrast_table,
    digits_for,
    lost_table,
    mapping_table,
    runs_table,
    score_tables,
    sets_table,
    short_tables,
    success_table,
)
from rollout.sweep.summary import SweepReport

_FEW_SEEDS = 5


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
        )
    report = folder / "report.md"
    write_report(report, data, picture="generalization" if data.points else "")
    return [results, *pictures, report]


def write_report(path: Path | str, data: SweepReport, *, picture: str = "generalization") -> None:
    """Writes the report and replaces an existing one.

    Args:
        path: the file.
        data: contents of the report.
        picture: name, without suffix, of the PNG and SVG beside the report; empty for none.

    Raises:
        DatasetError: the table is not a table of sweep results.
        OSError: it cannot be written.
    """
    figures = Figures(digits_for(data.points))
    parts = [f"# {data.title}", verdict(data)]
    if picture:
        parts.append(f"[![training and held-out score against N]({picture}.png)]({picture}.svg)")
    parts += _results(data, figures)
    parts += _method(data)
    # Comes last: by now every reason for a missing interval is known.
    parts += _section("Caveats", _bullets(_caveats(data, figures)))
    parts += _section("Versions and machine", mapping_table(("what", "version"), data.versions))
    parts += _section("How to repeat it", f"```\n{data.command}\n```")
    write_atomically(Path(path), "\n\n".join(parts) + "\n")


def verdict(data: SweepReport) -> str:
    """Returns a paragraph on whether the base arm's gap shrinks with N, and by how much."""
    own = [p for p in by_arm(data.points).get(data.base, []) if p.gap is not None]
    unfinished = _unfinished(data)
    if not own:
        reason = "there is no run yet that was evaluated on training and on held-out states"
        return f"**No verdict:** {reason}.{unfinished}"
    digits = digits_for(data.points)
    first, last = own[0], own[-1]
    ends = [first] if first is last else [first, last]
    sentences = [_how_much_higher(point, data.metric, digits) for point in ends]
    return f"{_judged(own)} {' '.join(sentences)}{_test_scores(first, last, digits)}{unfinished}"


def _judged(own: Sequence[Point]) -> str:
    first, last = own[0].gap, own[-1].gap
    assert first is not None
    assert last is not None
    if len(own) < 2:
        return "**No verdict:** there is one number of training states only."
    answer = shrinks(own)
    if answer is None:
        return f"**No verdict:** a gap has no interval ({first.refused or last.refused})."
    share = f"{first.confidence:.0%}"
    if answer:
        zero = last.low is not None and last.high is not None and last.low <= 0 <= last.high
        closed = ", where it cannot be told from zero" if zero else ""
        return (
            f"**The gap shrinks** from the smallest to the largest N{closed}: their {share} "
            f"intervals do not overlap."
        )
    if first.overlaps(last):
        return (
            f"**It is not shown that the gap shrinks:** the {share} intervals of the smallest and "
            f"the largest N overlap."
        )
    return f"**The gap grows** with N: the {share} intervals do not overlap."


def _how_much_higher(point: Point, metric: str, digits: int) -> str:
    assert point.gap is not None
    return (
        f"With N = {point.n:,} training states, {metric} on the training states minus that on "
        f"held-out states is {point.gap.text(digits)}."
    )


def _test_scores(first: Point, last: Point, digits: int) -> str:
    if first is last or TEST not in first.scores or TEST not in last.scores:
        return ""
    before, after = (point.scores[TEST].text(digits) for point in (first, last))
    return f" On held-out states the score goes from {before} to {after}."


def _unfinished(data: SweepReport) -> str:
    missing = data.missing()
    if not missing:
        return ""
    return f" **Unfinished:** {len(missing)} of {len(data.planned)} runs are missing."


def subtitle(data: SweepReport) -> str:
    """Returns the line below the title of the figure: seeds, states and meaning of the bands."""
    own = by_arm(data.points).get(data.base) or data.points
    seeds = sorted({len(point.seeds) for point in own})
    table = data.table
    held_out = np.unique(table["state"][(table["set"] == TEST) & (table["arm"] == own[0].arm)])
    many = " to ".join(str(n) for n in dict.fromkeys([seeds[0], seeds[-1]]))
    return (
        f"{many} training seed{'' if many == '1' else 's'}, {len(held_out):,} held-out states, "
        f"{data.actions} actions; bands: {data.intervals.confidence:.0%} intervals"
    )


def _section(title: str, text: str) -> list[str]:
    return [f"## {title}", text] if text else []


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _results(data: SweepReport, figures: Figures) -> list[str]:
    parts = _section(f"Scores ({data.actions} actions)", score_tables(data, figures))
    compared = contrasts(data.table, base=data.base, actions=data.actions, intervals=data.intervals)
    parts += _section("Which arms change the gap", contrast_table(compared, figures))
    other = DETERMINISTIC if data.actions == SAMPLED else SAMPLED
    again = curves(data.table, actions=other, intervals=data.intervals)
    if again:
        parts += _section(f"The same with {other} actions", short_tables(again, figures))
    parts += _section("Success rates", success_table(data.points, figures))
    return parts


def _method(data: SweepReport) -> list[str]:
    parts = _section("Where a larger N means nothing more", _bullets(_limits(data)))
    parts += _section("Protocol", mapping_table(("what", "how"), _protocol(data)))
    parts += _section("Sets of states", sets_table(data) if data.sets else "")
    lost = lost_table(data)
    parts += _section("Lost episodes", _lost_words(data) + (f"\n\n{lost}" if lost else ""))
    parts += _section("Training runs", runs_table(data.runs) if data.runs else "")
    missing = [f"{arm}, N = {n:,}, training seed {seed}" for arm, n, seed in data.missing()]
    parts += _section("Missing runs", _bullets(missing))
    videos = [f"[{title}]({path})" for title, path in data.videos]
    parts += _section("Videos", _bullets(videos))
    return parts


def _limits(data: SweepReport) -> list[str]:
    """For every arm, the N from which on not every state was visited."""
    lines, within = [], []
    for arm, episodes in data.budgets().items():
        runs = [run for run in data.runs if run.arm == arm]
        beyond = sorted({run.n for run in runs if run.n > episodes})
        if not beyond:
            within.append(arm)
            continue
        never = max(run.training["visits"]["never"] for run in runs if run.n == beyond[-1])
        lines.append(
            f"{arm}: a run plays about {episodes:,.0f} training episodes, fewer than its states "
            f"from N = {beyond[0]:,} on; with N = {beyond[-1]:,}, {never:.1%} of the states are "
            f"never visited. Such N differ in which states are seen, not in how often one comes "
            f"back: their scores should agree but for chance."
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
        "gap": "score on training states minus score on held-out states, paired by training seed",
    }


def _lost_words(data: SweepReport) -> str:
    rows = rows_of(data.table)
    if not rows:
        return "Nothing has been evaluated yet."
    lost = int(np.count_nonzero(data.table["end"] == "lost"))
    again = int(np.count_nonzero((data.table["attempts"] > 1) & (data.table["end"] != "lost")))
    return (
        f"{lost:,} of {rows:,} evaluated episodes were lost for good and have no score; "
        f"{again:,} more were lost and then played to their end."
    )


def _caveats(data: SweepReport, figures: Figures) -> list[str]:
    points = data.points
    lines = [f"†{i}: no interval: {why}." for i, why in enumerate(figures.reasons, 1)]
    most = max((len(point.seeds) for point in points), default=0)
    if 1 < most < _FEW_SEEDS:
        lines.append(
            f"There are {most} training seeds; {_FEW_SEEDS} or more would give narrower and more "
            f"trustworthy intervals (`docs/statistics.md`)."
        )
    uneven = [
        f"{p.arm}, N = {p.n:,}: {len(p.seeds)} of {most}" for p in points if len(p.seeds) < most
    ]
    if uneven:
        lines.append(f"Not all figures rest on the same number of seeds ({'; '.join(uneven)}).")
    if any(point.lost for point in points):
        lines.append(
            "Lost episodes are left out of the scores. If games are lost more often where a "
            "player does badly, the scores are too high."
        )
    if any(point.success for point in points):
        lines.append(
            "The intervals of success rates are Wilson's over all episodes of a set: they hold for "
            "these players, and say nothing about another training seed."
        )
    if data.missing():
        lines.append("The sweep is unfinished; figures will change.")
    if any(math.isnan(each) for p in points for each in p.by_seed.get(TRAIN, ())):
        lines.append("Some seeds have no result on their training states and are not in the gap.")
    lines.append(
        "An interval belongs to one figure. Among many figures some intervals miss the true value."
    )
    return lines
