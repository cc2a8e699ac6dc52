"""The sheet that a picture is drawn on: where its panels lie, its head, and its files."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 200
"""Of the PNG."""

STYLE: dict[str, Any] = {
    "font.size": 9.0,
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
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and the file is small
    "svg.hashsalt": "gamut",  # else the names of clip paths differ from run to run
    "path.simplify": False,
}
"""Of everything drawn here, as matplotlib's settings."""

COLUMNS = 3
"""The most panels side by side."""

LEFT = 0.95
"""Inches left of the panels, for the scale and its name."""

# Inches.
_PANEL, _MANY_PANEL, _GUTTER, _RIGHT = 5.8, 3.3, 0.3, 0.2
_SCORE, _GAP_HEIGHT, _BETWEEN, _BELOW, _ABOVE = 2.7, 1.35, 0.16, 0.62, 0.32
_HEAD, _LEGEND_ROW, _FOREST_ROW = 0.68, 0.2, 0.27


class Sheet:
    """The figure and where its panels lie, in inches from the top left.

    Args:
        panels: number of arms with curves.
        forest_rows: rows of the panel at the bottom; 0 for none.
        legend_rows: rows of the legend.
        crowded: whether the numbers below the panels need more room, see ``is_crowded``.
    """

    def __init__(
        self, panels: int, forest_rows: int, legend_rows: int, *, crowded: bool = False
    ) -> None:
        self._columns, self._panel = _columns(panels)
        self.head = _HEAD + _LEGEND_ROW * legend_rows
        self._title = _ABOVE if panels > 1 else 0.2
        self._block = self._title + _SCORE + _BETWEEN + _GAP_HEIGHT + _BELOW
        self._block += 0.28 if crowded else 0.0
        self._forest = _FOREST_ROW * forest_rows
        blocks = math.ceil(panels / self._columns)
        self.width = LEFT + _panels_width(panels) + _RIGHT
        self._forest_top = self.head + blocks * self._block + _ABOVE
        below = self._forest_top + self._forest + _BELOW if forest_rows else 0.0
        self.height = below or self.head + blocks * self._block
        self.figure = Figure(figsize=(self.width, self.height), dpi=DPI, facecolor="white")
        FigureCanvasAgg(self.figure)

    def panel(self, number: int) -> tuple[Axes, Axes]:
        """Returns the axes of the scores and of the gap below them."""
        row, column = divmod(number, self._columns)
        x = LEFT + column * (self._panel + _GUTTER)
        y = self.head + row * self._block + self._title
        score = self._axes(x, y, self._panel, _SCORE)
        return score, self._axes(x, y + _SCORE + _BETWEEN, self._panel, _GAP_HEIGHT)

    def forest(self, names: int) -> Axes:
        """Returns the axes at the bottom, beside names of so many letters."""
        left = max(LEFT, 0.35 + 0.075 * names)
        return self._axes(left, self._forest_top, self.width - left - _RIGHT, self._forest)

    def _axes(self, x: float, y: float, width: float, height: float) -> Axes:
        place = (x / self.width, 1 - (y + height) / self.height)
        return self.figure.add_axes((*place, width / self.width, height / self.height))


def _columns(panels: int) -> tuple[int, float]:
    """Panels side by side, and how wide each is."""
    return min(panels, COLUMNS), _PANEL if panels == 1 else _MANY_PANEL


def _panels_width(panels: int) -> float:
    columns, width = _columns(panels)
    return columns * width + (columns - 1) * _GUTTER


def is_crowded(ns: Sequence[int], panels: int) -> bool:
    """Returns whether numbers below a panel would touch if they were not turned."""
    return sum(len(f"{n:,}") + 2 for n in ns) * 0.075 > _columns(panels)[1]


def legend_shape(entries: Sequence[Line2D | Patch], panels: int) -> tuple[int, int]:
    """Returns rows and columns of a legend that fits above the panels."""
    # Letters are about 0.065 inches wide.
    widest = 0.75 + 0.065 * max(len(str(entry.get_label())) for entry in entries)
    columns = max(1, min(len(entries), int(_panels_width(panels) / widest)))
    return math.ceil(len(entries) / columns), columns


def write_head(
    sheet: Sheet, title: str, subtitle: str, entries: Sequence[Line2D | Patch], columns: int
) -> None:
    """Writes the title, the line below it and the legend, in so many columns."""

    def below_top(inches: float) -> float:
        return 1 - inches / sheet.height

    left, figure = LEFT / sheet.width, sheet.figure
    figure.text(left, below_top(0.14), title, fontsize=12, fontweight="bold", va="top")
    figure.text(left, below_top(0.4), subtitle, fontsize=8.5, color="#555555", va="top")
    figure.legend(
        handles=list(entries),
        loc="upper left",
        bbox_to_anchor=(left, below_top(_HEAD)),
        ncols=columns,
        borderaxespad=0,
        borderpad=0,
        handlelength=3.2,
        columnspacing=1.4,
        labelspacing=0.35,
        fontsize=8.5,
    )


def figure_of(axes: Axes) -> Figure:
    """Returns the figure that axes belong to."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure), "every panel belongs to the sheet"
    return figure


def width_of(axes: Axes) -> float:
    """Returns the width of axes, in inches."""
    return float(axes.get_position().width * figure_of(axes).get_figwidth())


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Writes the PNG and the SVG, each whole or not at all, and returns their paths.

    Raises:
        OSError: one cannot be written.
    """
    files = (stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg"))
    for path, about in zip(files, ({"Software": None}, {"Date": None}), strict=True):
        image = io.BytesIO()
        figure.savefig(image, format=path.suffix[1:], dpi=DPI, metadata=about)
        temporary = path.with_name(f".{path.name}.tmp")
        temporary.write_bytes(image.getvalue())
        temporary.replace(path)  # a reader sees the old picture or the new one
    return files
