"""The figure of a sweep: training and held-out score over the number of training states.

Each arm with several N has a panel with the score on the run's own training states and on unseen
states, and below it the gap between the two. N has a logarithmic axis, as in MCU, Figure 7. The
base arm is repeated in grey in the other panels. Arms with a single N are rows of one panel at the
bottom. Dots are single training seeds; a hollow marker has no interval. The colours of Okabe and
Ito (2008) are safe for colour-blind readers, and line styles differ too, for printing in grey.

The same points give the same bytes with the same version of matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import offset_copy

from rollout.evaluate.legs import TEST, TRAIN
from rollout.files import replacing
from rollout.sweep.curves import FULL, SET_NAMES, Point, by_arm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rollout.evaluate.statistics import Estimate
    from rollout.sweep.decomposition import Decomposition

_P = TypeVar("_P", "Point", "Decomposition")

STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "figure.titlesize": 12.0,
    "figure.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.07,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.minor.bottom": False,
    "legend.borderpad": 0.2,
    "legend.frameon": False,
    "legend.labelspacing": 0.4,
    "legend.fontsize": 8.5,
    "legend.title_fontsize": 8.5,
    "legend.handlelength": 3.2,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # keeps text as text: searchable, and the file is small
    "svg.hashsalt": "gamut",  # otherwise the names of clip paths differ between runs
    "path.simplify": False,
}
"""Settings of matplotlib for the figure."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Those of Okabe and Ito, in the order in which they are used."""

_COLUMNS = 3  # maximum number of panels side by side
_WIDE, _NARROW, _HIGH, _ROW = 7.0, 3.9, 5.0, 0.27  # inches
_GREY, _SHADE = "#9a9a9a", "#f0ede4"
_LINE: dict[str, Any] = {"lw": 1.7, "ms": 5.1}
_GAP = {**_LINE, "color": "#333333", "marker": "o"}
_ADJUSTED = {**_LINE, "color": "#7B3294", "marker": "D", "ms": 4.2, "ls": (0, (4.5, 1.8))}
_LOOKS: dict[str, dict[str, Any]] = {
    TRAIN: {**_LINE, "color": COLOURS[0], "marker": "o"},
    TEST: {**_LINE, "color": COLOURS[1], "marker": "s", "ls": (0, (4.5, 1.8))},
    # Most states are held out, so the two curves nearly coincide: this one is thinner.
    FULL: {"color": COLOURS[2], "marker": "D", "lw": 1.2, "ms": 3.6, "ls": (0, (1.2, 1.2))},
}
_FURTHER = tuple(zip(COLOURS[3:], "^vPX", strict=True))
_SEED: dict[str, Any] = {"marker": ".", "ls": "none", "mew": 0, "alpha": 0.55}


