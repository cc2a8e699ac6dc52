"""The picture of learning curves: a panel for each figure, a colour for each run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter

from rollout.sweep.figure import COLOURS, STYLE, save
from rollout.sweep.learning import Curve, scored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("-", (0, (4.5, 1.8)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
_LABELS = {
    "return": "return, mean of the newest 100 episodes",
    "success": "success rate of the newest 100 episodes",
    "validation": "score on validation states",
}
_UNITS = ((3 * 3600.0, 3600.0, "h"), (3 * 60.0, 60.0, "min"), (0.0, 1.0, "s"))
"""From how many seconds on wall time has a unit, its length, and its name."""
_FEW = 15  # points of a curve that are marked, as those of validations
_PANEL, _HIGH = 4.6, 3.4  # inches


def draw_curves(
    curves: Sequence[Curve], stem: Path, *, score: float | None = None, confidence: float = 0.95
) -> tuple[Path, Path]:
    """Draws learning curves and returns the paths of the PNG and the SVG.

    Args:
        curves: the curves, at least one; all along steps or all along seconds.
        stem: path of the files, without suffix.
        score: a score that is marked; None for none.
        confidence: of the bands, for the legend.

    Raises:
        OSError: a file cannot be written.
    """
    runs = list(dict.fromkeys(curve.run for curve in curves))
    figures = list(dict.fromkeys(curve.figure for curve in curves))
    looks = {run: _look(number) for number, run in enumerate(runs)}
    scale, label = _scale(curves)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        width = max(5.6, _PANEL * len(figures))
        entries = [Line2D([], [], label=_entry(run, curves), **looks[run]) for run in runs]
        if score is not None:
            dotted: dict[str, Any] = {"color": "#555555", "lw": 0.9, "ls": ":"}
            entries.append(Line2D([], [], label=f"score {score:g}", **dotted))
        widest = 0.8 + 0.07 * max(len(str(entry.get_label())) for entry in entries)
        columns = max(1, min(len(entries), int(width / widest)))
        rows = math.ceil(len(entries) / columns)
        figure = Figure(figsize=(width, _HIGH + 0.4 + 0.2 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        several = any(curve.low is not None for curve in curves)
        legend = figure.legend(
            handles=entries,
            loc="outside upper left",
            ncols=columns,
            alignment="left",
            title=f"interquartile mean over training seeds, with intervals of {confidence:.0%}"
            if several
            else "one training seed each: no intervals",
        )
        legend.get_title().set_color("#555555")
        panels = figure.subplots(1, len(figures), sharex=True, squeeze=False)[0]
        for axes, name in zip(panels, figures, strict=True):
            for curve in curves:
                if curve.figure == name:
                    _draw(axes, curve, scale, looks[curve.run])
            axes.set_title(_LABELS[name])
            axes.set_xlabel(label)
            if curves[0].by == "steps":
                axes.xaxis.set_major_formatter(EngFormatter(sep=""))
            if name == "success":
                axes.set_ylim(-0.02, 1.02)
            if score is not None and name == scored(curves):
                axes.axhline(score, color="#555555", linewidth=0.9, linestyle=":", zorder=1.5)
        return save(figure, stem)


def _look(number: int) -> dict[str, Any]:
    dashes = _DASHES[(number // len(COLOURS) + number) % len(_DASHES)]
    return {"color": COLOURS[number % len(COLOURS)], "ls": dashes, "lw": 1.7}


def _scale(curves: Sequence[Curve]) -> tuple[float, str]:
    """Returns the unit of the horizontal axis in steps or seconds, and the label of the axis."""
    if curves[0].by == "steps":
        return 1.0, "steps of single slots"
    last = max(float(curve.x[-1]) for curve in curves)
    unit, name = next((unit, name) for least, unit, name in _UNITS if last >= least)
    return unit, f"wall time of a seed, {name}"


def _entry(run: str, curves: Sequence[Curve]) -> str:
    own = [curve for curve in curves if curve.run == run]
    there, planned = max(curve.drawn for curve in own), own[0].planned
    if there == 1:
        return f"{run} (1 seed)"
    return f"{run} ({there} seeds)" if there == planned else f"{run} ({there} of {planned} seeds)"


def _draw(axes: Axes, curve: Curve, scale: float, look: Mapping[str, Any]) -> None:
    x = curve.x / scale
    few = curve.by == "steps" and len(x) < _FEW
    points: dict[str, Any] = {"marker": "o", "ms": 4.0} if few or len(x) == 1 else {}
    axes.plot(x, curve.iqm, zorder=3, **look, **points)
    if curve.low is not None and curve.high is not None:
        axes.fill_between(
            x, curve.low, curve.high, color=look["color"], alpha=0.18, linewidth=0, zorder=2
        )
