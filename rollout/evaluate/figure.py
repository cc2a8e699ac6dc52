"""The picture of a sweep: training and held-out score against the number of training states.

Above, the score on the run's own training states and on states it never saw, with intervals;
below, the gap between the two around a line at zero; N on a logarithmic axis, as in MCU, Figure 7.
Every arm with several N has a panel of its own, where the base arm is shown in grey; arms with a
single N are rows of a panel at the bottom. Dots are single training seeds. A hollow marker has no
interval. Colours are those of Okabe and Ito (2008), which the colour-blind can tell apart, and
lines differ in their dashes too, so that the picture can be printed in grey.

The same points give the same files, byte for byte, with one version of matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from rollout.evaluate.curves import Point, by_arm
from rollout.evaluate.figure_sheet import (
    COLUMNS,
    LEFT,
    STYLE,
    Sheet,
    figure_of,
    is_crowded,
    legend_shape,
    save,
    width_of,
    write_head,
)
from rollout.evaluate.results import FULL, TEST, TRAIN

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rollout.evaluate.statistics import Estimate


@dataclass(frozen=True)
class _Look:
    colour: str
    dashes: tuple[float, tuple[float, ...]] | Literal["-", "-."]
    marker: str
    label: str
    shift: float  # of the seeds' dots, in points, so that nothing covers them
    width: float = 1.7
    quiet: bool = False  # neither band nor dots


_GREY, _GAP, _SHADE = "#9a9a9a", "#333333", "#f0ede4"
_LOOKS = {
    TRAIN: _Look("#0072B2", "-", "o", "training states", -5.5),
    TEST: _Look("#D55E00", (0, (4.5, 1.8)), "s", "held-out states", 5.5),
    # Most of all states are held out: the two curves lie on each other, so this one keeps back.
    FULL: _Look("#009E73", (0, (1.2, 1.2)), "D", "all states", 0.0, 1.2, quiet=True),
}
_FURTHER = (("#CC79A7", "^"), ("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "X"))


def draw(
    points: Sequence[Point],
    path_stem: Path | str,
    *,
    title: str,
    metric_label: str,
    subtitle: str = "",
    base_arm: str | None = None,
    budgets: Mapping[str, float] | None = None,
) -> tuple[Path, Path]:
    """Draws the picture and returns the paths of the PNG and the SVG.

    Args:
        points: what came out; at least one.
        path_stem: the files, without ending.
        title: above the picture.
        metric_label: what a score is, on the axis.
        subtitle: below the title.
        base_arm: the arm shown first, and in grey beside the others; by default the first.
        budgets: arm to the number of episodes that a run of it trained for; where N is larger,
            not every state was visited, and the panel says so.

    Raises:
        ValueError: there are no points.
        OSError: a file cannot be written.
    """
    if not points:
        raise ValueError("expected at least one point; there is nothing to draw")
    arms = by_arm(points)
    base = base_arm if base_arm in arms else next(iter(arms))
    panels = [base, *(arm for arm, own in arms.items() if arm != base and len(own) > 1)]
    single = [own[0] for arm, own in arms.items() if arm not in panels]
    sets = _looks(points)
    compared = base if len(panels) > 1 else None
    beyond = {arm: e for arm, e in (budgets or {}).items() if arm in panels and arms[arm][-1].n > e}
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        refused = _any_refused(points)
        entries = _legend_entries(sets, compared, refused=refused, shaded=bool(beyond))
        rows, columns = legend_shape(entries, len(panels))
        ns = {point.n for arm in panels for point in arms[arm]}
        crowded = is_crowded(sorted(ns), len(panels))
        sheet = Sheet(len(panels), _forest_rows(single), rows, crowded=crowded)
        axes = [sheet.panel(i) for i in range(len(panels))]
        for arm, (score, gap) in zip(panels, axes, strict=True):
            others = arms[base] if arm != base else []
            _draw_panel(score, gap, arms[arm], others, sets, crowded=crowded)
            if arm in beyond:
                _mark_budget(score, gap, beyond[arm])
            if compared is not None:
                score.set_title(arm)
        _share_heights(axes)
        for i, (score, gap) in enumerate(axes):
            _label(score, gap, metric_label, first=i % COLUMNS == 0)
        if single:
            names = max(len(point.arm) for point in (arms[base][0], *single))
            _draw_forest(sheet.forest(names), single, arms[base])
        write_head(sheet, title, subtitle, entries, columns)
        return save(sheet.figure, Path(path_stem))


def _looks(points: Sequence[Point]) -> dict[str, _Look]:
    """How each set that has results is drawn, in the order of the legend."""
    names = list(dict.fromkeys(name for point in points for name in point.scores))
    found = {name: look for name, look in _LOOKS.items() if name in names}
    further = [name for name in names if name not in found]
    for i, name in enumerate(further):
        colour, marker = _FURTHER[i % len(_FURTHER)]
        found[name] = _Look(colour, "-.", marker, name.replace("/", ": "), 5.5, 1.3)
    return found


def _draw_panel(
    score: Axes,
    gap: Axes,
    own: Sequence[Point],
    base: Sequence[Point],
    sets: Mapping[str, _Look],
    *,
    crowded: bool,
) -> None:
    for axes, key in ((score, TRAIN), (score, TEST), (gap, "gap")):
        _ghost(axes, base, key)
    for name, look in sets.items():
        _curve(score, own, name, look)
    _curve(gap, own, "gap", _Look(_GAP, "-", "o", "gap", 5.5))
    gap.axhline(0, color="#000000", linewidth=0.9, zorder=1.5)
    ns = sorted({point.n for point in (*own, *base)})
    for axes in (score, gap):
        axes.set_xscale("log")
        margin = max(1.3, (ns[-1] / ns[0]) ** 0.05)
        axes.set_xlim(ns[0] / margin, ns[-1] * margin)
        axes.xaxis.set_major_locator(FixedLocator(ns))
        axes.xaxis.set_minor_locator(NullLocator())
    score.tick_params(labelbottom=False)
    labels = [f"{n:,}" for n in ns]
    gap.set_xticklabels(labels)
    if crowded:
        gap.set_xticks(ns, labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=7.5)


def _estimate(point: Point, key: str) -> Estimate | None:
    return point.gap if key == "gap" else point.scores.get(key)


def _curve(axes: Axes, points: Sequence[Point], key: str, look: _Look) -> None:
    found = [(point, e) for point in points if (e := _estimate(point, key)) is not None]
    if not found:
        return
    ns = np.array([point.n for point, _ in found], float)
    middle = np.array([e.point for _, e in found])
    low = np.array([np.nan if e.low is None else e.low for _, e in found])
    high = np.array([np.nan if e.high is None else e.high for _, e in found])
    colour = look.colour
    if not look.quiet:
        axes.fill_between(ns, low, high, color=colour, alpha=0.15, linewidth=0, zorder=2)
    axes.vlines(ns, low, high, color=colour, linewidth=1.0, alpha=0.65, zorder=2.2)
    axes.plot(ns, middle, color=colour, linestyle=look.dashes, linewidth=look.width, zorder=3)
    known = ~np.isnan(low)
    size = 3.0 * look.width
    for face, rows in (("white", ~known), (colour, known)):
        style: dict[str, Any] = {
            "markerfacecolor": face,
            "markersize": size,
            "markeredgewidth": 1.1,
        }
        axes.plot(ns[rows], middle[rows], look.marker, color=colour, zorder=4, **style)
    beside = axes.transData + ScaledTranslation(look.shift / 72, 0, figure_of(axes).dpi_scale_trans)
    for point in (point for point, _ in found if not look.quiet):
        seeds = point.by_seed.get(key, ())
        style = {"markersize": 5, "markeredgewidth": 0, "alpha": 0.55, "transform": beside}
        axes.plot([point.n] * len(seeds), seeds, ".", color=colour, zorder=2.5, **style)


def _ghost(axes: Axes, base: Sequence[Point], key: str) -> None:
    """The base arm, behind another arm's curves."""
    found = [(point.n, e.point) for point in base if (e := _estimate(point, key)) is not None]
    if found:
        dashes = _LOOKS[key].dashes if key in _LOOKS else "-"
        ns, values = zip(*found, strict=True)
        axes.plot(ns, values, color=_GREY, linestyle=dashes, linewidth=1.1, zorder=1.8)