def draw(
    points: Sequence[Point],
    path_stem: Path | str,
    *,
    title: str,
    metric_label: str,
    subtitle: str = "",
    base_arm: str | None = None,
    budgets: Mapping[str, float] | None = None,
    parts: Sequence[Decomposition] = (),
    same: Collection[tuple[str, int]] = (),
) -> tuple[Path, Path]:
    """Draws the figure and returns the paths of the PNG and the SVG.

    Args:
        points: the results; at least one.
        path_stem: path of the files, without suffix.
        title: title of the figure.
        metric_label: name of the score, on the axis.
        subtitle: line below the title.
        base_arm: the arm that is shown first, and in grey in other panels; by default the first.
        budgets: number of training episodes per run, by arm; where N is larger, not every state was
            visited, and the panel says so.
        parts: the parts of the gaps; where there was cross-play, the adjusted gap is drawn too.
        same: arm and N whose runs are those of a larger N; those of an arm are drawn once.

    Raises:
        ValueError: there are no points.
        OSError: a file cannot be written.
    """
    if not points:
        raise ValueError("expected at least one point; there is nothing to draw")
    once = dict(sorted(same, reverse=True))  # of an arm the last, its smallest N, stays
    points, parts = _up_to(points, once), _up_to(parts, once)
    arms = by_arm(points)
    base = base_arm if base_arm in arms else next(iter(arms))
    panels = {base: arms[base]}
    panels |= {arm: own for arm, own in arms.items() if len(own) > 1}
    single = [own[0] for arm, own in arms.items() if arm not in panels]
    beyond = {a: e for a, e in (budgets or {}).items() if a in panels and arms[a][-1].n > e}
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        # One row per arm with a single N, and one row of the base arm for each of these N.
        rows = len(single) + len({point.n for point in single})
        heights = [0.6 + math.ceil(len(panels) / _COLUMNS) * _HIGH]
        heights += [(rows + 3.5) * _ROW] if single else []
        width = _WIDE if len(panels) == 1 else min(len(panels), _COLUMNS) * _NARROW
        figure = Figure(figsize=(width, 0.3 + sum(heights)), layout="constrained")
        FigureCanvasAgg(figure)
        looks = _looks(points)
        adjusted = [part for part in parts if part.ease is not None and part.arm in panels]
        compared = base if len(panels) > 1 else ""
        entries = list(_entries(points, looks, compared, shaded=beyond, adjusted=adjusted))
        figure.suptitle(title, x=0.013, ha="left")
        # The legend is placed outside the axes, below the title.
        sheets: Any = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        _write_legend(sheets[0], width, subtitle, entries)
        _draw_panels(sheets[0], panels, looks, metric_label, beyond, adjusted, once)
        if single:
            _draw_forest(sheets[1], single, panels[base])
        return save(figure, Path(path_stem))


def _up_to(found: Sequence[_P], largest: Mapping[str, int]) -> list[_P]:
    """Returns the points or parts whose N is not above the largest of their arm, if it has one."""
    return [each for each in found if each.n <= largest.get(each.arm, each.n)]


def _looks(points: Sequence[Point]) -> dict[str, dict[str, Any]]:
    """Returns the style of each set that has results, in the order of the legend."""
    names = list(dict.fromkeys(name for point in points for name in point.scores))
    found = {n: {**look, "label": SET_NAMES[n]} for n, look in _LOOKS.items() if n in names}
    for i, name in enumerate(name for name in names if name not in _LOOKS):
        colour, marker = _FURTHER[i % len(_FURTHER)]
        look = {"color": colour, "marker": marker, "ls": "-.", "lw": 1.3, "ms": 3.9}
        found[name] = {**look, "label": name.replace("/", ": ")}
    return found


def _entries(
    points: Sequence[Point],
    looks: Mapping[str, Mapping[str, Any]],
    compared: str,
    *,
    shaded: Mapping[str, float],
    adjusted: Sequence[Decomposition],
) -> Iterator[Line2D | Patch]:
    """Yields the entries of the legend."""
    for look in looks.values():
        yield Line2D([], [], **look)
    if adjusted:
        yield Line2D([], [], **_ADJUSTED, label="gap, adjusted for ease")
    yield Line2D([], [], color=_GREY, label="one training seed", **{**_SEED, "ms": 7, "alpha": 1})
    if compared:
        yield Line2D([], [], color=_GREY, lw=1.1, label=f"{compared}, to compare")
    shown = [e for point in points for e in (*point.scores.values(), point.gap)]
    if any(e is not None and e.low is None for e in shown):
        hollow: dict[str, Any] = {"marker": "o", "mfc": "white", "ms": 5, "ls": "none"}
        yield Line2D([], [], color="#777777", label="no interval: see report", **hollow)
    if shaded:
        yield Patch(facecolor=_SHADE, label="N > episodes trained")