def _mark_budget(score: Axes, gap: Axes, episodes: float) -> None:
    """Shades where there are more states than the run had episodes to visit them in."""
    left, right = score.get_xlim()
    begin = max(episodes, left)
    for axes in (score, gap):
        axes.axvspan(begin, right, color=_SHADE, linewidth=0, zorder=0.5)
        axes.axvline(begin, color="#b5ad97", linewidth=0.8, zorder=0.6)
    score.annotate(
        f"{episodes:,.0f} episodes",
        (begin, 1.015),
        xycoords=("data", "axes fraction"),
        ha="right" if begin > (left * right) ** 0.5 else "left",
        va="bottom",
        fontsize=7.5,
        color="#6f6750",
    )


def _share_heights(axes: Sequence[tuple[Axes, Axes]]) -> None:
    """Gives all panels the same scales, and begins scores at zero where that costs little."""
    for part in (0, 1):
        limits = [pair[part].get_ylim() for pair in axes]
        low, high = min(a for a, _ in limits), max(b for _, b in limits)
        if part == 0 and 0 < low < 0.25 * high:
            low = 0.0
        for pair in axes:
            pair[part].set_ylim(low, high)


def _label(score: Axes, gap: Axes, metric_label: str, *, first: bool) -> None:
    gap.set_xlabel("number of training states N")
    if first:
        score.set_ylabel(metric_label)
        gap.set_ylabel("gap: training\nminus held-out")
        for axes in (score, gap):
            axes.yaxis.set_label_coords(-(LEFT - 0.4) / width_of(axes), 0.5)
    else:
        score.tick_params(labelleft=False)
        gap.tick_params(labelleft=False)


def _forest_rows(single: Sequence[Point]) -> int:
    """One row per arm with a single N, and one of the base arm for each N among them."""
    return len(single) + len({point.n for point in single})


def _draw_forest(axes: Axes, single: Sequence[Point], base: Sequence[Point]) -> None:
    """The gap of every arm that has a single N, under that of the base arm with the same N."""
    rows: list[tuple[str, Point | None, str]] = []
    for n in sorted({point.n for point in single}):
        rows.append((base[0].arm, next((p for p in base if p.n == n), None), _GREY))
        rows += [(point.arm, point, _GAP) for point in single if point.n == n]
    for y, (_, point, colour) in enumerate(rows):
        if point is not None and point.gap is not None:
            _forest_row(axes, y, point, point.gap, colour)
    axes.axvline(0, color="#000000", linewidth=0.9, zorder=1.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    ns = " and ".join(f"{n:,}" for n in sorted({point.n for point in single}))
    axes.set_title(f"what the gap depends on, N = {ns}")
    axes.set_xlabel("gap (training minus held-out)")


def _forest_row(axes: Axes, y: int, point: Point, gap: Estimate, colour: str) -> None:
    if gap.low is not None and gap.high is not None:
        axes.hlines(y, gap.low, gap.high, color=colour, linewidth=1.6, zorder=2)
        if colour == _GREY:
            axes.axvspan(gap.low, gap.high, color=colour, alpha=0.13, linewidth=0, zorder=0.5)
    seeds = point.by_seed.get("gap", ())
    axes.plot(seeds, [y] * len(seeds), ".", color=colour, markersize=4.5, alpha=0.5, zorder=2.5)
    face = "white" if gap.low is None else colour
    axes.plot([gap.point], [y], "o", color=colour, markerfacecolor=face, markersize=5.5, zorder=3)


def _any_refused(points: Sequence[Point]) -> bool:
    shown = [e for point in points for e in (*point.scores.values(), point.gap)]
    return any(e is not None and e.low is None for e in shown)


def _legend_entries(
    sets: Mapping[str, _Look], compared: str | None, *, refused: bool, shaded: bool
) -> list[Line2D | Patch]:
    entries: list[Line2D | Patch] = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=look.dashes,
            linewidth=look.width,
            marker=look.marker,
            markersize=3.0 * look.width,
            label=look.label,
        )
        for look in sets.values()
    ]
    dot: dict[str, Any] = {"color": "#777777", "linestyle": "none"}
    entries.append(Line2D([], [], marker=".", markersize=5, label="one training seed", **dot))
    if compared is not None:
        label = f"{compared}, to compare"
        entries.append(Line2D([], [], color=_GREY, linewidth=1.1, label=label))
    if refused:
        hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "markersize": 5}
        entries.append(Line2D([], [], label="no interval: see report", **hollow, **dot))
    if shaded:
        entries.append(Patch(facecolor=_SHADE, label="N > episodes trained"))
    return entries