def _write_legend(
    sheet: SubFigure, width: float, subtitle: str, entries: Sequence[Line2D | Patch]
) -> None:
    widest = 0.8 + 0.065 * max(len(str(entry.get_label())) for entry in entries)  # inches, roughly
    legend = sheet.legend(
        handles=list(entries),
        loc="outside upper left",
        ncols=max(1, min(len(entries), int(width / widest))),
        title=subtitle,
        alignment="left",
    )
    legend.get_title().set_color("#555555")


def _draw_panels(
    sheet: SubFigure,
    panels: Mapping[str, Sequence[Point]],
    looks: Mapping[str, Mapping[str, Any]],
    metric_label: str,
    beyond: Mapping[str, float],
    adjusted: Sequence[Decomposition],
    once: Mapping[str, int],
) -> None:
    columns = min(len(panels), _COLUMNS)
    blocks = math.ceil(len(panels) / columns)
    grid = sheet.add_gridspec(2 * blocks, columns, height_ratios=[2, 1] * blocks)
    base, *_ = panels.values()
    score: Axes | None = None
    gap: Axes | None = None
    for i, (arm, own) in enumerate(panels.items()):
        row, column = divmod(i, columns)
        score = sheet.add_subplot(grid[2 * row, column], sharey=score)
        gap = sheet.add_subplot(grid[2 * row + 1, column], sharex=score, sharey=gap)
        if own is not base:
            for axes, key in ((score, TRAIN), (score, TEST), (gap, "gap")):
                _draw_base(axes, base, key)
        for name, look in looks.items():
            _draw_curve(score, own, name, look)
        _draw_curve(gap, own, "gap", _GAP)
        _draw_adjusted(gap, [part for part in adjusted if part.arm == arm])
        gap.axhline(0, color="#000000", linewidth=0.9, zorder=1.5)
        _scale_n(score, gap, sorted({point.n for point in (*own, *base)}), once.get(arm))
        if arm in beyond:
            _mark_budget(score, gap, beyond[arm])
        if len(panels) > 1:
            score.set_title(arm)
        for axes, name in ((score, metric_label), (gap, "gap: training\nminus held-out")):
            axes.tick_params(labelleft=column == 0)
            axes.set_ylabel(name if column == 0 else "")
    assert score is not None
    low, high = score.get_ylim()
    if 0 < low < 0.25 * high:  # start at zero where that costs little space
        score.set_ylim(bottom=0)
    sheet.align_ylabels()


def _scale_n(score: Axes, gap: Axes, ns: Sequence[int], once: int | None) -> None:
    margin = max(1.3, (ns[-1] / ns[0]) ** 0.05)
    score.set_xscale("log")
    score.set_xlim(ns[0] / margin, ns[-1] * margin)
    score.tick_params(labelbottom=False)
    labels = [f"≥ {n:,}" if n == once else f"{n:,}" for n in ns]
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
    crowded = sum(len(label) + 2 for label in labels) > 44
    gap.set_xticks(ns, labels, **(turned if crowded else {}))
    gap.set_xlabel("number of training states N")


def _estimate(point: Point, key: str) -> Estimate | None:
    return point.gap if key == "gap" else point.scores.get(key)


def _draw_curve(axes: Axes, points: Sequence[Point], key: str, look: Mapping[str, Any]) -> None:
    found = [(point, e) for point in points if (e := _estimate(point, key)) is not None]
    if not found:
        return
    ns = np.array([point.n for point, _ in found], float)
    middle, low, high = (
        np.array([getattr(e, end) for _, e in found], float) for end in ("point", "low", "high")
    )
    axes.errorbar(ns, middle, (middle - low, high - middle), elinewidth=1.0, zorder=3, **look)
    hollow = {**look, "mfc": "white", "ls": "none", "zorder": 4}
    axes.plot(ns[np.isnan(low)], middle[np.isnan(low)], **hollow)
    if key == FULL:
        return
    axes.fill_between(ns, low, high, color=look["color"], alpha=0.15, linewidth=0, zorder=2)
    shift = -5.5 if key == TRAIN else 5.5  # points, so that markers do not cover each other
    figure = axes.get_figure(root=True)
    beside = offset_copy(axes.transData, figure, x=shift, units="points")
    for point, _ in found:
        seeds = point.by_seed.get(key, ())
        dots = {**_SEED, "ms": 5, "color": look["color"], "zorder": 2.5, "transform": beside}
        axes.plot([point.n] * len(seeds), seeds, **dots)


def _draw_adjusted(axes: Axes, parts: Sequence[Decomposition]) -> None:
    if not parts:
        return
    ns = np.array([part.n for part in parts], float)
    middle, low, high = (
        np.array([getattr(part.adjusted, end) for part in parts], float)
        for end in ("point", "low", "high")
    )
    beside = offset_copy(axes.transData, axes.get_figure(root=True), x=-4, units="points")
    look = {**_ADJUSTED, "elinewidth": 1.6, "zorder": 3.5, "transform": beside}
    axes.errorbar(ns, middle, (middle - low, high - middle), **look)
    # What is drawn beside its place does not count for the limits of the axis.
    ends = np.concatenate((low, high))
    axes.update_datalim([(ns[0], end) for end in ends[np.isfinite(ends)]])
    axes.autoscale_view(scalex=False)


def _draw_base(axes: Axes, base: Sequence[Point], key: str) -> None:
    """Draws the base arm behind the curves of another arm."""
    found = [(point.n, e.point) for point in base if (e := _estimate(point, key)) is not None]
    if found:
        ns, values = zip(*found, strict=True)
        dashes = _LOOKS.get(key, {}).get("ls", "-")
        axes.plot(ns, values, color=_GREY, linestyle=dashes, linewidth=1.1, zorder=1.8)


def _mark_budget(score: Axes, gap: Axes, episodes: float) -> None:
    """Shades the region with more states than the run had episodes to visit them."""
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


def _draw_forest(sheet: SubFigure, single: Sequence[Point], base: Sequence[Point]) -> None:
    """Draws the gap of each arm with a single N below that of the base arm at the same N."""
    axes: Axes = sheet.subplots()
    names: list[str] = []
    ns = sorted({point.n for point in single})
    for n in ns:
        for own in ([p for p in base if p.n == n], [p for p in single if p.n == n]):
            names += [p.arm for p in own] or [base[0].arm]
            for y, point in enumerate(own, len(names) - len(own)):
                _draw_row(axes, y, point, _GREY if own[0].arm == base[0].arm else _GAP["color"])
    axes.axvline(0, color="#000000", linewidth=0.9, zorder=1.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.set_title(f"what the gap depends on, N = {' and '.join(f'{n:,}' for n in ns)}")
    axes.set_xlabel("gap (training minus held-out)")


def _draw_row(axes: Axes, y: int, point: Point, colour: str) -> None:
    gap = point.gap
    if gap is None:
        return
    if gap.low is not None and gap.high is not None:
        axes.hlines(y, gap.low, gap.high, color=colour, linewidth=1.6, zorder=2)
        if colour == _GREY:
            axes.axvspan(gap.low, gap.high, color=colour, alpha=0.13, linewidth=0, zorder=0.5)
    seeds = point.by_seed.get("gap", ())
    axes.plot(seeds, [y] * len(seeds), color=colour, zorder=2.5, **{**_SEED, "ms": 7})
    face = "white" if gap.low is None else colour
    axes.plot([gap.point], [y], "o", color=colour, markerfacecolor=face, markersize=5.5, zorder=3)


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Writes the PNG and the SVG atomically and returns their paths."""
    files = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg"))
    for path, about in zip(files, ({"Software": None}, {"Date": None}), strict=True):
        with replacing(path, fsync=False) as temporary:
            figure.savefig(temporary, format=path.suffix[1:], metadata=about)
        figure.set_layout_engine("none")  # both files have the layout of the first
    return files
